"""A real local store that fails at a chosen call: the operation runs, or does not, and then the error comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lockgate import Job
from lockgate.engine.run.store import no_progress
from lockgate.model.files import Unknown
from lockgate.stores.local import LocalStore


class Stop(Exception):
    """What a faulty call raises."""


class FaultyStore(LocalStore):
    """Counts calls by name; `fail_at` (name, ordinal from 0) raises before that call, `lose` loses a rename's answer
    after it took place, `before` is called before every call."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(store.url)
        self.calls: list[tuple[str, Any]] = []
        self.fail_at: Callable[[str, Any], bool] = lambda name, subject: False
        self.lose: Callable[[str], bool] = lambda target: False
        self.before: Callable[[str, Any], None] = lambda name, subject: None

    def _note(self, name: str, subject: Any) -> None:
        self.calls.append((name, subject))
        self.before(name, subject)
        if self.fail_at(name, subject):
            raise Stop(f"{name} {subject}")

    async def rename_files(self, renames: Sequence[Any], progress: Any = no_progress) -> list[Any]:
        self._note("rename_files", renames)
        outcomes = await super().rename_files(renames, progress)
        return [
            Unknown("answer lost") if self.lose(rename.target) else outcome
            for rename, outcome in zip(renames, outcomes, strict=True)
        ]

    async def delete_files(self, paths: Sequence[str], progress: Any = no_progress) -> list[Any]:
        self._note("delete_files", paths)
        return await super().delete_files(paths, progress)

    async def delete_directories(self, paths: Sequence[str], progress: Any = no_progress) -> list[Any]:
        self._note("delete_directories", paths)
        return await super().delete_directories(paths, progress)

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[Any]:
        self._note("make_directories", paths)
        return await super().make_directories(paths, within=within)

    async def create_file(self, path: str, content: bytes) -> Any:
        self._note("create_file", path)
        return await super().create_file(path, content)

    async def write_file(self, path: str, content: bytes) -> Any:
        self._note("write_file", path)
        return await super().write_file(path, content)

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[Any]:
        self._note("read_files", paths)
        return await super().read_files(paths, bytes_max=bytes_max)

    async def stat_files(self, paths: Sequence[str]) -> list[Any]:
        self._note("stat_files", paths)
        return await super().stat_files(paths)


def make_faulty(job: Job) -> FaultyStore:
    """Put a faulty store in the place of the job's own, and return it."""
    store = FaultyStore(job._open())
    job._store = store
    return store

"""A real local store that lets others go on at a chosen call: what comes before it or after it is awaited there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from lockgate import Job
from lockgate.engine.run.store import no_progress
from lockgate.stores.local import LocalStore

Moment = Callable[[str, Any], Awaitable[None]]


async def _nothing(name: str, subject: Any) -> None:
    return None


class InterleavedStore(LocalStore):
    """`before` and `after` are awaited with the call's name and its paths."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(store.url)
        self.before: Moment = _nothing
        self.after: Moment = _nothing

    async def _call(self, name: str, subject: Any, call: Awaitable[Any]) -> Any:
        try:
            await self.before(name, subject)
        except BaseException:
            call.close()  # type: ignore[attr-defined]  # it was never awaited
            raise
        answer = await call
        await self.after(name, subject)
        return answer

    async def rename_files(self, renames: Sequence[Any], progress: Any = no_progress) -> list[Any]:
        return await self._call("rename_files", renames, super().rename_files(renames, progress))

    async def delete_files(self, paths: Sequence[str], progress: Any = no_progress) -> list[Any]:
        return await self._call("delete_files", paths, super().delete_files(paths, progress))

    async def delete_directories(self, paths: Sequence[str], progress: Any = no_progress) -> list[Any]:
        return await self._call("delete_directories", paths, super().delete_directories(paths, progress))

    async def create_file(self, path: str, content: bytes) -> Any:
        return await self._call("create_file", path, super().create_file(path, content))

    async def write_file(self, path: str, content: bytes) -> Any:
        return await self._call("write_file", path, super().write_file(path, content))

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[Any]:
        return await self._call("read_files", paths, super().read_files(paths, bytes_max=bytes_max))

    async def stat_files(self, paths: Sequence[str]) -> list[Any]:
        return await self._call("stat_files", paths, super().stat_files(paths))


def interleave(job: Job) -> InterleavedStore:
    """Put an interleaved store in the place of the job's own, and return it."""
    store = InterleavedStore(job._open())
    job._store = store
    return store

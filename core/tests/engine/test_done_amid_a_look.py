"""A request without an answer is carried out while who sent it looks what has become of it: between two reads that are
under way at once, of which the store answers the last one first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from faulty_store import FaultyStore
from lockgate import Job, TaskAttempt
from lockgate.engine.run.store import no_progress
from lockgate.errors import OutcomeUnknown
from lockgate.model.files import Unknown


class _SlowStore(FaultyStore):
    """Does not answer the rename by which a task commits, and carries it out once its target has been looked at `looks`
    more times, and before its source is, of those that are looked at with it."""

    held: Any = None
    looks = 1

    async def rename_files(self, renames: Sequence[Any], progress: Any = no_progress) -> list[Any]:
        if self.held is None and renames[0].target.endswith("task_000000-manifest.json"):
            self.held = renames
        if self.held == renames:
            return [Unknown("answer lost") for _ in renames]
        return await super().rename_files(renames, progress)

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[Any]:
        found = {}
        for path in reversed(paths):
            (found[path],) = await super().read_files([path], bytes_max=bytes_max)
            if self.held and path == self.held[0].target:
                self.looks -= 1
                if not self.looks:
                    await FaultyStore.rename_files(self, self.held)
                    self.held = ()
        return [found[path] for path in paths]


def _attempt(root: Path) -> TaskAttempt:
    job = Job(root, protocol="v2", accept_unsafe=True, patience_seconds=0.1)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/a") as file:
        file.write(b"row")
    return attempt


def _slow(attempt: TaskAttempt) -> _SlowStore:
    store = _SlowStore(attempt._job._open())  # type: ignore[arg-type]
    attempt._job._store = store
    return store


def test_complete_a_task_of_v2_whose_end_comes_amid_the_look_keeps_its_files(tmp_path: Path) -> None:
    """It took them out, left its manifest, and returned a receipt when it was asked again."""
    attempt = _attempt(tmp_path)
    _slow(attempt)
    with pytest.raises(OutcomeUnknown, match="cannot tell whether attempt_000000_0 has committed"):
        attempt.commit()
    assert (tmp_path / "p=1/a").read_bytes() == b"row"
    assert attempt._job.commit([attempt.commit()]).files == 1
    assert (tmp_path / "p=1/a").read_bytes() == b"row"


def test_exclusive_an_abort_of_v2_finds_what_is_renamed_amid_its_look(tmp_path: Path) -> None:
    attempt = _attempt(tmp_path)
    store = _slow(attempt)
    store.looks = 3  # the commit's, and of the abort's the last
    with pytest.raises(OutcomeUnknown):
        attempt.commit()
    attempt.abort()
    assert store.held == ()
    assert not (tmp_path / "p=1/a").exists()

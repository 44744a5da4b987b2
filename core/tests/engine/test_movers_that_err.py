"""Complete: a job's files are all there, whatever its movers answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from lockgate import Job
from lockgate.api.moved_shares import moved
from lockgate.engine.renames import move_files
from lockgate.model.shares import Moved, Share
from msgspec.structs import replace


class ForgetfulMovers:
    """Movers that answer for all files of their shares, and have left the last one of the first share, or all."""

    def __init__(self, job: Job, *, leave_all: bool) -> None:
        self._job = job
        self._leave_all = leave_all

    def wanted(self, files: int) -> int:
        return 2

    async def move(self, shares: Sequence[Share]) -> list[Moved]:
        first, *others = shares
        if not self._leave_all:
            part = first.parts[-1]
            some = replace(first, parts=(*first.parts[:-1], replace(part, end=part.end - 1)))
            for share in (some, *others):
                await asyncio.to_thread(moved, self._job, share)
        return [Moved(share.files) for share in shares]


@pytest.mark.parametrize("leave_all", [False, True])
def test_complete_when_a_mover_says_that_it_has_renamed_what_it_has_not(table, leave_all) -> None:
    """What is still staged when a job has committed is deleted with the job's directory."""
    job = table.job()
    receipts = []
    for task in range(3):
        attempt = job.task_attempt(task)
        attempt.setup()
        for number in range(2):
            with attempt.open(f"p={number}/{task}") as file:
                file.write(b"row")
        receipts.append(attempt.commit())
    summary = job.commit(receipts, movers=ForgetfulMovers(job, leave_all=leave_all))
    assert summary.files == 6
    assert table.read() == {f"p={number}/{task}": b"row" for task in range(3) for number in range(2)}
    assert "movers" not in summary.iostatistics.counters, "the driver has renamed the files itself"


class HangingMovers:
    """Movers of which one hangs before its last file, the others having ended, until it is woken."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.was_ended = False

    def wanted(self, files: int) -> int:
        return 2

    async def move(self, shares: Sequence[Share]) -> list[Moved]:
        first, *others = shares
        part = first.parts[-1]
        some = replace(first, parts=(*first.parts[:-1], replace(part, end=part.end - 1)))
        for share in (some, *others):
            await asyncio.to_thread(moved, self._job, share)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_ended = True
            raise
        raise AssertionError("nobody wakes it")


def test_complete_when_a_mover_hangs_for_long(table, monkeypatch) -> None:
    """A process that stands still has a task of Spark's at work, and the commit waited for it without end."""
    monkeypatch.setattr(move_files, "MOVERS_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(move_files, "MOVERS_STALLED_SECONDS", 0.2)
    job = table.job()
    receipts = []
    for task in range(3):
        attempt = job.task_attempt(task)
        attempt.setup()
        for number in range(2):
            with attempt.open(f"p={number}/{task}") as file:
                file.write(b"row")
        receipts.append(attempt.commit())
    movers = HangingMovers(job)
    assert job.commit(receipts, movers=movers).files == 6
    assert movers.was_ended
    assert table.read() == {f"p={number}/{task}": b"row" for task in range(3) for number in range(2)}


class SlowMovers:
    """Movers that rename a file each time that the driver looks, and longer in all than it would wait for one."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def wanted(self, files: int) -> int:
        return 2

    async def move(self, shares: Sequence[Share]) -> list[Moved]:
        answers = []
        for share in shares:
            for part in share.parts:
                for start in range(part.begin, part.end):
                    one = replace(share, parts=(replace(part, begin=start, end=start + 1),))
                    await asyncio.to_thread(moved, self._job, one)
                    await asyncio.sleep(0.1)
            answers.append(Moved(share.files))
        return answers


def test_movers_that_get_on_are_left_at_work_beside_files_of_attempts_that_do_not_count(table, monkeypatch) -> None:
    """As many renames as such attempts had files were not seen, and movers at work were taken for ones that hang."""
    monkeypatch.setattr(move_files, "MOVERS_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(move_files, "MOVERS_STALLED_SECONDS", 1.0)
    job = table.job()
    lost = job.task_attempt(0, 1)
    lost.setup()
    for number in range(30):
        with lost.open(f"p={number}/lost") as file:
            file.write(b"row")
    attempt = job.task_attempt(0)
    attempt.setup()
    for number in range(20):
        with attempt.open(f"p={number}/0") as file:
            file.write(b"row")
    summary = job.commit([attempt.commit()], movers=SlowMovers(job))
    assert summary.files == 20
    assert "movers" in summary.iostatistics.counters

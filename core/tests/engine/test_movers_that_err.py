"""Complete: a job's files are all there, whatever its movers answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from lockgate import Job, Receipt
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


ROWS = {f"p={number}/{task}": b"row" for task in range(3) for number in range(2)}


def three_tasks(table) -> tuple[Job, list[Receipt]]:
    """A job whose tasks have committed these."""
    job = table.job()
    receipts = []
    for task in range(3):
        attempt = job.task_attempt(task)
        attempt.setup()
        for number in range(2):
            with attempt.open(f"p={number}/{task}") as file:
                file.write(b"row")
        receipts.append(attempt.commit())
    return job, receipts


@pytest.mark.parametrize("leave_all", [False, True])
def test_complete_when_a_mover_says_that_it_has_renamed_what_it_has_not(table, leave_all) -> None:
    """What is still staged when a job has committed is deleted with the job's directory."""
    job, receipts = three_tasks(table)
    summary = job.commit(receipts, movers=ForgetfulMovers(job, leave_all=leave_all))
    assert summary.files == 6
    assert table.read() == ROWS
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
        try:
            for share in (some, *others):
                await asyncio.to_thread(moved, self._job, share)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_ended = True
            raise
        raise AssertionError("nobody wakes it")


def test_complete_when_a_mover_hangs_for_long(table, monkeypatch) -> None:
    """A process that stands still has a task of Spark's at work, and the commit waited for it without end."""
    monkeypatch.setattr(move_files, "MOVERS_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(move_files, "MOVERS_STALLED_SECONDS", 0.2)
    job, receipts = three_tasks(table)
    movers = HangingMovers(job)
    assert job.commit(receipts, movers=movers).files == 6
    assert movers.was_ended
    assert table.read() == ROWS


class SlowMovers:
    """Movers that rename one file each time that the driver looks."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._turn, self._moved = asyncio.Semaphore(0), asyncio.Semaphore(0)

    def wanted(self, files: int) -> int:
        return 2

    async def looked_at(self) -> None:
        """Returns once another file is renamed, or all are."""
        self._turn.release()
        await self._moved.acquire()

    async def move(self, shares: Sequence[Share]) -> list[Moved]:
        for share in shares:
            for part in share.parts:
                for start in range(part.begin, part.end):
                    await self._turn.acquire()
                    one = replace(share, parts=(replace(part, begin=start, end=start + 1),))
                    await asyncio.to_thread(moved, self._job, one)
                    self._moved.release()
        for _ in range(1_000):
            self._moved.release()
        return [Moved(share.files) for share in shares]


def test_movers_that_get_on_are_left_at_work_beside_files_of_attempts_that_do_not_count(table, monkeypatch) -> None:
    """As many renames as such attempts had files were not seen, and movers at work were taken for ones that hang."""
    job = table.job()
    movers = SlowMovers(job)
    count = move_files.count_listed

    async def look(run, plan) -> int:
        await movers.looked_at()
        return await count(run, plan)

    monkeypatch.setattr(move_files, "count_listed", look)
    monkeypatch.setattr(move_files, "MOVERS_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(move_files, "MOVERS_STALLED_SECONDS", 0.0)
    lost = job.task_attempt(0, 1)
    lost.setup()
    for number in range(12):
        with lost.open(f"p={number}/lost") as file:
            file.write(b"row")
    attempt = job.task_attempt(0)
    attempt.setup()
    for number in range(8):
        with attempt.open(f"p={number}/0") as file:
            file.write(b"row")
    summary = job.commit([attempt.commit()], movers=movers)
    assert summary.files == 8
    assert "movers" in summary.iostatistics.counters

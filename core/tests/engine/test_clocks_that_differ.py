"""Clocks that are wrong by hours, either way: a driver's, its rival's, the store's. Who is dead is told by the store's
dates alone."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, LockgateError, Receipt, collect_garbage
from lockgate.api import outside
from lockgate.api.jobs import abort, commit, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.record.signs_of_life import SILENCE
from lockgate.errors import CommitFenced, DestinationConflict
from lockgate.protocols.markers import take_out
from lockgate.stores.local import LocalStore

ALIVE = 900.0
HOURS = (-30.0, -2.0, 2.0, 30.0)
"""Within a day and beyond it: after a day of silence a job counts as dead of which nothing else is known."""

Shift = Callable[[float], None]


@pytest.fixture
def this_clock(monkeypatch: pytest.MonkeyPatch) -> Shift:
    """The clock of whoever begins something from now on is so many hours ahead of the right time."""

    def shift(hours: float) -> None:
        clock = SimpleNamespace(time=lambda: time.time() + hours * 3600, monotonic=time.monotonic)
        monkeypatch.setattr(outside, "time", clock)

    return shift


def elsewhere(table, job: Job) -> None:
    """Its driver runs on another machine, of whose processes nothing is known here."""
    marker = table.root / job.layout.job_marker
    seen = marker.stat().st_mtime
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"host": "elsewhere"}))
    os.utime(marker, (seen, seen))


def long_since(table, seconds: float, *, staged: bool = True) -> None:
    """No job has shown anything for so long; what is `staged` has its date as a part of its identity."""
    then = time.time() - seconds
    for path in [*(table.root / "_lockgate/jobs").rglob("*"), *(table.root / "_temporary").rglob("*")]:
        if staged or path.suffix == ".json":
            os.utime(path, (then, then))


def die_in_commit(job: Job, receipt: Receipt) -> None:
    """The driver dies when it has claimed the job."""
    store = make_faulty(job)
    dead: list[str] = []

    def fails(call: str, subject: object) -> bool:
        dead.extend([call] if call == "create_file" and "commit-0001" in str(subject) else [])
        return bool(dead)

    store.fail_at = fails
    with pytest.raises((Stop, LockgateError)):
        job.commit([receipt])
    assert dead


UNSAFE = {"accept_unsafe": True, "alive_seconds": ALIVE}


def markers_job(table, **options: object) -> Job:
    return table.job(protocol="markers", **UNSAFE, **options)


def a_file(table, job: Job, name: str = "f") -> Receipt:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"{name}-{attempt.tag}" if job.needs_tags else name) as file:
        file.write(b"x")
    return attempt.commit()


@pytest.mark.parametrize("hours", HOURS)
def test_a_writer_of_markers_whose_clock_is_wrong_leaves_one_at_work_alone(table, this_clock: Shift, hours) -> None:
    job = markers_job(table)
    receipt = a_file(table, job)
    elsewhere(table, job)
    this_clock(hours)
    markers_job(table)
    this_clock(0)
    job.commit([receipt])
    assert list(table.read().values()) == [b"x"]


@pytest.mark.parametrize("hours", HOURS)
def test_a_writer_at_work_is_no_dead_one_to_a_writer_of_the_same_file_whose_clock_is_wrong(
    table, this_clock: Shift, hours: float
) -> None:
    """It was passed over as dead, and both wrote to one file group."""
    first = markers_job(table, early_conflicts=True)
    attempt = first.task_attempt(0)
    attempt.setup()
    with attempt.open(f"p=1/group_{attempt.tag}_1.parquet") as file:
        file.write(b"1")
    receipt = attempt.commit()
    elsewhere(table, first)
    this_clock(hours)
    second = markers_job(table, early_conflicts=True)
    attempt = second.task_attempt(0)
    attempt.setup()
    with pytest.raises(DestinationConflict, match="writes to the same file group"):
        attempt.open(f"p=1/group_{attempt.tag}_2.parquet")
    second.abort()
    first.commit([receipt])
    assert list(table.read().values()) == [b"1"]


@pytest.mark.parametrize("hours", HOURS)
def test_a_writer_of_markers_whose_clock_is_wrong_ends_one_that_is_dead(table, this_clock: Shift, hours) -> None:
    job = markers_job(table)
    a_file(table, job)
    elsewhere(table, job)
    long_since(table, (SILENCE + 1) * ALIVE)
    this_clock(hours)
    markers_job(table)
    assert table.read() == {}


class Held:
    """A job commit that stands still in its phase `moving`, in a thread of its own."""

    def __init__(self, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: list[BaseException] = []
        stands, goes_on = threading.Event(), threading.Event()
        monkeypatch.setattr(LocalStore, "rename_files", self._holding(LocalStore.rename_files, stands, goes_on))
        taking = self._holding(take_out.take_out_uncommitted, stands, goes_on)
        monkeypatch.setattr(take_out, "take_out_uncommitted", taking)
        self._goes_on = goes_on

        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.errors.append(error)

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert stands.wait(60)

    def _holding(self, inner, stands: threading.Event, goes_on: threading.Event):
        async def held(first, second, *more, **named):
            moves = not isinstance(first, LocalStore) or any(not each.target.startswith("_lockgate") for each in second)
            if moves and not stands.is_set():
                stands.set()
                await asyncio.to_thread(goes_on.wait)
            return await inner(first, second, *more, **named)

        return held

    def end(self) -> None:
        self._goes_on.set()
        self._thread.join(60)
        if self.errors:
            raise self.errors[0]


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], object]], Held]]:
    held: list[Held] = []

    def begin(work: Callable[[], object]) -> Held:
        held.append(Held(work, monkeypatch))
        return held[-1]

    yield begin
    for each in held:
        each._goes_on.set()


@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("protocol", ["manifest", "v1", "hive", "markers"])
def test_a_commit_at_work_is_not_recovered_however_wrong_its_drivers_clock(
    table, this_clock: Shift, hold, hours: float, protocol: str
) -> None:
    this_clock(hours)
    job = table.job(protocol=protocol, **UNSAFE)
    receipt = a_file(table, job)
    driver = hold(lambda: job.commit([receipt]))
    this_clock(0)
    told = JobOptions(alive_seconds=ALIVE)
    with pytest.raises(CommitFenced, match="may be at work"):
        recover(table.root, job.job_id, options=told)
    assert recover(table.root, options=told)[job.job_id].outcome == "at work"
    shown = {state.job_id: state.status for state in jobs(table.root, options=told)}
    assert shown[job.job_id] is JobStatus.COMMITTING
    if protocol == "markers":
        markers_job(table)
    driver.end()
    assert list(table.read().values()) == [b"x"]


@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive", "markers", "direct", "stocator"])
def test_a_commit_that_is_dead_is_recovered_however_wrong_its_drivers_clock(
    table, this_clock: Shift, hours: float, protocol: str
) -> None:
    this_clock(hours)
    job = table.job(protocol=protocol, **UNSAFE)
    receipt = a_file(table, job)
    die_in_commit(job, receipt)
    this_clock(0)
    told = JobOptions(alive_seconds=ALIVE)
    with pytest.raises(CommitFenced, match="may be at work"):
        recover(table.root, job.job_id, options=told)
    long_since(table, 2 * ALIVE, staged=False)
    assert recover(table.root, job.job_id, options=told)[job.job_id].outcome == "finished"
    assert list(table.read().values()) == [b"x"]


@pytest.mark.parametrize("hours", HOURS)
@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive", "markers", "direct", "stocator"])
def test_gc_goes_by_the_stores_dates_however_wrong_its_clock_or_a_drivers(
    table, this_clock: Shift, hours: float, protocol: str
) -> None:
    """A driver elsewhere, of which nothing is known but its signs of life."""
    this_clock(hours)
    job = table.job(protocol=protocol, **UNSAFE)
    receipt = a_file(table, job)
    elsewhere(table, job)
    told = JobOptions(alive_seconds=ALIVE)
    for looks in (0.0, -hours, 2 * hours):
        this_clock(looks)
        assert [each.action for each in collect_garbage(table.root, options=told)] == ["kept"]
        with pytest.raises(CommitFenced, match="may be at work"):
            abort(table.root, job.job_id, told)
        with pytest.raises(CommitFenced, match="may be at work"):
            commit(table.root, job.job_id, options=told)
    this_clock(hours)
    job.commit([receipt])
    assert list(table.read().values()) == [b"x"]
    again = table.job(protocol=protocol, **UNSAFE)
    a_file(table, again, "g")
    elsewhere(table, again)
    long_since(table, (SILENCE + 1) * ALIVE)
    this_clock(-hours)
    found = collect_garbage(table.root, options=told)
    assert [each.action for each in found if not each.path.startswith("_temporary/")] == ["deleted"]
    # What a task attempt of `v2` and the like had put in place goes with its job.
    assert list(table.read().values()) == [b"x"]


def test_a_job_whose_files_are_dated_ahead_is_told_so_and_goes_where_nobody_is_taken_for_alive(table) -> None:
    """Its host's clock was wrong when it died: a day ahead, it looked as if it had renewed its files just now."""
    job = table.job()
    table.task(job, {"a": b"x"})
    elsewhere(table, job)
    long_since(table, -86400.0)
    with pytest.raises(CommitFenced, match=r"its files are dated 86... s ahead of this host's clock"):
        abort(str(table.root), job.job_id)
    nobody = JobOptions(alive_seconds=0.0)
    (state,) = jobs(str(table.root), options=nobody)
    assert state.status is JobStatus.ABANDONED
    collect_garbage(str(table.root), options=nobody)
    assert not table.left_over()


def test_a_commit_whose_record_is_dated_ahead_is_recovered_where_nobody_is_taken_for_alive(table) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"x"})
    die_in_commit(job, receipt)
    for path in (table.root / job.layout.job_directory).glob("commit*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"given_up": False}))
    elsewhere(table, job)
    long_since(table, -86400.0, staged=False)
    nobody = JobOptions(alive_seconds=0.0)
    (state,) = jobs(str(table.root), options=nobody)
    assert state.status is JobStatus.CRASHED
    recover(str(table.root), job.job_id, options=nobody)
    assert table.read() == {"a": b"x"}

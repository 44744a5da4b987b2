"""A job at work is left alone, whatever its store shows of it; one that is over is known as such."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from lockgate import Job, collect_garbage
from lockgate.api import outside
from lockgate.api.jobs import abort, commit, jobs
from lockgate.api.sign_of_life import SignOfLife
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.record.signs_of_life import SILENCE, show_life
from lockgate.errors import CommitFenced, DestinationConflict
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.options import JobOptions
from lockgate.stores.local import LocalStore

ALIVE = 900.0
GONE = 2**22 - 1


@pytest.fixture
def later(table, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """It is so many seconds later, on the clock of whoever looks from now on, and on that of the store."""
    write_file = LocalStore.write_file

    def shift(seconds: float) -> None:
        async def write_later(store: LocalStore, path: str, content: bytes) -> FileStatus:
            status = await write_file(store, path, content)
            now = time.time() + seconds
            os.utime(table.root / path, (now, now))
            return status

        clock = SimpleNamespace(time=lambda: time.time() + seconds, monotonic=time.monotonic)
        monkeypatch.setattr(outside, "time", clock)
        monkeypatch.setattr(LocalStore, "write_file", write_later)

    return shift


def _driven_by(table, job: Job, **driver: object) -> None:
    """As if another process had set the job up."""
    marker = table.root / job.layout.job_marker
    marker.write_text(json.dumps(json.loads(marker.read_text()) | driver))


def _gc(table) -> list[str]:
    return [each.action for each in collect_garbage(str(table.root), options=JobOptions(alive_seconds=ALIVE))]


def test_gc_leaves_a_silent_job_whose_driver_runs_on_this_host(table, later) -> None:
    job = table.job()
    receipt = table.task(job, {"f": b"x"})
    later(SILENCE * ALIVE * 2)
    assert _gc(table) == ["kept"]
    job.commit([receipt])
    assert table.read() == {"f": b"x"}


@pytest.mark.parametrize(
    ("driver", "seconds_ago", "action"),
    [
        ({"process": GONE}, ALIVE / 2, "kept"),
        ({"process": GONE}, ALIVE + 60, "deleted"),
        ({"host": "elsewhere"}, ALIVE + 60, "kept"),
        ({"host": "elsewhere"}, SILENCE * ALIVE + 60, "deleted"),
        ({"process": 0}, ALIVE + 60, "kept"),
    ],
)
def test_gc_judges_by_the_last_sign_and_by_what_is_known_of_the_driver(
    table, later, driver: dict[str, object], seconds_ago: float, action: str
) -> None:
    job = table.job()
    table.task(job, {"f": b"x"})
    _driven_by(table, job, **driver)
    later(seconds_ago)
    assert _gc(table) == [action]


def test_gc_leaves_a_job_whose_attempt_shows_life_while_its_upload_is_invisible(table, later) -> None:
    job = table.job()
    _driven_by(table, job, process=GONE)
    later(SILENCE * ALIVE * 2)
    sign = table.root / job.layout.sign_of_life("attempt_000000_0")
    assert asyncio.run(show_life(job._run(), "attempt_000000_0"))
    now = outside.time.time()
    os.utime(sign, (now, now))
    assert _gc(table) == ["kept"]
    assert jobs(str(table.root))[0].status is JobStatus.RUNNING


def test_continuity_a_sign_of_life_does_not_bring_a_job_back(table) -> None:
    job = table.job()
    run = job._run()
    job.abort()
    assert not asyncio.run(show_life(run, "driver"))
    assert not (table.root / "_lockgate/jobs").exists()
    another = Job(job.url, job_id=job.job_id)
    another.setup()
    assert not asyncio.run(show_life(run, "driver")), "another job of this id is at work, not this one"


def test_a_driver_and_an_attempt_renew_their_signs_until_they_end(table, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(SignOfLife, "_wait", lambda self: shown.append(self._who))
    job = table.job()
    attempt = pickle.loads(pickle.dumps(job)).task_attempt(0)
    attempt.setup()
    signs = [job._sign, attempt._sign]
    with attempt.open("f") as file:
        file.write(b"x")
    job.commit([attempt.commit()])
    assert shown == ["driver", "attempt_000000_0"]
    assert all(sign is not None and sign._stopped.is_set() for sign in signs)
    assert job._sign is attempt._sign is None


def test_no_sign_is_shown_where_nobody_is_taken_for_alive(table) -> None:
    job = table.job(alive_seconds=0.0)
    assert job._sign is not None
    assert job._sign._timer is None


def test_a_job_at_work_is_not_committed_by_a_stranger_who_found_some_of_its_manifests(table, later) -> None:
    job = table.job()
    url = str(table.root)
    receipts = [table.task(job, {"first": b"1"}, 0)]
    with pytest.raises(CommitFenced, match="may be at work"):
        commit(url, job.job_id)
    later(ALIVE + 60)
    with pytest.raises(CommitFenced, match=r"its driver[\s\S]*is alive"):
        commit(url, job.job_id)
    receipts.append(table.task(job, {"second": b"2"}, 1))
    job.commit(receipts)
    assert table.read() == {"first": b"1", "second": b"2"}


def test_a_job_that_is_over_is_committed_by_anybody(table, later) -> None:
    url = str(table.root)
    jobs = [table.job() for _ in range(3)]
    receipts = [table.task(job, {f"f{number}": b"x"}) for number, job in enumerate(jobs)]
    _driven_by(table, jobs[0], process=GONE)
    later(ALIVE + 60)
    commit(url, jobs[0].job_id)
    commit(url, jobs[1].job_id, force=True)
    commit(url, jobs[2].job_id, [receipts[2]])
    assert set(table.read()) == {"f0", "f1", "f2"}


def test_the_driver_of_a_job_may_be_another_process_than_the_one_that_sets_it_up(table, later) -> None:
    """As in Spark, where Python processes plan and commit, and end, while the JVM stays."""
    job = Job(str(table.root), driver_process=GONE)
    job.setup()
    assert json.loads((table.root / job.layout.job_marker).read_text())["process"] == GONE
    later(ALIVE + 60)
    assert _gc(table) == ["deleted"]


def test_a_job_at_work_is_not_aborted_by_a_stranger_without_force(table, later) -> None:
    url = str(table.root)
    job = table.job()
    receipt = table.task(job, {"f": b"1"})
    with pytest.raises(CommitFenced, match="may be at work") as caught:
        abort(url, job.job_id)
    assert "--force" in caught.value.next_step
    later(ALIVE + 60)
    with pytest.raises(CommitFenced, match=r"its driver[\s\S]*is alive"):
        abort(url, job.job_id)
    job.commit([receipt])
    assert table.read() == {"f": b"1"}


def test_a_job_that_is_over_is_aborted_by_anybody_and_every_other_by_force(table, later) -> None:
    url = str(table.root)
    jobs = [table.job() for _ in range(3)]
    for number, job in enumerate(jobs):
        table.task(job, {f"f{number}": b"x"})
    (table.root / jobs[2].layout.job_marker).write_text("damaged")
    abort(url, jobs[1].job_id, force=True)
    _driven_by(table, jobs[0], process=GONE)
    later(ALIVE + 60)
    abort(url, jobs[0].job_id)
    abort(url, jobs[2].job_id)
    assert table.everything() == {}


def test_a_refused_job_whose_driver_lives_is_aborted_by_force_only(table) -> None:
    url = str(table.root)
    table.write({"old": b"1"})
    job = table.job()
    receipt = table.task(job, {"new": b"2"})
    job.options = job.options.replace(conflict="fail")
    with pytest.raises(DestinationConflict):
        job.commit([receipt])
    with pytest.raises(CommitFenced, match="may be at work"):
        abort(url, job.job_id)
    abort(url, job.job_id, force=True)
    assert table.left_over() == []


def test_a_job_whose_driver_on_this_host_is_gone_is_abandoned_at_once_unless_its_tasks_show_life(table, later) -> None:
    url = str(table.root)
    idle, busy = table.job(), table.job()
    asyncio.run(show_life(idle._run(), "driver"))
    busy.task_attempt(0).setup()
    assert {state.status for state in jobs(url)} == {JobStatus.RUNNING}
    for job in (idle, busy):
        _driven_by(table, job, process=GONE)
    found = {state.job_id: state.status for state in jobs(url)}
    assert found == {idle.job_id: JobStatus.ABANDONED, busy.job_id: JobStatus.RUNNING}
    assert _gc(table) == ["kept", "kept"], "gc waits, whatever is known of a driver"
    abort(url, idle.job_id)
    for end in (abort, commit):
        with pytest.raises(CommitFenced, match=r"may be at work: its driver, .*, is gone, but a task wrote one of its"):
            end(url, busy.job_id)
    later(ALIVE + 60)
    assert [state.status for state in jobs(url)] == [JobStatus.ABANDONED]


def test_what_a_driver_that_is_gone_showed_last_counts_for_its_tasks_where_they_show_nothing_at_first(
    table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without real directories shows nothing of an attempt before its first upload ends, or its first sign."""
    job = table.job()
    _driven_by(table, job, process=GONE)
    capabilities = job._run().store.capabilities - {Capability.REAL_DIRECTORIES}
    monkeypatch.setattr(LocalStore, "capabilities", capabilities)
    assert jobs(str(table.root))[0].status is JobStatus.RUNNING


def test_a_job_at_work_is_not_ended_by_somebody_whose_clock_is_days_ahead(table, monkeypatch) -> None:
    """Half of a job was committed in the name of a driver that lived, since it looked silent for days."""
    url = str(table.root)
    table.write({"old": b"1"})
    job = table.job(conflict="replace")
    receipts = [table.task(job, {"first": b"1"}, 0)]
    _driven_by(table, job, host="elsewhere")
    clock = SimpleNamespace(time=lambda: time.time() + 3 * 86400.0, monotonic=time.monotonic)
    with monkeypatch.context() as patched:
        patched.setattr(outside, "time", clock)
        with pytest.raises(CommitFenced, match="may be at work"):
            commit(url, job.job_id)
        with pytest.raises(CommitFenced, match="may be at work"):
            abort(url, job.job_id)
        assert _gc(table) == ["kept"]
        assert [path for path in table.everything() if "probe" in path] == []
    receipts.append(table.task(job, {"second": b"2"}, 1))
    job.commit(receipts)
    assert table.read() == {"first": b"1", "second": b"2"}

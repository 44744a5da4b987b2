"""Somebody ends what a dead job has left, and is slow; meanwhile another ends it, and its id is set up again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.engine.inspection import list_jobs
from lockgate.engine.job import cleanup, job_abort
from lockgate.errors import CommitFenced

SILENT = JobOptions(alive_seconds=0.0, durable=False)


def options(protocol: str, **named: float) -> JobOptions:
    return JobOptions(durable=False, protocol=protocol, accept_unsafe=True, **named)


def a_dead_job(root: Path, protocol: str = "manifest") -> None:
    job = Job(root, options(protocol, alive_seconds=0.0), job_id="j")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"old-{attempt.tag}") as file:
        file.write(b"old")
    attempt.commit()
    job._show_life_no_more()


def set_up_again(root: Path, job_attempt: int) -> Job:
    shutil.rmtree(root / "_lockgate")
    job = Job(root, JobOptions(durable=False), job_id="j", job_attempt=job_attempt)
    job.setup()
    return job


def commits(job: Job) -> None:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"new-{attempt.tag}") as file:
        file.write(b"new")
    job.commit([attempt.commit()])


def by_gc(root: Path) -> str:
    return str(lockgate.collect_garbage(root, options=SILENT))


def by_abort(root: Path) -> str:
    with pytest.raises(CommitFenced) as caught:
        lockgate.abort(root, "j", force=True)
    return str(caught.value)


def by_abort_that_succeeds(root: Path) -> str:
    return str(lockgate.abort(root, "j", force=True))


@pytest.mark.parametrize("job_attempt", [0, 1])
@pytest.mark.parametrize("end", [by_gc, by_abort])
def test_contained_a_job_that_is_set_up_while_another_is_ended_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[Path], str], job_attempt: int
) -> None:
    """Its record was claimed, and its directory deleted, while its tasks were at work."""
    a_dead_job(tmp_path)
    again: list[Job] = []
    refuse = job_abort.refuse_if_set_aside_by_others

    async def slow(run, **named):
        if not again:
            again.append(await asyncio.to_thread(set_up_again, tmp_path, job_attempt))
        return await refuse(run, **named)

    monkeypatch.setattr(job_abort, "refuse_if_set_aside_by_others", slow)
    told = end(tmp_path)
    assert "set up again while this looked" in told or "attempt 1 has begun" in told
    commits(again[0])
    assert [path.read_bytes() for path in tmp_path.glob("new*")] == [b"new"]


@pytest.mark.parametrize("protocol", ["manifest", "v2", "direct"])
@pytest.mark.parametrize("end", [by_abort_that_succeeds, by_gc])
def test_contained_a_job_that_is_set_up_while_the_one_before_is_cleaned_up_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[Path], str], protocol: str
) -> None:
    """Two came to end a dead job. The slower one deleted the directory of the next job of its id; what the tasks of it
    had put in place by v2 and direct stayed, and nothing named it."""
    a_dead_job(tmp_path, protocol)
    again: list[Job] = []
    let_go = cleanup.let_go_of_replaced

    async def slow(run, **named):
        if not again:
            again.append(Job(tmp_path, options(protocol), job_id="j"))
            await asyncio.to_thread(lockgate.abort, tmp_path, "j", force=True)
            await asyncio.to_thread(again[0].setup)
        return await let_go(run, **named)

    monkeypatch.setattr(cleanup, "let_go_of_replaced", slow)
    end(tmp_path)
    commits(again[0])
    assert [path.read_bytes() for path in tmp_path.glob("new*")] == [b"new"]


def test_told_right_a_job_that_goes_while_it_is_looked_at_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told to be abandoned, and gc went on to end the next job of its id."""
    a_dead_job(tmp_path)
    look = list_jobs.record_in_force

    async def gone(run, layout):
        shutil.rmtree(tmp_path / "_lockgate/jobs/j")
        return await look(run, layout)

    monkeypatch.setattr(list_jobs, "record_in_force", gone)
    assert lockgate.jobs(tmp_path) == []

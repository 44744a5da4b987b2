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
from lockgate.engine.job import job_abort
from lockgate.errors import CommitFenced

SILENT = JobOptions(alive_seconds=0.0, durable=False)


def a_dead_job(root: Path) -> None:
    job = Job(root, SILENT, job_id="j")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("old") as file:
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
    with attempt.open("new") as file:
        file.write(b"new")
    job.commit([attempt.commit()])


def by_gc(root: Path) -> str:
    return str(lockgate.collect_garbage(root, options=SILENT))


def by_abort(root: Path) -> str:
    with pytest.raises(CommitFenced) as caught:
        lockgate.abort(root, "j", force=True)
    return str(caught.value)


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
    assert (tmp_path / "new").read_bytes() == b"new"


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

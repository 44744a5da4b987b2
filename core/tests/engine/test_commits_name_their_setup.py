"""Fenced: whoever commits a job leaves its marker's nonce where it says so, and who slept meanwhile is told by that.

Dates of whole seconds do not tell a setup and a commit apart that follow each other at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from pathlib import Path

import lockgate
import pytest
from local_acts import CHANGES, Died, before_act, dies
from lockgate import Job, JobOptions
from lockgate.engine.record.ended_jobs import has_committed_since, read_end
from lockgate.engine.record.marker import seen_set_up

PROTOCOLS = ["manifest", "hive", "v1", "v2", "direct", "stocator", "markers"]
NOBODY_LIVES = JobOptions(alive_seconds=0.0)


def begin(table: Path, *, mark_success: bool = True, protocol: str = "manifest") -> Job:
    """A job with a committed task, whose driver is gone."""
    options = NOBODY_LIVES.replace(protocol=protocol, accept_unsafe=True, mark_success=mark_success)
    job = Job(table, options, job_id="nightly", nonce="N1")
    job.setup()
    attempt = job.task_attempt(task=0)
    attempt.setup()
    with attempt.open(f"part-0-{attempt.tag}") as file:
        file.write(b"new")
    attempt.commit()
    return job


def told_nonces(job: Job, table: Path) -> set[str]:
    """What the note of the job's end names, and its summary, where it leaves one."""
    run = job._run()
    ended = asyncio.run(read_end(run, job.layout.ended))
    assert ended is not None
    success = table / "_SUCCESS"
    return {ended.marker} | ({json.loads(success.read_bytes())["lockgate"]["marker"]} if success.exists() else set())


@pytest.mark.parametrize("mark_success", [True, False])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fenced_a_commit_by_somebody_else_than_the_driver_names_the_jobs_nonce(
    tmp_path: Path, protocol: str, mark_success: bool
) -> None:
    job = begin(tmp_path, protocol=protocol, mark_success=mark_success)
    lockgate.commit(tmp_path, "nightly", options=NOBODY_LIVES, force=True)
    assert told_nonces(job, tmp_path) == {"N1"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fenced_who_slept_while_somebody_committed_the_job_is_told_where_dates_are_equal(
    tmp_path: Path, protocol: str
) -> None:
    run = begin(tmp_path, protocol=protocol)._run()
    set_up = asyncio.run(seen_set_up(run))
    assert set_up is not None
    lockgate.commit(tmp_path, "nightly", options=NOBODY_LIVES, force=True)
    for path in (run.layout.ended, "_SUCCESS"):
        os.utime(tmp_path / path, (set_up.modified, set_up.modified))
    assert asyncio.run(has_committed_since(run, set_up))
    another = set_up._replace(nonce="N2")
    assert not asyncio.run(has_committed_since(run, another)), "another that was set up in that very second has not"
    later = dataclasses.replace(run, layout=run.layout.at_attempt(1))
    assert asyncio.run(has_committed_since(later, another)), "a later attempt at a job is at the same job"


@pytest.mark.parametrize("mark_success", [True, False])
@pytest.mark.parametrize("protocol", ["manifest", "v2"])
def test_fenced_a_recovery_of_what_somebody_else_has_begun_to_commit_names_the_jobs_nonce(
    tmp_path: Path, protocol: str, mark_success: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that such a commit begins names none."""
    for number in range(1, 200):
        table = tmp_path / str(number)
        job = begin(table, protocol=protocol, mark_success=mark_success)
        with monkeypatch.context() as patched:
            before_act(patched, number, CHANGES, dies)
            try:
                lockgate.commit(table, "nightly", options=NOBODY_LIVES, force=True)
            except Died:
                pass
            else:
                break
        if list(table.rglob("commit*.json")):
            lockgate.recover(table, "nightly", options=NOBODY_LIVES, force=True, undo=False)
            assert told_nonces(job, table) == {"N1"}, number
    else:
        raise AssertionError("it never came to its end")

"""Complete: a task attempt that is aborted once its job has committed takes nothing of it out, by whatever protocol."""

from __future__ import annotations

import pickle
from pathlib import Path

import lockgate
import pytest
from lockgate import Job
from lockgate.errors import CommitFenced, FileExists, FileMissing, JobNotFound, UsageError
from lockgate.model.capabilities import Capability
from lockgate.plugins.registry import PluginRegistry

PROTOCOLS = {
    name: protocol
    for name, protocol in PluginRegistry().protocols().items()
    if Capability.DEFERRED_UPLOAD not in protocol.needs and not protocol.commits_others_only
}


@pytest.mark.parametrize("cleanup_skip", [True, False], ids=["its directory left", "over"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_complete_whoever_aborts_an_attempt_after_its_job_has_committed(
    name: str, cleanup_skip: bool, tmp_path: Path
) -> None:
    job = Job(tmp_path / "table", protocol=name, accept_unsafe=True, cleanup_skip=cleanup_skip)
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    with attempt.open(f"p=1/f-{attempt.tag}") as file:
        file.write(b"counts")
    receipt = attempt.commit()
    elsewhere = pickle.loads(pickle.dumps(attempt))
    job.commit([receipt])
    for each in (attempt, elsewhere):
        each.abort()
    seen = [path for path in (tmp_path / "table").rglob("*") if path.is_file() and "_lockgate" not in path.parts]
    assert b"counts" in [path.read_bytes() for path in seen if "_temporary" not in path.parts]


@pytest.mark.parametrize("is_replaced", [False, True], ids=["its summary there", "another job's summary there"])
@pytest.mark.parametrize("mark_success", [True, False])
def test_fenced_a_driver_that_aborts_after_another_has_committed_is_told_of_the_commit(
    mark_success: bool, is_replaced: bool, tmp_path: Path
) -> None:
    job = Job(tmp_path, mark_success=mark_success)
    job.setup()
    other = pickle.loads(pickle.dumps(job))
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    with attempt.open("part") as file:
        file.write(b"counts")
    receipt = attempt.commit()
    job.commit([receipt])
    if is_replaced:
        with Job(tmp_path) as later:
            later.commit([])
    with pytest.raises(CommitFenced, match="has committed"):
        other.abort()
    with pytest.raises(JobNotFound, match="is committed already"):
        other.commit([receipt])
    assert (tmp_path / "part").read_bytes() == b"counts"


@pytest.mark.parametrize("later", PROTOCOLS)
@pytest.mark.parametrize("name", ["manifest", "v2"])
def test_contained_a_driver_whose_job_was_ended_does_not_abort_another_of_its_id(
    name: str, later: str, tmp_path: Path
) -> None:
    """The other's directory was deleted, and its files in the destination stayed, of which nobody knew any more."""
    table = tmp_path / "table"
    mine = Job(table, protocol=name, accept_unsafe=True, job_id="nightly")
    mine.setup()
    lockgate.abort(table, "nightly", force=True)
    other = Job(table, protocol=later, accept_unsafe=True, job_id="nightly")
    other.setup()
    attempt = other.task_attempt(task=0, attempt=0)
    attempt.setup()
    with attempt.open(f"p=1/f-{attempt.tag}") as file:
        file.write(b"the other's")
    receipt = attempt.commit()
    mine.abort()
    other.commit([receipt])
    (found,) = lockgate.files(table).files
    assert (table / found.path).read_bytes() == b"the other's"


# Who opens files at their final names, and announces none, sees nothing of the job's directory then.
@pytest.mark.parametrize("name", [n for n, p in PROTOCOLS.items() if p.announces_files or not p.writes_in_destination])
def test_a_file_that_is_opened_when_the_job_is_over_is_told_as_that(name: str, tmp_path: Path) -> None:
    """By some protocols it was the store's "no such file", with a next step that asks who deletes there."""
    job = Job(tmp_path, protocol=name, accept_unsafe=True)
    job.setup()
    late = pickle.loads(pickle.dumps(job)).task_attempt(task=1, attempt=0)
    late.setup()
    job.abort()
    with pytest.raises(FileMissing, match=f"the job of {late.task_attempt_id} is over"):
        late.open(f"p=1/f-{late.tag}")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_an_attempt_that_was_aborted_is_not_set_up_again(name: str, tmp_path: Path) -> None:
    """It got a receipt, which the job's commit refused then, and with it all others'."""
    job = Job(tmp_path, protocol=name, accept_unsafe=True)
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    attempt.abort()
    with pytest.raises(UsageError, match="make another attempt at the task"):
        attempt.setup()
    job.abort()


def test_a_name_that_a_dead_attempt_of_direct_may_have_taken_is_told_as_that(tmp_path: Path) -> None:
    """Who took another name, as it was advised, had the dead attempt's rows beside his own."""
    job = Job(tmp_path, protocol="direct", accept_unsafe=True)
    job.setup()
    for number, is_dead in enumerate((True, False)):
        attempt = pickle.loads(pickle.dumps(job)).task_attempt(task=0, attempt=number)
        attempt.setup()
        if is_dead:
            attempt.open("part").close()
        else:
            with pytest.raises(FileExists, match="if an attempt at this task that died has left it"):
                attempt.open("part")
    job.abort()

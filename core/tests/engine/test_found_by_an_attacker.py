"""What somebody found who set out to break a guarantee, and had seen nothing but the docs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from faulty_store import make_faulty
from lockgate import JobOptions, jobs, recover
from lockgate.errors import CommitFailed, DestinationConflict, ManifestInvalid, StoreError, UsageError
from lockgate.stores.local import LocalStore
from test_record_lost import after_moving, die, in_moving


@pytest.mark.parametrize("policy", ["append", "replace", "replace-partitions"])
def test_undoable_a_staged_file_that_is_a_link_to_one_of_the_table_is_refused(table, policy) -> None:
    """Its inode is the identity of both, so a rollback took the table's file for the job's own, and deleted it."""
    table.write({"p=1/a": b"committed"})
    job = table.job(conflict=policy)
    attempt = job.task_attempt(0)
    attempt.setup()
    staged = attempt.working_directory.removeprefix("file://")
    os.makedirs(f"{staged}/p=1")
    os.link(table.root / "p=1/a", f"{staged}/p=1/a")
    receipt = attempt.commit(scan=True)
    with pytest.raises(ManifestInvalid, match="hard link"):
        job.commit([receipt])
    job.abort()
    assert table.read() == {"p=1/a": b"committed"}


@pytest.mark.parametrize("at", [in_moving, after_moving])
@pytest.mark.parametrize("undo", [None, False])
def test_resumable_recovery_that_fails_leaves_the_job_for_the_next(table, monkeypatch, at, undo) -> None:
    """It undid the job, and deleted what its tasks had written, at the first error of the store, or at Ctrl-C."""
    table.write({"p=1/old": b"old"})
    job_id = die(table, at, {"p=1/new": b"new"})

    async def full(*_: object, **__: object) -> None:
        raise StoreError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "write_file" if at is after_moving else "rename_files", full)
        with pytest.raises(CommitFailed, match="left as it is"):
            recover(str(table.root), job_id, undo=undo, force=True)
    assert recover(str(table.root), job_id, undo=undo, force=True)[job_id].outcome == "finished"
    assert table.read() == {"p=1/new": b"new"}


def test_exactly_once_the_same_write_again_under_the_policy_fail_returns_the_first_summary(table) -> None:
    first = table.write({"p=1/a": b"1"}, conflict="fail", txn_id="once")
    again = table.job(conflict="fail", txn_id="once")
    assert again.commit([table.task(again, {"p=1/a": b"1"})]).job_id == first.job_id


OTHERS = """
import sys
from lockgate import Job, recover
assert recover(sys.argv[1], sys.argv[2], force=True)[sys.argv[2]].outcome == "finished"
with Job(sys.argv[1]) as job:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("c") as file:
        file.write(b"1")
    job.commit([attempt.commit()])
"""


def test_a_transaction_that_nobody_has_begun_is_refused_before_its_tasks_where_there_is_data(table) -> None:
    table.write({"p=1/a": b"1"})
    with pytest.raises(DestinationConflict, match="holds data"):
        table.job(conflict="fail", txn_id="once")
    assert not table.left_over()


@pytest.mark.parametrize("options", [{}, {"txn_id": "once"}, {"mark_success": False}])
def test_told_right_who_slept_while_another_finished_its_job_and_a_third_committed(table, options) -> None:
    job = table.job(**options)
    receipt = table.task(job, {"a": b"1"})
    store = make_faulty(job)
    others: list[str] = []

    def meanwhile(name: str, subject: object) -> bool:
        if name == "rename_files" and not others:
            others.append("came")
            # In a process of their own: this one's event loop stands still.
            subprocess.run([sys.executable, "-c", OTHERS, str(table.root), job.job_id], check=True, timeout=600)
        return False

    store.fail_at = meanwhile
    assert job.commit([receipt]).job_id == job.job_id
    assert table.read() == {"a": b"1", "c": b"1"}


def test_a_job_whose_record_cannot_be_read_is_no_success_of_recover(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, in_moving, {"p=1/new": b"new"})
    newest = max((table.root / "_lockgate/jobs" / job_id).glob("commit-*.json"))
    newest.write_bytes(newest.read_bytes()[:20])
    recovery = recover(str(table.root))[job_id]
    assert (recovery.outcome, "delete this one file" in recovery.problem) == ("failed", True)
    newest.unlink()
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}


def test_a_committed_job_that_has_been_cleaned_up_cannot_be_undone_and_that_is_told(table) -> None:
    job_id = table.write({"a": b"1"}).job_id
    with pytest.raises(UsageError, match="cannot be undone"):
        recover(str(table.root), job_id, undo=True, options=JobOptions())
    assert [state.job_id for state in jobs(str(table.root))] == [job_id]

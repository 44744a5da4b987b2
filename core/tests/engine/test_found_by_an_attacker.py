"""What somebody found who set out to break a guarantee, and had seen nothing but the docs."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from lockgate import JobOptions, jobs, recover
from lockgate.errors import (
    CommitFailed,
    CommitRefused,
    DestinationConflict,
    FileChanged,
    JobNotFound,
    ManifestInvalid,
    OptionError,
    OutcomeUnknown,
    StoreError,
    UsageError,
)
from lockgate.model.names import ABFS
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


def _others_come(table, job, call: str, script: str) -> None:
    """At the first such call of the job's driver, others do what this script says, with its destination and its id."""
    came: list[str] = []

    def meanwhile(name: str, subject: object) -> None:
        if name == call and not came:
            came.append(call)
            # In a process of their own: this one's event loop stands still.
            subprocess.run([sys.executable, "-c", script, str(table.root), job.job_id], check=True, timeout=600)

    make_faulty(job).before = meanwhile


def test_a_transaction_that_nobody_has_begun_is_refused_before_its_tasks_where_there_is_data(table) -> None:
    table.write({"p=1/a": b"1"})
    with pytest.raises(DestinationConflict, match="holds data"):
        table.job(conflict="fail", txn_id="once")
    assert not table.left_over()


@pytest.mark.parametrize("options", [{}, {"txn_id": "once"}, {"mark_success": False}])
def test_told_right_who_slept_while_another_finished_its_job_and_a_third_committed(table, options) -> None:
    job = table.job(**options)
    receipt = table.task(job, {"a": b"1"})
    _others_come(table, job, "rename_files", OTHERS)
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


@pytest.mark.parametrize("undo", [None, False])
def test_a_file_that_was_changed_while_it_waited_for_recovery_is_not_committed(table, undo) -> None:
    """A rename on a local disk moves whatever stands there: the job was said to be finished, with changed content."""
    table.write({"p=1/old": b"old"})
    job_id = die(table, in_moving, {"p=1/new": b"new"})
    (staged,) = (table.root / "_lockgate/jobs" / job_id).rglob("_0-*_")
    staged.write_bytes(b"changed")
    with pytest.raises(FileChanged, match="staged files, or more, were changed"):
        recover(str(table.root), job_id, undo=undo, force=True)
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}


@pytest.mark.parametrize("order", ["old-first", "new-first"])
@pytest.mark.parametrize("ends", ["committed", "finished", "undone"])
def test_a_file_takes_the_place_of_a_directory_that_is_replaced(table, order, ends) -> None:
    """The empty directory stayed in its way: the commit failed, and so did every try to finish it."""
    before = {"p=1/x/y/old": b"old", "p=1/x/z": b"z", "p=1/keep": b"k"}
    table.write(before)
    if ends == "committed":
        table.write({"p=1/x": b"new"}, conflict="replace", replace_order=order)
    else:
        job_id = die(table, after_moving, {"p=1/x": b"new"}, replace_order=order)
        assert recover(str(table.root), job_id, undo=ends == "undone", force=True)[job_id].outcome == ends
    assert table.read() == (before if ends == "undone" else {"p=1/x": b"new"})
    assert table.left_over() == []


def test_an_undo_that_a_foreign_file_blocks_says_what_to_do(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, {"p=1/new": b"new"})
    (table.root / "p=1/old").write_bytes(b"foreign")
    with pytest.raises(CommitFailed) as caught:
        recover(str(table.root), job_id, undo=True, force=True)
    assert "move it away, then lockgate recover" in caught.value.next_step
    (table.root / "p=1/old").unlink()
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}


def test_a_list_that_somebody_deleted_is_asked_for_and_the_replaced_files_are_named(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, {"p=1/new": b"new"})
    (lists,) = (table.root / "_lockgate/replaced" / job_id).glob("*.list")
    content = lists.read_bytes()
    lists.unlink()
    with pytest.raises(OutcomeUnknown, match="bring the list back") as caught:
        recover(str(table.root), job_id, force=True)
    assert f"{lists.parent}/{lists.stem.removeprefix('_')}" in caught.value.next_step
    lists.write_bytes(content)
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}


@pytest.mark.parametrize("inside", [[], ["x"]])
def test_a_setup_that_cannot_delete_success_leaves_no_job(table, inside) -> None:
    (table.root / "_SUCCESS").mkdir(parents=True)
    for name in inside:
        (table.root / "_SUCCESS" / name).touch()
    with pytest.raises(StoreError, match="_SUCCESS"):
        table.job(delete_success_at_setup=True)
    assert jobs(str(table.root)) == []


@pytest.mark.parametrize("policy", ["append", "replace"])
def test_a_job_of_which_no_task_has_committed_is_not_committed_by_an_operator(table, policy) -> None:
    """`lockgate commit` of a job that died before its tasks emptied the table."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict=policy)
    with pytest.raises(CommitRefused, match="no task of job"):
        lockgate.commit(str(table.root), job.job_id, force=True)
    assert table.read() == {"p=1/old": b"old"}
    assert job.commit([]).files == 0
    assert table.read() == ({} if policy == "replace" else {"p=1/old": b"old"})


def test_a_file_below_too_many_directories_is_refused_before_anything_moves(table) -> None:
    """It ended in `maximum recursion depth exceeded`, while files were moved."""
    job = table.job()
    table.task(job, {"a": b"1"}, 0)
    with pytest.raises(ManifestInvalid, match="name that this store does not take") as caught:
        table.task(job, {"d/" * 1_500 + "x": b"1"}, 1)
    assert "below more than 255 directories" in caught.value.where
    assert table.read() == {}


def test_a_name_that_a_manifest_of_others_has_is_refused_before_anything_moves(table, monkeypatch) -> None:
    """Whoever writes manifests without asking, as Spark's own writers do on their executors."""
    job = table.job()
    receipts = [table.task(job, {"a": b"1"}, 0), table.task(job, {"p=1/ends.": b"1"}, 1)]
    monkeypatch.setattr(LocalStore, "name_rules", ABFS)
    with pytest.raises(ManifestInvalid, match="name that this store does not take"):
        job.commit(receipts)
    assert table.read() == {}


@pytest.mark.parametrize(
    "option", [{"txn_id": "\udc80"}, {"summary_report_directory": "/\udc80"}, {"store": {"\udc80": "x"}}]
)
def test_an_option_that_is_not_text_is_refused(table, option) -> None:
    with pytest.raises(OptionError, match="is not Unicode text"):
        table.job(**option)


def test_the_last_committed_job_is_shown_though_it_left_an_older_success_in_place(table) -> None:
    table.write({"a": b"1"})
    latest = table.write({"b": b"2"}, mark_success=False).job_id
    assert [(state.job_id, state.status.value) for state in jobs(str(table.root))] == [(latest, "committed")]


@pytest.mark.parametrize("policy", ["append", "replace"])
def test_a_path_that_no_call_takes_is_refused_before_anything_moves(table, policy) -> None:
    """It could be neither moved nor looked at, so that neither rollback nor recovery ever came to an end."""
    table.write({"keep/old": b"old"})
    job = table.job(conflict=policy)
    with pytest.raises(ManifestInvalid, match="name that this store does not take") as caught:
        table.task(job, {"x/short": b"1", "/".join(["d" * 200] * 21): b"1"})
    assert "longer than 4094 bytes" in caught.value.where
    job.abort()
    assert table.read() == {"keep/old": b"old"}


CLOSED = """
import os, sys
from lockgate import Job

def write(root):
    job = Job(root)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for name in ("p=1/n", "p=2/n"):
        with attempt.open(name) as file:
            file.write(b"1")
    receipt = attempt.commit()
    try:
        job.commit([receipt])
    except Exception as error:
        print(type(error).__name__, error)
        job.abort()

write(sys.argv[1] + "-of-root")  # what is imported late is imported as root
if os.geteuid() == 0:
    os.seteuid(65534)
write(sys.argv[1])
"""


@pytest.mark.parametrize("mode", [0o444, 0o000, 0o555])
def test_a_directory_that_may_not_be_written_is_refused_before_anything_moves(request, mode) -> None:
    """The rollback could not look into it, and left what had been moved elsewhere."""
    place = Path(tempfile.mkdtemp())  # pytest keeps its own directories to one user
    request.addfinalizer(lambda: shutil.rmtree(place))
    place.chmod(0o777)
    root = place / "table"
    for name, bits in (("", 0o777), ("p=1", 0o777), ("p=2", mode)):
        (root / name).mkdir()
        (root / name).chmod(bits)
    request.addfinalizer(lambda: (root / "p=2").chmod(0o777))
    done = subprocess.run([sys.executable, "-c", CLOSED, str(root)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "CommitRefused no permission to write in 1 directory where files of the job are to be" in done.stdout
    assert f"file://{root}/p=2\n  Next: nothing was moved; give the right" in done.stdout
    assert "manifest" not in done.stdout, "that is as it should be"
    assert [path.name for path in root.rglob("*") if path.is_file()] == []


READ_ONLY = """
import os, sys
from lockgate import Job, JobOptions, jobs

def write(root, aside, name, meanwhile=lambda: None):
    job = Job(root, JobOptions(conflict="replace", set_aside=aside))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(name) as file:
        file.write(b"1")
    receipt = attempt.commit()
    meanwhile()
    try:
        job.commit([receipt])
    except Exception as error:
        print(type(error).__name__, error)

root, aside = sys.argv[1:]
write(root + "-of-root", aside, "p=1/n")  # what is imported late is imported as root
if os.geteuid() == 0:
    os.seteuid(65534)
write(root, aside, "p=1/old")
write(root, aside, "p=1/new", lambda: os.chmod(root, 0o555))
print([state for state in jobs(root) if state.status.value != "committed"])
"""


@pytest.mark.parametrize("aside", ["files", "directories"])
def test_undoable_where_the_destination_itself_may_not_be_written(request, aside) -> None:
    """Nothing had moved, and yet the rollback failed: it could not delete directories that are not empty, which it was
    not to delete."""
    place = Path(tempfile.mkdtemp())  # pytest keeps its own directories to one user
    request.addfinalizer(lambda: shutil.rmtree(place))
    place.chmod(0o777)
    root = place / "table"
    request.addfinalizer(lambda: root.chmod(0o777))
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(root), aside], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "the job commit failed and the destination was restored: the old _SUCCESS could not be set" in done.stdout
    assert "Next: mend what the store says of it, then run the job again" in done.stdout
    assert done.stdout.endswith("\n[]\n"), f"nothing is left for anybody to end: {done.stdout}"
    assert [path.name for path in root.glob("p=*/*")] == ["old"]


def test_a_disk_that_fails_is_no_fault_of_the_manifests(table, monkeypatch) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    real = os.lstat

    def failing(path, *more, **named):
        if "/tasks/" in str(path):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", failing)
        with pytest.raises(StoreError, match="Input/output error"):
            job.commit([receipt])
    assert job.commit([receipt]).files == 1


def test_crashed_jobs_are_recovered_the_one_that_moved_first(table) -> None:
    """The newest came first, and waited up to an hour for the one that was to be recovered next."""
    table.write({"p=1/old": b"old"})
    first = die(table, in_moving, {"p=1/first": b"1"})
    second = table.job(conflict="replace", when_jobs_meet="wait")
    receipt = table.task(second, {"p=1/second": b"2"})
    make_faulty(second).fail_at = lambda name, subject: name == "create_file" and "commit-0001" in str(subject)
    with pytest.raises(Stop):
        second.commit([receipt])
    found = recover(str(table.root), force=True)
    assert list(found) == [first, second.job_id]
    assert [each.outcome for each in found.values()] == ["finished", "finished"]
    assert table.read() == {"p=1/second": b"2"}


def test_recovery_waits_for_nobody(table) -> None:
    die(table, in_moving, {"p=1/first": b"1"})
    second = table.job(conflict="replace", when_jobs_meet="wait")
    receipt = table.task(second, {"p=1/second": b"2"})
    make_faulty(second).fail_at = lambda name, subject: name == "create_file" and "commit-0001" in str(subject)
    with pytest.raises(Stop):
        second.commit([receipt])
    with pytest.raises(DestinationConflict, match="came first"):
        recover(str(table.root), second.job_id, force=True)


def test_told_right_who_slept_before_its_claim_while_another_committed_its_job(table) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    _others_come(table, job, "create_file", BEFORE)
    with pytest.raises(JobNotFound, match="committed already"):
        job.commit([receipt])
    assert table.read() == {"a": b"1", "c": b"1"}


BEFORE = OTHERS.replace(
    'assert recover(sys.argv[1], sys.argv[2], force=True)[sys.argv[2]].outcome == "finished"',
    "lockgate.commit(sys.argv[1], sys.argv[2], force=True)",
).replace("import sys", "import lockgate, sys")


def test_secrets_are_not_told_where_an_option_is_not_text(table) -> None:
    with pytest.raises(OptionError) as caught:
        table.job(store={"account_key": "secret", "other": "\udc80"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b'{"lockgate":' * 50_000, b"[" * 200_000, b'{"timestamp": 1e999}', b'{"jobId":"\\ud800"}']
)
@pytest.mark.parametrize("policy", ["append", "replace"])
def test_a_job_summary_that_is_odd_in_any_way_stops_nobody(table, policy, content) -> None:
    table.write({"p=1/old": b"old"})
    (table.root / "_SUCCESS").write_bytes(content)
    table.write({"p=1/new": b"new"}, conflict=policy)
    assert b"new" in table.read().values()


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA:hidden@bucket/x",
        "s3://bucket/x?X-Amz-Signature=hidden",
        "abfs://c@a.dfs.core.windows.net/p?sig=hidden",
    ],
)
def test_secrets_in_urls_are_not_shown_with_a_job_or_its_options(url) -> None:
    assert "hidden" not in repr(lockgate.Job(url))
    assert "hidden" not in repr(JobOptions(summary_report_directory=url))


class _FailsOnce:
    """A stream that loses a part of what it is given, once, as on a disk that is full for a moment."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._failed = stream, False

    def write(self, content: bytes) -> int:
        if not self._failed:
            self._failed = True
            self._stream.write(content[:3])
            raise StoreError("no space left")
        return self._stream.write(content)


def test_complete_a_file_to_which_a_write_has_failed_is_not_committed(table, monkeypatch) -> None:
    """Its writer caught the error, went on, and closed it."""
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    file = attempt.open("p=1/a")
    monkeypatch.setattr(file, "_stream", _FailsOnce(file._stream))
    with pytest.raises(StoreError, match="no space left"):
        file.write(b"content")
    file.write(b" and more")
    with pytest.raises(StoreError, match="not whole"):
        file.close()
    assert job.commit([attempt.commit()]).files == 0
    assert table.read() == {}

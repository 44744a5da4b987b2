"""Plain Spark and Hadoop delete `_temporary` whole, whoever is at work there: nothing of ours is."""

from __future__ import annotations

import os
import shutil
import time

import pytest
from lockgate import Job, JobOptions, abort, collect_garbage, commit, jobs, recover
from lockgate.errors import UsageError
from lockgate.model.capabilities import Capability
from lockgate.stores.local import LocalStore
from test_record_lost import after_moving, die, in_moving


def others_commit(table) -> None:
    """What a plain append of Spark's leaves undone of `_temporary`."""
    theirs = table.root / "_temporary" / "0" / "_temporary"
    theirs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(table.root / "_temporary")
    (table.root / "_SUCCESS").write_bytes(b"")


def test_complete_though_another_committer_deletes_temporary_at_every_step_of_a_job(table) -> None:
    job = Job(str(table.root))
    job.setup()
    others_commit(table)
    attempt = job.task_attempt(0)
    attempt.setup()
    others_commit(table)
    with attempt.open("p=1/new") as file:
        file.write(b"new")
        others_commit(table)
    receipt = attempt.commit()
    others_commit(table)
    assert job.commit([receipt]).files == 1
    assert table.read() == {"p=1/new": b"new"}


@pytest.mark.parametrize("at", [in_moving, after_moving])
@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("new", ["p=1/new", "p=1/old"])
def test_resumable_and_undoable_after_another_committer_has_deleted_temporary(table, at, undo, new) -> None:
    table.write({"p=1/old": b"old", "p=2/old": b"old 2"})
    before = table.read()
    job_id = die(table, at, {new: b"new"})
    others_commit(table)
    (table.root / "p=1" / "theirs").write_bytes(b"theirs")
    recovery = recover(str(table.root), job_id, undo=undo, force=True)[job_id]
    assert recovery.outcome == ("undone" if undo else "finished")
    assert table.read() == {**(before if undo else {new: b"new"}), "p=1/theirs": b"theirs"}
    assert not table.left_over()


def test_nothing_of_a_job_is_below_temporary(table) -> None:
    table.write({"p=1/old": b"old"})
    die(table, after_moving, {"p=1/new": b"new"})
    assert not (table.root / "_temporary").exists()


def test_gc_says_that_it_leaves_another_committers_job_and_not_that_it_has_deleted_it(table) -> None:
    table.write({"p=1/old": b"old"})
    at_work = table.root / "_temporary/0/_temporary/attempt_20240101_0001_m_000000_0/part-0"
    at_work.parent.mkdir(parents=True)
    at_work.write_bytes(b"theirs")
    (found,) = collect_garbage(str(table.root), options=JobOptions(alive_seconds=0))
    assert (found.path, found.action, found.why) == (
        "_temporary/0",
        "kept",
        "another committer's: its own driver ends it",
    )
    assert at_work.read_bytes() == b"theirs"


def test_gc_of_a_job_of_v2_at_work_tells_of_no_other_job(table) -> None:
    job = table.job(protocol="v2", accept_unsafe=True)
    receipt = table.task(job, {"p=1/new": b"new"})
    (found,) = collect_garbage(str(table.root))
    assert (found.path, found.action) == (job.layout.job_directory, "kept")
    job.commit([receipt])
    assert table.read() == {"p=1/new": b"new"}


def test_a_directory_of_which_nobody_can_say_whose_it_is_is_told_as_that(tmp_path) -> None:
    """The next step was the command that had just been given."""
    (tmp_path / "_temporary/0/_temporary").mkdir(parents=True)
    (state,) = jobs(tmp_path)
    for end in (commit, abort):
        with pytest.raises(UsageError, match="delete this directory: there is nothing of a task in it") as refused:
            end(tmp_path, state.job_id, options=JobOptions(protocol="v1"), force=True)
        assert refused.value.where == f"file://{tmp_path}/_temporary/0"


def test_a_job_of_hadoops_that_no_protocol_ends_on_this_store_is_told_as_that(tmp_path, monkeypatch) -> None:
    """Two errors named each other's command as the next step."""
    (tmp_path / "_temporary/0/task_202411211721_0003_m_000000").mkdir(parents=True)
    without = LocalStore.capabilities.fget
    less = {Capability.ATOMIC_DIRECTORY_RENAME}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: without(store) - less))
    (state,) = jobs(tmp_path)
    for end in (commit, abort):
        with pytest.raises(UsageError, match="no protocol does on this store"):
            end(tmp_path, state.job_id, force=True)


def test_jobs_counts_what_tasks_have_committed_at_earlier_attempts_at_a_job_of_hadoops(tmp_path) -> None:
    """Who commits it takes them, and who read "0 tasks" would abort."""
    for attempt, task in ((0, 0), (0, 1), (1, 1)):
        (tmp_path / f"_temporary/{attempt}/task_202411211721_0003_m_00000{task}").mkdir(parents=True)
    (tmp_path / "_temporary/1/_temporary/attempt_202411211721_0003_m_000002_0").mkdir(parents=True)
    (state,) = jobs(tmp_path)
    assert state.tasks_committed == 2


@pytest.mark.parametrize(
    "comes_by", ["commit", "abort", "late abort", "gc", "commit of another's", "abort of another's"]
)
@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize("set_up", ["before", "meanwhile"])
def test_the_directory_of_a_job_of_hadoops_without_output_is_left_to_it(table, protocol, set_up, comes_by) -> None:
    """Its commit lists that, and failed: gc, and jobs by v1 and v2, had deleted it for being empty. Making it changes
    nothing where it is there already, so who has made it does not tell whose it is."""
    theirs = table.root / "_temporary/0"
    if set_up == "before":
        theirs.mkdir(parents=True)
    job = table.job(protocol=protocol, accept_unsafe=protocol == "v2")
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/new") as file:
        file.write(b"new")
    theirs.mkdir(parents=True, exist_ok=True)
    if "another's" in comes_by:
        task = theirs / "task_202411211721_0003_m_000000/part-0"
        task.parent.mkdir()
        task.write_bytes(b"another's")
        end = commit if "commit" in comes_by else abort
        end(str(table.root), "job_202411211721_0003", options=JobOptions(protocol="v1"), force=True)
    if comes_by == "abort":
        attempt.abort()
    if "abort" in comes_by:
        job.abort()
    else:
        job.commit([attempt.commit()])
    found = collect_garbage(str(table.root)) if comes_by == "gc" else []
    assert theirs.is_dir()
    assert not any(found.action == "deleted" for found in found)
    assert not table.left_over()


def stands_still(table, days: float, *directories: str) -> None:
    long_ago = time.time() - days * 86_400
    for directory in directories:
        os.utime(table.root / directory, (long_ago, long_ago))


@pytest.mark.parametrize("inside", [(), ("_temporary/0/_temporary",)])
def test_gc_deletes_an_empty_directory_of_a_job_attempt_once_it_has_stood_still_for_a_day(table, inside) -> None:
    """Nothing says whose it is; where only jobs of Lockgate's were nobody else would ever delete it."""
    table.write({"a": b"1"})
    every = (*inside, "_temporary/0", "_temporary")
    (table.root / every[0]).mkdir(parents=True)
    (kept,) = collect_garbage(str(table.root))
    assert (kept.path, kept.action, "stood still for 86400 s" in kept.why) == ("_temporary/0", "kept", True)
    stands_still(table, 0.9, *every)
    assert [found.action for found in collect_garbage(str(table.root))] == ["kept"]
    stands_still(table, 1.1, *every)
    (would,) = collect_garbage(str(table.root), dry_run=True)
    assert (would.path, would.action) == ("_temporary/0", "would delete")
    (gone,) = collect_garbage(str(table.root))
    assert (gone.path, gone.action) == ("_temporary/0", "deleted")
    assert not (table.root / "_temporary").exists()
    assert collect_garbage(str(table.root)) == []


def test_gc_leaves_temporary_that_a_job_of_hadoops_has_just_made(table) -> None:
    """Hadoop's local filesystem makes it, and then the job's own directory in it."""
    table.write({"a": b"1"})
    (table.root / "_temporary").mkdir()
    assert collect_garbage(str(table.root)) == []
    assert (table.root / "_temporary").is_dir()


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_the_empty_directory_that_the_last_job_by_v1_or_v2_leaves_is_shown_as_no_job(table, protocol) -> None:
    table.write({"a": b"1"}, protocol=protocol, accept_unsafe=protocol == "v2")
    assert (table.root / "_temporary/0").is_dir()
    (state,) = jobs(str(table.root))
    assert state.protocol == protocol
    assert collect_garbage(str(table.root)) == []


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_v1_job_of_several_attempts_leaves_no_other_job_behind(table, attempts: int) -> None:
    """The empty directory of its second attempt was shown as a job of another committer."""
    job_id = "job_202411211721_0003"
    for number in range(attempts):
        job = Job(str(table.root), JobOptions(protocol="v1"), job_id=job_id, job_attempt=number)
        job.setup()
        kept = job.committed()
        receipt = table.task(job, {f"a{number}": b"1"}, task=number)
    job.commit([*kept, receipt])
    assert [(state.job_id, state.layout.job_attempt) for state in jobs(str(table.root))] == [(job_id, attempts - 1)]


def test_a_job_that_nobody_knows_is_shown_with_the_number_of_its_attempt(table) -> None:
    (table.root / "_temporary/2").mkdir(parents=True)
    (state,) = jobs(str(table.root))
    assert (state.job_id, state.layout.job_attempt) == ("unknown-2", 2)

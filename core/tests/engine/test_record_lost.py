"""Somebody deletes the directories of jobs that died, records and all; and readers glob."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import shutil

import pytest
from faulty_store import Stop, make_faulty
from lockgate import collect_garbage, commit, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.recovery.recover import recover_job
from lockgate.errors import CommitFenced, JobNotFound, LockgateError, OutcomeUnknown, StoreUnavailable, UsageError
from lockgate.model.layout import JobLayout


def die(table, at, files: dict[str, bytes], **options: object) -> str:
    """A replacing job that dies at the first call for which `at` holds; its id."""
    job = table.job(conflict="replace", on_failure="leave", **options)
    receipt = table.task(job, files)
    make_faulty(job).fail_at = at
    with pytest.raises(LockgateError):
        job.commit([receipt])
    return job.job_id


def in_moving(name: str, subject: object) -> bool:
    """Before the first new file is renamed."""
    return name == "rename_files" and "/tasks/" in subject[0].source  # type: ignore[index]


def after_moving(name: str, subject: object) -> bool:
    """Before the summary is written."""
    return name == "write_file" and "_SUCCESS" in str(subject)


@pytest.mark.parametrize("at", [in_moving, after_moving])
@pytest.mark.parametrize("new", ["p=1/new", "p=1/old"])
def test_undoable_replaced_data_comes_back_after_the_record_was_deleted(table, at, new) -> None:
    table.write({"p=1/old": b"old", "p=2/old": b"old 2"})
    before = table.everything()
    job_id = die(table, at, {new: b"new"})
    shutil.rmtree(table.root / "_lockgate/jobs")
    (state,) = [state for state in jobs(str(table.root)) if state.job_id == job_id]
    assert state.status is JobStatus.RECORD_LOST
    with pytest.raises(OutcomeUnknown, match="--undo"):
        recover(str(table.root), job_id)
    recovery = recover(str(table.root), job_id, undo=True)[job_id]
    assert (recovery.outcome, list(recovery.missing)) == ("undone", [])
    assert table.everything() == before


def test_undoable_without_a_record_what_another_committer_wrote_meanwhile_stays(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, {"p=1/new": b"new"})
    shutil.rmtree(table.root / "_lockgate/jobs")
    (table.root / "p=1" / "theirs").write_bytes(b"theirs")
    (table.root / "_SUCCESS").write_bytes(b"")
    recover(str(table.root), job_id, undo=True)
    assert table.read() == {"p=1/old": b"old", "p=1/theirs": b"theirs"}
    assert not table.left_over()


def test_recover_does_not_tell_of_success_where_replaced_data_is_missing(table) -> None:
    table.write({"p=1/old": b"old", "p=2/old": b"old"})
    job_id = die(table, in_moving, {"p=1/new": b"new"})
    for path in (table.root / "_lockgate" / "replaced" / job_id).glob("*/_1"):
        path.unlink()
    recovery = recover(str(table.root), job_id, undo=True, force=True)[job_id]
    assert recovery.outcome == "undone"
    assert len(recovery.missing) == 1


def test_undoable_a_new_file_of_the_same_name_does_not_pass_for_the_replaced_one_that_is_gone(table) -> None:
    table.write({"p=1/a": b"old a", "p=1/b": b"old b"})
    job_id = die(table, after_moving, {"p=1/a": b"new a", "p=1/b": b"new b"})
    shutil.rmtree(table.root / "_lockgate/jobs")
    for path in (table.root / "_lockgate" / "replaced" / job_id).glob("*/_*"):
        if path.read_bytes() == b"old a":
            path.unlink()
    recovery = recover(str(table.root), job_id, undo=True)[job_id]
    assert (recovery.outcome, list(recovery.missing)) == ("undone", ["p=1/a"])
    assert table.read() == {"p=1/b": b"old b"}


def die_committed(table, files: dict[str, bytes], **options: object) -> str:
    """A replacing job whose driver dies between its commit point and the deletion of its lists; its id."""
    job = table.job(conflict="replace", **options)
    receipt = table.task(job, files)
    make_faulty(job).fail_at = lambda name, subject: name == "delete_files" and ".list" in str(subject)
    with pytest.raises(Stop):
        job.commit([receipt])
    return job.job_id


@pytest.mark.parametrize("mark_success", [True, False])
@pytest.mark.parametrize("collects", [False, True])
def test_a_lost_record_of_a_committed_job_is_told_by_its_success_or_its_note(table, collects, mark_success) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die_committed(table, {"p=1/new": b"new"}, mark_success=mark_success)
    shutil.rmtree(table.root / "_lockgate/jobs")
    state = jobs(str(table.root))[0]
    assert (state.job_id, state.status) == (job_id, JobStatus.LEFT_BEHIND)
    with pytest.raises(LockgateError, match="committed and cannot be undone"):
        recover(str(table.root), job_id, undo=True)
    if collects:
        collect_garbage(str(table.root))
    else:
        assert recover(str(table.root), job_id)[job_id].outcome == "finished"
    assert table.read() == {"p=1/new": b"new"}
    assert not table.left_over()


def test_a_committed_job_is_not_undone_while_its_success_cannot_be_read(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die_committed(table, {"p=1/new": b"new"})
    shutil.rmtree(table.root / "_lockgate/jobs")
    run = table.job()._run()
    store = make_faulty(table.job())
    run = dataclasses.replace(run, store=store, layout=JobLayout(job_id))

    async def unreadable(paths, *, bytes_max, really=store.read_files):  # type: ignore[no-untyped-def]
        if "_SUCCESS" in paths:
            raise StoreUnavailable("no answer")
        return await really(paths, bytes_max=bytes_max)

    store.read_files = unreadable  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        asyncio.run(recover_job(run, undo=True))
    assert table.read() == {"p=1/new": b"new"}


@pytest.mark.parametrize("options", [{"cleanup_skip": True}, {"summary_report_directory": "/proc/not-there"}])
def test_a_committed_job_leaves_no_list_that_it_could_be_undone_by(table, options) -> None:
    """Whatever follows the commit point fails, or is skipped; then somebody deletes the directories of jobs, and
    another committer writes its `_SUCCESS`."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace", **options)
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "delete_directories"
    with contextlib.suppress(Stop):
        job.commit([receipt])
    shutil.rmtree(table.root / "_lockgate/jobs")
    (table.root / "_SUCCESS").write_bytes(b"")
    assert [state for state in jobs(str(table.root)) if state.job_id == job.job_id] == []
    with pytest.raises(UsageError, match="is committed and cannot be undone"):
        recover(str(table.root), job.job_id, undo=True)
    assert table.read() == {"p=1/new": b"new"}
    collect_garbage(str(table.root))
    assert not table.left_over()


def test_finish_without_record_keeps_the_new_files_and_deletes_the_replaced(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, {"p=1/new": b"new"})
    shutil.rmtree(table.root / "_lockgate/jobs")
    assert recover(str(table.root), job_id, undo=False)[job_id].outcome == "finished"
    assert table.read() == {"p=1/new": b"new"}
    assert not table.left_over()


def test_gc_leaves_the_replaced_files_of_a_job_whose_record_is_lost(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, {"p=1/new": b"new"}, alive_seconds=0)
    shutil.rmtree(table.root / "_lockgate/jobs")
    kept = {garbage.path: garbage for garbage in collect_garbage(str(table.root))}
    assert all(garbage.action == "kept" for garbage in kept.values())
    recover(str(table.root), job_id, undo=True)
    assert table.read() == {"p=1/old": b"old"}


def test_no_file_that_holds_data_has_a_name_that_a_glob_finds(table) -> None:
    table.write({"p=1/old.parquet": b"old"})
    die(table, in_moving, {"p=1/new.parquet": b"new"})
    found = sorted(path.relative_to(table.root).as_posix() for path in table.root.glob("**/*.parquet"))
    assert found == []


def test_undoing_without_a_record_asks_that_the_driver_be_dead_and_leaves_it_nothing_to_move(table) -> None:
    """The record alone is deleted; the driver stands before its renames."""
    table.write({"p=1/old": b"old"})
    before = table.read()
    job_id = die(table, in_moving, {"p=1/new": b"new"})
    for path in (table.root / "_lockgate/jobs" / job_id).glob("commit*.json"):
        path.unlink()
    with pytest.raises(CommitFenced, match="--force"):
        recover(str(table.root), job_id, undo=True)
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome == "undone"
    assert table.read() == before
    assert not table.left_over()


def test_exactly_once_what_late_tasks_leave_of_a_job_that_is_over_is_not_committed(table) -> None:
    """Where directories are not real, late tasks bring the directory of their job back; its marker they do not."""
    job = table.job(txn_id="once")
    table.task(job, {"late": b"late"})
    (table.root / job.layout.job_marker).unlink()
    with pytest.raises(JobNotFound, match="is over"):
        commit(str(table.root), job.job_id, force=True)
    assert table.read() == {}

"""Undoable: what somebody has changed since the job put it in place is left, and named; nobody is told that all is as
it was."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest
from faulty_store import FaultyStore, Stop, make_faulty
from lockgate import Job, JobOptions, collect_garbage, recover
from lockgate.cli.answers.recovery import recovery_answer
from lockgate.engine.recovery.recover import recover_job
from lockgate.errors import CommitFailed, FileChanged, LockgateError

POLICIES = ["append", "replace", "replace-partitions"]


def _late_writer(table, **options: object):  # type: ignore[no-untyped-def]
    """A job with a staged file that its writer keeps open, and writes to once it was renamed; and its driver fails."""
    job = table.job(**options)
    attempt = job.task_attempt(0)
    attempt.setup()
    directory = table.root / job.layout.task_directory(attempt.task_attempt_id)
    (directory / "p=1").mkdir()
    writer = open(directory / "p=1" / "open", "wb")  # noqa: SIM115
    writer.write(b"begun")
    writer.flush()
    (directory / "p=1" / "closed").write_bytes(b"done")
    receipt = attempt.commit()
    store = make_faulty(job)

    def fail_at(name: str, subject: object) -> bool:
        if name == "write_file" and "_SUCCESS" in str(subject):
            writer.write(b", and went on")
            writer.close()
            return True
        return False

    store.fail_at = fail_at
    return job, receipt


@pytest.mark.parametrize("policy", POLICIES)
def test_undoable_a_file_that_its_writer_has_changed_after_the_rename_is_named(table, policy) -> None:
    table.write({"p=1/old": b"old"})
    job, receipt = _late_writer(table, conflict=policy)
    with pytest.raises(CommitFailed, match=r"restored, but for 1 file .* changed .*\(p=1/open\)"):
        job.commit([receipt])
    assert table.read() == {"p=1/old": b"old", "p=1/open": b"begun, and went on"}


@pytest.mark.parametrize(
    ("policy", "loses_its_record"),
    [*[(policy, False) for policy in POLICIES], ("replace", True), ("replace-partitions", True)],
)
def test_undoable_recovery_names_what_it_left(table, policy, loses_its_record) -> None:
    table.write({"p=1/old": b"old"})
    job, receipt = _late_writer(table, conflict=policy, on_failure="leave")
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    if loses_its_record:
        shutil.rmtree(table.root / "_lockgate/jobs")
    recovery = recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id]
    assert (recovery.outcome, list(recovery.left), list(recovery.missing)) == ("undone", ["p=1/open"], [])
    answer = recovery_answer({job.job_id: recovery})
    assert answer.status == 1
    assert "p=1/open" in json.dumps(answer.document)
    assert "but for 1 file" in " ".join(answer.sentences)
    assert table.read() == {"p=1/old": b"old", "p=1/open": b"begun, and went on"}


def test_another_jobs_file_of_the_same_name_is_not_said_to_be_this_ones(table) -> None:
    """The rename of it was refused, since it was there: it never was this job's, however often the undoing is tried."""
    table.write({"p=1/old": b"theirs"})
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"ours", "p=1/old": b"ours"})
    with pytest.raises(LockgateError, match="exists"):
        job.commit([receipt])
    again = Job(str(table.root), JobOptions(), job_id=job.job_id)
    store = make_faulty(again)
    store.fail_at = lambda name, subject: name == "create_file" and _are_sources_deleted(store)
    with pytest.raises(Stop):
        asyncio.run(recover_job(again._run(), undo=True, force=True))
    recovery = recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id]
    assert (recovery.outcome, list(recovery.left)) == ("undone", [])
    assert table.read() == {"p=1/old": b"theirs"}


def _are_sources_deleted(store: FaultyStore) -> bool:
    return any(name == "delete_directories" for name, _ in store.calls)


@pytest.mark.parametrize("loses", [None, "marker"])
def test_undoable_what_is_missing_is_told_by_whoever_ends_the_undoing(table, loses) -> None:
    """A recoverer found it, wrote `rolled-back`, and died; the next one said that all was as before."""
    table.write({"p=1/a": b"a", "p=1/b": b"b"})
    job = table.job(conflict="replace-partitions", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    (aside,) = [path for path in (table.root / job.layout.replaced).rglob("_*") if path.read_bytes() == b"a"]
    aside.unlink()
    twin = Job(job.url, job_id=job.job_id)
    store = make_faulty(twin)
    store.fail_at = lambda name, subject: name.startswith("delete") and "rolled-back" in _phases(table)
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(recover_job(twin._run(), undo=True, force=True))
    if loses == "marker":
        (table.root / job.layout.job_marker).unlink()
    (kept,) = [each for each in collect_garbage(str(table.root)) if each.path == job.layout.job_directory]
    assert kept.action == "kept"
    found = recover(str(table.root), job.job_id, undo=True, force=True)
    assert (found[job.job_id].outcome, list(found[job.job_id].missing)) == ("undone", ["p=1/a"])
    assert recovery_answer(found).status == 1
    assert table.read() == {"p=1/b": b"b"}
    assert not table.left_over()


def _phases(table) -> str:
    return "".join(path.read_text() for path in table.root.glob("_lockgate/jobs/*/commit*.json"))


@pytest.mark.parametrize("order", ["old-first", "new-first"])
@pytest.mark.parametrize("policy", POLICIES[1:])
def test_undoable_a_replaced_file_that_somebody_edits_after_the_plan_is_not_deleted(table, policy, order) -> None:
    """A rename on a local disk moves whatever stands there: nobody had seen that version, and the commit deleted it."""
    table.write({"p=1/old": b"old", "p=1/other": b"other"})
    job = table.job(conflict=policy, replace_order=order)
    receipt = table.task(job, {"p=1/new": b"new"})

    def edit(name: str, subject: object) -> None:
        if name == "rename_files" and "/replaced/" in subject[0].target:  # type: ignore[index]
            path = table.root / "p=1/old"
            if path.exists():
                path.write_bytes(b"edited by somebody")

    make_faulty(job).before = edit
    with pytest.raises(CommitFailed, match="restored: 1 files that the job replaces were changed"):
        job.commit([receipt])
    assert table.read() == {"p=1/old": b"edited by somebody", "p=1/other": b"other"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_is_not_finished_over_a_file_in_place_that_somebody_has_edited(table, policy) -> None:
    """Its driver had died in `publishing`; only deleted files were looked for."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict=policy, on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and subject[0].target == "_SUCCESS"
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    (table.root / "p=1/new").write_bytes(b"edited by somebody")
    with pytest.raises(FileChanged, match="deleted or changed 1 files"):
        recover(str(table.root), job.job_id, force=True)
    recovery = recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id]
    assert (recovery.outcome, list(recovery.left)) == ("undone", ["p=1/new"])
    assert table.read() == {"p=1/old": b"old", "p=1/new": b"edited by somebody"}


def test_undoable_what_somebody_edits_between_the_look_of_an_undoing_and_its_rename_is_named(table) -> None:
    """It was moved out with the rest, found out, and brought back, and nobody was told."""
    table.write({"p=1/old": b"old"})
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    twin = Job(job.url, job_id=job.job_id)

    def edit(name: str, subject: object) -> None:
        if name == "rename_files" and subject[0].source == "p=1/new":  # type: ignore[index]
            (table.root / "p=1/new").write_bytes(b"edited by somebody")

    make_faulty(twin).before = edit
    recovery = asyncio.run(recover_job(twin._run(), undo=True, force=True))
    assert (recovery.outcome, list(recovery.left)) == ("undone", ["p=1/new"])
    assert table.read() == {"p=1/old": b"old", "p=1/new": b"edited by somebody"}


def test_an_undo_says_what_to_do_where_somebody_has_edited_a_file_in_the_place_of_a_directory(table) -> None:
    before = {"p=1/x/y": b"y"}
    table.write(before)
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/x": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    (table.root / "p=1/x").write_bytes(b"edited by somebody")
    with pytest.raises(CommitFailed) as caught:
        recover(str(table.root), job.job_id, undo=True, force=True)
    assert "move it away, then lockgate recover" in caught.value.next_step
    (table.root / "p=1/x").rename(table.root / "p=1/mine")
    assert recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
    assert table.read() == before | {"p=1/mine": b"edited by somebody"}

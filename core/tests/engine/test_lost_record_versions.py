"""Undoable and resumable where the newest versions of a commit record are lost: what is on the store counts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import msgspec
import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.record.record_log import read_record
from lockgate.errors import CommitFenced, DestinationConflict, LockgateError, OutcomeUnknown, UsageError
from lockgate.model.phases import Phase
from lockgate.model.record import Predecessor, decode_record, encode_record

OLD = {"p=1/old": b"old", "p=2/old": b"old 2", "p=2/same": b"old 3"}
NEW = {"p=1/new": b"new", "p=2/same": b"new 2", "p=3/new": b"new 3"}
POLICIES = ["replace", "replace-partitions", "append"]
MOMENTS = ["the first is renamed", "all are renamed"]


def _records(table, job: Job) -> list[Path]:
    found = (table.root / job.layout.job_directory).glob("commit*.json")
    return sorted(found, key=lambda path: json.loads(path.read_text())["sequence"])


def _forget_versions(table, job: Job, *phases: str) -> None:
    """Delete the versions of the record from the first of these phases on."""
    lost = False
    for path in _records(table, job):
        lost = lost or json.loads(path.read_text())["phase"] in phases
        if lost:
            path.unlink()


def _keep_newest(table, job: Job) -> None:
    """Delete all versions of the record but the newest, as a program does that deletes what is old."""
    for path in _records(table, job)[:-1]:
        path.unlink()


def _die(table, policy: str, moment: str) -> Job:
    """A job whose driver dies in `moving`, with some or all of its files renamed."""
    job = table.job(conflict=policy, on_failure="leave")
    receipts = [table.task(job, {path: content}, task) for task, (path, content) in enumerate(_new(policy).items())]
    store = make_faulty(job)
    if moment == MOMENTS[0]:
        some = {"p=1/new"}

        async def rename_some(renames, progress=None, really=store.rename_files):  # type: ignore[no-untyped-def]
            if any("/tasks/" in rename.source for rename in renames):
                await really([rename for rename in renames if rename.target in some])
                raise LockgateError("dies")
            return await really(renames)

        store.rename_files = rename_some  # type: ignore[method-assign]
    else:
        store.fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(LockgateError):
        job.commit(receipts)
    return job


def _new(policy: str) -> dict[str, bytes]:
    return {path: content for path, content in NEW.items() if policy != "append" or path not in OLD}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_undoable_a_job_whose_newest_versions_of_the_record_are_lost(table, policy, moment) -> None:
    table.write(OLD)
    before = table.everything()
    job = _die(table, policy, moment)
    _forget_versions(table, job, "moving")
    recovery = recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id]
    assert (recovery.outcome, list(recovery.missing)) == ("undone", [])
    assert table.everything() == before
    assert not [state for state in jobs(str(table.root)) if state.job_id == job.job_id]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_resumable_a_job_whose_newest_versions_of_the_record_are_lost(table, policy, moment) -> None:
    table.write(OLD)
    job = _die(table, policy, moment)
    _forget_versions(table, job, "moving")
    recovery = recover(str(table.root), job.job_id, force=True)[job.job_id]
    assert recovery.outcome == "finished"
    kept = {"replace": {}, "replace-partitions": {}, "append": OLD}[policy]
    assert table.read() == kept | _new(policy)
    assert not table.left_over()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_committed_job_whose_newest_versions_of_the_record_are_lost_is_not_undone(table, policy) -> None:
    table.write(OLD)
    job = table.job(conflict=policy)
    receipt = table.task(job, _new(policy))
    store = make_faulty(job)
    published = False

    def before(name: str, subject: object) -> None:
        nonlocal published
        published = published or (name == "rename_files" and subject[0].target == "_SUCCESS")  # type: ignore[index]

    store.before = before
    store.fail_at = lambda name, subject: published and name == "create_file"
    with pytest.raises(LockgateError):
        job.commit([receipt])
    _forget_versions(table, job, "publishing")
    with pytest.raises(UsageError, match="committed and cannot be undone"):
        recover(str(table.root), job.job_id, undo=True, force=True)
    assert recover(str(table.root), job.job_id, force=True)[job.job_id].outcome == "finished"
    assert table.read() == ({} if policy != "append" else OLD) | _new(policy)
    assert not table.left_over()


@pytest.mark.parametrize("lost", ["moving", "publishing", "committed"])
@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"txn_id": "once"}])
def test_a_job_that_has_ended_is_not_undone_by_an_older_version_of_its_record(table, lost, options) -> None:
    """Another job has published its own `_SUCCESS` since, so that only the note, or the outcome, tells."""
    table.write(OLD)
    job = table.job(cleanup_skip=True, **options)
    job.commit([table.task(job, {"p=1/new": b"new"})])
    table.write({"p=4/another": b"x"})
    _forget_versions(table, job, lost)
    with contextlib.suppress(UsageError):
        recover(str(table.root), job.job_id, undo=True, force=True)
    assert table.read() == OLD | {"p=1/new": b"new", "p=4/another": b"x"}
    recover(str(table.root), job.job_id, force=True)
    assert table.read() == OLD | {"p=1/new": b"new", "p=4/another": b"x"}


def test_undoable_what_was_rolled_back_by_an_old_version_of_the_record_comes_back_all_the_same(table) -> None:
    """Its record says that nothing was moved, and that it was rolled back; its lists say otherwise."""
    table.write(OLD)
    before = table.everything()
    job = _die(table, "replace", MOMENTS[1])
    _forget_versions(table, job, "moving")
    claimed = json.loads(_records(table, job)[-1].read_text())
    for phase in ("rolling-back", "rolled-back"):
        claimed |= {"phase": phase, "sequence": claimed["sequence"] + 1}
        path = table.root / job.layout.commit_record(claimed["sequence"])
        path.write_text(json.dumps(claimed))
    recovery = recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id]
    assert recovery.outcome == "undone"
    assert table.everything() == before


def test_a_refused_job_that_has_set_files_aside_is_neither_aborted_nor_committed_again(table) -> None:
    table.write(OLD)
    before = table.everything()
    job = _die(table, "replace", MOMENTS[1])
    receipts = [table.task(job, {"late": b"x"}, 9)]
    _forget_versions(table, job, "moving")
    _refuse(table, job)
    job._store = None
    for attempt in (job.abort, lambda: job.commit(receipts)):
        with pytest.raises(OutcomeUnknown, match="--undo"):
            attempt()
    recover(str(table.root), job.job_id, undo=True, force=True)
    assert table.everything() == before


@pytest.mark.parametrize("undo", [None, True])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_resumable_and_undoable_a_moving_job_whose_marker_alone_is_gone(table, policy, moment, undo) -> None:
    """A program that tidies up takes the oldest file first; recovery took the job for what a cleanup had left, and
    deleted what was still staged."""
    table.write(OLD)
    job = _die(table, policy, moment)
    (table.root / job.layout.job_marker).unlink()
    recovery = recover(str(table.root), job.job_id, undo=undo, force=True)[job.job_id]
    assert recovery.outcome == ("undone" if undo else "finished")
    kept = {"replace": {}, "replace-partitions": {}, "append": OLD}[policy]
    assert table.read() == (OLD if undo else kept | _new(policy))
    assert not table.left_over()


@pytest.mark.parametrize("undo", [None, True])
@pytest.mark.parametrize("policy", POLICIES[:2])
def test_resumable_a_job_that_has_yet_to_set_aside_what_its_files_replace(table, policy, undo) -> None:
    """With `new-first`, nothing waits beside its list: it was finished, and the old data stayed."""
    old = {path: content for path, content in OLD.items() if path not in NEW}
    table.write(old)
    job = table.job(conflict=policy, on_failure="leave", replace_order="new-first", mark_success=False)
    (table.root / "_SUCCESS").unlink()
    receipts = [table.task(job, {path: content}, task) for task, (path, content) in enumerate(NEW.items())]
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and "/replaced/" in subject[0].target
    with pytest.raises(LockgateError):
        job.commit(receipts)
    assert table.read() == old | NEW
    _forget_versions(table, job, "moving")
    recover(str(table.root), job.job_id, undo=undo, force=True)
    assert table.read() == (old if undo else NEW)
    assert not table.left_over()


@pytest.mark.parametrize("moment", MOMENTS)
def test_undoable_a_refused_job_that_has_moved_files(table, moment) -> None:
    """Its newest versions are lost down to `refused`: it was shown as such, and abort deleted what was still staged."""
    table.write(OLD)
    before = table.everything()
    job = _die(table, "append", moment)
    _forget_versions(table, job, "moving")
    _refuse(table, job)
    twin = Job(job.url, job_id=job.job_id)
    for attempt in (twin.abort, lambda: recover(str(table.root), job.job_id, force=True)):
        with pytest.raises(OutcomeUnknown, match="--undo"):
            attempt()
    assert recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
    assert table.everything() == before


def _refuse(table, job: Job) -> None:
    """Write a version that says `refused`."""
    refused = json.loads(_records(table, job)[-1].read_text())
    refused |= {"phase": "refused", "sequence": refused["sequence"] + 1}
    (table.root / job.layout.commit_record(refused["sequence"])).write_text(json.dumps(refused))


@pytest.mark.parametrize("undo", [None, True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_of_whose_record_the_newest_version_alone_is_left_goes_on_by_recovery_alone(table, policy, undo) -> None:
    """It was in nobody's way, and then finished over what others had committed meanwhile; and a commit that was called
    once more began a second record beside it."""
    table.write(OLD)
    job = _die(table, policy, MOMENTS[0])
    _keep_newest(table, job)
    states = {state.job_id: state.status for state in jobs(str(table.root), JobOptions(alive_seconds=0))}
    assert states[job.job_id] is JobStatus.CRASHED
    with pytest.raises(CommitFenced, match="recover"):
        job.commit(None)
    with pytest.raises(CommitFenced, match="recover"):
        job.abort()
    other = table.job(conflict="replace")
    receipt = table.task(other, {"p=2/other": b"other"})
    with pytest.raises(DestinationConflict, match=job.job_id):
        other.commit([receipt])
    other.abort()
    recovery = recover(str(table.root), job.job_id, undo=undo, force=True)[job.job_id]
    # Others may have come meanwhile to what it replaces: so it is undone, unless somebody says to finish it.
    is_undone = undo or (undo is None and policy != "append")
    assert recovery.outcome == ("undone" if is_undone else "finished")
    kept = {"replace": {}, "replace-partitions": {}, "append": OLD}[policy]
    assert table.read() == (OLD if is_undone else kept | _new(policy))
    assert not table.left_over()


def _die_publishing(table, policy: str, *, committed: bool) -> Job:
    """A job whose driver dies right before or right after its `_SUCCESS`."""
    job = table.job(conflict=policy, on_failure="leave")
    receipt = table.task(job, _new(policy))
    store = make_faulty(job)
    published = False

    def before(name: str, subject: object) -> None:
        nonlocal published
        published = published or (name == "rename_files" and subject[0].target == "_SUCCESS")  # type: ignore[index]

    store.before = before
    store.fail_at = lambda name, subject: published and (not committed or name == "create_file")
    with pytest.raises(LockgateError):
        job.commit([receipt])
    return job


@pytest.mark.parametrize("left", ["publishing", "moving"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_committed_job_that_has_lost_the_first_versions_of_its_record_is_not_undone(table, policy, left) -> None:
    table.write(OLD)
    job = _die_publishing(table, policy, committed=True)
    if left == "moving":
        _forget_versions(table, job, "publishing")
    _keep_newest(table, job)
    assert recover(str(table.root), job.job_id, force=True)[job.job_id].outcome == "finished"
    assert table.read() == ({} if policy != "append" else OLD) | _new(policy)
    assert not table.left_over()


@pytest.mark.parametrize("policy", POLICIES[:2])
def test_a_job_that_has_lost_its_record_for_a_while_is_undone_up_to_its_commit_point(table, policy) -> None:
    """Others may have come to what it replaces: in *publishing* it was finished all the same."""
    table.write(OLD)
    before = table.everything()
    job = _die_publishing(table, policy, committed=False)
    assert json.loads(_records(table, job)[-1].read_text())["phase"] == "publishing"
    _keep_newest(table, job)
    assert recover(str(table.root), job.job_id, force=True)[job.job_id].outcome == "undone"
    assert table.everything() == before


@pytest.mark.parametrize("pins", ["of other manifests", "of the same manifests"])
def test_a_version_that_another_record_of_the_job_has_left_is_not_taken_for_one_of_this(table, pins: str) -> None:
    """Manifests may be the same in both: whoever came after believed the version with the higher number, and two
    drivers held the job."""
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"a": b"a"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(LockgateError):
        job.commit([receipt])
    first = _records(table, job)[0]
    record = decode_record(first.read_bytes(), name="")
    late = msgspec.structs.replace(
        record,
        sequence=7,
        phase=Phase.MOVING,
        files=1,
        follows=Predecessor(6, "0123456789abcdef"),
        begun_by="0123456789abcdef",
        pins=record.pins if pins == "of the same manifests" else (),
    )
    (table.root / job.layout.commit_record(7)).write_bytes(encode_record(late))
    run = job._run()
    found = asyncio.run(read_record(run))
    assert found is not None and found.begun_by == record.begun_by != late.begun_by
    recover(str(table.root), job.job_id, force=True)
    assert table.read() == {"a": b"a"}
    assert not table.left_over()

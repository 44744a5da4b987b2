"""What the simulation found in this engine, as short scenarios on the real local store."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pickle
import shutil
from itertools import count
from threading import Thread
from typing import Any

import pytest
from faulty_store import FaultyStore, Stop, make_faulty
from interleaved_store import interleave
from lockgate import Job
from lockgate.engine.commit_once import commit_once
from lockgate.engine.job.answer_failure import answer_failure
from lockgate.engine.manifests.committed_tasks import committed_tasks
from lockgate.engine.record.record_log import RecordLog, fenced, read_record
from lockgate.engine.recovery.collect_garbage import collect_garbage
from lockgate.engine.recovery.recover import Recovery, recover_job
from lockgate.errors import CommitFailed, CommitFenced, JobNotFound, LockgateError, OutcomeUnknown, StoreUnavailable
from lockgate.model.phases import Phase


def _recover(job: Job, **how: Any) -> Recovery:
    job._store = None
    return asyncio.run(recover_job(job._run(), force=True, **how))


def _stop_at(store: FaultyStore, number: int) -> None:
    calls = count()
    store.fail_at = lambda name, subject: next(calls) >= number


@pytest.mark.parametrize("order", ["old-first", "new-first"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_old_success_is_never_seen_over_half_replaced_data(table, order: str, fails: bool) -> None:
    """It was set aside after the data that it lists, and came back before it."""
    table.write({"p=1/old": b"1", "p=2/old": b"1"})
    old = table.everything()["_SUCCESS"]
    job = table.job(conflict="replace", replace_order=order)
    receipt = table.task(job, {"p=1/new": b"2"})
    store = make_faulty(job)

    def before(name: str, subject: object) -> None:
        seen = table.everything()
        assert seen.get("_SUCCESS") != old or {"p=1/old", "p=2/old"} <= seen.keys(), (name, subject)
        if fails and name == "write_file" and "_SUCCESS" in str(subject):
            raise Stop("planned")

    store.before = before
    with pytest.raises(CommitFailed) if fails else contextlib.nullcontext():
        job.commit([receipt])
    assert set(table.read()) == ({"p=1/old", "p=2/old"} if fails else {"p=1/new"})
    assert (table.everything()["_SUCCESS"] == old) is fails


def test_the_old_success_goes_with_the_data_that_it_lists_even_if_no_new_one_comes(table) -> None:
    table.write({"old": b"1"})
    table.write({"new": b"2"}, conflict="replace", mark_success=False)
    assert "_SUCCESS" not in table.everything()


def test_complete_a_task_is_never_without_a_manifest_while_attempts_race(table) -> None:
    """The earlier manifest was moved away before the later one took its place; a driver that looked in between left
    the task out."""
    job = table.job()
    table.task(job, {"first": b"x"}, 0, attempt=0)
    rival = job.task_attempt(0, 1)
    rival.setup()
    with rival.open("second") as file:
        file.write(b"x")
    place = table.root / job.layout.manifest("task_000000")
    store = make_faulty(job)
    store.before = lambda name, subject: place.stat() and None
    rival.commit()
    store.before = lambda name, subject: None
    assert place.exists()
    job.commit()
    assert set(table.read()) == {"second"}


def test_a_job_past_its_commit_point_is_never_told_as_failed(table) -> None:
    """The record could not say `committed`, and the driver was told that the commit had failed."""
    for on_failure in ("rollback", "leave"):
        job = table.job(on_failure=on_failure)
        receipt = table.task(job, {on_failure: b"x"})
        store = make_faulty(job)

        def refuse(name: str, subject: object, job_id: str = job.job_id) -> None:
            published = table.root / "_SUCCESS"
            record = name == "create_file" and "/commit-" in str(subject)
            if record and published.exists() and job_id in published.read_text():
                raise StoreUnavailable("planned")

        store.before = refuse
        assert job.commit([receipt]).success
    assert set(table.read()) == {"rollback", "leave"}
    assert not table.left_over()


@pytest.mark.parametrize("undo", [True, None])
def test_resumable_after_a_cleanup_that_was_cut_short_anywhere(table, undo: bool | None) -> None:
    """It left a record from which nobody could go on, since what it speaks of was gone."""
    for number in range(200):
        job = table.job()
        receipt = table.task(job, {f"f{number}": b"x"})
        store = make_faulty(job)
        _stop_at(store, number)
        with contextlib.suppress(LockgateError, Stop):
            job.commit([receipt])
        store.fail_at = lambda name, subject: False
        for choice in (undo, None):
            with contextlib.suppress(LockgateError):
                _recover(job, undo=choice)
        with contextlib.suppress(LockgateError):
            job.abort()
        assert not table.left_over(), number
        if next(iter(store.calls[number:]), None) is None:
            break
    assert number > 15


def test_concurrent_a_job_that_fails_leaves_the_success_of_another_partitions_job(table) -> None:
    """Its rollback could not bring the old `_SUCCESS` back, since a new one had come, and never ended."""
    table.write({"p=1/old": b"1", "p=2/old": b"1"})
    failing = table.job(conflict="replace-partitions")
    receipt = table.task(failing, {"p=1/new": b"2"})
    other = table.job(conflict="replace-partitions")
    other_receipt = table.task(other, {"p=2/new": b"2"})
    store = make_faulty(failing)

    def before(name: str, subject: object) -> None:
        if name == "write_file" and "_SUCCESS" in str(subject):
            # The loop of the public API waits for this very call.
            thread = Thread(target=lambda: asyncio.run(commit_once(other._run(), [other_receipt])))
            thread.start()
            thread.join()
            raise Stop("planned")

    store.before = before
    with pytest.raises(CommitFailed, match="restored"):
        failing.commit([receipt])
    assert set(table.read()) == {"p=1/old", "p=2/new"}
    assert other.job_id in (table.root / "_SUCCESS").read_text()
    failing.abort()
    assert not table.left_over()


def test_gc_deletes_what_a_cleanup_cut_short_left_empty(table) -> None:
    """A job's directory that is empty is no job's any more, and was kept for ever."""
    table.write({"f": b"x"})
    (table.root / "_lockgate" / "jobs" / "gone").mkdir(parents=True)
    asyncio.run(collect_garbage(Job(str(table.root))._run()))
    assert not (table.root / "_lockgate/jobs").exists()


def test_gc_keeps_the_file_list_of_a_job_that_may_yet_publish_it(table) -> None:
    """A driver slept between its list and its commit point; gc took the list for that of a commit long replaced."""
    job = table.job(file_list_inline_max=0)
    receipt = table.task(job, {"f": b"x"})
    store = make_faulty(job)

    def before(name: str, subject: object) -> None:
        if name == "write_file" and "_SUCCESS" in str(subject):
            collector = Job(str(table.root), alive_seconds=0.0)
            thread = Thread(target=lambda: asyncio.run(collect_garbage(collector._run())))
            thread.start()
            thread.join()

    store.before = before
    files = job.commit([receipt]).lockgate.files
    assert (table.root / files.companion).exists()


def test_gc_keeps_the_file_list_of_a_summary_that_may_yet_come_back(table) -> None:
    """A job died after it had set the old `_SUCCESS` aside; gc took that one's list, and then the job was undone."""
    first = table.job(file_list_inline_max=0)
    files = first.commit([table.task(first, {"p=1/old": b"old"})]).lockgate.files
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and "p=1/new" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    assert not (table.root / "_SUCCESS").exists()
    asyncio.run(collect_garbage(Job(str(table.root), alive_seconds=0.0)._run()))
    twin = Job(job.url, job_id=job.job_id)
    assert asyncio.run(recover_job(twin._run(), undo=True, force=True)).outcome == "undone"
    assert (table.root / "_SUCCESS").exists()
    assert (table.root / files.companion).exists()


def test_a_recoverer_that_slept_takes_out_nothing_of_another_jobs(table) -> None:
    """It had looked, slept while the job was undone and another wrote the same names, and deleted them by name."""
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"p=1/f": b"1"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    assert table.read() == {"p=1/f": b"1"}

    def meanwhile() -> None:
        twin = Job(job.url, job_id=job.job_id)
        assert asyncio.run(recover_job(twin._run(), undo=True, force=True)).outcome == "undone"
        table.write({"p=1/f": b"2"})

    store = make_faulty(job)
    slept = count()

    def before(name: str, subject: object) -> None:
        if name in ("rename_files", "delete_files") and "p=1/f" in str(subject) and next(slept) == 0:
            thread = Thread(target=meanwhile)
            thread.start()
            thread.join()

    store.before = before
    with pytest.raises(LockgateError):
        asyncio.run(recover_job(job._run(), undo=True, force=True))
    assert next(slept) > 0
    assert table.read() == {"p=1/f": b"2"}


def test_a_driver_that_slept_does_not_go_on_in_another_late_drivers_record(table) -> None:
    """It slept until its job was over and cleaned up; a second driver, late too, began a record there of its own."""
    job = table.job()
    run = job._run()
    slept, late = RecordLog(run), RecordLog(run)

    async def history() -> None:
        await slept.claim(Phase.CLAIMED, None)
        await run.store.delete_files([run.layout.commit_record(0)])
        await late.claim(Phase.CLAIMED, None)
        await slept.advance(Phase.MOVING)

    with pytest.raises(CommitFenced):
        asyncio.run(history())


def test_fenced_a_driver_that_could_not_look_after_a_version_looks_before_the_next(table) -> None:
    """It slept until its job was undone and run again. The store refused the look after its next version, and the one
    after that followed its own: so the driver held the job, and the new run did not."""
    job = table.job()
    store = make_faulty(job)
    run = job._run()
    slept, late = RecordLog(run), RecordLog(run)
    refuses = False

    def refuse(name: str, subject: object) -> None:
        if refuses and name == "read_files":
            raise StoreUnavailable("planned")

    store.before = refuse

    async def history() -> None:
        nonlocal refuses
        await slept.claim(Phase.CLAIMED, None)
        await run.store.delete_files([run.layout.commit_record(0)])
        refuses = True
        with pytest.raises(StoreUnavailable):
            await slept.advance(Phase.MOVING)
        refuses = False
        with pytest.raises(CommitFenced):
            await slept.advance(Phase.PUBLISHING)
        assert (await late.claim(Phase.CLAIMED, await read_record(run))).sequence == 0

    asyncio.run(history())


def test_a_run_that_writes_nothing_is_not_held_by_a_late_version_of_another_that_wrote_nothing(table) -> None:
    """The manifests of both are the same, so the version was taken for the newest of the new run's: it was refused, and
    recovery said that the job was committed, which had been undone."""
    job = table.job()
    run = job._run()
    slept, late = RecordLog(run), RecordLog(run)

    async def history() -> None:
        await slept.claim(Phase.CLAIMED, None)
        await slept.advance(Phase.MOVING)
        await slept.advance(Phase.PUBLISHING)
        await run.store.delete_files([run.layout.commit_record(number) for number in range(3)])
        with pytest.raises(CommitFenced):
            await slept.advance(Phase.COMMITTED)
        await late.claim(Phase.CLAIMED, await read_record(run))
        newest = await read_record(run)
        assert newest is not None
        assert newest.holder.nonce == late.nonce

    asyncio.run(history())


def test_a_job_that_is_committed_is_not_told_as_failed_since_a_record_of_nothing_cannot_be_written(table) -> None:
    """A late task had made the job's directory again, and the same driver committed once more."""
    job = table.job()
    receipt = table.task(job, {"f": b"f"})
    assert asyncio.run(commit_once(job._run(), [receipt])).success
    (table.root / job.layout.job_directory).mkdir(parents=True)

    def refuse(name: str, subject: object) -> None:
        if name == "create_file" and "commit-0001" in str(subject):
            raise StoreUnavailable("planned")

    make_faulty(job).before = refuse
    with pytest.raises(JobNotFound, match="is committed already"):
        asyncio.run(commit_once(job._run(), [receipt]))


def test_no_event_says_failed_of_a_job_that_is_committed(table) -> None:
    """Its driver was overtaken while the answer to its last request was on the way, and told whoever listens that the
    job had failed."""
    job = table.job()
    table.task(job, {"f": b"f"})
    events: list[str] = []
    run = job._run()
    run = dataclasses.replace(run, runtime=dataclasses.replace(run.runtime, emit=lambda e: events.append(e.name)))
    asyncio.run(answer_failure(run, RecordLog(run), fenced(run, None)))
    assert "job-fails" in events
    assert job.commit().success
    events.clear()
    asyncio.run(answer_failure(run, RecordLog(run), fenced(run, None)))
    assert "job-fails" not in events


def _undone_or_kept(job: Job, **how: Any) -> Recovery:
    twin = Job(job.url, job_id=job.job_id)
    return asyncio.run(recover_job(twin._run(), force=True, **how))


def test_what_is_set_aside_comes_back_though_another_committer_has_deleted_the_marker(table) -> None:
    """The record was still there, and looked like what a cleanup leaves: recovery deleted the replaced files too."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and "p=1/new" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    (table.root / job.layout.job_marker).unlink()
    (table.root / job.layout.manifest("task_000000")).unlink()
    with pytest.raises(OutcomeUnknown, match="kept"):
        _undone_or_kept(job)
    assert _undone_or_kept(job, undo=True).outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}
    assert not table.left_over()


def test_abort_keeps_what_a_job_without_a_record_has_set_aside(table) -> None:
    """It took the job for one that had not begun its commit."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and "p=1/new" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    for record in (table.root / job.layout.job_directory).glob("commit*.json"):
        record.unlink()
    with pytest.raises(OutcomeUnknown, match="kept"):
        Job(job.url, job_id=job.job_id).abort()
    assert _undone_or_kept(job, undo=True).outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}


def _while_the_driver_sleeps(table: Any, job: Job, at: str) -> None:
    """Before the driver writes the file `at`, a recoverer finishes its job, and another job replaces a partition."""

    def meanwhile() -> None:
        assert _undone_or_kept(job).outcome == "finished"
        table.write({"p=9/other": b"other"}, conflict="replace-partitions")

    slept = count()

    def before(name: str, subject: object) -> None:
        if name == "write_file" and at in str(subject) and next(slept) == 0:
            thread = Thread(target=meanwhile)
            thread.start()
            thread.join()

    make_faulty(job).before = before


def test_a_list_of_replaced_files_that_came_late_undoes_nothing(table) -> None:
    """A driver that slept wrote it after its job was committed and cleaned up; undoing took the committed files out."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace-partitions")
    receipt = table.task(job, {"p=1/new": b"new"})
    _while_the_driver_sleeps(table, job, ".list")
    assert asyncio.run(commit_once(job._run(), [receipt])).job_id == job.job_id
    assert _undone_or_kept(job, undo=True).outcome == "nothing"
    assert table.read() == {"p=1/new": b"new", "p=9/other": b"other"}
    asyncio.run(collect_garbage(Job(str(table.root))._run()))
    assert not table.left_over()


def test_a_driver_whose_job_was_finished_by_another_is_not_told_that_it_failed(table) -> None:
    """It met the end of its job as an error of the store, tried to roll back, and said that both had failed."""
    job = table.job()
    receipt = table.task(job, {"p=1/f": b"f"})
    _while_the_driver_sleeps(table, job, "_SUCCESS-")
    assert asyncio.run(commit_once(job._run(), [receipt])).job_id == job.job_id
    assert table.read() == {"p=1/f": b"f", "p=9/other": b"other"}


def test_the_next_attempt_is_offered_no_tasks_of_an_attempt_that_was_ended(table) -> None:
    """On a flat store its tasks save manifests even then; their files are deleted, and the commit came to no end."""
    first = table.job()
    table.task(first, {"f": b"f"})
    second = Job(first.url, job_id=first.job_id, job_attempt=1)
    second.setup()
    assert [receipt.task_id for receipt in asyncio.run(committed_tasks(second._run()))] == ["task_000000"]
    (table.root / first.layout.job_marker).unlink()
    assert asyncio.run(committed_tasks(second._run())) == []


@pytest.mark.parametrize("marks", [True, False])
def test_a_driver_whose_job_another_finishes_during_its_rollback_is_not_told_of_a_failure(table, marks: bool) -> None:
    """Seed 20267239: nothing of the job was left to undo, and the driver reported a failed rollback."""
    job = table.job(mark_success=marks, txn_id="1", summary_report_directory=str(table.root.parent / "reports"))
    receipt = table.task(job, {"a": b"x"})
    store, other, met = interleave(job), dataclasses.replace(job._run(), store=job._run().store), []

    async def at(name: str, subject: Any) -> None:
        if name == "rename_files" and not met:
            met.append(name)
            raise StoreUnavailable("planned")
        if name == "read_files" and met == ["rename_files"] and any("manifests/" in path for path in subject):
            met.append(name)
            assert (await recover_job(other, force=True)).outcome == "finished"

    store.before = at
    assert job.commit([receipt]).success
    assert met == ["rename_files", "read_files"]
    assert set(table.read()) == {"a"}
    reports = [path.read_text() for path in (table.root.parent / "reports").glob("*")]
    assert reports and all('"success":true' in text.replace(" ", "") for text in reports)
    assert [path for path in table.left_over() if "txn" not in path] == []


@pytest.mark.parametrize("protocol", ["markers", "direct", "manifest"])
def test_exclusive_no_attempt_at_a_job_that_has_committed_is_set_up_where_a_late_driver_has_left_a_record(
    tmp_path, protocol: str
) -> None:
    """Seed 79, as on a store without directories: setup took the record for that of a commit which had moved nothing,
    and files of the attempt's tasks, which readers see at once, were left by everybody, since the job had committed."""
    options = {} if protocol == "manifest" else {"accept_unsafe": True}
    job = Job(tmp_path, protocol=protocol, job_id="j", **options)
    job.setup()
    late = pickle.loads(pickle.dumps(job))
    job.commit([])
    (tmp_path / job.layout.job_directory).mkdir(parents=True)
    with pytest.raises(JobNotFound, match="is committed already"):
        late.commit([])
    assert (tmp_path / job.layout.commit_record(0)).exists()
    with pytest.raises(JobNotFound, match="has committed already"):
        Job(tmp_path, protocol=protocol, job_id="j", job_attempt=1, **options).setup()


@pytest.mark.parametrize("protocol", ["markers", "direct"])
def test_exclusive_an_attempt_whose_setup_sleeps_while_its_job_commits_is_refused_where_its_files_would_be_seen(
    tmp_path, protocol: str
) -> None:
    """Seed 2163, as on a store without directories: it had looked whether the job has committed before it left its
    marker, and ended dead writers between the two."""
    job = Job(tmp_path, protocol=protocol, job_id="j", accept_unsafe=True)
    job.setup()
    second = Job(tmp_path, protocol=protocol, job_id="j", accept_unsafe=True, job_attempt=1)

    async def at(name: str, subject: Any) -> None:
        if name == "create_file" and subject == second.layout.job_marker:
            shutil.rmtree(tmp_path / second.layout.attempt_directory)
            assert (await commit_once(job._run(), [])).success
            (tmp_path / second.layout.attempt_directory).mkdir(parents=True)

    interleave(second).before = at
    with pytest.raises(JobNotFound, match="has committed already"):
        second.setup()
    assert not (tmp_path / second.layout.job_marker).exists()

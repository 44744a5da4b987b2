"""Whole jobs on the Cloud Storage store: policies, recovery, faults, by moves and by copies."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import lockgate
import pytest
from job_scenarios import SCENARIOS, Scenario, no_secret_is_shown, recover_after, refuse_names
from lockgate import Job, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.job.job_commit import plan_job
from lockgate.engine.recovery.recover import recover_job
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Progress, no_progress
from lockgate.engine.run.tries import TRIES
from lockgate.errors import (
    CommitFailed,
    CommitFenced,
    LockgateError,
    ManifestInvalid,
    OutcomeUnknown,
    ReceiptUnmatched,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.files import FileStatus, Rename, RenameOutcome
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.protocols.manifest.task_commit import abort_task
from lockgate_lab.dialects import GCS
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from remote_jobs import FaultyRun, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_jobs(scenario: Scenario, gcs_table: RemoteTable) -> None:
    scenario(gcs_table)


def test_names_that_cloud_storage_does_not_take_are_refused_before_anything_moves(gcs_table: RemoteTable) -> None:
    refuse_names(gcs_table, ["p=1/" + "n" * 1010, "p=1/a\nb", "p=1/a\rb"])


def test_the_summary_names_the_weaker_rename(renames_by: str, gcs_table: RemoteTable) -> None:
    summary = gcs_table.write({"f.bin": b"x"})
    assert summary.lockgate is not None
    assert summary.lockgate.weaker == (["rename-by-copy"] if renames_by == "copy" else [])


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(undo: bool, gcs: GcsLab, gcs_table: RemoteTable) -> None:
    def stop() -> None:
        for operation in ("objects.move", "objects.rewrite"):
            gcs.control.fault("error-before", operation, target="*/tasks/*", skip=13, times=10_000, status=403)

    recover_after(gcs_table, stop, lambda: gcs.control.call("DELETE", "faults"), undo=undo)


def test_undoable_an_overwrite_with_equal_bytes_that_fails_before_its_first_set_aside(
    gcs: GcsLab, gcs_table: RemoteTable
) -> None:
    """What stands at the targets is the old data, of the same names and bytes as what the job has staged."""
    files = {f"p={n}/same.bin": b"same" for n in range(20)}
    gcs_table.write(files)
    before = gcs_table.server_files()
    job = gcs_table.job(conflict="replace")
    receipt = gcs_table.task(job, files)
    for operation in ("objects.move", "objects.rewrite"):
        gcs.control.fault("error-before", operation, target="*/p=0/same.bin", times=TRIES, status=403)
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([receipt])
    assert gcs_table.server_files() == before


@pytest.mark.parametrize("protocol", ["direct", "markers", "stocator", "v2"])
def test_abortable_a_file_that_another_jobs_commit_has_set_aside_and_brought_back(
    gcs: GcsLab, gcs_table: RemoteTable, protocol: str
) -> None:
    """What comes back is another generation than the one that the task attempt wrote."""
    early = gcs_table.job(protocol=protocol, accept_unsafe=True)
    attempt = early.task_attempt(0)
    attempt.setup()
    with attempt.open(f"p=1/{attempt.tag}.bin") as file:
        file.write(b"early")
    attempt.commit()
    job = gcs_table.job(conflict="replace-partitions")
    receipt = gcs_table.task(job, {"p=1/new.bin": b"new"})
    for operation in ("objects.move", "objects.rewrite"):
        gcs.control.fault("error-before", operation, target="*/tasks/*", times=10_000, status=403)
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([receipt])
    gcs.control.call("DELETE", "faults")
    assert list(gcs_table.read().values()) == [b"early"]
    early.abort()
    assert gcs_table.read() == {}


@pytest.mark.parametrize("moment", ["claimed", "moving", "rename"])
def test_undoable_a_pinned_attempt_that_is_aborted_while_its_job_is_committed(
    gcs: GcsLab, gcs_table: RemoteTable, moment: str
) -> None:
    """Its staged file gone, the old file of the same name and bytes would count as renamed, and be taken out again by
    the rollback."""
    gcs_table.write({"p=0/same.bin": b"same", "p=1/old.bin": b"old"})
    before = gcs_table.server_files()
    job = gcs_table.job()
    receipts = [
        gcs_table.task(job, {"p=0/same.bin": b"same"}, 0),
        gcs_table.task(job, {"p=1/old.bin": b"another"}, 1),
    ]
    aborting = copy.copy(job)
    aborting._store = None
    aborts, refused = [True], []
    store = job._open()
    creates, renames = store.create_file, store.rename_files

    async def abort_once() -> None:
        if aborts:
            aborts.clear()
            try:
                await abort_task(aborting._run("attempt_000000_0"), TaskAttempt(0, 0))
            except CommitFenced as error:
                refused.append(error)

    async def create_file(path: str, content: bytes) -> FileStatus:
        if f'"phase":"{moment}"'.encode() in content:
            await abort_once()
        return await creates(path, content)

    async def rename_files(batch: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        if moment == "rename" and any("/tasks/" in rename.source for rename in batch):
            await abort_once()
        return await renames(batch, progress)

    store.create_file, store.rename_files = create_file, rename_files  # type: ignore[method-assign]
    with pytest.raises(LockgateError) as caught:
        job.commit(receipts)
    assert isinstance(caught.value, ReceiptUnmatched) == (moment == "claimed")
    assert bool(refused) == (moment != "claimed")
    with contextlib.suppress(CommitFenced):
        job.abort()
    assert gcs_table.read() == {path: content for path, content in before.items() if not path.startswith("_")}
    assert gcs_table.left_over() == []


@pytest.mark.parametrize("undo", [True, False])
def test_undoable_an_attempt_that_was_aborted_just_before_its_driver_claimed_the_job_and_died(
    gcs_table: RemoteTable, undo: bool
) -> None:
    """Its staged file is gone, and at its target is an old file of the same bytes: recovery must not take it for one
    that was moved by a job whose newest record is lost."""
    gcs_table.write({"p=0/same.bin": b"same"})
    job = gcs_table.job()
    receipt = gcs_table.task(job, {"p=0/same.bin": b"same"})
    aborting = copy.copy(job)
    aborting._store = None
    store = job._open()
    creates = store.create_file

    async def create_file(path: str, content: bytes) -> FileStatus:
        await abort_task(aborting._run("attempt_000000_0"), TaskAttempt(0, 0))
        await creates(path, content)
        raise StoreUnavailable("the driver dies")

    store.create_file = create_file  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        job.commit([receipt])
    options = gcs_table.job_options()
    if not undo:
        with pytest.raises(ReceiptUnmatched):
            recover(gcs_table.url, job.job_id, force=True, options=options)
        aborting.abort()
    else:
        recover(gcs_table.url, job.job_id, undo=True, force=True, options=options)
    assert gcs_table.read() == {"p=0/same.bin": b"same"}
    assert gcs_table.left_over() == []


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("goes", ["aborted before it commits", "deleted by another program"])
def test_undoable_a_staged_file_that_was_gone_before_anything_moved(
    goes: str, fails: bool, gcs_table: RemoteTable
) -> None:
    """An old file of the same name and bytes was taken for it, and taken out by the rollback; or was said to be this
    job's."""
    gcs_table.write({"p=0/same.bin": b"same", "p=1/old.bin": b"old"})
    before = gcs_table.read()
    job = gcs_table.job()
    attempt = job.task_attempt(0, 0)
    with attempt.open("p=0/same.bin") as file:
        file.write(b"same")
    if goes == "aborted before it commits":
        aborting = copy.copy(job)
        aborting._store = None
        aborting.task_attempt(0, 0).abort()
    receipts = [
        attempt.commit(),
        gcs_table.task(job, {f"p=1/{'old' if fails else 'new'}.bin": b"another", "p=1/more.bin": b"more"}, 1),
    ]
    if goes == "deleted by another program":
        (staged,) = asyncio.run(_tree(gcs_table, job.layout.task_directory("attempt_000000_0")))
        asyncio.run(_delete(gcs_table, staged))
    with pytest.raises(ReceiptUnmatched if goes == "aborted before it commits" else ManifestInvalid):
        job.commit(receipts)
    assert gcs_table.read() == before
    job.abort()
    assert gcs_table.left_over() == []


async def _tree(table: RemoteTable, path: str) -> list[str]:
    store = Job(table.url, table.job_options())._open()
    return [status.path async for page in store.list_tree(path) for status in page]


async def _delete(table: RemoteTable, path: str) -> None:
    await Job(table.url, table.job_options())._open().delete_files([path])


def test_a_late_abort_of_an_attempt_brings_nothing_of_its_job_back(gcs_table: RemoteTable) -> None:
    job = gcs_table.job()
    late = job.task_attempt(0, 1)
    with late.open("p=0/late.bin") as file:
        file.write(b"late")
    job.commit([gcs_table.task(job, {"p=0/f.bin": b"f"})])
    late.abort()
    assert gcs_table.left_over() == []


def test_a_committed_job_is_told_as_over_though_a_task_attempt_of_it_commits_late(gcs_table: RemoteTable) -> None:
    """`jobs` said that it was running, and of an old one that nobody had committed it: who believes that writes the
    same rows again."""
    job = gcs_table.job()
    late = job.task_attempt(0, 1)
    with late.open("p=0/late.bin") as file:
        file.write(b"late")
    job.commit([gcs_table.task(job, {"p=0/f.bin": b"f"})])
    late.commit()
    for options in (gcs_table.job_options(), gcs_table.job_options(alive_seconds=0.0)):
        (state,) = lockgate.jobs(gcs_table.url, options)
        assert (state.status, state.phase) == (JobStatus.LEFT_BEHIND, Phase.COMMITTED)
    (deleted,) = lockgate.collect_garbage(gcs_table.url, options=gcs_table.job_options())
    assert (deleted.action, deleted.needs_somebody) == ("deleted", False)
    assert gcs_table.left_over() == []
    assert lockgate.verify(gcs_table.url, gcs_table.job_options()).findings == []


def test_that_staged_files_are_there_costs_one_request_a_task(gcs: GcsLab, gcs_table: RemoteTable) -> None:
    job = gcs_table.job()
    receipts = [gcs_table.task(job, {f"p={n}/{task}.bin": b"x" for n in range(20)}, task) for task in range(3)]
    store = job._open()
    asked: list[str] = []
    listing = store.list_tree

    def list_tree(path: str) -> AsyncIterator[Sequence[FileStatus]]:
        asked.append(path)
        return listing(path)

    store.list_tree = list_tree  # type: ignore[method-assign]
    asyncio.run(plan_job(job._run(), receipts))
    assert sorted(asked) == [job.layout.task_directory(f"attempt_{task:06d}_0") for task in range(3)]


def test_undoable_an_overwrite_with_equal_bytes_that_fails_half_way(gcs: GcsLab, gcs_table: RemoteTable) -> None:
    files = {f"p={n}/same.bin": b"same" for n in range(20)}
    gcs_table.write(files)
    before = gcs_table.server_files()
    job = gcs_table.job(conflict="replace", patience_seconds=0.2)
    receipt = gcs_table.task(job, files)
    for operation in ("objects.move", "objects.rewrite"):
        gcs.control.fault("error-before", operation, target="*/tasks/*", skip=7, times=13 * TRIES, status=403)
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([receipt])
    assert gcs_table.server_files() == before


@pytest.mark.parametrize("renames_by", ["copy"])
def test_exclusive_an_undo_takes_out_copies_whose_sources_were_not_deleted(gcs: GcsLab, gcs_table: RemoteTable) -> None:
    """A driver died between copy and deletion: the staged file was there, and its copy was taken for another's."""
    gcs_table.write({"p=0/old.bin": b"old"})
    before = gcs_table.read()
    job = gcs_table.job(on_failure="leave", patience_seconds=0.2)
    receipt = gcs_table.task(job, {f"p={n}/new.bin": b"new" for n in range(5)})
    gcs.control.fault("error-before", "objects.delete", target="*/tasks/*", times=1_000, status=503)
    with pytest.raises(LockgateError):
        job.commit([receipt])
    gcs.control.call("DELETE", "faults")
    assert gcs_table.read() != before
    recover(gcs_table.url, job.job_id, undo=True, force=True, options=gcs_table.job_options())
    assert gcs_table.read() == before


def _robbed_while_setting_aside(table: RemoteTable, act: Callable[[JobRun], Awaitable[object]]) -> Job:
    """A job whose driver stands still after it has set one file aside; another program deletes `_lockgate/jobs`; `act`
    ends the job; and the driver goes on."""
    table.write({"p=1/a.bin": b"old a", "p=1/b.bin": b"old b"}, mark_success=False)
    job = table.job(conflict="replace-partitions", mark_success=False)
    receipt = table.task(job, {"p=1/new.bin": b"new"})
    other = copy.copy(job)
    other._store = None
    store = job._open()
    renames, paused = store.rename_files, [True]

    async def rename_files(batch: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        if not (paused and "_lockgate/replaced/" in batch[0].target):
            return await renames(batch, progress)
        paused.clear()
        done = await renames(batch[:1], progress)
        run = other._run()
        await run.store.delete_directories(["_lockgate/jobs"])
        await act(run)
        return [*done, *await renames(batch[1:], progress)]

    store.rename_files = rename_files  # type: ignore[method-assign]
    with pytest.raises(LockgateError):
        job.commit([receipt])
    return job


def test_undoable_a_driver_that_stood_still_sets_nothing_aside_after_an_undoing_without_the_record(
    gcs_table: RemoteTable,
) -> None:
    _robbed_while_setting_aside(gcs_table, lambda run: recover_job(run, undo=True))
    assert gcs_table.read() == {"p=1/a.bin": b"old a", "p=1/b.bin": b"old b"}
    assert gcs_table.left_over() == []


NO_BATCHES = pytest.mark.parametrize("batches", [501, 404, 405])


@NO_BATCHES
@pytest.mark.parametrize("renames_by", ["move", "copy"], indirect=True)
def test_where_no_batches_are_taken_large_jobs_commit_by_single_calls(
    batches: int, gcs: GcsLab, gcs_table: RemoteTable
) -> None:
    old = {f"p={n}/old-{n}.bin": b"old" for n in range(110)}
    new = {f"p={n}/new-{n}.bin": b"new" for n in range(110)}
    gcs_table.write(old)
    gcs_table.write(new, conflict="replace")
    assert gcs_table.read() == new
    assert gcs_table.left_over() == []
    assert gcs.server.log.operations["batch"] > 0, "nothing here was sent as a batch"


@NO_BATCHES
@pytest.mark.parametrize("renames_by", ["move", "copy"], indirect=True)
def test_undoable_where_no_batches_are_taken(batches: int, gcs: GcsLab, gcs_table: RemoteTable) -> None:
    old = {f"p={n}/old-{n}.bin": b"old" for n in range(40)}
    gcs_table.write(old)
    job = gcs_table.job(conflict="replace", patience_seconds=0.2)
    receipt = gcs_table.task(job, {f"p={n}/new-{n}.bin": b"new" for n in range(40)})
    operation = "objects.move" if gcs.service.settings.move else "objects.rewrite"
    gcs.control.fault("error-before", operation, target="*/tasks/*", skip=25, times=10_000, status=403)
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([receipt])
    assert gcs_table.read() == old
    gcs.control.call("DELETE", "faults")
    job.abort()
    assert gcs_table.left_over() == []


@pytest.mark.parametrize("renames_by", ["copy"], indirect=True)
def test_fenced_where_a_rename_is_a_copy_what_was_published_is_not_undone(gcs: GcsLab, gcs_table: RemoteTable) -> None:
    """A driver dies between the copy to `_SUCCESS` and the deletion of the summary that waited: it is committed."""
    gcs_table.write({"p=1/old.bin": b"old"})
    job = gcs_table.job(conflict="replace", on_failure="leave", patience_seconds=0.2)
    receipt = gcs_table.task(job, {"p=1/new.bin": b"new"})
    gcs.control.fault("error-before", "objects.delete", target="*/_SUCCESS-*", times=10_000, status=403)
    with pytest.raises(OutcomeUnknown):
        job.commit([receipt])
    gcs.control.call("DELETE", "faults")
    options = gcs_table.job_options()
    with pytest.raises(UsageError, match="committed and cannot be undone"):
        recover(gcs_table.url, job.job_id, undo=True, force=True, options=options)
    recover(gcs_table.url, job.job_id, force=True, options=options)
    assert gcs_table.read() == {"p=1/new.bin": b"new"}
    assert gcs_table.left_over() == []


def under_faults(lab: GcsLab, seed: int) -> FaultyRun:
    name = f"seed{seed}"
    lab.on_loop(lambda: lab.service.buckets.__setitem__(name, Bucket(name)))

    def look() -> dict[str, bytes]:
        found = lab.service.buckets[name].objects.items()
        return {path.removeprefix("t/"): stored.content for path, stored in found}

    rename = "move" if lab.service.settings.move else "copy"
    direct = RemoteTable(f"gs://{name}/t", {"endpoint_url": lab.url, "rename": rename}, lambda: lab.on_loop(look))
    schedule = SeededFaults(seed, FaultRates.each(0.05))
    # To wait out a second at one request in twenty is most of a run; one seed in ten does.
    sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
    with FaultProxyLab(lab.url, schedule, dialect=GCS, normalise=without_ids, sizes=sizes) as proxy:
        # Batches are few, so that many renames meet faults only when each is sent by itself.
        batch_calls = "1" if seed % 2 else "100"
        options = {"endpoint_url": proxy.url, "batch_calls": batch_calls, "rename": rename}
        through = direct.through(f"gs://{name}/t", options)
        return run_job_under_faults(through, direct, seed)


@pytest.mark.timeout(2700)
@pytest.mark.slow
@pytest.mark.parametrize("move", [True, False], ids=["moves", "copies"])
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault(move: bool) -> None:
    with GcsLab() as lab:
        lab.service.settings.move = move
        seeds = seeds_of_faults(2 if move else 1)
        runs = run_seeds(seeds, lambda seed: under_faults(lab, seed))
    # A copy whose answer was lost is known by its proof at once, before the engine has to recover it.
    assert not move or sum(run.recovered for run in runs) > 0


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
def test_no_upload_session_is_shown(gcs: GcsLab, gcs_table: RemoteTable, caplog: pytest.LogCaptureFixture) -> None:
    def stop() -> None:
        gcs.control.fault("answer-lost", "*", times=100_000)

    gcs_table.write({"large.bin": b"x" * 1_000_000})
    sessions = {f"session {n}": identity for n, identity in enumerate(gcs.service.sessions)}
    assert sessions
    no_secret_is_shown(gcs_table, stop, sessions, caplog)

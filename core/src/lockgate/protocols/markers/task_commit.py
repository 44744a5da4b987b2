"""Task commit and task abort. The attempt's files are in place by then.

The manifest is written to the attempt's own path, then to the task's, as in `lockgate.protocols.deferred.task_commit`:
the one that came last has the task's, and a driver finds each by its receipt.

An attempt whose job was ended while it wrote finds that out after its manifest is saved, and takes its files out: who
has ended the job may have listed the markers before the last of them was made. So does a run of an attempt that was
taken for dead, and run again under its number, whose job is being committed with the other run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lockgate.engine.manifests.aborted_attempts import bury, is_pinned, may_count
from lockgate.engine.manifests.load_manifests import below_root_of
from lockgate.engine.manifests.runs_of_an_attempt import PINNING, other_run_in, save_own
from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.record.ended_jobs import listed_by_summary
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.errors import CommitFailed, StoreUnavailable, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.receipt import Receipt
from lockgate.protocols.markers.take_out import take_out


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    *,
    scan: bool = False,
) -> Receipt:
    """Save the attempt's manifest, and return the receipt.

    Raises:
        UsageError: files are to be found in a working directory, of which there is none.
        JobNotFound: the job is over; the attempt's files were taken out.
        CommitFenced: the job is being committed, without this attempt, or with another run of it; this one's files
            were taken out.
        CommitFailed: a file is gone, or the manifest could not be saved.
    """
    if written is None or (scan and not written):
        raise UsageError(
            "with the protocol markers a task attempt has no working directory in which files are found",
            where=run.url(run.layout.task_directory(attempt.task_attempt_id)),
            next_step="write every file through attempt.open(path)",
        )
    with run.stage("commit_task"):
        layout = run.layout
        manifest = TaskManifest(
            layout.job_id,
            layout.job_attempt,
            attempt.task_id,
            attempt.task_attempt_id,
            await _entries(run, attempt, written),
            counters=counters,
        )
        content = encode_manifest(manifest, run.below)
        if (before := await _refuse_if_too_late(run, attempt, manifest, content, written)) is not None:
            return before
        try:
            if (other := await save_own(run, attempt, manifest, content)) is not None:
                return await other.refuse_unless_committed(run, manifest, take_out, listed_by_summary)
            await run.store.write_file(layout.manifest(attempt.task_id), content)
        except StoreUnavailable as error:
            raise CommitFailed(
                "the manifest could not be saved",
                where=run.url(layout.manifest(attempt.task_id)),
                next_step="let the task be tried again",
            ) from error
        before = await _refuse_if_too_late(run, attempt, manifest, content, written)
        return before or manifest.receipt(content)


async def _refuse_if_too_late(
    run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes, written: Mapping[str, FileStatus]
) -> Receipt | None:
    """The answer: the receipt of what the same files were committed by before, where the job is being committed with
    that."""
    record = await record_in_force(run)
    over = await is_over_for_tasks(run)  # after the record, which goes later
    if not over and (record is None or record.phase not in PINNING):
        return None
    if not over and record is not None and is_pinned(run, record, attempt):
        other = await other_run_in(run, record, attempt, manifest, content)
        if other is None:
            return None
        return await other.refuse_unless_committed(run, manifest, take_out, listed_by_summary)
    await abort_task(run, attempt, written)
    if not over and record is not None:
        raise fenced(run, record)
    raise not_at_work(run, run.layout.job_marker)


async def _entries(run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> list[Entry]:
    unknown = [path for path, status in written.items() if not status.identity]
    found = dict(zip(unknown, await run.store.stat_files(unknown), strict=True)) if unknown else {}
    gone = [path for path, status in found.items() if status is None or status.length != written[path].length]
    if gone:
        raise CommitFailed(
            "a file that this task attempt wrote is gone, or was changed",
            where=run.url(gone[0]),
            next_step="the attempt was aborted, or its job is over; let the task be tried again",
        )
    # Where they would be staged if they were: a manifest names no other place.
    nowhere = run.layout.task_directory(attempt.task_attempt_id)
    files = {path: found.get(path) or status for path, status in written.items()}
    return [Entry(f"{nowhere}/{path}", path, status.length, status.identity) for path, status in files.items()]


async def abort_task(run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None) -> None:
    """Leave the attempt's tombstone, then take out what it has written: what is known here, and what its manifest
    names. What it marked and did not finish, the job's end takes out. Where the job has committed, with it or without,
    only what the job's list of its files does not name; nothing where that list is not to be found any more.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
    """
    with run.stage("abort_task"):
        own_job = await bury(run, attempt)
        counted: Collection[str] = ()
        if own_job and await may_count(run, attempt):
            listed = await listed_by_summary(run)
            if listed is None:
                run.log.warning("the job has committed: files that this attempt wrote, and may be part of it, are left")
                return
            counted = listed
        files = [Entry("", path, status.length, status.identity) for path, status in (written or {}).items()]
        if not own_job:
            await take_out(run, files)
            return
        own = run.layout.manifest_temporary(attempt.task_attempt_id)
        (content,) = await run.store.read_files([own], bytes_max=run.options.manifest_bytes_max)
        if content is not None:
            below = await below_root_of(run, run.layout)
            files += decode_manifest(content, run.layout, below, name=run.url(own)).files
        await take_out(run, [entry for entry in files if entry.target not in counted])
        await run.store.delete_files([own])

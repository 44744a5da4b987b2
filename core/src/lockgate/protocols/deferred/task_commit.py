"""Task commit and task abort.

The manifest is written twice: to the attempt's own path, then to the task's. Each write is one act. Of two attempts the
one that came to the task's path last has it, and the other's manifest is at its own path, where a driver that holds its
receipt finds it. There is no moment at which a task that has committed has no manifest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests.aborted_attempts import bury
from lockgate.engine.manifests.runs_of_an_attempt import OtherRun, save_own
from lockgate.engine.record.marker import read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.errors import CommitFailed, StoreUnavailable, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import MANIFEST_SUFFIX, TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.receipt import Receipt
from lockgate.protocols.deferred import staging
from lockgate.protocols.deferred.uploads import entry_of, give_up_unseen, keep_of, upload_of

RETRY_SECONDS = 0.1
"""The wait before the second try to save a manifest; it doubles with every further one, to 5 s."""


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
        JobNotFound: the job is over.
        CommitFenced: the job is being committed, with another run of this attempt; this one's uploads were given up.
        CommitFailed: the manifest could not be saved in the configured number of attempts.
        ManifestInvalid: a file has a name that this store does not take.
    """
    if written is None or (scan and not written and not staging.is_staging(run)):
        raise UsageError(
            "with the protocol deferred a task attempt has no working directory in which files are found",
            where=run.url(run.layout.task_directory(attempt.task_attempt_id)),
            next_step="write every file through attempt.open(path); or give staging_directory, a local directory",
        )
    with run.stage("commit_task"):
        layout = run.layout
        entries = [entry_of(target, status) for target, status in written.items()]
        manifest = TaskManifest(
            layout.job_id,
            layout.job_attempt,
            attempt.task_id,
            attempt.task_attempt_id,
            entries,
            counters=counters,
            marker=run.marker,
        )
        refuse_names(run, entries)
        content = encode_manifest(manifest, run.below)
        other = await _save(run, attempt, manifest, content)
        if other is not None:
            return await other.refuse_unless_committed(run, manifest, _give_up)
        return manifest.receipt(content)


async def _give_up(run: JobRun, entries: Sequence[Entry]) -> None:
    await give_up_unseen(run, [upload_of(entry) for entry in entries])


async def _save(run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes) -> OtherRun | None:
    wait = RETRY_SECONDS
    for left in reversed(range(run.options.manifest_save_attempts)):
        try:
            if await read_marker(run) is None:
                raise not_at_work(run, run.layout.job_marker)
            await run.store.keep_uploads(keep_of(run, attempt.task_attempt_id))
            if (other := await save_own(run, attempt, manifest, content)) is not None:
                return other
            await run.store.write_file(run.layout.manifest(attempt.task_id), content)
            return None
        except StoreUnavailable as error:
            if not left:
                raise CommitFailed(
                    f"the manifest could not be saved in {run.options.manifest_save_attempts} attempts",
                    where=run.url(run.layout.manifest(attempt.task_id)),
                    next_step="let the task be tried again; nothing of this attempt is committed",
                ) from error
            run.count("manifest_saves_repeated")
            run.log.info("manifest is saved again", error=str(error))
        await asyncio.sleep(wait * (0.5 + run.runtime.random.random()))
        wait = min(2 * wait, 5.0)
    raise AssertionError("the last try returns or raises")


async def abort_task(run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None) -> None:
    """Leave the attempt's tombstone, then give its uploads up: those that are known, and those that its manifest names.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
    """
    with run.stage("abort_task"):
        own_job = await bury(run, attempt)
        if own_job and staging.is_staging(run):
            staging.clear(run)
        sent = {target: status for target, status in (written or {}).items() if status.upload}
        uploads = [upload_of(entry_of(target, status)) for target, status in sent.items()]
        own = run.layout.manifest_temporary(attempt.task_attempt_id)
        (content,) = await run.store.read_files([own], bytes_max=run.options.manifest_bytes_max)
        if content is None or not own_job:
            await give_up_unseen(run, uploads)
        else:
            # A driver that sleeps may have read it.
            manifest = decode_manifest(content, run.layout, run.below, name=run.url(own), deferred=True)
            await run.store.abort_uploads([*uploads, *(upload_of(entry) for entry in manifest.files)])
        if not own_job:
            return
        if run.store.keeps_uploads:
            keep = keep_of(run, attempt.task_attempt_id)
            async for kept in run.store.kept_uploads(keep):
                await run.store.abort_uploads(kept)
            await run.store.delete_directories([keep])
        if content is not None:
            # One that another run of this attempt has saved since names uploads that are not given up yet.
            await run.store.delete_files([own])


def is_manifest(path: str) -> bool:
    """Whether this is the path of a task's manifest, or of an attempt's own."""
    return path.endswith((MANIFEST_SUFFIX, f"{MANIFEST_SUFFIX}.tmp"))

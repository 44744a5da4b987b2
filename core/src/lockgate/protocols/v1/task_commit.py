"""Task commit: one rename of the attempt's directory to the task's. Task abort.

A manifest of the same files is saved first, in the job's own directory, for the receipt to pin: it names them where the
job commit will take the directory (`adopt`). It commits nothing by itself. What the directory's rename says counts:

- The attempt dies before the rename: its manifest is one that no task's directory matches.
- It dies after: the directory is there, and its files are those of its manifest, by length and identity, which the
  rename of a directory keeps.
- Two attempts of one task: Hadoop's second deletes what the first has committed. Here it moves that to where the job
  commit would take it, so that the one counts whose receipt the driver holds. Between the two renames the task has no
  directory: a driver that goes by what it finds could miss it, as Hadoop's could.
- Two runs of one attempt, of which the first was taken for dead: as two attempts, since the manifest of the first is
  kept beside that of the second; but once the job is being committed with the first, the second is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests.aborted_attempts import HOLDS_ITS_PINS, bury
from lockgate.engine.manifests.runs_of_an_attempt import other_run_in, save_own
from lockgate.engine.record.marker import read_marker
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.errors import CommitFailed, FileMissing
from lockgate.model.file_output import displaced_attempt_id
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.layout import TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest, encode_manifest
from lockgate.model.phases import Phase
from lockgate.model.receipt import Receipt
from lockgate.protocols.file_output.attempts import output_in, places_of, written_by
from lockgate.protocols.v1.match import is_of, owner_of_task, stands_at

TRIES = 6
RETRY_SECONDS = 0.1


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    *,
    scan: bool = False,
) -> Receipt:
    """Commit the attempt, and return its receipt. Repeated, it is the same.

    Raises:
        JobNotFound: the job is over.
        CommitFenced: another attempt has committed, or another run of this one, and its job is being committed with it.
        CommitFailed: the directory could not be renamed.
        ManifestInvalid: a file has a name that this store does not take.
    """
    with run.stage("commit_task"):
        places, layout = places_of(run), run.layout
        working = places.task_attempt(attempt.task_attempt_id)
        (directory,) = await run.store.stat_files([working])
        if directory is None:
            return await _committed_before(run, attempt)
        if await read_marker(run) is None:
            raise not_at_work(run)
        files = await written_by(run, working, written, scan=scan)
        adopted = layout.task_directory(attempt.task_attempt_id)
        manifest = TaskManifest(
            layout.job_id,
            layout.job_attempt,
            attempt.task_id,
            attempt.task_attempt_id,
            [Entry(f"{adopted}/{path}", path, status.length, status.identity) for path, status in files.items()],
            counters=counters,
        )
        refuse_names(run, manifest.files)
        content = encode_manifest(manifest, run.below)
        try:
            other = await save_own(run, attempt, manifest, content)
        except FileMissing as error:
            raise not_at_work(run) from error
        if other is not None:
            raise other.refusal(run)
        await _rename(run, attempt, working, content)
        await _take_back_if_over(run, attempt, manifest, content)
        return manifest.receipt(content)


async def _committed_before(run: JobRun, attempt: TaskAttempt) -> Receipt:
    saved = run.layout.manifest_temporary(attempt.task_attempt_id)
    (content,) = await run.store.read_files([saved], bytes_max=run.options.manifest_bytes_max)
    manifest = None if content is None else await stands_at(run, content, attempt.task_id)
    if content is None or manifest is None:
        raise not_at_work(run)
    return manifest.receipt(content)


async def _rename(run: JobRun, attempt: TaskAttempt, working: str, content: bytes) -> None:
    target = places_of(run).task(attempt.task_id)
    wait = RETRY_SECONDS
    for left in reversed(range(TRIES)):
        (outcome,) = await run.store.rename_directories([Rename(working, target)])
        if isinstance(outcome, Renamed):
            return
        if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.TARGET_EXISTS:
            await _displace_rival(run, attempt, target)
            continue
        (still,) = await run.store.stat_files([working])
        if still is None:
            if await stands_at(run, content, attempt.task_id) is not None:
                return
            raise not_at_work(run)
        if left:
            await asyncio.sleep(wait * (0.5 + run.runtime.random.random()))
            wait *= 2
    raise CommitFailed(
        f"the directory of {attempt.task_attempt_id} could not be renamed: {outcome}",
        where=f"{run.url(working)}\n{run.url(target)}",
        next_step="let the task be tried again; nothing of this attempt is committed",
    )


async def _take_back_if_over(run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes) -> None:
    """Look at the job once more: one that ended while the directory was renamed has deleted what was there before, and
    any job of Hadoop's would commit what came after.

    Raises:
        JobNotFound: it has ended; the directory is gone.
        CommitFenced: it is being committed with another run of this attempt; the same.
    """
    record = await record_in_force(run)
    attempts = {pin.task_attempt_id for pin in record.pins} if record is not None else set()
    pinned = manifest.task_attempt_id in attempts
    other = await other_run_in(run, record, attempt, manifest, content) if pinned and record is not None else None
    if (pinned and other is None) or (record is not None and record.phase is Phase.REFUSED):
        return
    if record is None and await read_marker(run) is not None:  # after the record, which goes later
        return
    task = places_of(run).task(manifest.task_id)
    if is_of(run, manifest, list((await output_in(run, task)).items())):
        await delete_trees(run, [task])
    raise not_at_work(run) if other is None else other.refusal(run)


async def _displace_rival(run: JobRun, attempt: TaskAttempt, committed: str) -> None:
    """Move what another attempt has committed to where the job commit would take it.

    Raises:
        CommitFenced: the job is being committed, perhaps with it.
    """
    record = await record_in_force(run)
    if record is not None and record.phase in HOLDS_ITS_PINS:
        raise fenced(run, record)
    rival = await owner_of_task(run, attempt.task_id)
    run.count("rival_manifests_displaced")
    run.log.info("a rival attempt committed earlier", rival=rival)
    unnamed = run.layout.task_directory(displaced_attempt_id(attempt.task_id, run.runtime.nonce()))
    aside = run.layout.task_directory(rival) if rival else unnamed
    (outcome,) = await run.store.rename_directories([Rename(committed, aside)])
    if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.TARGET_EXISTS:
        # The attempt's own, of an earlier run of it: only a receipt could tell the two apart.
        await run.store.rename_directories([Rename(committed, unnamed)])


async def abort_task(run: JobRun, attempt: TaskAttempt) -> None:
    """Delete what the attempt wrote, and what it has committed, if the task's directory is its own. Its tombstone
    comes first.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
    """
    with run.stage("abort_task"):
        places = places_of(run)
        if not await bury(run, attempt):
            return
        gone = [places.task_attempt(attempt.task_attempt_id), run.layout.task_directory(attempt.task_attempt_id)]
        if await owner_of_task(run, attempt.task_id) == attempt.task_attempt_id:
            gone.append(places.task(attempt.task_id))
        await delete_trees(run, gone)
        await run.store.delete_files([run.layout.manifest_temporary(attempt.task_attempt_id)])

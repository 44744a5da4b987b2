"""Task commit and task abort.

Seed: "Task Commit", "Task Abort/cleanup"; Hadoop `SaveTaskManifestStage`. The manifest is written to the attempt's
temporary path, then renamed to the task's manifest path, as a pair that is retried.

Two attempts of one task may be here at once. The rename never replaces, so the later one finds the earlier's
manifest in its way. It writes that one's bytes to a path of their own (`displaced_manifest`), and then its own over the
task's path. So the last one wins, as in the seed; there is no moment without a manifest at the task's path, at which a
driver that takes the manifests it finds would miss the task; and the displaced manifest is not lost: a driver that
holds the earlier attempt's receipt finds it by its digest. What each can see:

- A in place, B comes: A's bytes beside, then B in place, B's copy at its own. A driver without receipts commits A or B;
  with A's receipt, A; with B's, B.
- B and C both find A: both keep A's bytes, and each has its own at its temporary path; either may be in place.
- A comes a second time, because the report of its first commit was lost (HADOOP-17258): it finds its own manifest,
  byte for byte, and is done.
- A is run again under its number, being taken for dead: as if it were B, since a displaced manifest's name holds its
  digest; but once the job is being committed with the first run's, it is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests.aborted_attempts import bury, marker_in, owner_of
from lockgate.engine.manifests.runs_of_an_attempt import keep_displaced, other_run
from lockgate.engine.record.marker import read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    CommitFailed,
    DuplicateTarget,
    FileMissing,
    JobNotFound,
    OutcomeUnknown,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.layout import TaskAttempt, is_staged, is_unfinished
from lockgate.model.manifest import Entry, TaskManifest, encode_manifest
from lockgate.model.receipt import Receipt
from lockgate.protocols.manifest.lost_files import refuse_lost

RETRY_SECONDS = 0.1
"""The wait before the second try to save a manifest; it doubles with every further one, to 5 s."""


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    staged: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    *,
    scan: bool = False,
) -> Receipt:
    """Save the attempt's manifest, and return the receipt.

    `staged` are the files that the attempt wrote through Lockgate, by their targets. With `scan`, or `staged` None,
    the attempt's working directory is looked through as well, and every other file in it goes to the same relative
    path of the destination.

    Raises:
        DuplicateTarget: a file that was found has the target of one that was written through Lockgate.
        UsageError: a file that was found was written through Lockgate, by somebody else.
        JobNotFound: the job is over, or was never set up.
        CommitFenced: the job is being committed, with another run of this attempt.
        CommitFailed: the manifest could not be saved in the configured number of attempts, or a file that others have
            written is gone, and its checksum is there.
        ManifestInvalid: a file has a name that this store does not take.
    """
    with run.stage("commit_task"):
        layout = run.layout
        prefix = layout.task_directory(attempt.task_attempt_id) + "/"
        files = dict(await _with_identities(run, staged or {}))
        if scan or staged is None:
            _add(files, await _scan(run, prefix))
        entries = [Entry(status.path, target, status.length, status.identity) for target, status in files.items()]
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
        return manifest.receipt(content) if other is None else other


async def abort_task(run: JobRun, attempt: TaskAttempt) -> None:
    """Delete what the attempt wrote. A tombstone comes first, also where it has not committed: it may be about to, in
    another process, and its manifest must never count, since the files that it names are no more. A manifest that is
    there is not deleted: between a look and the deletion a rival's may have taken its place, and the task would be left
    out.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt; nothing of it was deleted. On a store
            where identities are not unique a staged file that is gone counts as renamed if its target has its content.
    """
    with run.stage("abort_task"):
        if not await bury(run, attempt):
            return
        await run.store.delete_files([run.layout.manifest_temporary(attempt.task_attempt_id)])
        await run.store.delete_directories([run.layout.task_directory(attempt.task_attempt_id)])


async def _scan(run: JobRun, prefix: str) -> dict[str, FileStatus]:
    found: list[FileStatus] = []
    async for page in run.store.list_tree(prefix.rstrip("/")):
        found += [status for status in page if not is_unfinished(status.path)]
    if not found and Capability.REAL_DIRECTORIES in run.store.capabilities:
        (directory,) = await run.store.stat_files([prefix.rstrip("/")])
        if directory is None:
            raise JobNotFound(
                "the directory of this task attempt is gone",
                where=run.url(prefix),
                next_step="the attempt, or its job, was ended by somebody else; nothing of this attempt is committed",
            )
    found.sort(key=lambda status: status.path)
    output = {status.path[len(prefix) :]: status for status in found}
    refuse_lost(run, prefix.rstrip("/"), output)
    return output


def _add(files: dict[str, FileStatus], found: Mapping[str, FileStatus]) -> None:
    """Add what a scan found to the files whose targets were declared, which it found as well."""
    declared = {status.path for status in files.values()}
    for target, status in found.items():
        if status.path in declared:
            continue
        if is_staged(target):
            raise UsageError(
                "a file of this task attempt was opened by its path elsewhere, and that path is not known here",
                where=status.path,
                next_step="commit the attempt with the object that opened its files, or abort it",
            )
        if target in files:
            raise DuplicateTarget(
                "two files of one task attempt would be written to one path",
                where=f"{target}\nfrom {files[target].path}\nand  {status.path}",
                next_step="give one of them another name",
            )
        files[target] = status


async def _with_identities(run: JobRun, staged: Mapping[str, FileStatus]) -> Mapping[str, FileStatus]:
    unknown = [status.path for status in staged.values() if not status.identity]
    if not unknown:
        return staged
    found = dict(zip(unknown, await run.store.stat_files(unknown), strict=True))
    missing = [path for path, status in found.items() if status is None]
    if missing:
        raise CommitFailed(
            "a file that this task attempt wrote is gone",
            where=run.url(missing[0]),
            next_step="the attempt was aborted, or its job is over; let the task be tried again",
        )
    return {target: found.get(status.path) or status for target, status in staged.items()}


async def _save(run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes) -> Receipt | None:
    """The answer: the receipt of what the same files were committed by before, where the job is being committed with
    that."""
    place, temporary = (
        run.layout.manifest(attempt.task_id),
        run.layout.manifest_temporary(attempt.task_attempt_id),
    )
    wait = RETRY_SECONDS
    for left in reversed(range(run.options.manifest_save_attempts)):
        try:
            written = await run.store.write_file(temporary, content)
            rename = Rename(temporary, place, len(content), written.identity)
            return await _take_the_place(run, attempt, rename, manifest, content)
        except FileMissing as error:
            raise not_at_work(run, run.layout.manifests) from error
        except (StoreUnavailable, OutcomeUnknown, CommitFailed) as error:
            if not left:
                raise CommitFailed(
                    f"the manifest could not be saved in {run.options.manifest_save_attempts} attempts",
                    where=run.url(place),
                    next_step="let the task be tried again; nothing of this attempt is committed",
                ) from error
            run.count("manifest_saves_repeated")
            run.log.info("manifest is saved again", error=str(error))
        await asyncio.sleep(wait * (0.5 + run.runtime.random.random()))
        wait = min(2 * wait, 5.0)
    raise AssertionError("the last try returns or raises")


async def _take_the_place(
    run: JobRun, attempt: TaskAttempt, rename: Rename, manifest: TaskManifest, content: bytes
) -> Receipt | None:
    (outcome,) = await run.store.rename_files([rename])
    if isinstance(outcome, Renamed):
        return None
    (found,) = await run.store.read_files([rename.target], bytes_max=run.options.manifest_bytes_max)
    if found == content:
        # Ours, byte for byte: renamed by this call whose answer was lost, or by our own earlier commit. What is left
        # at the temporary path stays: a rival may be about to rely on its being there.
        return None
    if found is not None:
        if owner_of(found) == attempt.task_attempt_id and (other := await other_run(run, attempt, manifest, content)):
            if other.receipt is None:
                raise other.refusal(run)
            return other.receipt
        await _displace_rival(run, rename, found, content)
        return None
    if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.PARENT_MISSING:
        raise FileMissing("the manifests' directory is gone", where=run.url(run.layout.manifests))
    raise OutcomeUnknown(
        f"the manifest's rename did not succeed: {outcome}",
        where=run.url(rename.source),
        next_step="run the task again as another attempt",
    )


async def _displace_rival(run: JobRun, rename: Rename, found: bytes, content: bytes) -> None:
    if marker_in(found) not in ("", run.marker) and await read_marker(run) is None:
        raise JobNotFound(
            f"job {run.layout.job_id} is over, and another has its id",
            where=run.url(rename.target),
            next_step="nothing of this attempt is committed",
        )
    rival = owner_of(found)
    run.count("rival_manifests_displaced")
    run.log.info("a rival attempt committed earlier", rival=rival)
    # Nobody's receipt can stand for a manifest that cannot be read.
    if rival:
        await keep_displaced(run, rival, found)
    await run.store.write_file(rename.target, content)

"""Task commit, which is no one act: an intent, a rename a file into the destination, and the manifest. Task abort.

The intent is the manifest at the attempt's temporary path, written before the first file moves; with its rename to the
task's path the attempt has committed. An intent that stays says that an attempt was interrupted, or is at work:

- The job commit refuses it, since nobody can tell readers what of it they see. Who aborts that attempt takes its files
  out, by their identity, and then the job may go on.
- Another attempt of that task is refused while it is there, and once the task has committed: its files would be beside
  the first one's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.engine.job.set_aside_by_others import set_aside_by_other
from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests.aborted_attempts import HOLDS_ITS_PINS, bury, marker_in, owner_of
from lockgate.engine.manifests.load_manifests import below_root_of
from lockgate.engine.manifests.saved_manifests import Saved
from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.record.marker import is_anothers, read_marker, read_marker_of
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.engine.run.own_commands import committed_by_an_earlier_job, end_unknown, how_to_abort, run_again
from lockgate.engine.run.store import no_progress
from lockgate.engine.run.taken_names import how_to_free
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    CommitFailed,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
)
from lockgate.model.files import FileStatus, Rename
from lockgate.model.layout import MANIFEST_TEMPORARY_SUFFIX, TaskAttempt, is_no_output
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.phases import Phase
from lockgate.model.receipt import Receipt
from lockgate.model.urls import parent_of
from lockgate.protocols.file_output.attempts import output_in, places_of, written_by
from lockgate.protocols.v2.visible import forget_taken_out, keep_unmoved, take_out

WHERE_TAKEN = "give the files other names: v2 writes over none"


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    *,
    scan: bool = False,
) -> Receipt:
    """Move the attempt's files into the destination, and return its receipt.

    Raises:
        JobNotFound: the job is over.
        CommitFenced: the job is being committed.
        CommitFailed: it could not be done, or another attempt has committed, or was interrupted. What this one has
            moved was taken out again, unless that failed too, which the text says.
        OutcomeUnknown: nobody can tell whether it has committed; nothing was taken out.
        ManifestInvalid: a file has a name that this store does not take; nothing has moved.
    """
    with run.stage("commit_task"):
        layout, working = run.layout, places_of(run).task_attempt(attempt.task_attempt_id)
        record = await record_in_force(run)
        if record is not None and record.phase in HOLDS_ITS_PINS:
            raise fenced(run, record)
        if record is not None and record.phase is not Phase.REFUSED:
            # Its directories may be there yet, while somebody deletes them.
            raise not_at_work(run)
        if await is_over_for_tasks(run):  # after the record, which goes later
            raise not_at_work(run)
        everything = scan or written is None
        if (done := await _committed_before(run, attempt, working, None if everything else written)) is not None:
            return done
        await _refuse_rivals(run, attempt)
        if Capability.REAL_DIRECTORIES in run.store.capabilities and not any(await run.store.stat_files([working])):
            raise not_at_work(run)
        files = await written_by(run, working, written, scan=scan)
        _refuse_reserved(run, files)
        nowhere = layout.task_directory(attempt.task_attempt_id)
        manifest = TaskManifest(
            layout.job_id,
            layout.job_attempt,
            attempt.task_id,
            attempt.task_attempt_id,
            # Where they would be staged if they were: a manifest names no other place.
            [Entry(f"{nowhere}/{path}", path, status.length, status.identity) for path, status in files.items()],
            counters=counters,
            marker=run.marker,
        )
        refuse_names(run, manifest.files)
        await _refuse_taken(run, files)
        if Capability.UNIQUE_IDENTITY not in run.store.capabilities:
            # Of an earlier run of this attempt, which was killed before it had deleted this.
            await forget_taken_out(run, [manifest])
        content = encode_manifest(manifest, run.below)
        intent = layout.manifest_temporary(attempt.task_attempt_id)
        try:
            saved = await run.store.create_file(intent, content)
        except FileMissing as error:
            raise not_at_work(run) from error
        except FileExists as error:
            raise _interrupted(run, intent) from error
        if await is_over_for_tasks(run):
            # Nothing was moved by it; another job that was given the id since would take it for its own attempt's.
            await run.store.delete_files([intent])
            raise not_at_work(run)
        try:
            await _move(run, working, files)
        except LockgateError as error:
            await _give_back(run, attempt, working, manifest, intent, error)
            raise
        end = Rename(intent, layout.manifest(attempt.task_id), len(content), saved.identity)
        try:
            await rename_all(run, [end], no_progress, where_taken="another attempt of the task has committed")
        except LockgateError as error:
            if not await _is_surely_not_done(run, end, content):
                raise end_unknown(run, attempt.task_attempt_id, end.target) from error
            await _give_back(run, attempt, working, manifest, intent, error)
            raise
        await delete_trees(run, [working])
        return manifest.receipt(content)


async def _refuse_taken(run: JobRun, files: Mapping[str, FileStatus]) -> None:
    """Make sure that no target is taken before the attempt says that it moves. A rename finds that out, too; but once
    another program has deleted what was staged, an older file of the same content would pass for the attempt's own, and
    be taken out with it. Not asked where no file can be taken for another."""
    if Capability.UNIQUE_IDENTITY in run.store.capabilities:
        return
    there = await run.store.stat_files(list(files))
    for path, status in zip(files, there, strict=True):
        if status is not None:
            raise CommitFailed(
                f"{path} was not renamed (job {run.layout.job_id}): target exists",
                where=run.url(path),
                next_step=how_to_free(run, WHERE_TAKEN),
            )


async def _move(run: JobRun, working: str, files: Mapping[str, FileStatus]) -> None:
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        parents = sorted({parent_of(path) for path in files} - {""})
        for path, outcome in zip(parents, await run.store.make_directories(parents), strict=True):
            if outcome.state == "blocked":
                raise CommitFailed(
                    "a file stands where a directory must be",
                    where=run.url(outcome.blocked or path),
                    next_step="move it away, or write elsewhere; then let the task be tried again",
                )
    renames = [Rename(f"{working}/{path}", path, s.length, s.identity) for path, s in files.items()]
    await rename_all(run, renames, no_progress, make_parents=True, where_taken=how_to_free(run, WHERE_TAKEN))


async def _is_surely_not_done(run: JobRun, end: Rename, content: bytes) -> bool:
    """Whether the rename by which an attempt commits has not taken place, and never will: only then may what the
    attempt has moved be taken out. Without an answer it may still be under way while its source is there."""
    try:
        intent, found = await _read_in_turn(run, [end.source, end.target])
    except LockgateError:
        return False
    return intent is None if found is None else found != content


async def _give_back(
    run: JobRun, attempt: TaskAttempt, working: str, manifest: TaskManifest, intent: str, error: LockgateError
) -> None:
    try:
        own = [Saved(manifest, committed=False)]
        seen = await keep_unmoved(run, own)
        # First what may still be moved: a rename without an answer finds nothing then. The intent, which alone tells
        # whose such a file would be, goes at the end of this.
        await delete_trees(run, [working])
        # A rename of which nobody knows what it did may still be done. Who ends another's attempt, or the job, never
        # goes by this: an attempt that is at work may move a file after it was seen.
        never_moved = seen if isinstance(error, CommitFailed) else None
        await take_out(run, own, never_moved=never_moved, refuse_if_taken_over=lambda: _refuse_if_ended(run, attempt))
        await _refuse_if_ended(run, attempt)
        await run.store.delete_files([intent])
        await forget_taken_out(run, [manifest])
    except JobNotFound:
        return  # who ends the job, or has aborted the attempt, goes by the intent
    except LockgateError as second:
        raise CommitFailed(
            f"the task commit failed ({error.what}), and what it has moved could not be taken out: {second.what}",
            where=run.url(intent),
            next_step="abort this task attempt, or the job: until then the job cannot commit",
        ) from error


async def _refuse_if_ended(run: JobRun, attempt: TaskAttempt | None = None) -> None:
    """Make sure that nobody has begun to end the job, or to abort the attempt, and so to delete what it has not moved
    yet, and what was kept of that.

    Raises:
        JobNotFound: somebody has.
    """
    record = await record_in_force(run)
    if (record is not None and record.phase is not Phase.REFUSED) or await read_marker(run) is None:
        raise not_at_work(run)
    if attempt is not None and any(await run.store.stat_files([run.layout.aborted(attempt.task_attempt_id)])):
        raise not_at_work(run)


def _refuse_reserved(run: JobRun, files: Mapping[str, FileStatus]) -> None:
    reserved = [path for path in files if is_no_output(path)]
    if reserved:
        raise ManifestInvalid(
            "a file has a name that committers keep for themselves",
            where=run.url(reserved[0]),
            next_step="nothing was moved; give it another name",
        )


async def _committed_before(
    run: JobRun, attempt: TaskAttempt, working: str, counts: Mapping[str, FileStatus] | None
) -> Receipt | None:
    """The receipt by which this attempt has committed before. `counts`: which of the files in its working directory it
    is to commit now, None for all of them.

    Raises:
        CommitFailed: another attempt has committed, or another run of this one, which has not written these files.
    """
    path = run.layout.manifest(attempt.task_id)
    (content,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
    if content is None:
        return None
    if (owner := owner_of(content)) != attempt.task_attempt_id:
        raise CommitFailed(
            f"{attempt.task_id} has committed already, by {owner}: its files are in place",
            where=run.url(path),
            next_step="nothing of this attempt was moved; keep the other's receipt, or abort that attempt first",
        )
    if is_anothers(run, marker_in(content)):
        raise committed_by_an_earlier_job(run, attempt.task_id, path)
    below = await below_root_of(run, run.layout)
    manifest = decode_manifest(content, run.layout, below, name=run.url(path))
    committed = {(entry.target, entry.identity) for entry in manifest.files}
    # What this very attempt has moved is there no more, and what it had given up is in no commit.
    others = [
        status.path
        for name, status in (await output_in(run, working)).items()
        if (counts is None or name in counts) and (name, status.identity) not in committed
    ]
    if others:
        raise run_again(run, attempt.task_attempt_id, others)
    return manifest.receipt(content)


async def _refuse_rivals(run: JobRun, attempt: TaskAttempt) -> None:
    of_task = f"attempt_{attempt.task_id.removeprefix('task_')}_"
    for path in await intents(run):
        if path.rpartition("/")[2].startswith(of_task):
            raise _interrupted(run, path)


def _interrupted(run: JobRun, intent: str) -> CommitFailed:
    return CommitFailed(
        "the commit of an attempt of this task was interrupted, or is under way: files of it may be in place",
        where=run.url(intent),
        next_step="if that attempt is dead, abort it, which takes them out, "
        f"{how_to_abort(run, [intent])}; or abort the job and run it again",
    )


async def intents(run: JobRun) -> list[str]:
    """The intents of task attempts that are there."""
    paths: list[str] = []
    async for page in run.store.list_directory(run.layout.manifests):
        paths += [status.path for status in page if status.path.endswith(MANIFEST_TEMPORARY_SUFFIX)]
    return sorted(paths)


async def abort_task(run: JobRun, attempt: TaskAttempt) -> None:
    """Take out what the attempt has moved, and delete the rest. Its tombstone comes first.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
        CommitFailed: a file of it could not be taken out, or was set aside by another job.
    """
    with run.stage("abort_task"):
        if not await bury(run, attempt):
            return
        working = places_of(run).task_attempt(attempt.task_attempt_id)
        known = [each for _, each in await _saved_by(run, attempt)]
        await keep_unmoved(run, known)
        try:
            await _refuse_if_ended(run)
            # First what it could still move.
            await delete_trees(run, [working])
            own = await _saved_by(run, attempt)
            await take_out(
                run, [each for _, each in own], kept=known, refuse_if_taken_over=lambda: _refuse_if_ended(run)
            )
            await _refuse_if_ended(run)
            await _refuse_to_forget(run, [entry for _, each in own for entry in each.manifest.files])
            await run.store.delete_files([path for path, _ in own])
            await forget_taken_out(run, [each.manifest for _, each in own])
        except JobNotFound:
            await delete_trees(run, [working])  # who ends the job goes by what the attempt has saved


async def abort_second_run(run: JobRun, attempt: TaskAttempt) -> None:
    """Delete what waits in the attempt's working directory: the run that has committed has moved all of its own."""
    with run.stage("abort_task"):
        marker = await read_marker_of(run, run.layout)
        if marker is not None and is_anothers(run, marker.nonce):
            return  # a later job's attempt works there
        await delete_trees(run, [places_of(run).task_attempt(attempt.task_attempt_id)])


async def _refuse_to_forget(run: JobRun, entries: Sequence[Entry]) -> None:
    """Make sure that no file of an aborted attempt can come back, since another job has set it aside and is not over:
    what the attempt has saved is all that tells whose it is.

    Raises:
        CommitFailed: one can.
    """
    other = await set_aside_by_other(run, entries) if entries else None
    if other is not None:
        raise CommitFailed(
            f"files of the task attempt were set aside by job {other}, which has not come to its end",
            where=run.url(entries[0].target),
            next_step="where that job is undone they come back: abort the attempt, or its job, once it is over",
        )


async def _saved_by(run: JobRun, attempt: TaskAttempt) -> list[tuple[str, Saved]]:
    """What an attempt has saved: where, and what."""
    paths = [run.layout.manifest_temporary(attempt.task_attempt_id), run.layout.manifest(attempt.task_id)]
    contents = await _read_in_turn(run, paths)
    below = await below_root_of(run, run.layout)
    return [
        (path, Saved(decode_manifest(content, run.layout, below, name=run.url(path)), committed=path == paths[1]))
        for path, content in zip(paths, contents, strict=True)
        if content and owner_of(content) == attempt.task_attempt_id
    ]


async def _read_in_turn(run: JobRun, paths: Sequence[str]) -> list[bytes | None]:
    """What is at both ends of a rename that may be under way, the source first: of two that are read at once the target
    may be read before the rename, and the source after it, and what was renamed be at neither."""
    return [
        content
        for path in paths
        for content in await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
    ]

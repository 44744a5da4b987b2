"""Task commit, which is no one act: an intent, a completed upload a file, and the manifest. Task abort.

The intent is the manifest at the attempt's own path, written before the first upload is completed; the manifest is the
same content at the task's path, created once all are. An intent whose task has no manifest of its attempt says that
this was interrupted, or is at work, and then, as with `v2`:

- The job commit refuses it, unless another attempt at that task is committed: then nothing is missing, and the intent
  says which uploads are to be given up and what they have become. Who aborts that attempt takes its files out, and then
  the job may go on.
- Another attempt at that task is refused while it is there, and once the task has committed.

So an attempt that is cut off, and goes on, adds nothing to a job that has committed: with its intent the job commit was
refused, or its uploads were given up, so that it completes none of them; and without one it looks whether the job is
claimed before it completes anything.

Why the other attempt is refused, and does not take the files of the interrupted one out itself: nobody can tell one
that died from one that is slow. Under one that is alive, and is about to return its receipt, that would leave the task
without either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.engine.manifests.aborted_attempts import HOLDS_ITS_PINS, bury, marker_in, owner_of
from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.record.marker import is_anothers, read_marker
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.engine.run.own_commands import (
    committed_by_an_earlier_job,
    end_unknown,
    how_to_abort,
    interrupted_commits,
    run_again,
)
from lockgate.engine.run.store import no_progress
from lockgate.engine.run.taken_names import how_to_free
from lockgate.model.errors import (
    AnswerLost,
    CommitFailed,
    FileExists,
    LockgateError,
    OutcomeUnknown,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.files import FileStatus, Unknown
from lockgate.model.layout import ABORTED_SUFFIX, TaskAttempt, saves_manifest_of
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.spooled import windows
from lockgate.model.uploads import Completed, UploadRefusal
from lockgate.protocols.deferred import job_commit, staging, undo
from lockgate.protocols.deferred.same_names import Beneath
from lockgate.protocols.deferred.uploads import entry_of, give_up_unseen, keep_of, upload_of

COMPLETED_AT_ONCE = 1_000


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    *,
    scan: bool = False,
) -> Receipt:
    """Complete the attempt's uploads, and return its receipt.

    Raises:
        UsageError: files are to be found in a working directory, of which there is none.
        JobNotFound: the job is over.
        CommitFenced: the job is being committed.
        CommitFailed: it could not be done, or another attempt has committed, or was interrupted. What this one has
            completed was taken out again, unless that failed too, which the text says.
        OutcomeUnknown: nobody can tell whether a file is in place, or whether it has committed; nothing was taken out.
    """
    if written is None or (scan and not written and not staging.is_staging(run)):
        raise UsageError(
            "with the protocol emrfs a task attempt has no working directory in which files are found",
            where=run.url(run.layout.task_directory(attempt.task_attempt_id)),
            next_step="write every file through attempt.open(path); or give staging_directory, a local directory",
        )
    with run.stage("commit_task"):
        layout = run.layout
        await _refuse_if_too_late(run)
        entries = [entry_of(target, status) for target, status in written.items()]
        if (done := await _committed_before(run, attempt, entries)) is not None:
            return done
        await _refuse_rivals(run, attempt)
        manifest = TaskManifest(
            layout.job_id,
            layout.job_attempt,
            attempt.task_id,
            attempt.task_attempt_id,
            entries,
            counters=counters,
            marker=run.marker,
        )
        content = encode_manifest(manifest, run.below)
        intent = layout.manifest_temporary(attempt.task_attempt_id)
        await run.store.keep_uploads(keep_of(run, attempt.task_attempt_id))
        try:
            await run.store.create_file(intent, content)
        except FileExists as error:
            raise _interrupted(run, intent) from error
        try:
            # A driver claims its job, and then looks for intents: of the two, one sees the other.
            await _refuse_if_too_late(run)
            await _complete(run, manifest)
            await _save(run, attempt, content)
        except OutcomeUnknown:
            raise
        except LockgateError as error:
            await _give_back(run, manifest, intent, error)
            raise
        return manifest.receipt(content)


async def _refuse_if_too_late(run: JobRun) -> None:
    record = await record_in_force(run)
    if record is not None and record.phase in (*HOLDS_ITS_PINS, Phase.COMMITTED, Phase.ROLLED_BACK):
        raise fenced(run, record)
    if await is_over_for_tasks(run):  # after the record, which goes later
        raise not_at_work(run, run.layout.job_marker)


async def _complete(run: JobRun, manifest: TaskManifest) -> None:
    for start in range(0, len(manifest.files), COMPLETED_AT_ONCE):
        some = manifest.files[start : start + COMPLETED_AT_ONCE]
        outcomes = await job_commit.complete_some(run, [upload_of(entry) for entry in some], no_progress)
        for entry, outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, Completed):
                continue
            if isinstance(outcome, Unknown):
                raise OutcomeUnknown(
                    f"cannot tell whether a file was put in place: {outcome}",
                    where=run.url(entry.target),
                    next_step="abort this task attempt, which takes its files out; or abort the job",
                )
            next_step = "let the task be tried again; nothing of this attempt is committed"
            if outcome.reason in (UploadRefusal.TARGET_EXISTS, UploadRefusal.TARGET_CHANGED):
                next_step = how_to_free(
                    run, "give new files new names: emrfs writes over none; then let the task be tried again"
                )
            elif outcome.reason is UploadRefusal.NOT_ALLOWED:
                next_step = f"{job_commit.MAY_NOT_COMPLETE}; then {next_step}"
            raise CommitFailed(
                f"a file could not be put in place: {outcome}", where=run.url(entry.target), next_step=next_step
            )


async def _save(run: JobRun, attempt: TaskAttempt, content: bytes) -> None:
    """Create the attempt's manifest at its task's path.

    Raises:
        CommitFailed: another attempt has.
        OutcomeUnknown: it may be there, or come yet: then what the attempt has completed must stay.
        StoreError: it surely was not created.
    """
    path = run.layout.manifest(attempt.task_id)
    try:
        await run.store.create_file(path, content)
    except (FileExists, StoreUnavailable) as error:
        try:
            (found,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
        except LockgateError:
            raise end_unknown(run, attempt.task_attempt_id, path) from error
        if found == content:
            return
        if found is None and isinstance(error, AnswerLost):
            raise end_unknown(run, attempt.task_attempt_id, path) from error
        if found is None and isinstance(error, StoreUnavailable):
            raise
        raise CommitFailed(
            f"another attempt at {attempt.task_id} has committed",
            where=run.url(path),
            next_step="let the task be tried again, unless the other's receipt is there",
        ) from error


async def _give_back(run: JobRun, manifest: TaskManifest, intent: str, error: LockgateError) -> None:
    try:
        await take_out(run, manifest)
        await run.store.delete_files([intent])
    except LockgateError as second:
        raise CommitFailed(
            f"the task commit failed ({error.what}), and what it had put in place could not be taken out: "
            f"{second.what}",
            where=run.url(intent),
            next_step="abort this task attempt, or the job: until then the job cannot commit",
        ) from error


async def gave_up(run: JobRun, written: Mapping[str, FileStatus]) -> bool:
    """Whether the files of an attempt have to be sent once more: a commit of it has failed, and nothing names their
    uploads any more, which are given up at the latest here.

    Raises:
        JobNotFound: the job is over.
        CommitFenced: the job is being committed.
        StoreError: nobody can tell.
    """
    sent = [upload_of(entry_of(target, status)) for target, status in written.items() if status.upload]
    if not sent:
        return False
    own = run.task_attempt_id
    paths = [run.layout.manifest_temporary(own), run.layout.manifest(_task_of(own))]
    contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
    if any(content is not None for content in contents):
        return False
    await _refuse_if_too_late(run)
    await give_up_unseen(run, sent)
    return True


async def take_out(run: JobRun, manifest: TaskManifest) -> list[str]:
    """Give the uploads of a manifest up, and delete what they have become, each file only if it carries its upload's
    mark; the answer: where somebody has changed it since."""
    uploads = [upload_of(entry) for entry in manifest.files]
    await run.store.abort_uploads(uploads)
    return await undo.undo_some(run, uploads, Beneath(()))


async def abort_task(run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None) -> None:
    """Leave the attempt's tombstone, give its uploads up, and take out what it has completed.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
        StoreError: a file could not be taken out.
    """
    with run.stage("abort_task"):
        own_job = await bury(run, attempt)  # where another job has the id, the marker is none for this one
        if own_job and staging.is_staging(run):
            staging.clear(run)
        own = run.layout.manifest_temporary(attempt.task_attempt_id)
        place = run.layout.manifest(attempt.task_id)
        record, marker = await record_in_force(run), await read_marker(run)
        over = marker is None or (record is not None and record.phase is Phase.COMMITTED)
        sent = {target: status for target, status in (written or {}).items() if status.upload}
        await give_up_unseen(run, [upload_of(entry_of(target, status)) for target, status in sent.items()])
        if over:  # then what it has completed may count, and what does not was taken out by the job's end
            return
        contents = await run.store.read_files([own, place], bytes_max=run.options.manifest_bytes_max)
        for path, content in zip((own, place), contents, strict=True):
            if content is not None and owner_of(content) == attempt.task_attempt_id:
                await take_out(run, decode_manifest(content, run.layout, run.below, name=run.url(path), deferred=True))
        if run.store.keeps_uploads:
            keep = keep_of(run, attempt.task_attempt_id)
            async for kept in run.store.kept_uploads(keep):
                await run.store.abort_uploads(kept)
            await run.store.delete_directories([keep])
        gone = [own] if owner_of(contents[1] or b"") != attempt.task_attempt_id else [place, own]
        await run.store.delete_files(gone)


async def abort_second_run(run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> None:
    """Give up the uploads of a run that was refused, since another run of the attempt has committed.

    Raises:
        StoreError: one could not be given up.
    """
    with run.stage("abort_task"):
        if staging.is_staging(run):
            staging.clear(run)
        path = run.layout.manifest(attempt.task_id)
        (content,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
        committed: set[str] = set()
        if content is not None:
            manifest = decode_manifest(content, run.layout, run.below, name=run.url(path), deferred=True)
            committed = {entry.upload for entry in manifest.files}
        own = [entry_of(target, status) for target, status in written.items() if status.upload]
        await give_up_unseen(run, [upload_of(entry) for entry in own if entry.upload not in committed])


async def _committed_before(run: JobRun, attempt: TaskAttempt, entries: Sequence[Entry]) -> Receipt | None:
    path = run.layout.manifest(attempt.task_id)
    (content,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
    if content is None:
        return None
    if (owner := owner_of(content)) != attempt.task_attempt_id:
        raise CommitFailed(
            f"{attempt.task_id} has committed already, by {owner}: its files are in place",
            where=run.url(path),
            next_step="nothing of this attempt was put in place; keep the other's receipt, or abort that attempt first",
        )
    if is_anothers(run, marker_in(content)):
        raise committed_by_an_earlier_job(run, attempt.task_id, path)
    manifest = decode_manifest(content, run.layout, run.below, name=run.url(path), deferred=True)
    if others := [entry.target for entry in entries if entry not in manifest.files]:
        raise run_again(run, attempt.task_attempt_id, others)
    return manifest.receipt(content)


async def _refuse_rivals(run: JobRun, attempt: TaskAttempt) -> None:
    of_task = f"attempt_{attempt.task_id.removeprefix('task_')}_"
    for begun in sorted(await _intents(run)):
        if begun.startswith(of_task):
            raise _interrupted(run, run.layout.manifest_temporary(begun))


async def _intents(run: JobRun) -> set[str]:
    """The task attempts that have an intent, and no tombstone."""
    names: set[str] = set()
    async for page in run.store.list_directory(run.layout.manifests):
        names |= {status.path.rpartition("/")[2] for status in page}
    aborted = {name.removesuffix(ABORTED_SUFFIX) for name in names if name.endswith(ABORTED_SUFFIX)}
    return {attempt for name in names if (attempt := saves_manifest_of(name))} - aborted


async def refuse_interrupted(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that no task commit was interrupted, or is under way, of a task of which no attempt is committed: what
    it has written would be missing.

    Raises:
        ReceiptUnmatched: one was.
    """
    committed = {pin.task_id for pin in plan.pins}
    doubtful = [each for each in sorted(await _intents(run)) if _task_of(each) not in committed]
    begun: list[str] = []
    for some in windows(doubtful, run.options.files_read_at_once):
        tasks = [run.layout.manifest(_task_of(each)) for each in some]
        contents = await run.store.read_files(tasks, bytes_max=run.options.manifest_bytes_max)
        owners = [None if content is None else owner_of(content) for content in contents]
        begun += [each for each, owner in zip(some, owners, strict=True) if owner != each]
    if begun:
        raise interrupted_commits(run, begun)


def _task_of(task_attempt_id: str) -> str:
    return f"task_{task_attempt_id.removeprefix('attempt_').rpartition('_')[0]}"


def _interrupted(run: JobRun, intent: str) -> CommitFailed:
    return CommitFailed(
        "the commit of an attempt at this task was interrupted, or is under way: files of it may be in place",
        where=run.url(intent),
        next_step="if that attempt is dead, abort it, which takes them out, "
        f"{how_to_abort(run, [intent])}; or abort the job and run it again",
    )

"""Task commit and task abort, where the files are in the destination already.

The manifest is written twice, to the attempt's own path and then to the task's, each by one act, as with `deferred`:
at no moment a task that has committed has no manifest, and a rival's is found at its own path.

A driver claims its job, and then looks for what it has not pinned, to take it out. An attempt saves its manifest, and
then looks whether the job is claimed. So one of them sees the other: the files of an attempt that comes too late are
taken out, unless it dies, or is cut off, between its last write and that look. A run of an attempt that was taken for
dead, and run again under its number, is too late as well: the digest of its manifest is not the one that is pinned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from lockgate.engine.job.set_aside_by_others import set_aside_by_other
from lockgate.engine.manifests.aborted_attempts import bury, is_pinned, may_count, owner_of
from lockgate.engine.manifests.load_manifests import below_root_of
from lockgate.engine.manifests.runs_of_an_attempt import PINNING, OtherRun, other_run_in, save_own
from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.record.summaries import files_of
from lockgate.engine.record.transactions import known_outcome
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed, FileMissing, JobNotFound, LockgateError, StoreUnavailable, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.layout import TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.receipt import Receipt
from lockgate.protocols.in_place.visible import take_out

Counted = Callable[[JobRun], Awaitable[Collection[str] | None]]
"""Says which files a job that is over has committed, None where nobody can tell any more."""

RETRY_SECONDS = 0.1
"""The wait before the second try to save a manifest; it doubles with every further one, to 5 s."""


async def commit_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    counters: Mapping[str, int],
    final_path: Callable[[str], str],
    counted: Counted,
    *,
    scan: bool = False,
    names_tell: bool = False,
) -> Receipt:
    """Save the attempt's manifest, and return the receipt. `final_path` gives the path that a file has by the one that
    it was opened for; `names_tell`: by its name a file is known to be the job's. Where the job is over, the attempt's
    files are taken out, but for those that count.

    Raises:
        UsageError: files are to be found in a working directory, of which there is none.
        JobNotFound: the job is over.
        CommitFenced: the job is being committed, without this attempt, or with another run of it; this one's files
            were taken out.
        CommitFailed: a file is gone, the manifest could not be saved, or an attempt of this number has committed
            others.
    """
    if written is None or (scan and not written):
        raise UsageError(
            f"with the protocol {run.protocol.name} a task attempt has no working directory in which files are found",
            where=run.url(""),
            next_step="write every file through attempt.open(path); a task without files commits with scan=False",
        )
    with run.stage("commit_task"):
        entries = await _entries(run, attempt, written, final_path)
        layout = run.layout
        manifest = TaskManifest(
            layout.job_id, layout.job_attempt, attempt.task_id, attempt.task_attempt_id, entries, counters=counters
        )
        content = encode_manifest(manifest, run.below)
        if (before := await _refuse_if_too_late(run, attempt, manifest, content, counted)) is not None:
            return before
        try:
            other = await _save(run, attempt, manifest, content, knows=names_tell)
        except JobNotFound:
            await give_up(run, attempt, entries, counted)
            raise
        if other is not None:
            return await other.refuse_unless_committed(run, manifest, take_out, counted)
        before = await _refuse_if_too_late(run, attempt, manifest, content, counted)
        return before or manifest.receipt(content)


async def _entries(
    run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus], final_path: Callable[[str], str]
) -> list[Entry]:
    """Each file with its identity, which a store may show only when it is asked."""
    found = {final_path(path): status for path, status in written.items()}
    unknown = [path for path, status in found.items() if not status.identity]
    for path, seen in zip(unknown, await run.store.stat_files(unknown) if unknown else (), strict=True):
        if seen is None:
            raise CommitFailed(
                "a file that this task attempt wrote is gone",
                where=run.url(path),
                next_step="the attempt was aborted, or its job is over; let the task be tried again",
            )
        found[path] = seen
    # Where they would be staged if they were: a manifest names no other place.
    nowhere = run.layout.task_directory(attempt.task_attempt_id)
    return [Entry(f"{nowhere}/{path}", path, status.length, status.identity) for path, status in found.items()]


async def _refuse_if_too_late(
    run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes, counted: Counted
) -> Receipt | None:
    """The answer: the receipt of what the same files were committed by before, where the job is being committed with
    that."""
    record = await record_in_force(run)
    if await is_over_for_tasks(run):  # after the record, which goes later
        await give_up(run, attempt, manifest.files, counted)
        raise not_at_work(run)
    if record is None or record.phase not in PINNING:
        return None
    if not is_pinned(run, record, attempt):
        await take_out(run, manifest.files)
        raise fenced(run, record)
    other = await other_run_in(run, record, attempt, manifest, content)
    return None if other is None else await other.refuse_unless_committed(run, manifest, take_out, counted)


async def _save(
    run: JobRun, attempt: TaskAttempt, manifest: TaskManifest, content: bytes, *, knows: bool
) -> OtherRun | None:
    """The answer: the run of this attempt that the job is being committed with, and no manifest was saved."""
    wait = RETRY_SECONDS
    for left in reversed(range(run.options.manifest_save_attempts)):
        try:
            refuse = None if knows else _refuse_other_files(run, attempt, manifest.files)
            if (other := await save_own(run, attempt, manifest, content, refuse)) is not None:
                return other
            await run.store.write_file(run.layout.manifest(attempt.task_id), content)
            return None
        except FileMissing as error:
            raise not_at_work(run) from error
        except StoreUnavailable as error:
            if not left:
                raise CommitFailed(
                    f"the manifest could not be saved in {run.options.manifest_save_attempts} attempts",
                    where=run.url(run.layout.manifest(attempt.task_id)),
                    next_step="abort this attempt, which deletes its files, and let the task be tried again",
                ) from error
            run.count("manifest_saves_repeated")
            run.log.info("manifest is saved again", error=str(error))
        await asyncio.sleep(wait * (0.5 + run.runtime.random.random()))
        wait = min(2 * wait, 5.0)
    raise AssertionError("the last try returns or raises")


def _refuse_other_files(run: JobRun, attempt: TaskAttempt, entries: Sequence[Entry]) -> Callable[[], Awaitable[None]]:
    """What is asked where the attempt has a manifest already. Where only manifests tell whose a file is, no run of it
    commits beside another that has written files which this one does not name.

    Raises:
        CommitFailed: so it would be.
    """

    async def refuse() -> None:
        written = {(entry.target, entry.identity) for entry in entries}
        before = [e for e in await _saved_by(run, attempt) if (e.target, e.identity) not in written]
        if before:
            error = CommitFailed(
                f"{attempt.task_attempt_id} has committed before, with other files: a task was run again under the "
                "number that its first run has",
                where="\n".join(run.url(entry.target) for entry in before[:5]),
                next_step="what the first has committed is in place, and stays; keep its receipt, or let the task be "
                f"tried again as attempt {attempt.attempt + 1}, or a later one: the receipts say which of them counts. "
                "What this run has written is taken out, by abort() of the object that was refused here at the latest",
            )
            error.is_second_run = True
            try:
                await take_out(run, entries)
            except LockgateError as second:
                raise error from second
            raise error

    return refuse


async def abort_task(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus] | None,
    final_path: Callable[[str], str],
    counted: Counted,
) -> None:
    """Leave the attempt's tombstone, then take out what it wrote: the files that are known, and those that its manifest
    names.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
        StoreError, CommitFailed: a file could not be taken out.
    """
    with run.stage("abort_task"):
        own_job = await bury(run, attempt)
        saved = {entry.target: entry for entry in await _saved_by(run, attempt)} if own_job else {}
        opened = [Entry("", final_path(path), each.length, each.identity) for path, each in (written or {}).items()]
        known = await _with_identities(run, [entry for entry in opened if entry.target not in saved])
        entries = {entry.target: entry for entry in opened} | saved
        await give_up(run, attempt, [*saved.values(), *known], counted)
        if not entries or not own_job:
            return  # what an attempt saves that was asleep is still to be found by it
        other = await set_aside_by_other(run, list(entries.values()))
        if other is None:
            await run.store.delete_files([run.layout.manifest_temporary(attempt.task_attempt_id)])
        else:
            await _leave_word(run, attempt, list(entries.values()), other)


async def abort_second_run(
    run: JobRun,
    attempt: TaskAttempt,
    written: Mapping[str, FileStatus],
    final_path: Callable[[str], str],
    counted: Counted,
) -> None:
    """Take out what a run has opened that was refused, since another run of the attempt has committed other files; and
    nothing of that one.

    Raises:
        StoreError, CommitFailed: a file could not be taken out.
    """
    with run.stage("abort_task"):
        first = {(entry.target, entry.identity) for entry in await _saved_by(run, attempt)}
        opened = [Entry("", final_path(path), each.length, each.identity) for path, each in written.items()]
        known = await _with_identities(run, opened)
        await give_up(run, attempt, [e for e in known if (e.target, e.identity) not in first], counted)


async def _leave_word(run: JobRun, attempt: TaskAttempt, entries: Sequence[Entry], other: str) -> None:
    """Save what the attempt has written, where another job's commit has set some of it aside: where that is undone it
    comes back, and whoever ends this job takes it out."""
    run.log.warning("files of an aborted task attempt were set aside by another job, and may come back", other=other)
    nowhere = run.layout.task_directory(attempt.task_attempt_id)
    files = [Entry(f"{nowhere}/{each.target}", each.target, each.length, each.identity) for each in entries]
    layout = run.layout
    manifest = TaskManifest(layout.job_id, layout.job_attempt, attempt.task_id, attempt.task_attempt_id, files)
    try:
        content = encode_manifest(manifest, run.below)
        await run.store.write_file(layout.manifest_temporary(attempt.task_attempt_id), content)
    except FileMissing:  # the job is over: nobody would read it
        run.log.warning("the job is over: if they come back, they stay", paths=[each.target for each in entries[:3]])


async def _saved_by(run: JobRun, attempt: TaskAttempt) -> Sequence[Entry]:
    paths = [run.layout.manifest_temporary(attempt.task_attempt_id), run.layout.manifest(attempt.task_id)]
    contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
    for path, content in zip(paths, contents, strict=True):
        if content is not None and owner_of(content) == attempt.task_attempt_id:
            below = await below_root_of(run, run.layout)
            return decode_manifest(content, run.layout, below, name=run.url(path)).files
    return []


async def _with_identities(run: JobRun, entries: Sequence[Entry]) -> list[Entry]:
    """Those that the attempt itself has opened. Nobody else has created a file of these names, so what is there is the
    attempt's unless somebody has changed it; then its length shows that, as far as it can."""
    unknown = [entry for entry in entries if not entry.identity]
    found = await run.store.stat_files([entry.target for entry in unknown]) if unknown else []
    known = [entry for entry in entries if entry.identity]
    for entry, status in zip(unknown, found, strict=True):
        if status is not None and status.length == entry.length:
            known.append(Entry(entry.source, entry.target, status.length, status.identity))
    return known


async def give_up(run: JobRun, attempt: TaskAttempt, entries: Sequence[Entry], counted: Counted) -> None:
    """Take out what an attempt wrote that is not to count. Where its job has committed with it, or may have, only what
    the job's list of its files does not name; nothing where that list is not to be found any more.

    Raises:
        StoreError, CommitFailed: a file could not be taken out.
    """
    if not entries:
        return
    if await may_count(run, attempt):
        count = await counted(run)
        if count is None:
            run.log.warning("the job has committed: files that this attempt wrote, and may be part of it, are left")
            return
        entries = [entry for entry in entries if entry.target not in count]
    left = await take_out(run, await _not_of_another_run(run, entries))
    if left:
        run.log.warning("files that somebody has changed since this attempt wrote them are left", left=left)


async def _not_of_another_run(run: JobRun, entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries without those that another job has committed by this one's transaction id. Runs of a stream's batch
    give their files the same names, and most formats the same bytes: where the store knows files by their content, they
    look like this attempt's own."""
    if Capability.UNIQUE_IDENTITY in run.store.capabilities:
        return entries
    outcome = await known_outcome(run)
    if outcome is None or outcome.lockgate is None or outcome.job_id == run.layout.job_id:
        return entries
    files = await files_of(run, outcome.lockgate.files)
    if files is None:  # collected since: then names tell, if they hold a tag of this job's
        own = [entry for entry in entries if tagged_by(entry.target, {run.marker})]
    else:
        theirs = {file.path for file in files}
        own = [entry for entry in entries if entry.target not in theirs]
    if len(own) < len(entries):
        left = sorted({entry.target for entry in entries}.difference(entry.target for entry in own))
        run.log.warning(
            "files of this attempt's names are left: another job has committed its transaction, and they may be of it",
            job=outcome.job_id,
            left=left[:20],
        )
    return own

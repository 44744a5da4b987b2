"""Rollback: the destination becomes what it was before the job commit.

The order is what makes it safe against a driver that still lives, or sleeps, and against files of others that look like
ours:
1. The record says `rolling-back`: a driver that looks stops.
2. Where identities do not tell two writes of one content apart, staged files that are still there are moved aside
   within the job's directory. That they are found there proves, for every later try too, that what stands at their
   targets is not this job's.
3. The staged files and the waiting summary are deleted: a driver that does not look finds nothing to rename.
4. New files are taken out, each recognised by its identity, and moved, not deleted.
5. What was set aside comes back, `_SUCCESS` last, until its directory is empty and deleted: from then on a driver that
   still sets files aside is refused, since the directory is gone. Where directories are not real, every file on the
   list is set aside first, so that all that come back have another version than the one that such a driver pins.
Every step can be repeated, by anybody, after a crash at any point.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence

from lockgate.engine.record.record_log import fenced, read_record
from lockgate.engine.record.replaced_lists import waiting_files
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.renames.replaced_files import BATCH, bring_back
from lockgate.engine.renames.staged_files import is_unique
from lockgate.engine.renames.whole_directories import waiting_inside
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import no_progress
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed
from lockgate.model.files import Deleted, FileStatus, NotRenamed, Refusal, Rename, Renamed, Unknown
from lockgate.model.layout import SUCCESS, ordinal_in
from lockgate.model.manifest import Entry
from lockgate.model.numbers import Numbers
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import SetAside
from lockgate.model.spooled import windows
from lockgate.model.undone import Undone


async def undo_moves(run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
    """Undo what `move_files` did. The record is in phase `rolling-back`.

    Raises:
        CommitFailed: a set-aside file cannot come back, since another writer has taken its place; it is kept.
    """
    with run.stage("roll_back"):
        await _keep_unmoved(run, plan)
        await delete_sources(run, record)
        unmoved = await _numbers_in(run, run.layout.unmoved)
        if Capability.RENAME_BY_COPY in run.store.capabilities:
            for number in await _copied(run, plan, unmoved):
                unmoved.discard(number)
        left = await _take_out(run, plan, record, unmoved=unmoved)
        # A directory that was made may stand where a file that was set aside must come back.
        made = sorted(record.made_directories, key=lambda path: (-path.count("/"), path))
        await run.store.delete_empty_directories(made)
        missing: list[str] = []
        if plan.set_aside:
            nonce = record.set_aside_nonce
            await renew_versions(run, nonce, plan.set_aside)
            waiting = await all_waiting(run, nonce, plan.set_aside, plan.aside_directories)
            await bring_back(run, nonce, plan.set_aside, plan.aside_directories)
            missing = await missing_of(run, plan.set_aside, came_back=waiting)
            # Only now nobody can set anything aside any more that it lists.
            await bring_back_summary(run, nonce)
        await run.store.delete_files([run.layout.file_list])
        return Undone(missing, left)


async def all_waiting(run: JobRun, nonce: str, files: Sequence[SetAside], directories: Sequence[str]) -> Container[int]:
    """The numbers of the replaced files that are set aside now, by themselves or with a directory."""
    return Either(await waiting_files(run, nonce), await waiting_inside(run, nonce, files, directories))


class Either:
    """The numbers that are in one of two sets."""

    def __init__(self, one: Container[int], other: Container[int]) -> None:
        self._one = one
        self._other = other

    def __contains__(self, number: object) -> bool:
        return number in self._one or number in self._other


async def missing_of(run: JobRun, files: Sequence[SetAside], *, came_back: Container[int]) -> list[str]:
    """Those of the replaced files that have neither come back nor stayed; another file in their place is none."""
    missing: list[str] = []
    gone = (a for number, a in enumerate(files) if number not in came_back and a.path != SUCCESS)
    for some in windows(gone, 1_000):
        stayed = await _stayed_of(run, some)
        missing += [aside.path for aside in some if aside.path not in stayed]
    return missing


async def stayed_among(
    run: JobRun, files: Sequence[SetAside], paths: Container[str], *, came_back: Container[int]
) -> set[str]:
    """The paths of those of the replaced files that stand in their old places, but for those that came back; only of
    those that are among `paths`."""
    stayed: set[str] = set()
    asked = (a for number, a in enumerate(files) if a.path in paths and number not in came_back)
    for some in windows(asked, 1_000):
        stayed |= await _stayed_of(run, some)
    return stayed


async def _stayed_of(run: JobRun, files: Sequence[SetAside]) -> set[str]:
    found = await run.store.stat_files([aside.path for aside in files])
    return {
        aside.path
        for aside, status in zip(files, found, strict=True)
        if is_ours(run, Entry("", aside.path, aside.length, aside.identity), status)
    }


async def refuse_if_taken_over(run: JobRun, record: CommitRecord) -> None:
    """Make sure that nobody has ended this rollback meanwhile, and deleted what says which files were never moved.

    Raises:
        CommitFenced: somebody has taken the job over.
    """
    found = await read_record(run)
    if found is None or found.holder.nonce != record.holder.nonce:
        raise fenced(run, found)


async def _keep_unmoved(run: JobRun, plan: CommitPlan) -> None:
    """Move every staged file that is still there out of reach of a late driver, to where it says of itself that it was
    never renamed into the destination: where another write could share its identity, so that what stands at its target
    is not taken for it; and where another file stands there, so that it is not said to be this one, changed."""
    start = 0
    for batch in plan.batches(1_000):
        targets = await _at_targets(run, batch)
        doubtful = [
            Rename(entry.source, run.layout.unmoved_file(start + index), entry.length, entry.identity)
            for index, (entry, target) in enumerate(zip(batch, targets, strict=True))
            if not is_unique(run, entry) or (target is not None and not is_ours(run, entry, target))
        ]
        start += len(batch)
        for attempt in range(TRIES):
            found = await run.store.stat_files([rename.source for rename in doubtful])
            doubtful = [rename for rename, status in zip(doubtful, found, strict=True) if status is not None]
            if not doubtful:
                break
            if attempt:
                await wait_to_try_again(run, attempt)
            elif Capability.REAL_DIRECTORIES in run.store.capabilities:
                await run.store.make_directories([run.layout.unmoved], within=run.layout.attempt_directory)
            await run.store.rename_files(doubtful)
        if doubtful:
            run.log.info("staged files that cannot be renamed are deleted one by one", files=len(doubtful))
            await _delete_unmoved(run, doubtful)


async def _at_targets(run: JobRun, batch: Sequence[Entry]) -> Sequence[FileStatus | None]:
    """What stands at the targets; not asked where every staged file is moved aside anyway."""
    if Capability.UNIQUE_IDENTITY not in run.store.capabilities:
        return [None] * len(batch)
    return await run.store.stat_files([entry.target for entry in batch])


async def _delete_unmoved(run: JobRun, found: Sequence[Rename]) -> None:
    """Delete staged files that the store refuses to rename, and leave the proof in their place: the deletion says
    whether the file was there until now, so that a late driver has not renamed it."""
    for rename in found:
        await run.store.write_file(rename.target, b"")
        (deleted,) = await run.store.delete_files([rename.source])
        if deleted is Deleted.MISSING:
            await run.store.delete_files([rename.target])


async def _copied(run: JobRun, plan: CommitPlan, unmoved: Container[int]) -> frozenset[int]:
    """Those whose target is a copy of the staged file all the same: where a rename is a copy and a deletion, somebody
    was cut short between the two, or was between them when the staged file was moved aside. Asked once the staged file
    is gone, so that no further copy can come."""
    found: list[int] = []
    start = 0
    for batch in plan.batches(1_000):
        asked = [(start + index, entry) for index, entry in enumerate(batch) if start + index in unmoved]
        start += len(batch)
        for (number, entry), target in zip(
            asked, await run.store.stat_files([entry.target for _, entry in asked]), strict=True
        ):
            source = FileStatus(entry.source, entry.length, entry.identity)
            rename = Rename(entry.source, entry.target, entry.length, entry.identity)
            outcome = run.hooks.recover_rename(run.store, rename, Unknown(), source, target)
            if target is not None and isinstance(outcome, NotRenamed) and outcome.reason is not Refusal.TARGET_EXISTS:
                found.append(number)
    return frozenset(found)


async def _numbers_in(run: JobRun, directory: str) -> Numbers:
    found = Numbers()
    async for page in run.store.list_directory(directory):
        for status in page:
            if (number := ordinal_in(status.path)) is not None:
                found.add(number)
    return found


async def delete_sources(run: JobRun, record: CommitRecord) -> None:
    """Delete everything that a driver of this job could still rename into the destination."""
    if record.summary_nonce:
        await run.store.delete_files([run.layout.summary_temporary(record.summary_nonce)])
    attempts = {run.layout.job_attempt, *(pin.job_attempt for pin in record.pins)}
    await delete_trees(run, [run.layout.at_attempt(attempt).tasks for attempt in sorted(attempts)])


async def _take_out(run: JobRun, plan: CommitPlan, record: CommitRecord, *, unmoved: Container[int]) -> list[str]:
    """Move the job's files out of the destination, into the job's own directory; the answer: where others stand in
    their place, or they themselves, changed.

    Not deleted by name: a recoverer that slept through the end of its job, between its look and its deletion, would
    delete what another job has put there since. A rename is refused, since the directory is gone or the source has
    another version; and where neither is so, another job's file is found out and brought back.
    """
    left: list[str] = []
    if not plan.files:
        return left
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([run.layout.withdrawn], within=run.layout.attempt_directory)
    # An earlier try has taken these out. What stands at their targets now, with the same content, has come back.
    out = await _numbers_in(run, run.layout.withdrawn)
    progress = run.progress(plan.files)
    start = 0
    for batch in plan.batches(1_000):
        moved = [(start + index, entry) for index, entry in enumerate(batch) if start + index not in unmoved]
        places = [(entry, run.layout.withdrawn_file(number)) for number, entry in moved]
        pending = [place for place, (number, _) in zip(places, moved, strict=True) if number not in out]
        left += await withdraw(run, pending, lambda: refuse_if_taken_over(run, record))
        left += await return_what_is_not_ours(run, places)
        progress(len(batch))
        start += len(batch)
    return left


async def withdraw(
    run: JobRun, files: Sequence[tuple[Entry, str]], refuse_if_taken_over: Callable[[], Awaitable[None]] | None = None
) -> list[str]:
    """Move those entries' targets that are this job's, each to the path beside it; the answer: targets where something
    stands that is not, or is not any more, what this job has put there.

    `refuse_if_taken_over` is asked between the look and the renames: what somebody else has brought back since is
    another version than the one that was looked at.

    Raises:
        CommitFailed: one could not be moved.
    """
    for attempt in range(TRIES):
        found = await run.store.stat_files([entry.target for entry, _ in files])
        ours = [
            Rename(entry.target, place, status.length, status.identity)
            for (entry, place), status in zip(files, found, strict=True)
            if status is not None and is_ours(run, entry, status)
        ]
        if not ours:
            return [status.path for status in found if status is not None]
        if attempt:
            await wait_to_try_again(run, attempt)
        if refuse_if_taken_over is not None:
            await refuse_if_taken_over()
        outcomes = await run.store.rename_files(ours)
        run.count("files_taken_out", sum(isinstance(outcome, Renamed) for outcome in outcomes))
    raise CommitFailed(
        f"a file could not be taken out: {outcomes[0]}",
        where=run.url(ours[0].source),
        next_step=f"{command('recover', run.store.url, run.layout.job_id)} --undo, once the store allows it",
    )


async def return_what_is_not_ours(run: JobRun, files: Sequence[tuple[Entry, str]]) -> list[str]:
    """Bring back what `withdraw` has moved by mistake, since it came between its look and its rename: another job's
    file, or this one's, changed by somebody. The answer: where to."""
    found = await run.store.stat_files([place for _, place in files])
    others = [
        Rename(status.path, entry.target, status.length, status.identity)
        for (entry, _), status in zip(files, found, strict=True)
        if status is not None and not is_ours(run, entry, status)
    ]
    if others:
        await rename_all(run, others, no_progress, make_parents=True)
    return [other.target for other in others]


def is_ours(run: JobRun, entry: Entry, status: FileStatus | None) -> bool:
    """Whether what stands at an entry's target is what its task has written, as far as its identity says."""
    if status is None:
        return False
    if entry.identity:
        return run.store.same_identity(entry.identity, status.identity)
    # A manifest of Hadoop's on a store without etags says no more than the length.
    return not status.is_directory and entry.length == status.length


async def renew_versions(run: JobRun, nonce: str, files: Sequence[SetAside]) -> None:
    """Where directories are not real, set every file on the list aside, before all are brought back: a driver that
    still sets files aside pins the versions on the list, which are there no more.

    Raises:
        CommitFailed: one could not be renamed.
    """
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return
    # `_SUCCESS` by itself and first, as when it was set aside.
    await _renew_versions(run, nonce, [each for each in enumerate(files) if each[1].path == SUCCESS])
    for some in windows((each for each in enumerate(files) if each[1].path != SUCCESS), BATCH):
        await _renew_versions(run, nonce, some)


async def _renew_versions(run: JobRun, nonce: str, waiting: Sequence[tuple[int, SetAside]]) -> None:
    for _ in range(TRIES):
        if not waiting:
            return
        renames = [Rename(a.path, run.layout.replaced_file(nonce, n), a.length, a.identity) for n, a in waiting]
        await run.store.rename_files(renames)
        found = await run.store.stat_files([aside.path for _, aside in waiting])
        waiting = [
            each
            for each, status in zip(waiting, found, strict=True)
            if status is not None and status.identity == each[1].identity
        ]
    if waiting:
        raise CommitFailed(
            "a file that was to be replaced cannot be renamed",
            where=run.url(waiting[0][1].path),
            next_step=f"{command('recover', run.store.url, run.layout.job_id)} --undo, once the store allows it",
        )


async def bring_back_summary(run: JobRun, nonce: str) -> None:
    """Bring the old `_SUCCESS` back, after the data that it lists; if a job on other partitions has published its
    own by now, the old one is what that job has replaced."""
    aside = run.layout.summary_returning(nonce)
    for attempt in range(TRIES):
        if attempt > 1:
            await wait_to_try_again(run, attempt)
        waiting, published = await run.store.stat_files([aside, SUCCESS])
        if waiting is None:
            return
        if published is not None:
            await run.store.delete_files([aside])
            return
        await run.store.rename_files([Rename(aside, SUCCESS)])
    raise CommitFailed(
        f"the old {SUCCESS} does not come back",
        where=run.url(aside),
        next_step=f"{command('recover', run.store.url, run.layout.job_id)} --undo, once the store allows it",
    )

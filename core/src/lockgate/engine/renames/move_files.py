"""The stages between the plan and the summary: what is replaced goes aside, directories are made, files move.

Every one of them can be repeated from the start after a crash: a rename that has taken place is found out by
identity, a directory that exists is no failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Coroutine, Iterator, Sequence
from itertools import islice
from typing import Any

from lockgate.engine.record.ended_jobs import remember_last
from lockgate.engine.record.inside_directories import is_as_seen
from lockgate.engine.record.record_log import fenced, read_record
from lockgate.engine.record.replaced_lists import waiting_files
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.renames.replaced_files import set_aside
from lockgate.engine.renames.staged_files import any_still_listed, count_listed
from lockgate.engine.renames.whole_directories import look_again, set_aside_whole
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.movers import Movers
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.model.errors import CommitFailed, FileChanged, PathError, StoreError
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry
from lockgate.model.numbers import Numbers
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.replaced import SetAside
from lockgate.model.shares import Moved, shares_of
from lockgate.model.urls import parent_of

MOVERS_LOOK_SECONDS = 60.0
"""So often a driver whose movers are at work lists what is staged."""

MOVERS_STALLED_SECONDS = 300.0
"""So long it waits for movers that rename nothing, before it renames the files itself."""


async def move_files(run: JobRun, plan: CommitPlan, aside_nonce: str, *, again: bool = False) -> None:
    """Bring the destination to its new state, all but `_SUCCESS`, in the order that the options ask for.

    An old `_SUCCESS` is set aside before anything else, then directories that go whole, and files that stand where a
    directory must be next, in either order. `aside_nonce` says where replaced files wait; `again`: somebody may have
    begun before.
    """
    # Where a rename is two acts, what waits may still stand in its old place as well: the store ends that rename.
    at_once = not run.store.capabilities & WEAKENING
    done = await waiting_files(run, aside_nonce) if again and plan.set_aside and at_once else ()
    total = len(plan.set_aside) - len(done)
    needed = set(plan.directories)
    whole = plan.whole

    def pending() -> Iterator[tuple[int, SetAside]]:
        # Each time read anew: the list is never held whole.
        return (each for each in enumerate(plan.set_aside) if each[0] not in done and each[1].path not in whole)

    def replaced() -> Iterator[tuple[int, SetAside]]:
        return (each for each in pending() if _is_of_the_rest(needed, each[1].path))

    first = [each for each in pending() if not _is_of_the_rest(needed, each[1].path)]
    for number, aside in first:
        if aside.path == SUCCESS:
            await _set_aside_summary(run, aside_nonce, number, aside)
    await set_aside_whole(run, aside_nonce, plan.aside_directories, again=again)
    await set_aside(run, aside_nonce, [each for each in first if each[1].path != SUCCESS], total, again=again)
    emptied = plan.directories_in_the_way() if Capability.REAL_DIRECTORIES in run.store.capabilities else []
    if run.options.replace_order == "old-first":
        await set_aside(run, aside_nonce, replaced(), total, again=again)
        await run.store.delete_empty_directories(emptied)
        await _make_directories(run, plan)
        await _rename_files(run, plan)
    else:
        # One name can only be one file's, or a directory's: what is there has to go before the file comes.
        inside = set(emptied)
        same = plan.writes_each(aside.path for _, aside in replaced())
        early = Numbers(
            number
            for (number, aside), is_same in zip(replaced(), same, strict=True)
            if is_same or parent_of(aside.path) in inside
        )
        await set_aside(run, aside_nonce, (each for each in replaced() if each[0] in early), total, again=again)
        await run.store.delete_empty_directories(emptied)
        await _make_directories(run, plan)
        await _rename_files(run, plan)
        await set_aside(run, aside_nonce, (each for each in replaced() if each[0] not in early), total, again=again)
    await look_again(run, plan, aside_nonce, again=again)
    if plan.set_aside and Capability.PINNED_SOURCE not in run.store.capabilities:
        await _refuse_if_changed(run, plan, aside_nonce)
    if run.options.validate_output:
        await validate(run, plan)


def _is_of_the_rest(needed: Container[str], path: str) -> bool:
    """Whether a file is set aside neither as the old `_SUCCESS` nor because it stands where a directory must be."""
    return path != SUCCESS and path not in needed


async def _refuse_if_changed(run: JobRun, plan: CommitPlan, nonce: str) -> None:
    """Make sure that what was set aside is what was seen when the commit was planned, since it is deleted once the job
    has committed: these renames have moved whatever stood there. One listing; stores whose renames refuse a changed
    source have found out by themselves.

    Raises:
        FileChanged: somebody has changed a file since; it waits where the others do, and comes back with them.
    """
    waiting = await waiting_files(run, nonce)
    changed = (
        aside.path
        for aside, found in waiting.of(plan.set_aside)
        if aside.path != SUCCESS and not is_as_seen(run, aside, found.length, found.identity)
    )
    if shown := list(islice(changed, 5)):
        raise FileChanged(
            f"{len(shown) + sum(1 for _ in changed)} files that the job replaces were changed by somebody after the "
            "commit was planned",
            where="\n".join(run.url(path) for path in shown),
            next_step="they come back as they are now when the job is undone; run it again if they are to be replaced",
        )


async def _set_aside_summary(run: JobRun, nonce: str, number: int, aside: SetAside) -> None:
    """Set the old `_SUCCESS` aside, if it is still the one that was there when the plan was made.

    It goes first and by itself: a reader that looks for it must never find it over half-replaced data. Where it is
    another by now, or none, a job on other partitions has published its own, or has set this one aside: neither
    lists anything that this job replaces.
    """
    with run.stage("set_aside"):
        for attempt in range(TRIES):
            (found,) = await run.store.stat_files([SUCCESS])
            if found is None or not run.store.same_identity(aside.identity, found.identity):
                return
            if attempt:
                await wait_to_try_again(run, attempt)
            await remember_last(run)
            if found.identity != aside.identity:
                await _refuse_if_ended(run, nonce)
            # The version that was just seen: of one that came back, or that another committer wrote again, the content
            # is the same.
            waits = run.layout.replaced_file(nonce, number)
            (outcome,) = await run.store.rename_files([Rename(SUCCESS, waits, found.length, found.identity)])
            if isinstance(outcome, Renamed):
                return
        raise CommitFailed(
            f"the old {SUCCESS} could not be set aside: {outcome}",
            where=run.url(SUCCESS),
            next_step="mend what the store says of it, then run the job again"
            if _is_failure_of_the_store(outcome)
            else "another job may have moved it meanwhile; run the job again",
        )


def _is_failure_of_the_store(outcome: RenameOutcome) -> bool:
    """Whether a rename failed whatever other jobs do, as where a permission is missing."""
    return isinstance(outcome, NotRenamed) and outcome.reason is Refusal.FAILED


async def _refuse_if_ended(run: JobRun, nonce: str) -> None:
    """Make sure that the job still moves: what it was to set aside may have come back since, at the end of an undoing
    that this driver has slept through. To be asked after the look at what is there: each undoing, before it brings
    anything back, says so in the record.

    Raises:
        CommitFenced: it does not.
    """
    record = await read_record(run)
    if record is None or record.phase is not Phase.MOVING or record.set_aside_nonce != nonce:
        raise fenced(run, record)


async def _make_directories(run: JobRun, plan: CommitPlan) -> None:
    if not plan.missing_directories:
        return
    with run.stage("create_directories"):
        missing = set(plan.missing_directories)
        # Making a leaf makes what is above it: each is asked for once, and no parent by itself.
        above = {parent_of(path) for path in missing}
        leaves = [path for path in plan.missing_directories if path not in above]
        for path, outcome in zip(leaves, await run.store.make_directories(leaves), strict=True):
            if outcome.state == "blocked":
                raise CommitFailed(
                    "a file stands where a directory must be, and came after the commit was planned",
                    where=run.url(outcome.blocked or path),
                    next_step="another writer is at work on this destination; remove its file, or recover the job",
                )
        run.count("op_mkdirs", len(leaves))


async def _rename_files(run: JobRun, plan: CommitPlan) -> None:
    with run.stage("rename_files"):
        movers = run.movers
        count = movers.wanted(plan.files) if movers is not None else 0
        if movers is None or count < 2 or not await _renamed_by_movers(run, movers, plan, count):
            # A file that a mover has renamed is found by its identity, also one that a mover renames only now.
            await _rename_all(run, plan)
        run.count_committed(plan)


async def _rename_all(run: JobRun, plan: CommitPlan) -> None:
    progress = run.progress(plan.files)
    for batch in plan.batches():
        renames = [Rename(e.source, e.target, e.length, e.identity) for e in batch]
        began = run.runtime.tick()
        await rename_all(run, renames, progress, make_parents=True)
        run.statistics.took("commit_file_rename", run.runtime.tick() - began, len(renames))


async def _renamed_by_movers(run: JobRun, movers: Movers, plan: CommitPlan, count: int) -> bool:
    """Whether all files are in place by others' renames, when this returns; what they have counted is this job's.

    Raises:
        CommitFailed: they answer for fewer files than there are.
    """
    shares = shares_of(run.held_as, plan.by_manifest(), plan.files, count)
    answers = await _unless_they_stand_still(run, plan, movers.move(shares))
    if answers is None:
        return False
    moved = sum(answer.files for answer in answers)
    if moved != plan.files:
        raise CommitFailed(
            f"movers have renamed {moved} of {plan.files} files",
            where=run.url(run.layout.attempt_directory),
            next_step="run the job again; without movers if it happens again",
        )
    # What is staged is deleted at the end: a file that a mover has left there, whatever it says, would be lost.
    if await any_still_listed(run, plan):
        run.log.warning(
            "movers say that they have renamed all files, and some are still staged; the driver renames them",
            job=run.layout.job_id,
        )
        return False
    for answer in answers:
        for name, count in answer.counters.items():
            run.count(name, count)
        run.statistics.add(answer.statistics)
    run.count("movers", len(shares))
    return True


async def _unless_they_stand_still(
    run: JobRun, plan: CommitPlan, move: Coroutine[Any, Any, Sequence[Moved] | None]
) -> Sequence[Moved] | None:
    """What movers answer; None, and they are ended, where no file has gone from where it was staged for long: one that
    hangs, alone or with its disk, answers nothing, and Spark takes its task for one at work."""
    work = asyncio.ensure_future(move)
    fewest: int | None = None
    since = run.runtime.tick()
    try:
        while not work.done():
            await asyncio.wait([work], timeout=MOVERS_LOOK_SECONDS)
            if work.done():
                break
            staged = await _staged_or_none(run, plan)
            if staged is None or fewest is None or staged < fewest:
                fewest, since = fewest if staged is None else staged, run.runtime.tick()
            elif run.runtime.tick() - since >= MOVERS_STALLED_SECONDS:
                run.log.warning(
                    "movers have renamed nothing for long, and answer nothing; the driver renames the files",
                    job=run.layout.job_id,
                    staged=staged,
                    seconds=round(run.runtime.tick() - since),
                )
                return None
        return work.result()
    finally:
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def _staged_or_none(run: JobRun, plan: CommitPlan) -> int | None:
    try:
        return await count_listed(run, plan)
    except (PathError, StoreError) as error:  # a store that answers nothing makes no mover get on
        run.log.info("what is staged cannot be listed while movers are at work", error=str(error))
        return None


async def validate(run: JobRun, plan: CommitPlan) -> None:
    """Hadoop's optional validation, but before the commit point: a mismatch is still undone."""
    with run.stage("validate_output"):
        progress = run.progress(plan.files)
        for batch in plan.batches(1_000):
            found = await run.store.stat_files([entry.target for entry in batch])
            for entry, status in zip(batch, found, strict=True):
                mismatch = run.hooks.validate_file(run.store, _expected(entry), status)
                if mismatch is not None:
                    raise FileChanged(
                        "a committed file is not what its task wrote",
                        where=f"{run.url(mismatch.path)}\nexpected  {mismatch.expected}\nfound     {mismatch.found}",
                        next_step="another writer is at work on this destination",
                    )
            progress(len(batch))


def _expected(entry: Entry) -> FileStatus:
    return FileStatus(entry.target, entry.length, entry.identity)

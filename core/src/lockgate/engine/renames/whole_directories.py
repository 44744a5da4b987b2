"""Directories that are set aside whole: by one rename each, looked at afterwards, and brought back.

A rename of a directory moves whatever is in it, so what the plan has not seen moves, too. It is looked for before the
commit point, in one listing of the place where all of them wait: a file that nobody knew goes back to where it was
written, and one that is another than the plan has seen, or is gone, undoes the job.

Left out: a process that has the directory itself open, as a local disk allows, may still make files in it after that
look. They are looked for once more before what was replaced is deleted, and stay (`replaced_lists`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import islice

from lockgate.engine.record.inside_directories import Inside, InsideFile, Unlistable, is_as_seen
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import no_progress
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, FileChanged, OutcomeUnknown, PathError, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, Unknown
from lockgate.model.layout import checked_by, directory_number_in, is_hidden_and_no_data
from lockgate.model.numbers import Numbers
from lockgate.model.plan import CommitPlan
from lockgate.model.replaced import SetAside, WholeDirectories
from lockgate.model.spooled import windows
from lockgate.model.urls import parent_of

BATCH = 10_000
"""So many files are renamed by one call."""


async def set_aside_whole(run: JobRun, nonce: str, directories: Sequence[str], *, again: bool) -> None:
    """Set directories aside, each by one rename. Nobody but this job renames to where they wait: what is there already
    has been set aside, though a new directory may have taken its old place since. `again`: somebody may have begun, and
    died; one that is nowhere now was deleted by somebody since, and is as gone as the commit wanted it.

    Raises:
        CommitFailed: one surely cannot be renamed, or is not there.
        OutcomeUnknown: nobody can tell.
    """
    if not directories:
        return
    with run.stage("set_aside"):
        done = {number for number, _ in await waiting_directories(run, nonce)} if again else set()
        pending = [
            Rename(path, run.layout.replaced_directory(nonce, number))
            for number, path in enumerate(directories)
            if number not in done
        ]
        await _rename_all(run, pending, may_be_gone=again)
        run.count("directories_set_aside", len(pending))


async def _rename_all(run: JobRun, pending: list[Rename], *, may_be_gone: bool) -> None:
    failures: list[CommitFailed | OutcomeUnknown] = []
    for attempt in range(TRIES):
        if attempt:
            await wait_to_try_again(run, attempt)
        outcomes = await run.store.rename_directories(pending) if pending else []
        run.count("op_rename_directory", len(pending))
        doubtful = [
            (rename, outcome)
            for rename, outcome in zip(pending, outcomes, strict=True)
            if not isinstance(outcome, Renamed)
        ]
        if not doubtful:
            return
        # The source first: a rename still under way may take place between the two looks.
        sources = await run.store.stat_files([rename.source for rename, _ in doubtful])
        targets = await run.store.stat_files([rename.target for rename, _ in doubtful])
        pending, failures = [], []
        for (rename, outcome), source, target in zip(doubtful, sources, targets, strict=True):
            if target is not None and target.is_directory:
                continue
            if may_be_gone and source is None and target is None and not _is_over(outcome):
                run.log.info("somebody has deleted a directory that was to be set aside", source=rename.source)
                continue
            failure = _not_set_aside(run, rename, outcome, source)
            if target is not None or source is None or _is_over(outcome):
                raise failure
            pending.append(rename)
            failures.append(failure)
    if failures:
        raise failures[0]


def _is_over(outcome: object) -> bool:
    """Whether the place is gone: somebody has ended the job."""
    return isinstance(outcome, NotRenamed) and outcome.reason is Refusal.PARENT_MISSING


def _not_set_aside(
    run: JobRun, rename: Rename, outcome: object, source: FileStatus | None
) -> CommitFailed | OutcomeUnknown:
    where = f"source  {run.url(rename.source)}\ntarget  {run.url(rename.target)}"
    if isinstance(outcome, Unknown) and source is not None:
        return OutcomeUnknown(
            f"cannot tell whether a directory was set aside: {outcome}",
            where=where,
            next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
        )
    gone = "; it is not there any more" if source is None else ""
    return CommitFailed(
        f"a directory that the job replaces could not be set aside: {outcome}{gone}",
        where=where,
        next_step="mend what the store says of it, if it says anything, and run the job again; with set_aside=files, "
        "if the store renames no such directory",
    )


async def waiting_directories(run: JobRun, nonce: str) -> list[tuple[int, str]]:
    """The directories that are set aside now: the number of each, and where it waits."""
    found: list[tuple[int, str]] = []
    async for page in run.store.list_directory(run.layout.replaced_whole(nonce)):
        found += [(number, status.path) for status in page if (number := directory_number_in(status.path)) is not None]
    return sorted(found)


async def _look(run: JobRun, nonce: str, files: Sequence[SetAside], directories: Sequence[str]) -> Inside:
    return await Inside.take(run, run.layout.replaced_whole(nonce), files, directories)


async def look_again(run: JobRun, plan: CommitPlan, nonce: str, *, again: bool) -> None:
    """Make sure that what was set aside with its directories is what was seen when the commit was planned, since it is
    deleted once the job has committed. A file that nobody had seen goes back to where it was written, as if the files
    had been set aside one by one. `again`: somebody may have begun before, and died, and what others have deleted since
    is no fault.

    Raises:
        FileChanged: a file has been changed or deleted since; the rest waits where it does, and comes back.
        CommitFailed: a file cannot go back, since a file of this job has taken its place; or there is something that
            cannot be listed, so that nobody can say that it was seen.
    """
    if not plan.aside_directories:
        return
    look = await _look(run, nonce, plan.set_aside, plan.aside_directories)
    if look.unlistable:
        raise _not_listed(run, look.unlistable)
    changed = (
        aside.path
        for _, aside, inside in look.beside()
        if aside is not None
        and (not again if inside is None else not is_as_seen(run, aside, inside.length, inside.identity))
    )
    if shown := list(islice(changed, 5)):
        raise FileChanged(
            f"{len(shown) + sum(1 for _ in changed)} files that the job replaces were changed or deleted by somebody "
            "after the commit was planned",
            where="\n".join(run.url(path) for path in shown),
            next_step="they come back as they are now when the job is undone; run it again if they are to be replaced",
        )
    run.count("files_set_aside", sum(aside is not None for _, aside, _ in look.beside()))
    unseen = (inside for _, aside, inside in look.beside() if aside is None and inside is not None)
    for some in windows(unseen, BATCH):
        await _return(run, some, "somebody else has written a file of this name meanwhile: run the job again")
        run.count("files_returned", len(some))
        run.log.info("files that came after the plan go back", files=len(some), first=some[0].path)


def _not_listed(run: JobRun, unlistable: Sequence[Unlistable]) -> CommitFailed:
    first = unlistable[0]
    others = f", nor {len(unlistable) - 1} others" if len(unlistable) > 1 else ""
    return CommitFailed(
        f"a directory that the job replaces cannot be listed since it was set aside{others}: {first.error.what}",
        where=f"{run.url(first.path or first.place)}\nthere  {first.error.where}",
        next_step="somebody wrote there after the commit was planned: move that away, and run the job again; with "
        "set_aside=files no directory is moved that others write in",
    )


async def _return(run: JobRun, files: Sequence[InsideFile], where_taken: str) -> None:
    """Bring files back, one by one, where their directory cannot come back whole."""
    files = await _without_superseded(run, files)
    places = {parent_of(inside.path) for inside in files} - {""}
    undo = command("recover", run.store.url, run.layout.job_id, "--undo")
    for made in await run.store.make_directories(sorted(places)):
        if made.state == "blocked":
            raise CommitFailed(
                "a file stands where a directory was whose files must come back",
                where=run.url(made.blocked),
                next_step=f"move it away, then {undo}",
            )
    renames = [Rename(inside.place, inside.path, inside.length, inside.identity) for inside in files]
    await rename_all(run, renames, no_progress, where_taken=where_taken)


async def _without_superseded(run: JobRun, files: Sequence[InsideFile]) -> list[InsideFile]:
    """Those that may come back. A hidden file that is no data, such as the `_SUCCESS` of a destination inside, is
    deleted where a newer one is in its place: whoever wrote that would have written over this one, had its directory
    stayed."""
    hidden = [inside for inside in files if is_hidden_and_no_data(inside.path)]
    if not hidden:
        return list(files)
    places = [inside.path for inside in hidden]
    # A checksum is of the file that it is beside: that of an older one must not come beside a newer.
    checked = [checked_by(inside.path) or inside.path for inside in hidden]
    there = await run.store.stat_files([*places, *checked])
    superseded = {
        inside.place
        for inside, *found in zip(hidden, there[: len(hidden)], there[len(hidden) :], strict=True)
        if any(status is not None and not status.is_directory for status in found)
    }
    if superseded:
        await run.store.delete_files(sorted(superseded))
        run.log.info("hidden files that somebody has written anew do not come back", files=len(superseded))
    return [inside for inside in files if inside.place not in superseded]


async def waiting_inside(run: JobRun, nonce: str, files: Sequence[SetAside], directories: Sequence[str]) -> Numbers:
    """The numbers of those of the replaced files that wait in directories now. It is asked before these come back, and
    nothing that is in them may hinder that: a file that cannot be looked at counts as one that waits."""
    found = Numbers()
    if directories:
        look = await _look(run, nonce, files, directories)
        for number, aside, inside in look.beside():
            if aside is not None and inside is not None:
                found.add(number)
        if look.unlistable:
            whole = WholeDirectories(directories)
            hidden = ((n, aside) for n, aside, i in look.beside() if aside and i is None and look.may_hold(aside.path))
            for some in windows(hidden, BATCH):
                for number in await _waiting_of(run, nonce, whole, some):
                    found.add(number)
    return found


async def _waiting_of(
    run: JobRun, nonce: str, whole: WholeDirectories, files: Sequence[tuple[int, SetAside]]
) -> list[int]:
    """The numbers of those that wait where a listing does not show them."""
    places: list[str] = []
    for _, aside in files:
        number = whole.of(aside.path)
        assert number is not None
        places.append(run.layout.replaced_directory(nonce, number) + aside.path[len(whole.paths[number]) :])
    try:
        statuses = await run.store.stat_files(places)
    except StoreUnavailable:
        raise
    except StoreError:
        return [number for number, _ in files]
    return [number for (number, _), status in zip(files, statuses, strict=True) if status is not None]


async def bring_back_whole(
    run: JobRun, nonce: str, files: Sequence[SetAside], directories: Sequence[str], where_taken: str
) -> list[CommitFailed]:
    """Bring back what waits now: a directory by one rename where nothing is at its name, or an empty directory; else
    its files one by one, in the place of none.

    Returns:
        Why one cannot come back, each: somebody else has put a file in the place of one of its files, or of the
        directory; or has written in its place, and what waits cannot be listed.
    """
    waiting = [(number, place) for number, place in await waiting_directories(run, nonce) if number < len(directories)]
    if not waiting:
        return []
    above = {parent_of(directories[number]) for number, _ in waiting} - {""}
    if above:
        await run.store.make_directories(sorted(above))
    backs = [Rename(place, directories[number]) for number, place in waiting]
    backs = await _not_brought_back(run, backs)
    # An empty one was made by this job, or by somebody who has left it.
    await run.store.delete_empty_directories([back.target for back in backs])
    # Not listed before: what somebody has put into a directory must not keep it from coming back.
    held: list[CommitFailed] = []
    for back in await _not_brought_back(run, backs):
        try:
            await _bring_back_one_by_one(run, back, files, where_taken)
        except CommitFailed as error:
            held.append(error)
    return held


async def _bring_back_one_by_one(run: JobRun, back: Rename, files: Sequence[SetAside], where_taken: str) -> None:
    try:
        await _bring_back_files(run, back, where_taken)
    except StoreUnavailable:
        raise
    except (PathError, StoreError) as error:
        await _bring_back_known(run, back, files, where_taken)
        raise CommitFailed(
            "a directory cannot come back whole, since somebody has written at its name, nor can all that is in it, "
            f"since it cannot be listed: {error.what}",
            where=f"{run.url(back.target)}\nwaits  {run.url(back.source)}\nthere  {error.where}",
            next_step="move away what stands at its name, or what cannot be listed, then "
            + command("recover", run.store.url, run.layout.job_id, "--undo"),
        ) from error


async def _not_brought_back(run: JobRun, backs: Sequence[Rename]) -> list[Rename]:
    """Those that wait after a try to rename each."""
    if not backs:
        return []
    outcomes = await run.store.rename_directories(backs)
    run.count("directories_brought_back", sum(isinstance(outcome, Renamed) for outcome in outcomes))
    doubtful = [back for back, outcome in zip(backs, outcomes, strict=True) if not isinstance(outcome, Renamed)]
    still = await run.store.stat_files([back.source for back in doubtful])
    return [back for back, there in zip(doubtful, still, strict=True) if there is not None]


async def _bring_back_files(run: JobRun, back: Rename, where_taken: str) -> None:
    async for some in _files_of(run, back):
        await _return(run, some, where_taken)
        run.count("files_brought_back", len(some))
    # Never as a tree: a driver that still sets directories aside may have filled it again.
    await run.store.delete_empty_directories(await _tree_of(run, back.source))


async def _bring_back_known(run: JobRun, back: Rename, files: Sequence[SetAside], where_taken: str) -> None:
    """Bring back what the list names of a directory that cannot be listed."""
    inside = (aside.path for aside in files if aside.path.startswith(f"{back.target}/"))
    for some in windows(inside, BATCH):
        found = await run.store.stat_files([back.source + path[len(back.target) :] for path in some])
        known = [
            InsideFile(path, status.path, status.length, status.identity)
            for path, status in zip(some, found, strict=True)
            if status is not None
        ]
        await _return(run, known, where_taken)
        run.count("files_brought_back", len(known))


async def _files_of(run: JobRun, back: Rename) -> AsyncIterator[list[InsideFile]]:
    async for page in run.store.list_tree(back.source):
        cut = len(back.source)
        yield [InsideFile(back.target + s.path[cut:], s.path, s.length, s.identity) for s in page]


async def _tree_of(run: JobRun, top: str) -> list[str]:
    """A directory and those in it, deepest first."""
    found, pending = [top], [top]
    while pending:
        async for page in run.store.list_directory(pending.pop()):
            below = [status.path for status in page if status.is_directory]
            found += below
            pending += below
    return found[::-1]

"""Destinations inside one another: a job on `/t` that replaces, and a job on `/t/x`.

Neither sees the other's record when it looks below its own destination. Of two that would spoil each other, one or
both are refused before they have moved anything; they do not wait for one another. A job that moves its files while
another lists what it replaces must not be on that list by half. Each first announces what it touches, in its record:

- The inner job then looks at the records of the destinations above. One that replaces, or insists that there is no
  data, looks once more when it has listed what it replaces.
- The outer job lists what it replaces. Where it meets a job's directory in a destination inside, another job is at work
  there, or has died: its staged files are not data to be replaced. Where it replaces partitions, and lists only those,
  it looks into the directories above them as well, and before: two listings for each. So an inner job that announced
  first is seen, as long as it has not ended; and one that announces later sees the outer one.
- What ended while it was listed is seen by no record: its note is new (`endings`). Then it is listed once more.
- An outer job that appends need not look: who replaces inside sees its record, or its note. But one whose protocol
  shows files before it commits has files there that another may have listed, while it brings more. So once it has
  announced its record, and before it looks whether all its files are still there, it looks at the records of those
  that replace in the destinations that its files are in: two listings for each directory.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from lockgate.engine.record.neighbours import is_at_work, job_layouts
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files
from lockgate.engine.run.concurrency import both, together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store, list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import DestinationConflict, LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import BOOKKEEPING, ENDED_SUFFIX, FILE_LISTS, FOUND, JOBS, REPLACED, SUCCESS, TEMPORARY
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, Ground
from lockgate.model.spooled import windows
from lockgate.model.urls import StoreUrl, ancestors_of

_PLACE = re.compile(rf"(.*?)/(?:{JOBS}|{TEMPORARY}|{REPLACED}|{FOUND}[a-z0-9-]+)/")
"""Where a destination has directories of jobs, Hadoop's in `_temporary`, and those of jobs that another program has set
up by the protocol that commits them. What waits in `_lockgate/replaced` may be of a job whose record somebody has
deleted."""

_INSIDE = re.compile(rf"(.*?)/{BOOKKEEPING}/")

PLACES = (BOOKKEEPING, TEMPORARY)
"""Where a destination has jobs."""

AT_ONCE = 64
"""So many directories above those that are replaced are listed at once."""


async def refuse_jobs_inside(run: JobRun, found: Sequence[FileStatus]) -> None:
    """Make sure that what was listed is of no job of a destination inside this one; and remember these destinations.

    Raises:
        DestinationConflict: one is at work there, or has died.
    """
    for status in found:
        if f"/{BOOKKEEPING}" in status.path and (place := _INSIDE.match(f"{status.path}/")) is not None:
            run.destinations_inside.add(place[1])
        if status.is_directory and status.path.endswith(f"/{BOOKKEEPING}"):
            # What is right in it tells which of it is of jobs: its notes outlive them.
            await refuse_jobs_inside(run, await list_all(run.store, status.path))
            continue
        inside = _destination_of_jobs(status.path)
        if inside is None:
            continue
        # Of a directory of jobs the listing does not tell whose they are.
        within = [status.path]
        if status.is_directory:
            within = [file.path async for page in run.store.list_tree(status.path) for file in page]
        if not within:
            continue
        other = run.store.url.child(inside)
        if any(f"/{run.layout.job_id}/" in f"/{each}/" for each in within):
            # Another part of this very job: to wait for its end would be to wait for ever.
            raise DestinationConflict(
                "a location that this job writes to is in a destination inside another that it replaces",
                where=f"{other}\n{run.url('')}",
                next_step="nothing was moved: give the partitions directories beside each other "
                "(ALTER TABLE … SET LOCATION)",
            )
        raise DestinationConflict(
            "a job is at work, or has died, in a destination inside the one that this job replaces",
            where=run.url(status.path),
            next_step=f"nothing was moved: {command('jobs', other)} shows it; commit again once it is over",
        )


def _destination_of_jobs(path: str) -> str | None:
    """The destination inside this one whose jobs' place this path is, or is in; None: it is of no job's."""
    match = _PLACE.match(f"{path}/")
    return None if match is None else match[1]


async def refuse_jobs_beside(run: JobRun, leaves: Sequence[str]) -> None:
    """Make sure that no job is at work in a destination that holds one of these directories, below this destination.

    Raises:
        DestinationConflict: one is, or has died there.
    """
    above = sorted({directory for leaf in leaves for directory in ancestors_of(leaf)} - set(leaves))
    # One shows all places of `_lockgate`.
    places = [f"{directory}/{name}" for directory in above for name in PLACES]
    for start in range(0, len(places), AT_ONCE):
        for found in await together(list_all(run.store, place) for place in places[start : start + AT_ONCE]):
            await refuse_jobs_inside(run, sorted(found, key=lambda status: status.path))


async def refuse_jobs_above(run: JobRun, ground: Ground, top: Store | None) -> None:
    """Make sure that no job of a destination above this one writes, or replaces, what this job replaces.

    Raises:
        DestinationConflict: one does.
    """
    if ground.exclusive:
        for url, ours in await destinations_above(run, top):

            def in_the_way(record: CommitRecord, ours: str = ours) -> bool:
                return _overlaps(record.ground, ours)

            await _refuse_jobs_of(run, url, in_the_way, "replaces a destination that this one is inside of")


async def refuse_jobs_that_replace_above(run: JobRun) -> None:
    """Make sure that no job of a destination above replaces what is in this one, while this job brings files. One that
    has listed it all before this job moves the first of them is not in the way, unless it sets directories aside whole:
    with what has come into them since.

    Raises:
        DestinationConflict: one does.
    """
    early = not run.protocol.attributes.committed_invisible

    def lists(record: CommitRecord) -> bool:
        return early or record.phase is Phase.CLAIMED or _sets_directories_aside(record)

    await _refuse_jobs_above_where(run, lists, "commit again")


async def refuse_jobs_that_take_directories_above(run: JobRun) -> None:
    """Make sure, at the setup of a job whose files show early, that no job of a destination above sets directories
    aside whole: it has listed them, and would take with them this job's directory, and files that an abort then looks
    for in vain. One that lists later sees the job.

    Raises:
        DestinationConflict: one does.
    """
    if Capability.ATOMIC_DIRECTORY_RENAME in run.store.capabilities:
        await _refuse_jobs_above_where(run, _sets_directories_aside, "run the job again")


def _sets_directories_aside(record: CommitRecord) -> bool:
    return record.options.get("set_aside") == "directories"


async def _refuse_jobs_above_where(run: JobRun, applies: Callable[[CommitRecord], bool], again: str) -> None:
    async with top_of_store(run) as top:
        above = await destinations_above(run, top)
    for url, ours in above:

        def in_the_way(record: CommitRecord, ours: str = ours) -> bool:
            own = run.part_of and record.job_id == run.layout.job_id  # this is a part of that job
            return applies(record) and not own and record.ground.exclusive and _overlaps(record.ground, ours)

        await _refuse_jobs_of(run, url, in_the_way, "replaces what this job writes, in a destination above", again)


async def refuse_jobs_that_replace_inside(run: JobRun, directories: Collection[str]) -> None:
    """Make sure that no job of a destination inside this one replaces what is in these directories, where this job has
    files already, while it brings others.

    Raises:
        DestinationConflict: one does.
    """
    await _refuse_jobs_inside_where(run, directories, lambda record: record.ground.exclusive, "commit again")


async def refuse_undoing_beside(run: JobRun, directories: Collection[str]) -> None:
    """Make sure, before the files that an append has moved into these directories are taken out again, that no job of a
    destination inside this one sets directories aside whole: it has listed one before, and may have taken some of them
    with it, to bring them back later. None begins while this job's record is there.

    Raises:
        DestinationConflict: one does.
    """
    if Capability.ATOMIC_DIRECTORY_RENAME in run.store.capabilities:
        await _refuse_jobs_inside_where(run, directories, _sets_directories_aside, "give the command again")


async def _refuse_jobs_inside_where(
    run: JobRun, directories: Collection[str], applies: Callable[[CommitRecord], bool], again: str
) -> None:
    within = sorted({directory for leaf in directories if leaf for directory in (leaf, *ancestors_of(leaf))})
    for some in windows(within, AT_ONCE):
        listed = await together(_has_jobs(run, run.store, directory, name) for directory in some for name in PLACES)
        for number, directory in enumerate(some):
            if any(listed[number * len(PLACES) :][: len(PLACES)]):
                below = [_below(directory, f"{leaf}/") for leaf in directories]
                touched = [each.rstrip("/") for each in below if each is not None]

                def in_the_way(record: CommitRecord, touched: Sequence[str] = touched) -> bool:
                    return applies(record) and record.ground.exclusive and _meets(record.ground, touched)

                does = "replaces what this job has written, in a destination inside"
                await _refuse_jobs_of(run, run.store.url.child(directory), in_the_way, does, again)


@dataclass(frozen=True)
class Ending:
    """What says that a job of another destination has ended: its note, or its `_SUCCESS`, which comes before it."""

    url: str
    modified: float
    identity: str


Endings = frozenset[Ending]


async def endings(run: JobRun, top: Store | None) -> tuple[Endings, Endings]:
    """Of the jobs that have ended in the destinations above, and in those inside that a survey has met."""
    above = (
        frozenset() if top is None else await _endings_of(top, [url.path.strip("/") for url, _ in run.store.above()])
    )
    return above, await _endings_of(run.store, run.destinations_inside)


async def _endings_of(store: Store, directories: Collection[str]) -> Endings:
    async def within(directory: str) -> list[Ending]:
        there = f"{directory}/".lstrip("/")
        try:
            notes, success = await both(
                list_all(store, f"{there}{FILE_LISTS}"), store.stat_files([f"{there}{SUCCESS}"])
            )
        except StoreError:  # whoever may not look there has no business there
            return []
        found = [*(each for each in notes if each.path.endswith(ENDED_SUFFIX)), *filter(None, success)]
        return [Ending(str(store.url.child(each.path)), each.modified, each.identity) for each in found]

    found: set[Ending] = set()
    for some in windows(sorted(directories), AT_ONCE):
        found.update(*await together(map(within, some)))
    return frozenset(found)


@asynccontextmanager
async def top_of_store(run: JobRun) -> AsyncIterator[Store | None]:
    """What the destination is inside of, to look at; None where that is nothing, or may not be looked at."""
    top: Store | None = None
    if run.store.above():
        try:
            top = await run.open_store(str(dataclasses.replace(run.store.url, path="/")))
        except LockgateError as error:
            run.log.info("nothing above the destination can be looked at", error=str(error))
    try:
        yield top
    finally:
        if top is not None:
            await top.close()


async def destinations_above(run: JobRun, top: Store | None) -> list[tuple[StoreUrl, str]]:
    """The directories above the destination in which jobs are known, from the top, each with the destination's path
    relative to it; what may not be looked at is passed over."""
    if top is None:
        return []
    return [
        (url, ours)
        for url, ours in run.store.above()
        if any(await together(_has_jobs(run, top, url.path, place) for place in PLACES))
    ]


async def _has_jobs(run: JobRun, top: Store, directory: str, name: str) -> bool:
    place = f"{directory}/{name}".strip("/")
    try:
        found = await list_all(top, place)
        return any(_destination_of_jobs(f"/{each.path}") is not None for each in found)
    except StoreError as error:  # whoever may not look there has no business there
        run.log.info("a directory above the destination cannot be looked at", path=place, error=str(error))
        return False


async def _refuse_jobs_of(
    run: JobRun, url: StoreUrl, in_the_way: Callable[[CommitRecord], bool], does: str, again: str = "commit again"
) -> None:
    """Refuse this job where one of another destination is at work and `in_the_way`; `does` says what one does that
    replaces, or insists that there is nothing; `again` what to do once that one is over."""
    store = await run.open_store(str(url))
    try:
        other = dataclasses.replace(run, store=store)
        async for layout in job_layouts(other):
            record = await read_record(other, layout)
            if record is None or not in_the_way(record):
                continue
            if await is_at_work(other, layout, record):
                # One that appends is in the way as well: what it has moved here, and not yet committed, is no data that
                # this job may replace.
                raise DestinationConflict(
                    f"job {layout.job_id} {does if record.ground.exclusive else 'writes here'}",
                    where=f"{other.url(layout.attempt_directory)}\nheld by {record.holder}, phase {record.phase}",
                    next_step=f"nothing was moved: {again} once it is over; "
                    f"if that driver is dead: {command('recover', url, layout.job_id)}",
                )
    finally:
        await store.close()


@asynccontextmanager
async def nested_with_replaced(
    run: JobRun, missing: Collection[str] | None
) -> AsyncIterator[list[tuple[JobRun, Callable[[str], str | None]]]]:
    """Other destinations in which jobs have set files aside that are not cleaned up: those above this one, and those
    inside it that hold one of these paths, of files which were looked for in vain. Each with what turns a path there
    into one here; None: it is not below this destination. One listing for each directory above these paths; where
    `missing` is None, they are not known, and all below the destination is listed."""
    found: list[tuple[JobRun, Callable[[str], str | None]]] = []
    async with AsyncExitStack() as stack:

        async def look(url: StoreUrl, turn: Callable[[str], str | None]) -> None:
            store = await run.open_store(str(url))
            stack.push_async_callback(store.close)
            other = dataclasses.replace(run, store=store)
            if await jobs_with_replaced_files(other):
                found.append((other, turn))

        for directory in await (_all_with_replaced(run) if missing is None else _above_with_replaced(run, missing)):
            await look(run.store.url.child(directory), functools.partial(_join, directory))
        for url, ours in await destinations_above(run, await stack.enter_async_context(top_of_store(run))):
            await look(url, functools.partial(_below, ours))
        yield found


async def _above_with_replaced(run: JobRun, paths: Collection[str]) -> list[str]:
    above = sorted({directory for path in paths for directory in ancestors_of(path)})
    found: list[str] = []
    for some in windows(above, AT_ONCE):
        listed = await together(list_all(run.store, f"{directory}/{REPLACED}") for directory in some)
        found += [directory for directory, there in zip(some, listed, strict=True) if there]
    return found


async def _all_with_replaced(run: JobRun) -> list[str]:
    found = {
        status.path.partition(f"/{REPLACED}/")[0]
        async for page in run.store.list_tree("")
        for status in page
        if f"/{REPLACED}/" in status.path
    }
    return sorted(found)


def _join(directory: str, path: str) -> str:
    return f"{directory}/{path}"


def _below(directory: str, path: str) -> str | None:
    return path[len(directory) + 1 :] if path.startswith(f"{directory}/") else None


def _overlaps(ground: Ground, ours: str) -> bool:
    return (
        ground.everything
        or any(f"{directory}/".startswith(f"{ours}/") for directory in (*ground.directories, *ground.below))
        or any(f"{ours}/".startswith(f"{directory}/") for directory in ground.below)
    )


def _meets(ground: Ground, touched: Collection[str]) -> bool:
    """Whether a job that touches this ground touches one of these directories, both as its destination names them."""
    return ground.everything or any(
        directory in ground.directories or any(f"{directory}/".startswith(f"{each}/") for each in ground.below)
        for directory in touched
    )

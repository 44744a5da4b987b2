"""Locations beside a destination: a job that writes to several has a part in each, a job of the same id.

A partition of a Spark table may be anywhere (`ALTER TABLE … SET LOCATION`). What goes there is staged, set aside and
renamed there, by a part of the job: a job at the location's own destination, on its own store, with a record of its
own, so that containment, neighbours and recovery are those of any job. But a part has no commit point of its own:

- The main job's record names its parts, with their pins, from its first version on: before any of them is claimed.
- While the main job is `claimed`, each part is claimed, announces what it touches, and makes its plan. What refuses one
  refuses the whole, and nothing was moved anywhere.
- Only while the main job is `moving` is any part; at its end each is `publishing`: all of its files are in place.
- The main job's commit point decides for all. After it every part is finished, before its record goes; until it every
  part can be undone, and is, before the main job's record says `rolled-back`.
- A part's record and marker name the main job's destination (`part_of`). Whoever would end a part by itself is sent
  there, for as long as anything of the main job is there.

A task attempt that first writes to a location declares it in the main job's directory, and only then makes anything
there: so whoever ends a job whose driver died before its commit knows where to look.

One location has many names. What is one place, as its store tells (`Store.place`), is one part, by whichever name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lockgate.engine.record.ended_jobs import is_committed_by_any_sign
from lockgate.engine.record.marker import read_marker
from lockgate.engine.record.record_log import fenced, read_record, record_in_force
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.commands import command, job_command
from lockgate.model.errors import CommitFenced, CommitRefused, LockgateError, PathError, StoreError, UsageError
from lockgate.model.layout import JobLayout, location_digest
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.replaced import KeptList
from lockgate.model.urls import StoreUrl, parse_url

PARTS_AT_ONCE = 8
"""So many parts of a job are worked at at once."""

URL_BYTES_MAX = 1 << 16


def options_of_part(options: JobOptions, policy: str) -> JobOptions:
    """The options of a part of a job: those of the whole, but for what the whole alone has. Parts wait for nobody: two
    jobs whose parts waited for each other would wait for ever."""
    return options.replace(
        conflict=policy,
        replace_below=(),
        txn_id="",
        mark_success=False,
        delete_success_at_setup=False,
        when_jobs_meet="fail",
        summary_report_directory="",
        diagnostics_manifest_directory="",
    )


@asynccontextmanager
async def part_at(run: JobRun, url: str, policy: str = "append") -> AsyncIterator[JobRun]:
    """The run of a job's part at a location, whose store is closed at the end.

    Raises:
        LockgateError: no plugin here serves the location.
    """
    store = await run.open_store(url)
    try:
        yield dataclasses.replace(
            run,
            layout=JobLayout(run.layout.job_id, run.layout.job_attempt),
            options=options_of_part(run.options, policy),
            store=store,
            marker=run.marker or run.marker_for_parts,
            counters={},
            stage_seconds={},
            movers=None,
            held_as="",
            destinations_inside=set(),
            locations=(),
            may_have_locations=False,
            part_of=str(run.store.url),
        )
    finally:
        await store.close()


async def place_of(run: JobRun, url: str) -> StoreUrl:
    """What all names of a location have in common; of one that no plugin here serves, its name.

    Raises:
        PathError: it is no URL.
    """
    try:
        store = await run.open_store(url)
    except LockgateError:  # whoever has to work there hears of it
        return parse_url(url)
    try:
        return store.place
    finally:
        await store.close()


async def one_name_each(run: JobRun, urls: Sequence[str], *, beside: Sequence[str] = ()) -> list[str]:
    """These locations, each place by the first of its names; without those that are among the locations `beside`."""
    known = {await place_of(run, url) for url in beside}
    found: dict[StoreUrl, str] = {}
    for url in urls:
        place = await place_of(run, url)
        if place not in known:
            found.setdefault(place, url)
    return list(found.values())


async def declared_locations(run: JobRun) -> list[str]:
    """The locations that task attempts of this job have declared, as URLs.

    One location may be declared by several spellings. A declaration that is not what its name says is of a task that
    died while it wrote it, before it made anything in that location.
    """
    if not run.may_have_locations:
        return []
    found = {
        status.path: digest
        for status in await list_all(run.store, run.layout.locations)
        if (digest := location_digest(status.path))
    }
    paths = sorted(found)
    urls: set[str] = set()
    for start in range(0, len(paths), 64):
        some = paths[start : start + 64]
        contents = await run.store.read_files(some, bytes_max=URL_BYTES_MAX)
        for path, content in zip(some, contents, strict=True):
            if content is None or digest_of(content) != found[path]:
                continue
            try:
                urls.add(str(parse_url(content.decode())))
            except (PathError, UnicodeDecodeError):
                run.log.warning("a declared location is no URL", path=path)
    return sorted(urls)


async def refuse_if_in_parts(run: JobRun) -> None:
    """Make sure that the manifests that are found, and no receipts, are the whole of what a job wrote.

    Raises:
        CommitRefused: it is a part of another job, or has parts in other locations, and its driver alone knew what
            its tasks had written there.
        CommitFenced: it has such parts, and its commit has begun.
    """
    marker = await read_marker(run)
    aborting = job_command("abort", run.store.url, run.layout, "--force")
    if marker is not None and marker.part_of:
        raise CommitRefused(
            f"job {run.layout.job_id} is a part of the job of this id at {marker.part_of}",
            where=run.url(run.layout.job_directory),
            next_step=f"nothing was moved: that job decides; {command('jobs', marker.part_of)} shows how it stands",
        )
    if found := await declared_locations(run):
        record = await record_in_force(run)
        if record is not None and record.phase is not Phase.REFUSED:
            raise fenced(run, record)  # its commit has begun, and whoever recovers it knows of them
        raise CommitRefused(
            f"the tasks of job {run.layout.job_id} have also written to other locations, and what they wrote there "
            "only its driver knew",
            where="\n".join(found[:5]),
            next_step=f"nothing was moved: {aborting} deletes all of it, if the job is surely over; then run it again",
        )


async def refuse_part(run: JobRun, record: CommitRecord | None) -> bool:
    """Before somebody ends a job by itself: a part of another job is ended by that one. False: it is no part, or
    the main job is over, and has committed, so that it may only be finished; true: it is over and has not.

    Raises:
        CommitFenced: something of the main job is there, which decides.
    """
    if run.part_of:
        return False
    part_of = await _marked_part_of(run) if record is None else record.part_of
    return bool(part_of) and await _is_left_alone(run, part_of)


async def _marked_part_of(run: JobRun) -> str:
    try:
        marker = await read_marker(run)
    except StoreError:
        raise
    except LockgateError:  # damaged: whoever ends this job says that it is over
        return ""
    return "" if marker is None else marker.part_of


async def is_decided_there(run: JobRun, part_of: str) -> bool:
    """Whether the job at `part_of` that this one is a part of is not over, so that it decides; also where nobody can
    tell."""
    try:
        await _is_left_alone(run, part_of)
    except LockgateError:
        return True
    return False


async def _is_left_alone(run: JobRun, part_of: str) -> bool:
    store = await run.open_store(part_of)
    try:
        main = dataclasses.replace(run, store=store, marker="", counters={}, stage_seconds={})
        if await read_record(main) is not None or await read_marker(main) is not None:
            raise CommitFenced(
                f"job {run.layout.job_id} is a part of the job of this id at {part_of}, which is not over",
                where=run.url(run.layout.job_directory),
                next_step=f"nothing was touched: {command('recover', part_of, run.layout.job_id)} ends all parts of "
                f"it, or {command('abort', part_of, run.layout.job_id)}, if its commit has not begun",
            )
        return not await is_committed_by_any_sign(main)
    finally:
        await store.close()


async def wants_undo_of_part(run: JobRun, record: CommitRecord, undo: bool | None) -> bool | None:
    """`undo`, as far as the end of the job decides that this one is a part of; that is gone, or it is no part.

    Raises:
        CommitFenced: it is not gone.
        UsageError: the part would be undone, and the whole has committed.
    """
    if record.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
        return undo
    return await _as_the_whole(run, record.part_of, undo)


async def wants_undo_by_lists(run: JobRun, kept: Sequence[KeptList], undo: bool | None) -> bool | None:
    """The same, where somebody has deleted the part's record: its lists say whose part it is.

    Raises:
        CommitFenced: the job that it is a part of is not gone.
        UsageError: the part would be undone, and the whole has committed.
    """
    return await _as_the_whole(run, next((each.replaced.part_of for each in kept), ""), undo)


async def _as_the_whole(run: JobRun, part_of: str, undo: bool | None) -> bool | None:
    if run.part_of or not part_of:
        return undo
    alone = await _is_left_alone(run, part_of)
    if not alone and undo:
        raise UsageError(
            f"job {run.layout.job_id} is a part of a job at {part_of} that has committed",
            where=run.url(run.layout.job_directory),
            next_step=command("recover", run.store.url, run.layout.job_id, "--finish"),
        )
    return alone if undo is None else undo

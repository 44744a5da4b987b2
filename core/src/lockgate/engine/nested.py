"""Destinations inside one another: a job on `/t` that replaces, and a job on `/t/x`.

Neither sees the other's record when it looks below its own `_temporary`. Of two that would spoil each other, one or
both are refused before they have moved anything; they do not wait for one another.

- The outer job lists what it replaces. Where it meets a `_temporary` with something in it, another job is at work
  there, or has died: its staged files are not data to be replaced. It costs no request of its own.
- The inner job, if it replaces or insists that there is no data, looks at the records of the destinations above, once
  it has announced its own; a listing for each directory above. One that appends need not: an outer job replaces only
  what it has listed before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lockgate.engine.job_run import JobRun
from lockgate.engine.neighbours import HAS_GONE_ON, job_layouts
from lockgate.engine.record_log import read_record
from lockgate.engine.store import Store
from lockgate.model.errors import DestinationConflict, LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import REPLACED, TEMPORARY
from lockgate.model.phases import Phase
from lockgate.model.record import Ground
from lockgate.model.urls import StoreUrl


async def refuse_jobs_inside(run: JobRun, found: Sequence[FileStatus]) -> None:
    """Make sure that what was listed is of no job of a destination inside this one.

    Raises:
        DestinationConflict: one is at work there, or has died.
    """
    for status in found:
        inside, kept, _ = f"{status.path}/".partition(f"/{TEMPORARY}/")
        if not kept:
            # What a job has set aside whose record another committer has deleted: recovery brings it back.
            inside, kept, _ = f"{status.path}/".partition(f"/{REPLACED}/")
        if not kept:
            continue
        if status.is_directory and not [page async for page in run.store.list_tree(status.path)]:
            continue
        other = run.store.url.child(inside)
        raise DestinationConflict(
            "a job is at work, or has died, in a destination inside the one that this job replaces",
            where=run.url(status.path),
            next_step=f"nothing was moved: lockgate jobs {other} shows it; commit again once it is over",
        )


async def refuse_jobs_above(run: JobRun, ground: Ground) -> None:
    """Make sure that no job of a destination above this one writes, or replaces, what this job replaces.

    Raises:
        DestinationConflict: one does.
    """
    here = run.store.url
    elements = [element for element in here.path.split("/") if element]
    if not ground.exclusive or not elements:
        return
    try:
        top = await run.open_store(str(dataclasses.replace(here, path="/")))
    except LockgateError as error:
        run.log.info("nothing above the destination can be looked at", error=str(error))
        return
    try:
        for depth in range(len(elements)):
            above = "/".join(elements[:depth])
            if await _has_jobs(run, top, f"{above}/{TEMPORARY}" if above else TEMPORARY):
                url = dataclasses.replace(here, path=f"/{above}")
                await _refuse_jobs_of(run, url, "/".join(elements[depth:]))
    finally:
        await top.close()


async def _has_jobs(run: JobRun, top: Store, temporary: str) -> bool:
    try:
        return any([page async for page in top.list_directory(temporary)])
    except StoreError as error:  # whoever may not look there has no business there
        run.log.info("a directory above the destination cannot be looked at", path=temporary, error=str(error))
        return False


async def _refuse_jobs_of(run: JobRun, url: StoreUrl, ours: str) -> None:
    """`ours`: this job's destination, relative to that of the other jobs."""
    store = await run.open_store(str(url))
    try:
        outer = dataclasses.replace(run, store=store)
        async for layout in job_layouts(outer):
            record = await read_record(outer, layout)
            if record is None or not (record.phase in HAS_GONE_ON or record.phase is Phase.CLAIMED):
                continue
            if _overlaps(record.ground, ours):
                # One that appends is in the way as well: what it has moved here, and not yet committed, is no data that
                # this job may replace.
                does = "replaces a destination that this one is inside of" if record.ground.exclusive else "writes here"
                raise DestinationConflict(
                    f"job {layout.job_id} {does}",
                    where=f"{outer.url(layout.attempt_directory)}\nheld by {record.holder}, phase {record.phase}",
                    next_step="nothing was moved: commit again once it is over; "
                    f"if that driver is dead: lockgate recover {url} {layout.job_id}",
                )
    finally:
        await store.close()


def _overlaps(ground: Ground, ours: str) -> bool:
    return ground.everything or any(f"{directory}/".startswith(f"{ours}/") for directory in ground.directories)

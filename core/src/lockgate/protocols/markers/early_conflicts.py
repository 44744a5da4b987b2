"""Two writers of one file, or of one file group, find each other by their markers, before either has written.

Seed: the Hudi options of early conflict detection; Hudi `DirectMarkerBasedDetectionStrategy`,
`SimpleDirectMarkerBasedDetectionStrategy`. A writer makes its marker first and looks at the others' then, so of two one
sees the other; both may, and then neither writes. Asked for by `early_conflicts`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from lockgate.engine.inspection.list_jobs import JobStatus, job_state
from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import DestinationConflict, LockgateError, ManifestInvalid, StoreError
from lockgate.model.hudi_markers import TEMP, Marker, MarkerLayout, file_group_of, parse_marker
from lockgate.model.layout import JobLayout, check_id
from lockgate.model.urls import parent_of
from lockgate.protocols.markers.found import files_of_markers, is_beside, read_numbered

AT_WORK = (JobStatus.RUNNING, JobStatus.COMMITTING)


async def conflicts_of(run: JobRun, markers: Sequence[Marker]) -> dict[Marker, DestinationConflict]:
    """Those of these markers of this job, which are there by now, of whose file, or file group, another job at work has
    one as well: their files must not be written. Not looked for without the option."""
    if not run.options.early_conflicts:
        return {}
    places = [status.path.rpartition("/")[2] for status in await list_all(run.store, TEMP)]
    partitions = {parent_of(marker.path) for marker in markers}
    found: dict[Marker, DestinationConflict] = {}
    for job_id in places:
        if job_id == run.layout.job_id:
            continue
        try:
            written = await _written_by(run, MarkerLayout(job_id), partitions)
        except ManifestInvalid:
            # Damaged, or none of ours: that of a job that is over stands in nobody's way.
            if await _is_at_work(run, job_id):
                raise
            continue
        theirs = {file_group_of(each.path): each for each in written}
        same = [(marker, theirs.get(file_group_of(marker.path))) for marker in markers]
        if any(other for _, other in same) and await _is_at_work(run, job_id):
            found |= {marker: _conflict(run, job_id, marker, other) for marker, other in same if other is not None}
    return found


def _conflict(run: JobRun, job_id: str, marker: Marker, other: Marker) -> DestinationConflict:
    return DestinationConflict(
        f"job {job_id}, which is at work, writes "
        + ("this file as well" if other.path == marker.path else "to the same file group"),
        where=f"{run.url(marker.path)}\n{run.url(other.path)}",
        next_step="wait until it has ended, then run this job again; or let jobs that run at once write other files",
    )


async def _written_by(run: JobRun, layout: MarkerLayout, partitions: Collection[str]) -> list[Marker]:
    """The other job's markers, of direct ones those in these partitions. It may have both kinds: an earlier attempt at
    it, or one of its tasks, may have had no server.

    Raises:
        ManifestInvalid: one is no marker.
    """
    many, others = await files_of_markers(run, layout)
    found = await read_numbered(run, many)
    if not others:
        return found
    places = [f"{layout.directory}/{partition}".rstrip("/") for partition in partitions]
    for listed in await together(list_all(run.store, place) for place in places):
        done = (status.path for status in listed if not status.is_directory and not is_beside(status.path))
        found += [parse_marker(layout.name_in(path), where=run.url(path), is_file=True) for path in done]
    return found


async def _is_at_work(run: JobRun, job_id: str) -> bool:
    try:
        layout = JobLayout(check_id("job id", job_id))
        attempts = await every_attempt(dataclasses.replace(run, layout=layout))
        # By this writer's own clock, if it is ahead, one that lives would look dead.
        return bool(attempts) and (await job_state(await by_the_stores_clock(run), attempts[-1])).status in AT_WORK
    except StoreError:
        raise
    except LockgateError:  # no job of ours, or damaged: nobody can say, and it may be
        return True

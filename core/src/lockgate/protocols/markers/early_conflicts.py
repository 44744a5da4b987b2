"""Two writers of one file, or of one file group, find each other by their markers, before either has written.

Seed: the Hudi options of early conflict detection; Hudi `DirectMarkerBasedDetectionStrategy`,
`SimpleDirectMarkerBasedDetectionStrategy`. A writer makes its marker first and looks at the others' then, so of two one
sees the other; both may, and then neither writes. Asked for by `early_conflicts`.
"""

from __future__ import annotations

import dataclasses

from lockgate.engine.inspection.list_jobs import JobStatus, job_state
from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import DestinationConflict, LockgateError, StoreError
from lockgate.model.hudi_markers import TEMP, Marker, MarkerLayout, file_group_of, parse_marker
from lockgate.model.layout import JobLayout, check_id, is_unfinished
from lockgate.model.urls import parent_of
from lockgate.protocols.markers.found import files_of_markers, read_numbered

AT_WORK = (JobStatus.RUNNING, JobStatus.COMMITTING)


async def refuse_if_another_writes(run: JobRun, marker: Marker) -> None:
    """Make sure that no other job at work has a marker of this file, or of one of its file group. Not asked without the
    option.

    Raises:
        DestinationConflict: one has; this job's marker is there, and its file must not be written.
    """
    if not run.options.early_conflicts:
        return
    places = [status.path.rpartition("/")[2] for status in await list_all(run.store, TEMP)]
    await together(_refuse(run, marker, job_id) for job_id in places if job_id != run.layout.job_id)


async def _refuse(run: JobRun, marker: Marker, job_id: str) -> None:
    theirs = await _written_by(run, MarkerLayout(job_id), parent_of(marker.path))
    group = file_group_of(marker.path)
    same = next((each for each in theirs if file_group_of(each.path) == group), None)
    if same is None or not await _is_at_work(run, job_id):
        return
    raise DestinationConflict(
        f"job {job_id}, which is at work, writes "
        + ("this file as well" if same.path == marker.path else "to the same file group"),
        where=f"{run.url(marker.path)}\n{run.url(same.path)}",
        next_step="wait until it has ended, then run this job again; or let jobs that run at once write other files",
    )


async def _written_by(run: JobRun, layout: MarkerLayout, partition: str) -> list[Marker]:
    """The other job's markers, of direct ones those in one partition. What is no marker is its own job's to refuse."""
    many, _ = await files_of_markers(run, layout)
    found = await read_numbered(run, many)
    place = f"{layout.directory}/{partition}".rstrip("/")
    for status in await list_all(run.store, place):
        name = layout.name_in(status.path)
        if status.is_directory or layout.number_of(status.path) is not None or is_unfinished(status.path):
            continue
        if status.path != layout.type_file:
            found.append(parse_marker(name, where=run.url(status.path)))
    return found


async def _is_at_work(run: JobRun, job_id: str) -> bool:
    try:
        layout = JobLayout(check_id("job id", job_id))
        attempts = await every_attempt(dataclasses.replace(run, layout=layout))
        return bool(attempts) and (await job_state(run, attempts[-1])).status in AT_WORK
    except StoreError:
        raise
    except LockgateError:  # no job of ours, or damaged: nobody can say, and it may be
        return True

"""A marker is made, and is durable, before its file is opened.

Seed: "Purpose of Markers", "Direct Write Markers"; Hudi `DirectWriteMarkers`. A direct marker is an empty file of its
own. Where a timeline server is at work (`engine.run.marker_server`) it is asked instead.
"""

from __future__ import annotations

from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.capabilities import Capability
from lockgate.model.errors import PathError
from lockgate.model.hudi_markers import TABLE, Marker, MarkerLayout, Operation, operation_of
from lockgate.protocols.markers.early_conflicts import conflicts_of


def markers_of(run: JobRun) -> MarkerLayout:
    """Where the job's markers are. All attempts at a job share them, as they share its record."""
    return MarkerLayout(run.layout.job_id)


def marker_of(run: JobRun, path: str) -> Marker:
    """The marker of a file that is about to be written."""
    return Marker(path, operation_of(path, Operation[run.options.markers_operation.upper()]))


async def set_up_task(run: JobRun) -> None:
    """Make the directory of the job's markers, where directories are real. A late attempt does not bring it back.

    Raises:
        JobNotFound: the job is not set up, or over.
    """
    if await is_over_for_tasks(run):
        raise not_at_work(run, run.layout.job_marker)
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([markers_of(run).directory])


async def set_up_directory(run: JobRun, directory: str) -> None:
    """Make the directory of files, and that of their markers, where directories are real.

    Raises:
        FileMissing: the job is over.
    """
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    markers = markers_of(run).directory
    if run.marker_server is None:
        await run.store.make_directories([f"{markers}/{directory}"], within=markers)
    (outcome,) = await run.store.make_directories([directory])
    if outcome.state == "blocked":
        raise PathError(
            "a file stands where a directory must be",
            where=run.url(outcome.blocked or directory),
            next_step="move it away, or write elsewhere",
        )


async def announce_file(run: JobRun, path: str) -> None:
    """Make the marker of a file.

    Raises:
        PathError: no marker can be of this name.
        FileMissing: the job is over.
        DestinationConflict: another job at work is about to write this file, or to its file group.
        StoreError: it could not be made.
    """
    refuse_unmarkable(path)
    marker = marker_of(run, path)
    if run.marker_server is not None:
        await run.marker_server.create(marker)
        if run.marker_server.finds_conflicts:
            return
    else:
        await run.store.write_file(markers_of(run).direct(marker), b"")
    for refused in (await conflicts_of(run, [marker])).values():
        raise refused


def refuse_unmarkable(path: str) -> None:
    """Make sure that a file of this name can have a marker.

    Raises:
        PathError: it cannot.
    """
    if path.split("/", 1)[0] == TABLE or "\n" in path or "\r" in path:
        raise PathError(
            f"with the protocol markers a file cannot be below {TABLE}, nor have a line break in its name",
            where=repr(path),
            next_step="give it another name",
        )

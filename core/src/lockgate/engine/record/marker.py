"""The marker of a job, `job.json`: written at its setup, gone when the job is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError, StoreError
from lockgate.model.layout import JobLayout
from lockgate.model.record import CommitRecord
from lockgate.model.undecodable import UNDECODABLE

MARKER_BYTES_MAX = 256 << 20  # a job's options name what it replaces


class JobMarker(Struct, frozen=True):
    """The content of `job.json`: whose job it is. `created` is in seconds since 1970; `root` is the destination's URI
    as the job's own tasks write it into their manifests; `options` are those that whoever commits the job must use,
    empty in a marker of an earlier version; `part_of` as in the commit record; `by_task`: a task attempt has set the
    job up."""

    job_id: str
    nonce: str
    created: float
    host: str = ""
    process: int = 0
    user: str = ""
    root: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    part_of: str = ""
    by_task: bool = False


async def read_marker(run: JobRun) -> JobMarker | None:
    """The job's marker; None where there is none. For its own driver and task attempts, which know it by its
    nonce, also where another job of that id has been set up since: their own is over."""
    found = await read_marker_of(run, run.layout)
    return found if found is not None and not is_anothers(run, found.nonce) else None


def is_anothers(run: JobRun, nonce: str) -> bool:
    """Whether the job of this nonce is another than the run's own, which had its id before. Of an empty one nobody
    knows: an earlier version, or another program, has written it."""
    return run.is_own and bool(nonce) and run.marker not in ("", nonce)


async def read_marker_of(run: JobRun, layout: JobLayout) -> JobMarker | None:
    """The marker of any job of the destination, None where there is none.

    Raises:
        LockgateError: it cannot be read.
    """
    (content,) = await run.store.read_files([layout.job_marker], bytes_max=MARKER_BYTES_MAX)
    try:
        return None if content is None else msgspec.json.decode(content, type=JobMarker)
    except UNDECODABLE as error:
        raise LockgateError(
            f"the marker of job {layout.job_id} cannot be read: {error}",
            where=run.url(layout.job_marker),
            next_step="nothing was touched. If another version wrote it, that version can end the job; if it is "
            f"damaged, {command('abort', run.store.url, layout.job_id)} --force deletes the job",
        ) from error


async def readable_marker(run: JobRun, layout: JobLayout) -> JobMarker | None:
    """The same; None also where it is damaged, which `lockgate jobs` tells.

    Raises:
        StoreError: the store does not answer.
    """
    try:
        return await read_marker_of(run, layout)
    except StoreError:
        raise
    except LockgateError:
        return None


def refuse_if_set_up_again(run: JobRun, layout: JobLayout, nonce: str) -> None:
    """Make sure that the nonce of the marker at an attempt at the job is of this run's own setup, where that is known:
    to a driver that has set the job up, and to who recovers it by its record. Who slept until it was ended finds there
    what another job of the id has written, and must take none of it for its own.

    Raises:
        JobNotFound: it is another's.
    """
    own = run.marker if run.is_own else run.marker_for_parts
    if layout == run.layout and own and nonce not in ("", own):
        raise JobNotFound(
            f"job {run.layout.job_id} is over, and its id was set up again",
            where=run.url(layout.job_marker),
            next_step="it was aborted, or undone, by somebody else; what is there now is another job's, and was not "
            "touched",
        )


class SetUp(NamedTuple):
    """When a job was set up, by the store's clock, as its marker's date shows it, in seconds since 1970; the nonce in
    its marker, and the name of its protocol, both empty where that is damaged."""

    modified: float
    nonce: str
    protocol: str = ""


async def seen_set_up(run: JobRun) -> SetUp | None:
    """What this job's marker shows of its setup; None where there is none."""
    (status,) = await run.store.stat_files([run.layout.job_marker])
    if status is None:
        return None
    marker = await readable_marker(run, run.layout)
    if marker is None:
        return SetUp(status.modified, "")
    return SetUp(status.modified, marker.nonce, marker.options.get("protocol", ""))


def is_set_up(marker: JobMarker | None, record: CommitRecord) -> bool:
    """Whether the job that a record is of is still set up, its marker says. A cleanup deletes that first: so where the
    version before this one is gone, a person or another program has deleted it, and recovery goes on from this one."""
    return marker is not None and bool(record.marker) and is_marker_of(marker, record)


def is_marker_of(marker: JobMarker, record: CommitRecord) -> bool:
    """Whether the job that a record is of was set up by this marker. The same pickled job that was ended, and is set up
    again, has the same nonce, and another marker."""
    return marker.nonce == record.marker and record.set_up in (0.0, marker.created)


async def check_marker(run: JobRun) -> float:
    """Make sure that the job which this driver set up is still there; when its marker was made, as it says, 0 for who
    has set up none.

    Raises:
        JobNotFound: it was aborted, or finished, by somebody else. Without this check a driver that slept through
            the abort would find no manifests and commit an empty job.
    """
    if not run.marker:
        return 0.0
    found = await read_marker(run)
    if found is None or found.nonce != run.marker:
        raise JobNotFound(
            f"job {run.layout.job_id} is not at work any more",
            where=run.url(run.layout.attempt_directory),
            next_step="it was aborted, or committed and cleaned up, by somebody else, or setup() was never called",
        )
    return found.created

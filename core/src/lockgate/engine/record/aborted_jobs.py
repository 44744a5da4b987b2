"""A job that was aborted is not set up again by a task of it that comes late.

As a rule a job's driver sets it up, and tasks find that it is over by its marker, which is gone. Where the driver
cannot know all that setup asks for, as Spark's planner, which does not see the session's settings, tasks set the job
up, too: one that Spark has launched, and that begins when its job was aborted, would begin it anew. If somebody else
than its driver has aborted it, the driver would then commit it. If its driver has, nobody aborts it again, and by a
protocol whose tasks' files are seen before the job commits they would stay. So these two leave a note before they
delete anything, and a task's setup looks for the note when it has made the marker: either it finds the note, or the
abort finds the marker, and deletes it.

The note names the job by its marker's nonce: a later job of the same id is another. `lockgate gc` deletes it.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from lockgate.engine.record.ended_jobs import has_ended
from lockgate.engine.record.marker import read_marker, readable_marker
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing, JobNotFound
from lockgate.model.layout import FILE_LISTS
from lockgate.model.undecodable import UNDECODABLE

_BYTES_MAX = 1 << 16


class Aborted(Struct, frozen=True):
    """The content of the note: whose job it was, and when it was aborted, in seconds since 1970."""

    job_id: str
    marker: str
    ended: float


async def note_abort(run: JobRun) -> None:
    """Leave the note, where it is needed. Repeating it is no failure.

    Raises:
        StoreError: it could not be left.
    """
    if run.is_own and run.protocol.attributes.committed_invisible:
        return
    marker = run.marker
    if not run.is_own:
        found = await readable_marker(run, run.layout)
        if found is None or not found.by_task:
            return
        marker = found.nonce
    content = msgspec.json.encode(Aborted(run.layout.job_id, marker, run.runtime.wall()))
    try:
        await run.store.write_file(run.layout.aborted_job, content)
    except FileMissing:
        if Capability.REAL_DIRECTORIES not in run.store.capabilities:
            raise
        await run.store.make_directories([FILE_LISTS])
        await run.store.write_file(run.layout.aborted_job, content)


async def why_aborted(run: JobRun) -> JobNotFound | None:
    """Why this job must not be set up by a task: it was aborted. None: it may be.

    Raises:
        StoreError: nobody can tell.
    """
    (content,) = await run.store.read_files([run.layout.aborted_job], bytes_max=_BYTES_MAX)
    try:
        note = None if content is None else msgspec.json.decode(content, type=Aborted)
    except UNDECODABLE:  # nobody's that leaves these
        return None
    if note is None or note.marker != run.marker:
        return None
    return JobNotFound(
        f"job {run.layout.job_id} was aborted",
        where=run.url(run.layout.aborted_job),
        next_step="a task of it has come late, and adds nothing; run the write again",
    )


async def is_over_for_tasks(run: JobRun) -> bool:
    """Whether the job is over, for a task attempt of it that would write, or commit: its marker is gone. Or another
    task that came late has set it up once more, and has not found out yet that it is over: what this one has written by
    then would be nobody's once that is undone.

    Raises:
        StoreError: nobody can tell.
    """
    marker = await read_marker(run)
    if marker is None or not marker.by_task:
        return marker is None
    ended, aborted = await both(has_ended(run), why_aborted(run))
    # As long as there is a record, that decides: the job's driver may not have come to the end of its cleanup.
    return (ended or aborted is not None) and await read_record(run) is None

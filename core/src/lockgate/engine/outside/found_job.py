"""A job that is looked for by its id: ours, or another program's."""

from __future__ import annotations

import contextlib
import dataclasses

from lockgate.engine.inspection.list_jobs import (
    JobState,
    find_job,
    how_late_output_ends,
    job_state,
    late_of_hadoops,
)
from lockgate.engine.inspection.other_committers import OtherJob, is_unknown, list_other_jobs
from lockgate.engine.record.ended_jobs import read_end, says_committed
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.signs_of_life import why_at_work
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError, OptionError, UsageError
from lockgate.model.file_output import PROTOCOL as HADOOPS
from lockgate.model.layout import SUCCESS, JobLayout, found_layout
from lockgate.model.phases import Phase

_BY_HAND = (
    "its own driver ends it; no protocol does on this store. If it is over, run it again by its own program, and then "
    "delete what is in this directory, which nothing else will"
)
_EMPTY = (
    "its own driver ends it; if it is over, delete this directory: there is nothing of a task in it, and nothing says "
    "which job made it; or leave that to `lockgate gc`, once it has stood still for long"
)


def _how_it_ends(run: JobRun, other: OtherJob) -> str:
    """The next step of who would end a job of Hadoop's `FileOutputCommitter`: with the --force that is asked for while
    it may be at work."""
    job_id = other.job_id
    if is_unknown(job_id):
        return _EMPTY
    v1 = run.hooks.protocols().get(HADOOPS)
    if v1 is None or not v1.needs <= run.store.capabilities:
        return _BY_HAND
    forcing = ["--force"] if why_at_work(run, None, other.last_seen, tasks_seen=other.last_seen) else []
    layout = found_layout(HADOOPS, job_id)
    committing, aborting = (found_command(run, each, layout, *forcing) for each in ("commit", "abort"))
    if run.options.protocol == "v2":
        return (
            "of a job by the second algorithm of Hadoop's FileOutputCommitter nothing waits to be committed: the files "
            "of its committed tasks are in the destination, nothing tells which those are, and its own driver adds "
            f"`_SUCCESS` alone. If it is over, look for them before it is run again; {aborting} deletes what its other "
            "tasks have left"
        )
    return (
        "its own driver ends it; if it is over, and its tasks committed by the first algorithm of Hadoop's "
        f"FileOutputCommitter, {committing} commits what they wrote; {aborting} deletes it"
    )


async def job_at(run: JobRun, job_id: str) -> JobRun:
    """A run at the job of this id below the run's destination.

    Raises:
        JobNotFound: there is none, or it is committed, and of another program's its tasks may have left more since.
        UsageError: it is another committer's, which only its driver ends; or the id is no text, or empty.
    """
    if not isinstance(job_id, str):
        raise UsageError(
            f"a job id is text, not {type(job_id).__name__}",
            where=repr(job_id),
            next_step="give the id as it is shown by `lockgate jobs`, and as Job.job_id has it",
        )
    if not job_id:
        raise UsageError(
            "the job id is empty",
            where=run.url(""),
            next_step=f"give the id as {command('jobs', run.store.url)} shows it; a shell's variable that holds it may "
            "not be set",
        )
    try:
        layout = await find_job(run, job_id)
    except JobNotFound as error:
        if (other := await _other_job(run, job_id)) is not None:
            if (late := await late_of_hadoops(run, other)) is not None:
                raise await over_and_committed(dataclasses.replace(run, layout=late.layout), late) from error
            raise UsageError(
                f"job {job_id} is another committer's",
                where=run.url(other.directory),
                next_step=_how_it_ends(run, other),
            ) from error
        if await has_committed(run, job_id):
            raise committed_already(run, job_id) from error
        raise
    return dataclasses.replace(run, layout=layout, counters={}, stage_seconds={})


async def _other_job(run: JobRun, job_id: str) -> OtherJob | None:
    return next((other for other in await list_other_jobs(run) if other.job_id == job_id), None)


async def late_of_one(run: JobRun, job_id: str) -> JobState | None:
    """What tasks of the job of Hadoop's of this id have left since it was committed here, whoever asks; None: it is no
    such job, or they have left nothing."""
    other = await _other_job(run, job_id)
    return None if other is None else await late_of_hadoops(run, other)


def committed_already(run: JobRun, job_id: str) -> JobNotFound:
    """The error where a job that somebody wants to end is committed."""
    return JobNotFound(
        f"job {job_id} is committed already", where=run.url(SUCCESS), next_step=command("show", run.store.url)
    )


async def over_and_committed(run: JobRun, state: JobState | None = None) -> JobNotFound:
    """The same of a job that is there, with what its tasks have left since, if they are another program's; for who has
    seen how it stands, by that."""
    state = state or await job_state(run, run.layout)
    if not state.came_late:
        return committed_already(run, run.layout.job_id)
    return JobNotFound(
        f"job {run.layout.job_id} is committed already, and its tasks have left more since",
        where=run.url(state.directory),
        next_step=f"nothing was touched: {how_late_output_ends(run, run.layout)}",
    )


async def is_over_and_committed(run: JobRun) -> bool:
    """Whether a job that has committed shows by nothing but directories, what a cleanup that was killed has left; or by
    its record; or by that of a commit that came after that, and was refused."""
    (marker,) = await run.store.stat_files([run.layout.job_marker])  # a damaged one is there
    return marker is None and await shows_committed(run)


async def shows_committed(run: JobRun) -> bool:
    """Whether a job that has nothing left to commit has committed: by its record, or by what else says it."""
    record = await read_record(run)
    if record is not None and record.phase is not Phase.REFUSED:
        return await says_committed(run, record)
    return await has_committed(run, run.layout.job_id)


async def has_committed(run: JobRun, job_id: str) -> bool:
    """Whether a job is known to have committed: by the note of its end, or by `_SUCCESS`."""
    with contextlib.suppress(OptionError):  # what no job can be named
        if await read_end(run, JobLayout(job_id).ended) is not None:
            return True
    try:
        summary = await read_summary(run, SUCCESS)
    except LockgateError:  # an empty `_SUCCESS` of another committer names no job
        return False
    return summary is not None and summary.success and summary.job_id == job_id

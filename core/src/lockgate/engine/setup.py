"""Job setup and task setup.

Seed: "Job Setup", "Task Setup". Beyond it, job setup leaves a marker with a nonce: two jobs that were given one id
(SPARK-33402) are told apart, and a driver that was asleep while its job was aborted learns it from the marker's
absence.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from lockgate.engine.conflicts import refuse_early
from lockgate.engine.job_run import JobRun
from lockgate.engine.publish import published_summary, read_summary
from lockgate.engine.record_log import fenced, read_record
from lockgate.engine.transactions import known_outcome
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    AnswerLost,
    CommitFenced,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    StoreError,
    UsageError,
)
from lockgate.model.layout import SUCCESS, JobLayout
from lockgate.model.phases import Phase

MARKER_BYTES_MAX = 1 << 16


class JobMarker(Struct, frozen=True):
    """The content of `job.json`: whose job it is. `created` is in seconds since 1970; `root` is the destination's URI
    as the job's own tasks write it into their manifests."""

    job_id: str
    nonce: str
    created: float
    host: str = ""
    process: int = 0
    user: str = ""
    root: str = ""


async def setup_job(run: JobRun) -> None:
    """Make the job attempt's directories, leave the marker, and delete an old `_SUCCESS` where the options say so.
    Repeating it for the same job is no failure.

    Raises:
        UsageError: another job has this id.
        DestinationConflict: the policy `fail` and the destination holds data.
    """
    with run.stage("setup_job"):
        await refuse_early(run)
        if run.layout.job_attempt > 0:
            await _refuse_late_attempt(run)
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.manifests, run.layout.tasks])
        marker = JobMarker(
            run.layout.job_id,
            run.marker,
            run.runtime.wall(),
            run.runtime.host,
            run.runtime.process,
            run.runtime.user,
            run.store.url.uri,
        )
        try:
            await run.store.create_file(run.layout.job_marker, msgspec.json.encode(marker))
            if run.options.delete_success_at_setup:
                await _delete_success(run)
        except (FileExists, AnswerLost) as error:
            found = await read_marker(run)
            if found is None or found.nonce != run.marker:
                raise UsageError(
                    f"another job has the id {run.layout.job_id}",
                    where=run.url(run.layout.job_marker),
                    next_step="give every job an id of its own: leave job_id out and one is made",
                ) from error


async def _delete_success(run: JobRun) -> None:
    """Hadoop's way (`SetupJobStage`): a reader that looks for `_SUCCESS` takes the table for unfinished from here on,
    and, if this job is aborted, until another is committed. Done by whoever created the marker, so that a task that
    repeats the setup later deletes nothing; and one that makes the directory of a job that is over anew finds either
    that job's `_SUCCESS` or its transaction's outcome."""
    if await known_outcome(run) is not None:
        return
    try:
        last = await read_summary(run, SUCCESS)
    except StoreError:
        raise
    except LockgateError:  # the empty `_SUCCESS` of another committer
        last = None
    if last is None or last.job_id != run.layout.job_id:
        await run.store.delete_files([SUCCESS])


async def _refuse_late_attempt(run: JobRun) -> None:
    """A job has one fence, whichever attempt at it commits: where an earlier attempt has begun to move files, or has
    committed, another has nothing to do."""
    record = await read_record(run)
    if record is not None and record.phase not in (Phase.CLAIMED, Phase.REFUSED):
        raise fenced(run, record)
    published = await published_summary(run)
    if published is not None:
        raise CommitFenced(
            f"job {run.layout.job_id} is committed already",
            where=run.url(run.layout.summary),
            next_step="another attempt at it would commit nothing; give a new write a job id of its own",
        )


async def read_marker(run: JobRun) -> JobMarker | None:
    """The job's marker, None where there is none."""
    return await read_marker_of(run, run.layout)


async def read_marker_of(run: JobRun, layout: JobLayout) -> JobMarker | None:
    """The marker of any job of the destination, None where there is none."""
    (content,) = await run.store.read_files([layout.job_marker], bytes_max=MARKER_BYTES_MAX)
    return None if content is None else msgspec.json.decode(content, type=JobMarker)


async def check_marker(run: JobRun) -> None:
    """Make sure that the job which this driver set up is still there.

    Raises:
        JobNotFound: it was aborted, or finished, by somebody else. Without this check a driver that slept through
            the abort would find no manifests and commit an empty job.
    """
    if not run.marker:
        return
    found = await read_marker(run)
    if found is None or found.nonce != run.marker:
        raise JobNotFound(
            f"job {run.layout.job_id} is not at work any more",
            where=run.url(run.layout.attempt_directory),
            next_step="it was aborted, or committed and cleaned up, by somebody else, or setup() was never called",
        )


async def setup_task(run: JobRun) -> None:
    """Make a task attempt's working directory.

    Raises:
        JobNotFound: the job is not set up, or is over: a late attempt must not bring its directories back.
    """
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    try:
        await run.store.make_directories([run.layout.task_directory(run.task_attempt_id)], within=run.layout.tasks)
    except FileMissing as error:
        raise JobNotFound(
            f"job {run.layout.job_id} is not at work: it is not set up, or over",
            where=run.url(run.layout.tasks),
            next_step="call setup() on the job before its tasks start; a task of a finished job has nothing to do",
        ) from error

"""Job setup and task setup.

Seed: "Job Setup", "Task Setup". Beyond it, job setup leaves a marker with a nonce: two jobs that were given one id
(SPARK-33402) are told apart, and a driver that was asleep while its job was aborted learns it from the marker's
absence.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct, field

from lockgate.engine.concurrency import both
from lockgate.engine.conflicts import refuse_early, why_not_a_plain_table
from lockgate.engine.delete_trees import delete_trees
from lockgate.engine.ended_jobs import remember_last, why_over
from lockgate.engine.job_run import JobRun
from lockgate.engine.publish import read_summary
from lockgate.engine.record_log import fenced, read_record
from lockgate.engine.recorded_options import options_for_marker
from lockgate.engine.transactions import has_begun, known_outcome
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    DestinationConflict,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    StoreError,
    UsageError,
)
from lockgate.model.layout import BOOKKEEPING, JOBS, SUCCESS, JobLayout
from lockgate.model.phases import Phase

MARKER_BYTES_MAX = 1 << 16


class JobMarker(Struct, frozen=True):
    """The content of `job.json`: whose job it is. `created` is in seconds since 1970; `root` is the destination's URI
    as the job's own tasks write it into their manifests; `options` are those that whoever commits the job must use,
    empty in a marker of an earlier version."""

    job_id: str
    nonce: str
    created: float
    host: str = ""
    process: int = 0
    user: str = ""
    root: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


async def setup_job(run: JobRun) -> None:
    """Make the job attempt's directories, leave the marker, and delete an old `_SUCCESS` where the options say so.
    Repeating it for the same job is no failure.

    Whether the job has ended, and whether the destination is a table of another format, is asked while the directories
    are made, and costs no time of its own: it is the claim of the job that must not be fooled
    (`lockgate.engine.ended_jobs`), and a commit that replaces data looks again. A setup that is refused leaves nothing
    behind.

    Raises:
        UsageError: another job has this id.
        JobNotFound: the job has committed already.
        CommitFenced: an earlier attempt at the job has begun to move files.
        OutcomeUnknown: files are set aside by a commit of this job whose record is lost.
        DestinationConflict: the policy `fail` and the destination holds data; or it is a table of another format.
    """
    with run.stage("setup_job"):
        try:
            await refuse_early(run)
        except DestinationConflict:
            # What is there may be what this very transaction has written, which its commit finds out.
            if not await has_begun(run):
                raise
        (created, error), (over, table) = await both(_mark(run), both(_why_refused(run), why_not_a_plain_table(run)))
        refusal = over or table
        if error is None and refusal is None and run.options.delete_success_at_setup:
            try:
                refusal = await _delete_success(run)
            except StoreError as failure:
                refusal = failure
        if refusal is not None:
            if created:
                await _unmark(run)
            raise refusal
        if error is not None:
            raise error


async def _mark(run: JobRun) -> tuple[bool, LockgateError | None]:
    """Make the directories and the marker: whether this call surely created the marker, and what went wrong, for which
    the job's having ended is the better reason."""
    try:
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
            options_for_marker(run.options),
        )
        await run.store.create_file(run.layout.job_marker, msgspec.json.encode(marker))
        return True, None
    except (FileExists, AnswerLost):
        found = await read_marker(run)
        if found is not None and found.nonce == run.marker:
            return False, None
        return False, UsageError(
            f"another job has the id {run.layout.job_id}",
            where=run.url(run.layout.job_marker),
            next_step="give every job an id of its own: leave job_id out and one is made",
        )
    except FileMissing as error:  # the job's directory went between the two: it is over
        return False, error


async def _unmark(run: JobRun) -> None:
    """Delete what a setup has made that is refused. What it cannot delete is left to gc."""
    try:
        await delete_trees(run, [run.layout.attempt_directory])
        await run.store.delete_empty_directories([run.layout.job_directory, JOBS, BOOKKEEPING])
    except StoreError as error:
        run.log.info("a refused setup leaves its directory to gc", error=str(error))


async def _delete_success(run: JobRun) -> LockgateError | None:
    """Hadoop's way (`SetupJobStage`): a reader that looks for `_SUCCESS` takes the table for unfinished from here on,
    and, if this job is aborted, until another is committed. A setup that is repeated deletes it too, since the first
    may have died before; but not once the job commit has begun. The marker is there by now, so that a job that is over
    is known by its note, its `_SUCCESS` or its transaction's outcome; then nothing is deleted: the answer is why."""
    if await known_outcome(run) is not None or await read_record(run) is not None:
        return None
    refusal = await why_over(run)
    if refusal is not None:
        return refusal
    try:
        last = await read_summary(run, SUCCESS)
    except StoreError:
        raise
    except LockgateError:  # the empty `_SUCCESS` of another committer
        last = None
    if last is None or last.job_id != run.layout.job_id:
        await remember_last(run)
        await run.store.delete_files([SUCCESS])
    return None


async def _why_refused(run: JobRun) -> LockgateError | None:
    """A job has one fence, whichever attempt at it commits: where an earlier attempt has begun to move files, or the
    job is over, another has nothing to do."""
    record = await read_record(run) if run.layout.job_attempt > 0 else None
    if record is not None:
        return None if record.phase in (Phase.CLAIMED, Phase.REFUSED) else fenced(run, record)
    return await why_over(run)


async def read_marker(run: JobRun) -> JobMarker | None:
    """The job's marker, None where there is none."""
    return await read_marker_of(run, run.layout)


async def read_marker_of(run: JobRun, layout: JobLayout) -> JobMarker | None:
    """The marker of any job of the destination, None where there is none.

    Raises:
        LockgateError: it cannot be read.
    """
    (content,) = await run.store.read_files([layout.job_marker], bytes_max=MARKER_BYTES_MAX)
    try:
        return None if content is None else msgspec.json.decode(content, type=JobMarker)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LockgateError(
            f"the marker of job {layout.job_id} cannot be read: {error}",
            where=run.url(layout.job_marker),
            next_step="nothing was touched. If another version wrote it, that version can end the job; if it is "
            f"damaged, {command('abort', run.store.url, layout.job_id)} --force deletes the job",
        ) from error


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

"""Recovery of one job, or of every job of a destination whose driver died."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from lockgate.engine.inspection.how_to_end import how_many_committed, if_surely_over, why_interrupted
from lockgate.engine.inspection.list_jobs import JobState, JobStatus, how_late_output_ends, job_state, list_jobs
from lockgate.engine.outside.commit import plan_found
from lockgate.engine.outside.found_job import has_committed, is_over_and_committed, job_at, late_of_one
from lockgate.engine.outside.owners_options import owners_options
from lockgate.engine.record.ended_jobs import has_committed_unrecorded
from lockgate.engine.record.found_commands import found_command, told_of_options, with_first_options
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.recovery.recover import Recovery, recover_job, too_late
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.commands import command
from lockgate.model.errors import (
    CommitRefused,
    FileChanged,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
    OptionError,
    ReceiptUnmatched,
    StoreError,
)
from lockgate.model.layout import JOBS, OURS, JobLayout
from lockgate.model.phases import Phase


async def recover_found(
    run: JobRun, job_id: str | None, *, undo: bool | None, force: bool, told: Collection[str]
) -> dict[str, Recovery]:
    """Finish, or undo, the job commit of a driver that died; without a job id, of every job that crashed here.

    Raises:
        CommitFenced: its driver may be alive, or somebody else recovers it.
        UsageError: what was asked for is not possible in its phase, or an option contradicts the job's own.
        LockgateError: the one job that was named could not be recovered.
    """
    if not force and await list_all(run.store, JOBS):
        run = await by_the_stores_clock(run)
    if job_id is not None:
        return {job_id: await _recover_one(run, job_id, undo=undo, force=force, told=told)}
    return await _recover_all(run, undo=undo, force=force, told=told)


async def _recover_one(run: JobRun, job_id: str, *, undo: bool | None, force: bool, told: Collection[str]) -> Recovery:
    try:
        job = await job_at(run, job_id)
    except JobNotFound:
        if (late := await late_of_one(run, job_id)) is not None:
            if undo:
                raise too_late(dataclasses.replace(run, layout=late.layout)) from None
            return _came_late(run, late)
        is_over = await has_committed(run, job_id)
        if is_over and undo:
            raise too_late(dataclasses.replace(run, layout=JobLayout(job_id))) from None
        return Recovery("nothing" if is_over else "no trace", None)
    await owners_options(job, told)
    if job.layout.prefix != OURS and (state := await job_state(job, job.layout)).came_late:
        if undo:
            raise too_late(job)
        return _came_late(run, state)
    recovery = await recover_job(job, undo=undo, force=force)
    if recovery.outcome == "nothing" and (
        await is_over_and_committed(job) or (recovery.phase is None and await has_committed(run, job_id))
    ):
        if undo:
            raise too_late(job)
        return recovery  # by somebody else, since it was looked for, or before another commit of it was refused
    if recovery.outcome == "nothing" and recovery.phase in (None, Phase.REFUSED):
        state = await job_state(job, job.layout)
        recovery = await _not_begun(run, state)
        if await has_committed_unrecorded(job):
            if undo:
                raise too_late(job)
            return Recovery("nothing", Phase.COMMITTED)
    return await _with_what_came_late(job, recovery)


async def _recover_all(run: JobRun, *, undo: bool | None, force: bool, told: Collection[str]) -> dict[str, Recovery]:
    found: dict[str, Recovery] = {}
    for state in sorted(await list_jobs(run), key=_in_turn):
        if state.status in (JobStatus.ABANDONED, JobStatus.REFUSED, JobStatus.RUNNING):
            try:
                found[state.job_id] = await _not_begun(run, state)
                if await has_committed_unrecorded(dataclasses.replace(run, layout=state.layout)):
                    found[state.job_id] = Recovery("nothing", Phase.COMMITTED)
            except LockgateError as error:
                found[state.job_id] = _failed(state, error)
        if state.status is JobStatus.COMMITTING and not force:
            found[state.job_id] = _may_be_committing(run, state)
        if state.came_late:
            found[state.job_id] = _came_late(run, state)
            continue
        if state.status is JobStatus.UNREADABLE:
            found[state.job_id] = Recovery("failed", None, problem=state.problem)
        crashed = state.status in (JobStatus.CRASHED, JobStatus.RECORD_LOST) or (
            force and state.status is JobStatus.COMMITTING
        )
        if crashed or (state.status is JobStatus.LEFT_BEHIND and not undo):
            job = dataclasses.replace(run, layout=state.layout, counters={}, stage_seconds={})
            # Its driver is gone, or silent for `alive_seconds`: that is what crashed means.
            try:
                # What protocol is given says here whose jobs are looked for beside those of Lockgate.
                await owners_options(job, [name for name in told if name != "protocol"])
                found[state.job_id] = await _with_what_came_late(job, await recover_job(job, undo=undo, force=True))
            except LockgateError as error:
                found[state.job_id] = _failed(state, error)
    return found


def _failed(state: JobState, error: LockgateError) -> Recovery:
    return Recovery("failed", state.phase, problem=str(error), next_step=error.next_step)


def _came_late(run: JobRun, state: JobState) -> Recovery:
    """The answer about a committed job whose tasks, another program's, have left more since: that is left alone."""
    ends = how_late_output_ends(run, state.layout)
    return Recovery("nothing", state.phase, problem=state.problem, next_step=ends)


async def _with_what_came_late(job: JobRun, recovery: Recovery) -> Recovery:
    """The answer about another program's job that is finished, with what its tasks have left since the driver pinned
    what was there."""
    if job.layout.prefix == OURS or recovery.outcome != "finished":
        return recovery
    state = await job_state(job, job.layout)
    if not state.came_late:
        return recovery
    ends = how_late_output_ends(job, state.layout)
    return dataclasses.replace(recovery, problem=state.problem, next_step=ends)


def _in_turn(state: JobState) -> tuple[bool, float]:
    """The order in which crashed jobs are recovered: those that have begun to move files first, since others have to
    yield to them, then the oldest."""
    record = state.record
    return (record is None or record.phase is Phase.CLAIMED, record.holder.since if record else 0.0)


async def _not_begun(run: JobRun, state: JobState) -> Recovery:
    """The answer about a job that waits for its commit: there is nothing to finish or to undo.

    Raises:
        StoreError: the store does not answer.
    """
    run = with_first_options(run, state.layout, state.record)
    began = "its commit was refused before anything moved" if state.phase else "its commit has not begun"
    if state.status is JobStatus.RUNNING:
        next_step = if_surely_over(run, state, await why_interrupted(run, state))
        problem = f"{began}, and {how_many_committed(state)}: {next_step}"
        return Recovery("not begun", state.phase, problem=problem, next_step=next_step)
    why_not = await _why_not_planned(run, state)
    if why_not is None and not state.tasks_committed:
        why_not = await _why_none_is_found(run, state)
    if why_not is not None:
        would = "would be again" if state.phase else "cannot"
        problem = f"{began}, and {would}: {why_not}"
        return Recovery("not begun", state.phase, problem=problem, next_step=why_not.next_step)
    aborting = found_command(run, "abort", state.layout)
    if state.tasks_committed:
        told = told_of_options(run, state.layout, state.record)
        by_what = f" ({told})" if told else ""
        next_step = (
            f"{found_command(run, 'commit', state.layout)}{by_what} commits what they wrote, and nothing of tasks that "
            f"never began (a Spark driver that dies leaves such tasks, and nobody can tell how many); {aborting} "
            "deletes it"
        )
    else:
        next_step = f"{aborting} deletes it"
    if state.phase:
        next_step += "; while its driver may be at work, both ask for --force"
    problem = f"{began}, and {how_many_committed(state)}: {next_step}"
    return Recovery("not begun", state.phase, problem=problem, next_step=next_step)


async def _why_not_planned(run: JobRun, state: JobState) -> LockgateError | None:
    """What a commit would say of what the job's tasks have left, if it is not as they have left it."""
    try:
        before = (await plan_found(run, state.job_id, told=())).committed_before
        if before is not None:
            aborting = found_command(run, "abort", state.layout)
            deletes = f"{aborting} deletes what its tasks have left"
            return CommitRefused(str(before), where=run.url(state.directory), next_step=deletes)
    except (FileChanged, ManifestInvalid, ReceiptUnmatched) as error:
        return error
    except StoreError:
        raise
    except LockgateError as error:
        # Of another program's output this says which option tells what of it counts. What else a commit meets is not of
        # the job's own making.
        return error if state.layout.prefix != OURS and type(error) is CommitRefused else None
    return None


async def _why_none_is_found(run: JobRun, state: JobState) -> LockgateError | None:
    """What a commit would say of a job that seems to have no task that has committed: they may have, and another
    program have done something with what they had left. None: it would say no more than that."""
    job = dataclasses.replace(run, layout=state.layout, counters={}, stage_seconds={})
    try:
        own = await with_own_protocol(job, None)
        await own.protocol.find_pins(own)
    except ReceiptUnmatched as error:
        return error
    except OptionError:  # its protocol is not here
        return None
    return None


def _may_be_committing(run: JobRun, state: JobState) -> Recovery:
    """The answer about a job in its commit whose driver is not known to be gone: it was passed over."""
    driver = f", {state.driver}," if state.driver else ""
    forcing = command("recover", run.store.url, state.job_id, "--force")
    problem = f"its driver{driver} may be in its commit, and it was left alone; if that is surely dead: {forcing}"
    return Recovery("at work", state.phase, problem=problem, next_step=forcing)

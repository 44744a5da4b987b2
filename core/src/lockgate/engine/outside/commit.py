"""The commit of a job by somebody else than its driver, and what it would do."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from lockgate.engine.inspection.list_jobs import JobState, JobStatus, job_state
from lockgate.engine.inspection.predicted import operations_of_plan
from lockgate.engine.job.job_commit import plan_job
from lockgate.engine.outside.found_job import committed_already, has_committed, job_at, over_and_committed
from lockgate.engine.outside.owners_options import as_set_up
from lockgate.engine.outside.tasks_of_a_job import (
    and_beside,
    committed_tasks_of,
    look_beside,
    refuse_unless_over,
    unfinished_error,
    unfinished_tasks,
)
from lockgate.engine.record.committed_before import plan_of_nothing
from lockgate.engine.record.found_commands import found_command, told_of_options, with_first_options
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.marker_server import has_marker_server
from lockgate.model.commands import command
from lockgate.model.errors import CommitFenced, FileMissing, UsageError
from lockgate.model.layout import OURS
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan


async def ready_to_commit(
    run: JobRun, job_id: str, *, by_what_is_found: bool, force: bool, told: Collection[str]
) -> tuple[JobRun, set[str]]:
    """The job, ready for `commit_once`, and the tasks that are known to have committed. `by_what_is_found`: there are
    no receipts.

    Raises:
        JobNotFound: there is no such job.
        UsageError: one of `told` contradicts the options that its owner chose; or nobody says how another program's job
            is to be committed.
        CommitFenced: the job may be at work, or somebody else commits it.
        CommitRefused: no task has committed, or some have begun and have not; or there is other output beside.
    """
    found = await job_at(run, job_id)
    await _refuse_without_protocol(found, told)
    job = await as_set_up(found, told)
    seen: set[str] = set()
    if by_what_is_found:
        beside = await job.protocol.outputs_beside(job)
        if not force:
            job = await by_the_stores_clock(job)
            await refuse_unless_over(
                job,
                harm=f"what its tasks have not committed by now, or not begun, would be left out{and_beside(beside)}",
            )
        job = look_beside(job, beside, force=force)
        seen = await committed_tasks_of(job)
        job = dataclasses.replace(job, by_what_is_found=True, left_out=await unfinished_tasks(job, seen))
        if job.left_out:
            if not force:
                raise await unfinished_error(job)
            job.log.warning("tasks that have begun and not committed are left out", tasks=list(job.left_out[:20]))
        if "on_failure" not in told:
            # Nobody here can run the tasks again.
            job = dataclasses.replace(job, leaves_before_losing=True)
    if job.layout.prefix != OURS:
        try:
            await job.protocol.take_over(job, to_commit=True)
        except FileMissing as error:  # where it is made somebody else's commit has ended it meanwhile
            if not await has_committed(job, job_id):
                raise
            raise committed_already(job, job_id) from error
    return job, seen


async def _refuse_without_protocol(run: JobRun, told: Collection[str]) -> None:
    """Make sure that somebody has said how another program's job is to be committed, which nothing there says before a
    commit of it is claimed: one that was begun, and died before that, may have been given other options.

    Raises:
        UsageError: nobody has.
    """
    if "protocol" in told or not run.layout.is_taken_over:
        return
    record = await read_record(run)
    if record is not None and record.phase is not Phase.REFUSED:
        return
    known = with_first_options(run, run.layout, record)
    raise UsageError(
        f"job {run.layout.job_id} is another program's: how it is to be committed has to be said each time",
        where=run.url(run.layout.job_directory),
        next_step=f"nothing was touched: {found_command(known, 'commit', run.layout, '--force')} commits it "
        f"{told_of_options(known, run.layout, record)}",
    )


async def plan_found(run: JobRun, job_id: str, *, told: Collection[str]) -> CommitPlan:
    """What the commit would do, by the same options, without touching anything.

    Raises:
        JobNotFound, UsageError: as `ready_to_commit`.
        CommitFenced: its commit is past planning.
        CommitRefused: it would be refused.
    """
    run = await job_at(run, job_id)
    state = await job_state(run, run.layout)
    if state.came_late:
        raise await over_and_committed(run, state)
    if state.phase not in (None, Phase.CLAIMED, Phase.REFUSED):
        raise _past_planning(run, state)
    job = await as_set_up(run, told)
    if (nothing := await plan_of_nothing(job)) is not None:
        return nothing
    left_out = await unfinished_tasks(job, await committed_tasks_of(job))
    job = dataclasses.replace(job, left_out=left_out)
    plan = await plan_job(dataclasses.replace(job, by_what_is_found=True), None)
    stays = await job.protocol.left_out_stays(job) if left_out else ""
    beside = await job.protocol.outputs_beside(job)
    served = has_marker_server(job, job.protocol)
    takes = operations_of_plan(plan, job.protocol, job.options, job.store.capabilities, served=served)
    return dataclasses.replace(plan, left_out=left_out, left_out_stays=stays, outputs_beside=beside, operations=takes)


def _past_planning(run: JobRun, state: JobState) -> CommitFenced:
    assert state.phase is not None
    return CommitFenced(
        f"the commit of job {state.job_id} is past planning: it is in phase {state.phase.value}",
        where=f"{run.url(state.directory)}\nstatus: {state.status.value}; driver: {state.driver}",
        next_step={
            JobStatus.CRASHED: command("recover", run.store.url, state.job_id),
            JobStatus.LEFT_BEHIND: f"{command('gc', run.store.url)} cleans up after it",
        }.get(state.status, f"its driver may be alive; {command('jobs', run.store.url)}"),
    )

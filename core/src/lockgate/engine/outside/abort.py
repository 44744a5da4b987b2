"""The abort of a job by somebody else than its driver."""

from __future__ import annotations

from collections.abc import Collection
from typing import NoReturn

from lockgate.engine.inspection.list_jobs import JobState, job_state
from lockgate.engine.job.cleanup import clean_up
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.setup import tell_options_without_effect
from lockgate.engine.outside.found_job import committed_already, is_over_and_committed, job_at, over_and_committed
from lockgate.engine.outside.owners_options import refuse_other_protocol
from lockgate.engine.outside.tasks_of_a_job import refuse_unless_over
from lockgate.engine.record.own_protocol import by_protocol, with_own_protocol
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.recovery.recover import recover_job
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.commands import command
from lockgate.model.errors import CommitFenced
from lockgate.model.layout import OURS
from lockgate.model.phases import Phase
from lockgate.model.undone import Undone


async def abort_found(run: JobRun, job_id: str, *, force: bool, told: Collection[str]) -> Undone:
    """Delete everything that a job left, before its job commit; the answer: what stays, or may.

    Raises:
        JobNotFound: there is no such job, or it is committed.
        UsageError: the job is another protocol's than `told`.
        CommitFenced: the job may be at work; or its job commit has begun, which is recovery's business; or it is
            committed, and what its tasks, another program's, had left since is deleted.
    """
    job = await job_at(run, job_id)
    if "protocol" in told:
        await refuse_other_protocol(job)
    if set(told) - {"protocol"}:
        tell_options_without_effect(await with_own_protocol(job, await read_record(job)), told)
    if not force:
        await refuse_unless_over(await by_the_stores_clock(job), harm="what its tasks have written would be deleted")
    if job.layout.prefix != OURS and (state := await job_state(job, job.layout)).came_late:
        await _delete_late_output(job, state)
    if job.layout.prefix != OURS:
        record = await read_record(job)
        if record is None or record.phase is Phase.REFUSED:
            await by_protocol(job, job.layout.found_protocol).protocol.take_over(job, to_commit=False)
    if await is_over_and_committed(job):
        await recover_job(job, force=True)  # what a cleanup that was killed, or a late task of ours, has left
        raise committed_already(job, job_id)
    return await abort_job(job, set_up_by_tasks=True)


async def _delete_late_output(run: JobRun, state: JobState) -> NoReturn:
    """Delete what tasks of another program's have left since their job was committed. Whoever would write its rows
    again is to hear that it was.

    Raises:
        CommitFenced: that is deleted.
        JobNotFound: it is in a directory that was named, which nobody knows to be this job's.
    """
    own = by_protocol(run, run.layout.found_protocol)
    await own.protocol.take_over(own, to_commit=False)
    if not await list_all(run.store, run.layout.job_directory):
        raise await over_and_committed(run, state)
    await own.protocol.delete_late_output(own)
    await clean_up(own, committed=True)
    raise CommitFenced(
        f"job {run.layout.job_id} has committed, and stays so; what its tasks had left since is deleted",
        where=run.url(state.directory),
        next_step=f"do not run it again; {command('files', run.store.url)} lists what is committed here",
    )

"""Before somebody else than its driver ends a job: whether its tasks may be at work, and which have committed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lockgate.engine.inspection.list_jobs import job_state
from lockgate.engine.manifests.load_manifests import aborted_in, every_attempt
from lockgate.engine.outside.found_job import over_and_committed, shows_committed
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.record.signs_of_life import begun_attempts, refuse_if_at_work
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.counted import counted
from lockgate.model.errors import CommitRefused
from lockgate.model.file_output import PROTOCOL as HADOOPS
from lockgate.model.file_output import task_of_attempt
from lockgate.model.layout import OURS, task_of
from lockgate.model.phases import Phase

_BY_THE_SECOND = (
    "; a job by FileOutputCommitter's second algorithm looks the same, and the files of its committed tasks are in the "
    "destination already, which nothing here can tell: look for them before the job is run again"
)


async def refuse_unless_over(run: JobRun, *, harm: str) -> None:
    """Before somebody else than its driver ends a job. Once its commit has begun, its record says who may go on; and a
    driver that was refused, and is gone, had done with its tasks.

    Raises:
        CommitFenced: its driver or its tasks may be at work.
    """
    state = await job_state(run, run.layout)
    if state.phase is Phase.REFUSED and state.record is not None and run.runtime.is_gone(state.record.holder):
        return
    if state.phase in (None, Phase.REFUSED) or (state.record is None and run.layout.prefix != OURS):
        await refuse_if_at_work(run, state.last_seen, state.tasks_seen, harm=harm)


async def committed_tasks_of(run: JobRun) -> set[str]:
    """The tasks that have committed. With the policy `replace` a job without any would delete the table: a driver that
    means that says so.

    Raises:
        CommitRefused: there is none.
        JobNotFound: there is none any more: the job has committed, and its cleanup did not come to its end.
    """
    committed = {pin.task_id for pin in await run.protocol.find_pins(run)}
    if committed:
        return committed
    if await shows_committed(run):
        raise await over_and_committed(run)
    empty = (
        "; an output without files is committed by the job's own driver, never from here; of a job of Spark's own "
        "writers nothing is known before its driver commits it: write again"
    )
    raise CommitRefused(
        f"no task of job {run.layout.job_id} has committed",
        where=run.url(run.layout.manifests if run.layout.prefix == OURS else ""),
        next_step=f"{found_command(run, 'abort', run.layout, '--force')} deletes the job, if it is surely over"
        + (empty if run.layout.prefix == OURS else _BY_THE_SECOND if run.layout.found_protocol == HADOOPS else ""),
    )


async def unfinished_tasks(run: JobRun, committed: set[str]) -> list[str]:
    """The tasks that have begun, at whichever attempt at the job, and have not committed: when somebody commits the job
    by what is found, they are missed by nobody else."""
    begun: set[str] = set()
    for layout in {run.layout, *await every_attempt(run)}:
        begun |= {task for status in await list_all(run.store, layout.tasks) if (task := task_of(status.path))}
        at_attempt = dataclasses.replace(run, layout=layout)
        begun |= {task for attempt in await begun_attempts(at_attempt) if (task := task_of(attempt))}
        # Of an attempt that was aborted nothing else is left: where no other has committed, its rows are nowhere.
        begun |= {task for attempt in await aborted_in(run, layout.job_attempt) if (task := task_of_attempt(attempt))}
    begun |= (await run.protocol.tasks_elsewhere(run)).begun
    return sorted(begun - committed)


async def unfinished_error(run: JobRun) -> CommitRefused:
    """The refusal of a commit that would leave out tasks which have begun, `run.left_out`."""
    aborting = found_command(run, "abort", run.layout)
    job, named = f"of job {run.layout.job_id}", ", ".join(run.left_out[:5])
    tasks = counted(len(run.left_out), f"task {job} has", f"tasks {job} have")
    stays = await run.protocol.left_out_stays(run)
    return CommitRefused(
        f"{tasks} begun and not committed: {named}",
        where=run.url(run.layout.tasks if run.layout.prefix == OURS else ""),
        next_step=f"run the job again, and {aborting}; or add --force, and what the other tasks wrote is committed "
        f"{'without these' if stays else 'alone'}" + (f". {stays}" if stays else ""),
    )


def and_beside(beside: Sequence[str]) -> str:
    """What else a commit with `--force` would leave out, for the refusal that tells to add it; empty if nothing."""
    if not beside:
        return ""
    return (
        f", and so would {counted(len(beside), 'other output', 'other outputs')} beside it, which may be the whole of "
        f"it: {'; '.join(beside)}. The other program's log says which is whole"
    )


def look_beside(run: JobRun, beside: Sequence[str], *, force: bool) -> JobRun:
    """Make sure that what is committed is the only output that the job may have; with `force` the job's summary says
    what else there is.

    Raises:
        CommitRefused: there is other output.
    """
    if beside and not force:
        found = counted(len(beside), "other output", "other outputs")
        raise CommitRefused(
            f"beside the output of job {run.layout.job_id} there is {found}, which may be the whole of it",
            where="\n".join(beside),
            next_step="the other program's log says which is whole; if this one is, or each is an output of its own, "
            "add --force to the command",
        )
    if beside:
        run.log.warning("other output is left where it is, which may be the whole of this", beside=beside)
    return dataclasses.replace(run, outputs_beside=beside)

"""What is done to jobs from outside: by an operator, a workflow, another shell."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence

from lockgate.api.destination import looking_run, missing_levels, refuse_file
from lockgate.api.interruption import telling_how_it_ended
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import registry_of
from lockgate.api.location import Location
from lockgate.api.termination import rolling_back_on_sigterm
from lockgate.api.unfinished import no_summary, unfinished_jobs
from lockgate.engine.commit_once import commit_once
from lockgate.engine.inspection.list_jobs import JobState, JobStatus, find_job, job_state, list_jobs
from lockgate.engine.inspection.other_committers import list_other_jobs
from lockgate.engine.inspection.probe_store import Probe, probe_store
from lockgate.engine.inspection.verify import Verification
from lockgate.engine.inspection.verify import verify as verify_destination
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.job_commit import plan_job
from lockgate.engine.record.ended_jobs import is_record_lost, read_end
from lockgate.engine.record.marker import read_marker
from lockgate.engine.record.own_protocol import by_protocol, with_own_protocol
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.recorded_options import as_chosen, chosen_by
from lockgate.engine.record.replaced_lists import still_set_aside
from lockgate.engine.record.signs_of_life import refuse_if_at_work
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.recovery.collect_garbage import collect_garbage as collect
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.orphan_uploads import pending_uploads
from lockgate.engine.recovery.recover import Recovery, recover_job, too_late
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command, job_command
from lockgate.model.counted import counted
from lockgate.model.errors import (
    CommitFenced,
    CommitRefused,
    FileMissing,
    JobNotFound,
    LockgateError,
    OptionError,
    UsageError,
)
from lockgate.model.layout import BOOKKEEPING, JOBS, OURS, SUCCESS, JobLayout, task_of
from lockgate.model.options import AUTO_PROTOCOL, JobOptions
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary

DOCTOR_PATIENCE = 20.0
"""Seconds that `doctor` asks again for at most, where the options say more."""


def jobs(url: Location, options: JobOptions | None = None) -> list[JobState]:
    """Every job that left a trace below a destination, the latest first, the last committed one included."""

    async def work() -> list[JobState]:
        return await list_jobs(await _run(url, options))

    return IO_LOOP.run(work())


def commit(
    url: Location,
    job_id: str,
    receipts: Sequence[Receipt] | None = None,
    options: JobOptions | None = None,
    *,
    force: bool = False,
    told: Collection[str] | None = None,
) -> Summary:
    """Commit a job whose tasks have committed: Lockgate's, or one of Hadoop's manifest committer, of S3A's magic
    committer, or, with the option `protocol` v1, of Hadoop's FileOutputCommitter.

    Without receipts, all the manifests that are found, of every attempt at the job the newest of each task: then the
    job must show no sign of life, or `force` must say that it is over.

    The conflict policy, the transaction id and the other options that a job chose at its setup are used, whatever the
    environment says. `told` are the names of those in `options` that were expressly given and must not contradict
    them; None: all that are not as by default.

    Raises:
        JobNotFound: there is no such job.
        UsageError: an option contradicts the job's own.
        CommitFenced: the job may be at work, or somebody else commits it.
        CommitRefused, CommitFailed, OutcomeUnknown: as `Job.commit`.
    """

    async def found() -> tuple[JobRun, set[str]]:
        job = await _as_set_up(await _at(await _run(url, options), job_id), _told(options, told))
        seen: set[str] = set()
        if receipts is None:
            if not force:
                job = await by_the_stores_clock(job)
                await _refuse_if_at_work(job, harm="what its tasks commit from now on would be left out")
            seen = await _committed_tasks(job)
            job = dataclasses.replace(job, left_out=await _unfinished_tasks(job, seen))
            if job.left_out:
                if not force:
                    raise _unfinished(job)
                job.log.warning("tasks that have begun and not committed are left out", tasks=list(job.left_out[:20]))
        if job.layout.prefix != OURS:
            try:
                await job.protocol.take_over(job, to_commit=True)
            except FileMissing as error:  # where it is made somebody else's commit has ended it meanwhile
                if not await _has_committed(job, job_id):
                    raise
                raise _committed_already(job, job_id) from error
        return job, seen

    job, seen = IO_LOOP.run(found())
    with rolling_back_on_sigterm(), telling_how_it_ended(job):
        return IO_LOOP.run(commit_once(job, receipts, seen=seen))


def plan(
    url: Location, job_id: str, options: JobOptions | None = None, *, told: Collection[str] | None = None
) -> CommitPlan:
    """What `commit` would do, by the same options, without touching anything.

    Raises:
        JobNotFound: there is no such job.
        UsageError: an option contradicts the job's own.
        CommitFenced: its commit is past planning.
        CommitRefused: it would be refused.
    """

    async def work() -> CommitPlan:
        run = await _at(await _run(url, options), job_id)
        state = await job_state(run, run.layout)
        if state.phase not in (None, Phase.CLAIMED, Phase.REFUSED):
            raise _past_planning(run, state)
        job = await _as_set_up(run, _told(options, told))
        left_out = await _unfinished_tasks(job, await _committed_tasks(job))
        return dataclasses.replace(await plan_job(job, None), left_out=left_out)

    return IO_LOOP.run(work())


def abort(
    url: Location,
    job_id: str,
    options: JobOptions | None = None,
    *,
    force: bool = False,
    told: Collection[str] | None = None,
) -> list[str]:
    """Delete everything that a job left, before its job commit. It must show no sign of life, or `force` must say that
    it is to end whatever it shows: what is at work of it then ends with an error. A job's own driver calls `Job.abort`,
    which asks nothing. A `protocol` that was given must not be another than the job's; `told` as for `commit`. The
    answer: the paths where the job had put a file that somebody may have changed since, and that stay.

    Raises:
        JobNotFound: there is no such job.
        UsageError: the job is another protocol's.
        CommitFenced: the job may be at work; or its job commit has begun, which is recovery's business.
    """

    async def work() -> list[str]:
        job = await _at(await _run(url, options), job_id)
        if "protocol" in _told(options, told):
            await _refuse_other_protocol(job)
        if not force:
            await _refuse_if_at_work(
                await by_the_stores_clock(job), harm="what its tasks have written would be deleted"
            )
        if job.layout.prefix != OURS:
            record = await read_record(job)
            if record is None or record.phase is Phase.REFUSED:
                await by_protocol(job, job.layout.found_protocol).protocol.take_over(job, to_commit=False)
        over = await _is_over_and_committed(job)
        undone = await abort_job(job)
        if over:
            raise _committed_already(job, job_id)
        return list(undone.left)

    return IO_LOOP.run(work())


def recover(
    url: Location,
    job_id: str | None = None,
    *,
    undo: bool | None = None,
    force: bool = False,
    options: JobOptions | None = None,
    told: Collection[str] | None = None,
) -> dict[str, Recovery]:
    """Finish, or undo, the job commit of a driver that died; without a job id, of every job that crashed here. Of
    several, one that cannot be recovered does not keep the others from it: its outcome is `failed`. A job whose driver
    died before its commit began is nothing to recover: its outcome is `not begun`, and `problem` says what can be done.
    One whose driver may be in its commit is passed over: its outcome is `at work`.

    What is done without `undo` is what the job's record says; `force` says that its driver is surely dead. Nothing
    to do is success: an empty answer where no job is there. Idempotent, and it can itself be killed at any point; of a
    job that was undone, or committed longer ago than `remember_seconds`, nothing is left to tell it from one that never
    was, so the outcome is `no trace`. A job is finished with the options that its record holds; `told` as for `commit`.

    Raises:
        CommitFenced: its driver may be alive, or somebody else recovers it.
        UsageError: what was asked for is not possible in its phase, or an option contradicts the job's own.
        LockgateError: the one job that was named could not be recovered.
    """

    async def work() -> dict[str, Recovery]:
        run = await _run(url, options)
        if not force and await list_all(run.store, JOBS):
            run = await by_the_stores_clock(run)
        if job_id is not None:
            try:
                job = await _at(run, job_id)
            except JobNotFound:
                is_over = await _has_committed(run, job_id)
                if is_over and undo:
                    raise too_late(dataclasses.replace(run, layout=JobLayout(job_id))) from None
                return {job_id: Recovery("nothing" if is_over else "no trace", None)}
            await _owners_options(job, _told(options, told))
            recovery = await recover_job(job, undo=undo, force=force)
            if recovery.outcome == "nothing" and recovery.phase is None and await _has_committed(run, job_id):
                return {job_id: recovery}  # by somebody else, since it was looked for
            if recovery.outcome == "nothing" and recovery.phase in (None, Phase.REFUSED):
                recovery = _not_begun(run, await job_state(job, job.layout))
            return {job_id: recovery}
        found: dict[str, Recovery] = {}
        for state in sorted(await list_jobs(run), key=_in_turn):
            if state.status in (JobStatus.ABANDONED, JobStatus.RUNNING):
                found[state.job_id] = _not_begun(run, state)
            if state.status is JobStatus.COMMITTING and not force:
                found[state.job_id] = _may_be_committing(run, state)
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
                    await _owners_options(job, [name for name in _told(options, told) if name != "protocol"])
                    found[state.job_id] = await recover_job(job, undo=undo, force=True)
                except LockgateError as error:
                    found[state.job_id] = Recovery("failed", state.phase, problem=str(error))
        return found

    return IO_LOOP.run(work())


def verify(url: Location, options: JobOptions | None = None) -> Verification:
    """Compare a destination with what was last committed there.

    Raises:
        JobNotFound: nothing was.
        LockgateError: its `_SUCCESS` does not say enough, or was set aside by a job that has not come to its end.
    """

    async def work() -> Verification:
        run = await _run(url, options)
        states = await unfinished_jobs(run)
        try:
            found = await verify_destination(run)
        except JobNotFound as error:
            raise await no_summary(run, states) from error
        return dataclasses.replace(found, unfinished=states)

    return IO_LOOP.run(work())


def unfinished(url: Location, options: JobOptions | None = None) -> list[JobState]:
    """The jobs that have begun to change a destination and have not come to an end: at work, or crashed."""

    async def work() -> list[JobState]:
        return await unfinished_jobs(await _run(url, options))

    return IO_LOOP.run(work())


def collect_garbage(url: Location, *, dry_run: bool = False, options: JobOptions | None = None) -> list[Garbage]:
    """Delete what jobs that are over left below a destination; never of one that may be alive."""

    async def work() -> list[Garbage]:
        run = await _run(url, options)
        if not dry_run and (await list_all(run.store, BOOKKEEPING) or await pending_uploads(run)):
            run = await by_the_stores_clock(run)
        return await collect(run, dry_run=dry_run)

    return IO_LOOP.run(work())


def doctor(url: Location, options: JobOptions | None = None) -> list[Probe]:
    """Try a store out at a URL, beside what its plugin claims: `lockgate doctor` in Python. Directories above that were
    not there are made, and deleted at the end.

    Raises:
        StoreError: it cannot be reached or written.
        PathError: it is a file.
    """

    async def work() -> list[Probe]:
        chosen = options or JobOptions.resolve(environment=os.environ)
        # Some of what is tried is to be refused; a service that answers it with its own failure is not waited for.
        return await probed(
            await _run(url, chosen.replace(patience_seconds=min(chosen.patience_seconds, DOCTOR_PATIENCE)))
        )

    return IO_LOOP.run(work())


async def probed(run: JobRun) -> list[Probe]:
    """What `doctor` finds. Directories above the destination that were not there are made, and deleted at the end.

    Raises:
        StoreError: the store cannot be reached or written.
    """
    missing = await missing_levels(run) if Capability.REAL_DIRECTORIES in run.store.capabilities else []
    try:
        return await probe_store(run)
    finally:
        for store, name in missing:
            await store.delete_empty_directories([name])
            await store.close()


async def _refuse_if_at_work(run: JobRun, *, harm: str) -> None:
    """Before somebody else than its driver ends a job. Once its commit has begun, its record says who may go on; and a
    driver that was refused, and is gone, had done with its tasks.

    Raises:
        CommitFenced: its driver or its tasks may be at work.
    """
    state = await job_state(run, run.layout)
    if state.phase is Phase.REFUSED and state.record is not None and run.runtime.is_gone(state.record.holder):
        return
    if state.phase in (None, Phase.REFUSED):
        await refuse_if_at_work(run, state.last_seen, state.tasks_seen, harm=harm)


async def _committed_tasks(run: JobRun) -> set[str]:
    """The tasks that have committed. With the policy `replace` a job without any would delete the table: a driver that
    means that says so.

    Raises:
        CommitRefused: there is none.
    """
    committed = {pin.task_id for pin in await run.protocol.find_pins(run)}
    if committed:
        return committed
    empty = "; an output without files is committed by the job's own driver, never from here"
    raise CommitRefused(
        f"no task of job {run.layout.job_id} has committed",
        where=run.url(run.layout.manifests if run.layout.prefix == OURS else ""),
        next_step=f"{job_command('abort', run.store.url, run.layout, '--force')} deletes the job, if it is surely over"
        + (empty if run.layout.prefix == OURS else ""),
    )


async def _unfinished_tasks(run: JobRun, committed: set[str]) -> list[str]:
    """The tasks that have begun and have not committed: when somebody commits the job by what is found, they are missed
    by nobody else."""
    begun = {task for status in await list_all(run.store, run.layout.tasks) if (task := task_of(status.path))}
    begun |= (await run.protocol.tasks_elsewhere(run)).begun
    return sorted(begun - committed)


def _unfinished(run: JobRun) -> CommitRefused:
    aborting = job_command("abort", run.store.url, run.layout)
    job, named = f"of job {run.layout.job_id}", ", ".join(run.left_out[:5])
    tasks = counted(len(run.left_out), f"task {job} has", f"tasks {job} have")
    return CommitRefused(
        f"{tasks} begun and not committed: {named}",
        where=run.url(run.layout.tasks if run.layout.prefix == OURS else ""),
        next_step=f"run the job again, and {aborting}; or add --force, and what the other tasks wrote is committed "
        "alone",
    )


def _in_turn(state: JobState) -> tuple[bool, float]:
    """The order in which crashed jobs are recovered: those that have begun to move files first, since others have to
    yield to them, then the oldest."""
    record = state.record
    return (record is None or record.phase is Phase.CLAIMED, record.holder.since if record else 0.0)


def _told(options: JobOptions | None, told: Collection[str] | None) -> Collection[str]:
    """The names of the options that the caller gave expressly; `protocol=auto` names no protocol."""
    if options is None:
        return told or ()
    if told is not None:
        return [name for name in told if name != "protocol" or options.protocol != AUTO_PROTOCOL]
    default = JobOptions()
    return [name for name in vars(options) if getattr(options, name) != getattr(default, name)]


async def _owners_options(run: JobRun, told: Collection[str]) -> JobOptions:
    """The run's options with those of the job's owner: as its record says, once its commit has begun, else its marker.

    Raises:
        UsageError: one of `told` contradicts them.
    """
    record = await read_record(run)
    if record is not None and record.phase is not Phase.REFUSED:
        chosen: Mapping[str, str] = chosen_by(record)
        where = run.layout.commit_record(record.sequence)
    else:
        marker = await read_marker(run)
        of_others = {} if run.layout.prefix == OURS else {"protocol": run.layout.found_protocol}
        chosen = marker.options if marker else of_others
        where = run.layout.job_marker
    return as_chosen(run.options, chosen, told=told, where=run.url(where))


async def _refuse_other_protocol(run: JobRun) -> None:
    """Make sure that the job is of the run's protocol, as far as its record or its marker says it.

    Raises:
        UsageError: it is of another.
    """
    own = (await with_own_protocol(run, await read_record(run))).options.protocol
    where = run.url(run.layout.job_directory)
    as_chosen(run.options, {"protocol": own}, told=["protocol"], where=where)


async def _as_set_up(run: JobRun, told: Collection[str]) -> JobRun:
    """The run with the options of the job's owner.

    Raises:
        UsageError: one of `told` contradicts them.
        OptionError: there is no plugin here for what they name.
        OutcomeUnknown: the job's commit had begun, and its record is lost.
        JobNotFound: it is over, and what is there was left by tasks that came late.
    """
    if await is_record_lost(run):
        raise still_set_aside(run)
    if await _is_over_and_committed(run):
        raise _committed_already(run, run.layout.job_id)
    if run.layout.prefix == OURS and await read_marker(run) is None:
        raise JobNotFound(
            f"job {run.layout.job_id} is over: its marker is gone",
            where=run.url(run.layout.job_marker),
            next_step=f"what is there was left by tasks that came late: {command('gc', run.store.url)} deletes it; "
            "if somebody has deleted the marker, run the job again",
        )
    options = await _owners_options(run, told)
    registry_of(options).check_choices(options)
    return dataclasses.replace(run, options=options)


async def _run(url: Location, options: JobOptions | None) -> JobRun:
    run = looking_run(url, JobOptions.resolve(environment=os.environ) if options is None else options)
    await refuse_file(run)
    return run


async def _at(run: JobRun, job_id: str) -> JobRun:
    if not isinstance(job_id, str):
        raise UsageError(
            f"a job id is text, not {type(job_id).__name__}",
            where=repr(job_id),
            next_step="give the id as it is shown by `lockgate jobs`, and as Job.job_id has it",
        )
    try:
        layout = await find_job(run, job_id)
    except JobNotFound as error:
        for other in await list_other_jobs(run):
            if other.job_id == job_id:
                raise UsageError(
                    f"job {job_id} is another committer's",
                    where=run.url(other.directory),
                    next_step="its own driver ends it; if it is over, and its tasks committed by the first algorithm "
                    "of Hadoop's FileOutputCommitter, `lockgate commit` and `abort` do with --protocol v1",
                ) from error
        if await _has_committed(run, job_id):
            raise _committed_already(run, job_id) from error
        raise
    return dataclasses.replace(run, layout=layout, counters={}, stage_seconds={})


def _committed_already(run: JobRun, job_id: str) -> JobNotFound:
    return JobNotFound(
        f"job {job_id} is committed already", where=run.url(SUCCESS), next_step=command("show", run.store.url)
    )


async def _is_over_and_committed(run: JobRun) -> bool:
    """Whether a job that has committed shows by nothing but directories: what a cleanup that was killed has left."""
    (marker,) = await run.store.stat_files([run.layout.job_marker])  # a damaged one is there
    return marker is None and await read_record(run) is None and await _has_committed(run, run.layout.job_id)


async def _has_committed(run: JobRun, job_id: str) -> bool:
    """Whether a job is known to have committed: by the note of its end, or by `_SUCCESS`."""
    with contextlib.suppress(OptionError):  # what no job can be named
        if await read_end(run, JobLayout(job_id).ended) is not None:
            return True
    try:
        summary = await read_summary(run, SUCCESS)
    except LockgateError:  # an empty `_SUCCESS` of another committer names no job
        return False
    return summary is not None and summary.success and summary.job_id == job_id


def _not_begun(run: JobRun, state: JobState) -> Recovery:
    """The answer about a job that waits for its commit: there is nothing to finish or to undo."""
    committing = job_command("commit", run.store.url, state.layout)
    aborting = job_command("abort", run.store.url, state.layout)
    began = "its commit was refused before anything moved" if state.phase else "its commit has not begun"
    tasks = f"{counted(state.tasks_committed, 'task has', 'tasks have')} committed"
    if state.status is JobStatus.RUNNING:
        ending = f"{committing} --force, or {aborting} --force" if state.tasks_committed else f"{aborting} --force"
        driver = f"; its driver is {state.driver}" if state.driver else ""
        next_step = f"it may be at work{driver}; if it is surely over, with its tasks: {ending}"
    elif state.tasks_committed:
        next_step = (
            f"{committing} commits what they wrote, and nothing of tasks that never began (a Spark driver that dies "
            f"leaves such tasks, and nobody can tell how many); {aborting} deletes it"
        )
    else:
        next_step = f"{aborting} deletes it"
    if state.phase:
        next_step += "; while its driver may be at work, both ask for --force"
    return Recovery("not begun", state.phase, problem=f"{began}, and {tasks}: {next_step}")


def _may_be_committing(run: JobRun, state: JobState) -> Recovery:
    """The answer about a job in its commit whose driver is not known to be gone: it was passed over."""
    driver = f", {state.driver}," if state.driver else ""
    forcing = command("recover", run.store.url, state.job_id, "--force")
    problem = f"its driver{driver} may be in its commit, and it was left alone; if that is surely dead: {forcing}"
    return Recovery("at work", state.phase, problem=problem)


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

"""What is done to jobs from outside: by an operator, a workflow, another shell."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from lockgate.api.destination import looking_run
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.termination import rolling_back_on_sigterm
from lockgate.engine.collect_garbage import Garbage
from lockgate.engine.collect_garbage import collect_garbage as collect
from lockgate.engine.commit_once import commit_once
from lockgate.engine.job_abort import abort_job
from lockgate.engine.job_commit import plan_job
from lockgate.engine.job_run import JobRun
from lockgate.engine.list_jobs import JobState, JobStatus, find_job, list_jobs
from lockgate.engine.probe_store import Probe, probe_store
from lockgate.engine.recover import Recovery, recover_job
from lockgate.engine.verify import Verification
from lockgate.engine.verify import verify as verify_destination
from lockgate.model.errors import JobNotFound
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary


def jobs(url: str, options: JobOptions | None = None) -> list[JobState]:
    """Every job that left a trace below a destination, the latest first, the last committed one included."""
    return IO_LOOP.run(list_jobs(_run(url, options)))


def commit(
    url: str, job_id: str, receipts: Sequence[Receipt] | None = None, options: JobOptions | None = None
) -> Summary:
    """Commit a job whose tasks have committed: Lockgate's, or one of Hadoop's manifest committer. Without receipts,
    all the manifests that are found.

    Raises:
        JobNotFound: there is no such job.
        CommitRefused, CommitFailed, OutcomeUnknown: as `Job.commit`.
    """

    async def work() -> Summary:
        return await commit_once(await _at(_run(url, options), job_id), receipts)

    with rolling_back_on_sigterm():
        return IO_LOOP.run(work())


def plan(url: str, job_id: str, options: JobOptions | None = None) -> CommitPlan:
    """What `commit` would do, without touching anything.

    Raises:
        JobNotFound: there is no such job.
        CommitRefused: it would be refused.
    """

    async def work() -> CommitPlan:
        return await plan_job(await _at(_run(url, options), job_id), None)

    return IO_LOOP.run(work())


def abort(url: str, job_id: str, options: JobOptions | None = None) -> None:
    """Delete everything that a job left, before its job commit.

    Raises:
        JobNotFound: there is no such job.
        CommitFenced: its job commit has begun: that is recovery's business.
    """

    async def work() -> None:
        await abort_job(await _at(_run(url, options), job_id))

    IO_LOOP.run(work())


def recover(
    url: str,
    job_id: str | None = None,
    *,
    undo: bool | None = None,
    force: bool = False,
    options: JobOptions | None = None,
) -> dict[str, Recovery]:
    """Finish, or undo, the job commit of a driver that died; without a job id, of every job that crashed here.

    What is done without `undo` is what the job's record says; `force` says that its driver is surely dead. Nothing
    to do is success: an empty answer. Idempotent, and it can itself be killed at any point.

    Raises:
        CommitFenced: its driver may be alive, or somebody else recovers it.
        UsageError: what was asked for is not possible in its phase.
    """

    async def work() -> dict[str, Recovery]:
        run = _run(url, options)
        if job_id is not None:
            try:
                job = await _at(run, job_id)
            except JobNotFound:  # finished, undone, or never begun: in each case there is nothing left to do
                return {job_id: Recovery("nothing", None)}
            return {job_id: await recover_job(job, undo=undo, force=force)}
        found: dict[str, Recovery] = {}
        for state in await list_jobs(run):
            crashed = state.status is JobStatus.CRASHED or (force and state.status is JobStatus.COMMITTING)
            if crashed or (state.status is JobStatus.LEFT_BEHIND and not undo):
                job = dataclasses.replace(run, layout=state.layout, counters={}, stage_seconds={})
                # Its driver is gone, or silent for `alive_seconds`: that is what crashed means.
                found[state.job_id] = await recover_job(job, undo=undo, force=True)
        return found

    return IO_LOOP.run(work())


def verify(url: str, options: JobOptions | None = None) -> Verification:
    """Compare a destination with what was last committed there.

    Raises:
        JobNotFound: nothing was.
        LockgateError: its `_SUCCESS` does not say enough.
    """
    return IO_LOOP.run(verify_destination(_run(url, options)))


def collect_garbage(url: str, *, dry_run: bool = False, options: JobOptions | None = None) -> list[Garbage]:
    """Delete what jobs that are over left below a destination; never of one that may be alive."""
    return IO_LOOP.run(collect(_run(url, options), dry_run=dry_run))


def probe(url: str, options: JobOptions | None = None) -> list[Probe]:
    """Try a store out at a URL, beside what its plugin claims.

    Raises:
        StoreError: it cannot be reached or written.
    """
    return IO_LOOP.run(probe_store(_run(url, options)))


def _run(url: str, options: JobOptions | None) -> JobRun:
    return looking_run(url, options or JobOptions.resolve(environment=os.environ))


async def _at(run: JobRun, job_id: str) -> JobRun:
    return dataclasses.replace(run, layout=await find_job(run, job_id), counters={}, stage_seconds={})

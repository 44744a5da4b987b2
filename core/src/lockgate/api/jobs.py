"""What is done to jobs from outside: by an operator, a workflow, another shell."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Sequence

from lockgate.api.destination import looking_run, missing_levels, refuse_file
from lockgate.api.given_up import said_later, try_to_say
from lockgate.api.interruption import telling_how_it_ended
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.location import Location
from lockgate.api.termination import rolling_back_on_sigterm
from lockgate.api.unfinished import jobs_with_whole, no_summary, unfinished_jobs
from lockgate.engine.commit_once import commit_once_and_tell
from lockgate.engine.inspection.left_by_hive import left_by_hive
from lockgate.engine.inspection.list_jobs import JobState
from lockgate.engine.inspection.probe_store import Probe, probe_store
from lockgate.engine.inspection.verify import Verification
from lockgate.engine.inspection.verify import verify as verify_destination
from lockgate.engine.outside.abort import abort_found
from lockgate.engine.outside.commit import plan_found, ready_to_commit
from lockgate.engine.outside.recover import recover_found
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.neighbours import job_layouts
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.recovery.collect_garbage import collect_garbage as collect
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.orphan_uploads import uploads_if_listed
from lockgate.engine.recovery.recover import Recovery
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.committed_before import CommittedBefore
from lockgate.model.errors import (
    JobNotFound,
)
from lockgate.model.layout import BOOKKEEPING, OURS
from lockgate.model.options import AUTO_PROTOCOL, JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone

DOCTOR_PATIENCE = 20.0
"""Seconds that `doctor` asks again for at most, where the options say more."""


def jobs(url: Location, options: JobOptions | None = None) -> list[JobState]:
    """Every job that left a trace below a destination, the latest first, the last committed one included."""

    async def work() -> list[JobState]:
        return await jobs_with_whole(await _run(url, options))

    return IO_LOOP.run(work())


def nonces(url: Location, options: JobOptions, is_meant: Callable[[str], bool]) -> dict[str, str]:
    """The nonces of Lockgate's jobs below a destination that are set up, and not over, and whose ids are meant.

    Raises:
        StoreError: the store does not answer.
    """

    async def work() -> dict[str, str]:
        run = await _run(url, options)
        found: dict[str, str] = {}
        async for layout in job_layouts(run):
            if layout.prefix == OURS and is_meant(layout.job_id):
                marker = await readable_marker(run, layout)
                if marker is not None:
                    found[layout.job_id] = marker.nonce
        return found

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

    Without receipts, a commit that fails after its first rename leaves the job as it is, for `recover`, unless
    `on_failure` is told: nobody can run its tasks again, and undoing it would delete what they have written.

    Raises:
        JobNotFound: there is no such job.
        UsageError: an option contradicts the job's own.
        CommitFenced: the job may be at work, or somebody else commits it.
        CommitRefused, CommitFailed, OutcomeUnknown: as `Job.commit`.
    """
    return commit_and_tell(url, job_id, receipts, options, force=force, told=told)[0]


def commit_and_tell(
    url: Location,
    job_id: str,
    receipts: Sequence[Receipt] | None = None,
    options: JobOptions | None = None,
    *,
    force: bool = False,
    told: Collection[str] | None = None,
) -> tuple[Summary, CommittedBefore | None]:
    """As `commit`; and by which job the transaction id was committed before, so that nothing of this one was.

    Raises:
        JobNotFound, CommitFenced, CommitRefused, CommitFailed, OutcomeUnknown: as `commit`.
    """

    async def found() -> tuple[JobRun, set[str]]:
        run = await _run(url, options)
        return await ready_to_commit(
            run, job_id, by_what_is_found=receipts is None, force=force, told=_told(options, told)
        )

    job, seen = IO_LOOP.run(found())
    with said_later(job), rolling_back_on_sigterm(), telling_how_it_ended(job):
        return IO_LOOP.run(commit_once_and_tell(job, receipts, seen=seen))


def plan(
    url: Location, job_id: str, options: JobOptions | None = None, *, told: Collection[str] | None = None
) -> CommitPlan:
    """What `commit` would do, by the same options, without touching anything: nothing, where the job's transaction id
    was committed, which `committed_before` says.

    Raises:
        JobNotFound: there is no such job.
        UsageError: an option contradicts the job's own.
        CommitFenced: its commit is past planning.
        CommitRefused: it would be refused.
    """

    async def work() -> CommitPlan:
        return await plan_found(await _run(url, options), job_id, told=_told(options, told))

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

    return list(abort_and_tell(url, job_id, options, force=force, told=told).left)


def abort_and_tell(
    url: Location,
    job_id: str,
    options: JobOptions | None = None,
    *,
    force: bool = False,
    told: Collection[str] | None = None,
) -> Undone:
    """As `abort`; the answer also says what else may stay, and nobody can tell by itself."""

    async def work() -> Undone:
        return await abort_found(await _run(url, options), job_id, force=force, told=_told(options, told))

    return IO_LOOP.run(work())


def what_hive_left(url: Location, options: JobOptions | None = None) -> str:
    """What lists the jobs that Hive has left there, in words; empty where there are none, or they were asked for.

    Raises:
        StoreError: the store does not answer.
    """

    async def work() -> str:
        return await left_by_hive(await _run(url, options))

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

    run = IO_LOOP.run(_run(url, options))
    with said_later(run):
        return IO_LOOP.run(recover_found(run, job_id, undo=undo, force=force, told=_told(options, told)))


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
        if not dry_run and (await list_all(run.store, BOOKKEEPING) or await uploads_if_listed(run)):
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


def _told(options: JobOptions | None, told: Collection[str] | None) -> Collection[str]:
    """The names of the options that the caller gave expressly; `protocol=auto` names no protocol."""
    if options is None:
        return told or ()
    if told is not None:
        return [name for name in told if name != "protocol" or options.protocol != AUTO_PROTOCOL]
    default = JobOptions()
    return [
        each.name for each in dataclasses.fields(options) if getattr(options, each.name) != getattr(default, each.name)
    ]


async def _run(url: Location, options: JobOptions | None) -> JobRun:
    run = looking_run(url, JobOptions.resolve(environment=os.environ) if options is None else options)
    await try_to_say(run)
    await refuse_file(run)
    return run

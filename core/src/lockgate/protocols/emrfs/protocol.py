"""The protocol as the engine asks it: what differs from `deferred`, since task commits complete the uploads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.record.ended_jobs import is_committed_by_any_sign
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import LOOK_FOR_REPLACING, SAVE_MANIFESTS, Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone
from lockgate.protocols.deferred import DeferredProtocol, job_commit, staging, undo
from lockgate.protocols.deferred.same_names import Beneath
from lockgate.protocols.emrfs import task_commit
from lockgate.protocols.in_place.policies import POLICIES, WHY


class EmrfsProtocol(DeferredProtocol):
    """Uploads to the final paths, completed when their task commits; the job commit leaves `_SUCCESS`."""

    name: ClassVar[str] = "emrfs"
    description: ClassVar[str] = "Amazon's EMRFS S3-optimized committer: uploads that each task commit completes"
    alternative: ClassVar[str] = (
        "choose protocol=deferred, which needs no more of a store; on one with renames manifest"
    )
    policies: ClassVar[tuple[str, ...]] = POLICIES
    policies_why: ClassVar[str] = WHY
    unsafe: ClassVar[str] = (
        "readers see a task's files as soon as it commits, and some of them while it does; a task commit that is "
        "interrupted leaves some until somebody aborts that attempt, or the job"
    )
    costs: ClassVar[Costs] = dataclasses.replace(
        DeferredProtocol.costs,
        task_commits=(
            Requests("look for the job", task=6),
            SAVE_MANIFESTS,
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=26),
            Requests("read manifests", task=1),
            LOOK_FOR_REPLACING,
        ),
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=False,
        task_commit_repeatable=False,
        uncommitted_invisible=True,
        committed_invisible=False,
        recoverable=True,
        holds_through_partition=True,
    )

    async def send_files(
        self, run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str
    ) -> dict[str, FileStatus]:
        """What waits on the local disk is uploaded; again, where a commit that failed has given the uploads up."""
        if staging.is_staging(run) and await task_commit.gave_up(run, written):
            written = staging.to_send_again(written)
        return await super().send_files(run, written, scan=scan, nonce=nonce)

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """An intent, a completed upload a file, a manifest."""
        receipt = await task_commit.commit_task(run, attempt, written, counters, scan=scan)
        if staging.is_staging(run):
            staging.clear(run)
        return receipt

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone; uploads are given up, and what it has completed is taken out."""
        await task_commit.abort_task(run, attempt, written)

    async def abort_second_run(self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> None:
        """Its uploads are given up."""
        await task_commit.abort_second_run(run, attempt, written)

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """The conflict policy was kept by the tasks. Everything is in place, and no task commit was interrupted."""
        for batch in plan.batches():
            refuse_names(run, batch)
        await task_commit.refuse_interrupted(run, plan)
        await job_commit.refuse_if_taken_away(run, plan)
        return dataclasses.replace(plan, missing_directories=(), in_place=True)

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """What attempts have completed that are not committed is taken out; all else is in place."""
        await _take_out_saved(run, plan.pins)
        await job_commit.refuse_if_taken_away(run, plan)
        run.count_committed(plan)

    async def may_be_undone(self, run: JobRun, plan: CommitPlan) -> None:
        """It replaces nothing."""

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Every file of every task attempt is taken out, and every upload given up."""
        return await self.discard(run, record)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The same; not of a job that is known to have committed, whose record somebody has deleted."""
        if staging.is_staging(run):
            staging.clear_job(run)
        if await is_committed_by_any_sign(run):
            return Undone()
        await undo.give_up(run)
        left = await _take_out_saved(run)
        await run.store.delete_files([run.layout.file_list])
        return Undone(left=sorted({*left}))

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """What was committed is in place."""
        if phase in (Phase.MOVING, Phase.PUBLISHING):
            await job_commit.refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nothing of it shows by the files: they were in place before."""
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nor this."""
        return False


async def _take_out_saved(run: JobRun, but: Sequence[Pin] = ()) -> list[str]:
    left: list[str] = []
    async for _, saved in undo.saved_by(run, but=but):
        uploads = [upload for _, each in saved for upload in each]
        await run.store.abort_uploads(uploads)
        left += await undo.undo_some(run, uploads, Beneath(()))
    return left

"""What `direct` and `stocator` have in common, as the engine asks it.

The commit point is the record, on every store. `_SUCCESS` follows it, left by the driver or by whoever recovers the
job: where a store renames, by a rename of the summary that waits, of which there is one; else by conditional writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests import committed_tasks, load_manifests
from lockgate.engine.record.aborted_jobs import is_over_for_tasks
from lockgate.engine.record.ended_jobs import is_committed_by_any_sign, listed_by_summary
from lockgate.engine.renames.roll_back import delete_sources
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.store import OutputFile
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed, OutcomeUnknown, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import LOOK_FOR_REPLACING, SAVE_MANIFESTS, SET_UP_ATTEMPTS, Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone
from lockgate.protocols.deferred.job_commit import conclude
from lockgate.protocols.in_place import task_commit
from lockgate.protocols.in_place.policies import POLICIES, WHY
from lockgate.protocols.in_place.visible import FILES_STAY, TAKES_OUT, not_taken_out, take_out_of
from lockgate.protocols.manifest import publish, staging
from lockgate.protocols.manifest.inspect_staged import refuse_if_taken_away


class InPlaceProtocol(Protocol):
    """Task attempts write where the files stay; the job commit renames nothing, and completes nothing."""

    needs: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.CREATE_IF_ABSENT, Capability.ATOMIC_WRITE, Capability.CONSISTENT_LISTING}
    )
    needs_one_of: ClassVar[tuple[frozenset[Capability], ...]] = TAKES_OUT
    costs: ClassVar[Costs] = Costs(
        attempts=(
            *SET_UP_ATTEMPTS,
            Requests("make directories", "directory", task_directory=1),
        ),
        task_commits=(
            Requests("look for the job", task=4),
            SAVE_MANIFESTS,
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=27),
            Requests("read manifests", task=5),
            LOOK_FOR_REPLACING,
        ),
        summary=7,
        cleanup=2,
    )
    policies: ClassVar[tuple[str, ...]] = POLICIES
    policies_why: ClassVar[str] = WHY
    commits_by_success: ClassVar[bool] = False
    writes_in_destination: ClassVar[bool] = True

    # A job and its task attempts.

    async def set_up_job(self, run: JobRun) -> None:
        """The job's directories."""
        await staging.set_up_job(run)

    async def set_up_task(self, run: JobRun) -> None:
        """The job is looked for, so that a late attempt writes nothing. Its directory holds no files, and says that it
        has begun."""
        if await is_over_for_tasks(run):
            raise not_at_work(run)
        await staging.set_up_task(run)

    async def set_up_directory(self, run: JobRun, directory: str) -> None:
        """The directories of the path, in the destination."""
        if Capability.REAL_DIRECTORIES not in run.store.capabilities:
            return
        (outcome,) = await run.store.make_directories([directory])
        if outcome.state == "blocked":
            raise PathError(
                "a file stands where a directory must be",
                where=run.url(outcome.blocked or directory),
                next_step="move it away, or write elsewhere; then let the task be tried again",
            )

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """The file itself, which must not be there."""
        return run.store.open_output(self.final_path(run, path))

    def working_directory(self, run: JobRun) -> str:
        """There is none: this is where the files go."""
        return run.url("")

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """A manifest, written twice."""

        def final_path(path: str) -> str:
            return self.final_path(run, path)

        return await task_commit.commit_task(
            run, attempt, written, counters, final_path, self.committed_files, scan=scan, names_tell=self.names_tell
        )

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone, then its files are taken out."""
        await task_commit.abort_task(
            run, attempt, written, lambda path: self.final_path(run, path), self.committed_files
        )

    async def abort_second_run(self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> None:
        """Its own files are taken out."""
        await task_commit.abort_second_run(
            run, attempt, written, lambda path: self.final_path(run, path), self.committed_files
        )

    async def find_pins(self, run: JobRun) -> list[Pin]:
        """By the manifests that are there."""
        return await load_manifests.find_pins(run)

    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """By the manifests of earlier attempts at the job."""
        return await committed_tasks.committed_tasks(run)

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """From the pinned manifests."""
        return await load_manifests.load_plan(run, pins)

    async def refuse_aborted(self, run: JobRun, pins: Sequence[Pin]) -> None:
        """By tombstones."""
        await load_manifests.refuse_aborted(run, pins)

    async def committed_files(self, run: JobRun) -> Collection[str] | None:
        """The files that the job has committed, once it is over; None where its list is not there any more: another
        job's `_SUCCESS` has taken its place."""
        return await listed_by_summary(run)

    # The job's commit, and its undoing.

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """The conflict policy was kept when the files were opened. All are in place."""
        for batch in plan.batches():
            refuse_names(run, batch)
        await refuse_if_taken_away(run, plan)
        return dataclasses.replace(plan, missing_directories=(), in_place=True)

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """What attempts have saved that are not committed is taken out; all else is in place."""
        pinned = {pin.digest for pin in plan.pins}
        left = await take_out_of(run, await not_taken_out(run, pinned), plan)
        if left:
            run.log.warning(FILES_STAY, left=left)
        await refuse_if_taken_away(run, plan)
        run.count_committed(plan)

    async def wait_to_publish(self, run: JobRun, summary: Summary, nonce: str) -> FileStatus | None:
        """The summary where recovery finds it."""
        return await publish.wait_to_publish(run, summary, nonce)

    async def publish(self, run: JobRun, nonce: str, waiting: FileStatus | None = None) -> bool:
        """The record is the commit point."""
        return False

    async def revoke(self, run: JobRun, nonce: str) -> bool:
        """Who holds the record decides."""
        return True

    async def is_waiting(self, run: JobRun, nonce: str) -> bool:
        """As long as the record does not say `committed`."""
        return True

    async def is_revoked(self, run: JobRun, nonce: str) -> bool:
        """The record would say it."""
        return False

    async def conclude(self, run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
        """`_SUCCESS` comes."""
        if Capability.CONDITIONAL_WRITE in run.store.capabilities:
            return await conclude(run, summary, record)
        if run.options.mark_success and summary is not None:
            try:
                await publish.publish(run, record.summary_nonce)
            except (CommitFailed, OutcomeUnknown) as error:
                raise StoreError(error.what, where=error.where, next_step=error.next_step) from error
        return summary

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Every file of every task attempt is taken out, each by its identity."""
        return await self.discard(run, record)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The same; not of a job that is known to have committed, whose record somebody has deleted."""
        if await is_committed_by_any_sign(run):
            return Undone()
        await delete_sources(run, record)
        left = await self.take_out_all(run)
        await run.store.delete_files([run.layout.file_list])
        return Undone(left=left)

    async def take_out_all(self, run: JobRun) -> list[str]:
        """Take out whatever the job's task attempts have written, as far as it is known; the answer: where others have
        changed it.

        Raises:
            CommitFailed, StoreError: a file could not be taken out.
        """
        return await take_out_of(run, await not_taken_out(run))

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """What was committed is in place."""
        if phase in (Phase.MOVING, Phase.PUBLISHING):
            await refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nothing of it shows by the files: they were in place before."""
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nor this."""
        return False

    async def restore(self, run: JobRun, kept: Sequence[KeptList]) -> Undone:
        """Nothing is ever set aside."""
        return Undone()

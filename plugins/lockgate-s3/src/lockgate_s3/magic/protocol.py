"""The protocol as the engine asks it: what differs from `deferred`, since other marks and other files are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes
from lockgate.engine.run.store import OutputFile, Store
from lockgate.model.errors import FileChanged, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import MAGIC, MAGIC_PROTOCOL, JobLayout, TaskAttempt, magic_job, magic_layout
from lockgate.model.layout import parse_attempt_directory as parse_attempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import Costs
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone
from lockgate.protocols.deferred import DeferredProtocol, job_commit

from lockgate_s3.magic import end, load
from lockgate_s3.magic.pending import upload_in
from lockgate_s3.magic.place import store_of
from lockgate_s3.store import S3Store


class MagicProtocol(DeferredProtocol):
    """Jobs whose tasks S3A's magic committer has committed. The record is the commit point."""

    name: ClassVar[str] = MAGIC_PROTOCOL
    description: ClassVar[str] = "commits what the tasks of a job of S3A's magic committer have committed"
    alternative: ClassVar[str] = "leave protocol out: a job of S3A's is known by its directory"
    commits_others_only: ClassVar[bool] = True
    own_options: ClassVar[frozenset[str]] = frozenset()
    costs: ClassVar[Costs] = Costs()
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=True,
        task_commit_repeatable=True,
        uncommitted_invisible=True,
        committed_invisible=True,
        recoverable=False,  # what was completed cannot be proved to be the job's, so it is not taken out
        holds_through_partition=False,  # a late attempt of S3A's writes over the file of the one that was committed
    )

    def meets_jobs_on(self, store: Store) -> bool:
        """S3A writes to S3 alone."""
        return isinstance(store, S3Store)

    # Lockgate writes none of its tasks.

    async def set_up_job(self, run: JobRun) -> None:
        """Refused."""
        raise _not_ours(run)

    async def set_up_task(self, run: JobRun) -> None:
        """Refused."""
        raise _not_ours(run)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """Refused."""
        raise _not_ours(run)

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """Refused."""
        raise _not_ours(run)

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """Refused."""
        raise _not_ours(run)

    # What it commits.

    async def jobs_of_others(self, run: JobRun) -> list[JobLayout]:
        """By one listing of the names that S3A's directories begin with; none on other stores."""
        store = run.store
        if not isinstance(store, S3Store):
            return []
        found: list[JobLayout] = []
        for directory in await store.directories_beginning(MAGIC):
            job_id = magic_job(directory)
            if job_id is None:
                continue
            attempts = [-1]
            async for page in store.list_directory(magic_layout(job_id).job_directory):
                layouts = [parse_attempt(status.path) for status in page if status.is_directory]
                # A record, or what a cleanup that was cut short has left, tells of a job, too.
                attempts += [layout.job_attempt if layout is not None else 0 for layout in layouts] or [0]
            if max(attempts) >= 0:
                found.append(magic_layout(job_id, max(attempts)))
        return found

    async def has_jobs_of_others_in(self, run: JobRun, directory: str) -> bool:
        """By one such listing there."""
        store = run.store
        return isinstance(store, S3Store) and bool(await store.directories_beginning(f"{directory}/{MAGIC}"))

    async def find_pins(self, run: JobRun) -> list[Pin]:
        """By the `.pendingset` files that are there."""
        return await load.find_pins(run)

    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """None: S3A's committers take nothing over from an earlier attempt at a job."""
        return []

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """From those of the pinned tasks."""
        return await load.load_plan(run, pins)

    async def refuse_aborted(self, run: JobRun, pins: Sequence[Pin]) -> None:
        """S3A leaves nothing of an attempt that it has aborted."""

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """What the tasks left is kept, then the uploads are completed, each if nothing is there. What they replace
        stays until the commit point."""
        await load.keep_pinned(run, plan.pins)
        await job_commit.complete(run, plan)
        if again or run.options.validate_output:
            await _refuse_if_taken_away(run, plan)

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """Files of the right lengths are there, where the record says that all were completed."""
        if phase is Phase.PUBLISHING:
            await _refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """An upload is gone, and what stands at its path is what it would have become."""
        for batch in plan.batches(1_000):
            if any(status is not None for status in await store_of(run).completed([upload_in(e) for e in batch])):
                return True
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """An upload still waits."""
        for batch in plan.batches(1_000):
            if any(await store_of(run).are_waiting([upload_in(entry) for entry in batch])):
                return True
        return False

    async def release(self, run: JobRun) -> None:
        """The uploads of attempts that do not count are given up, as far as S3A has saved which they are."""
        record = await read_record(run)
        await end.give_up_all(run, but=() if record is None else record.pins)

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """No file of the job's may take the place of one of its name, versions or not."""
        return await job_commit.meet(run, plan, marked=False)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Uploads are given up; what was completed is left, and named."""
        return await end.undo(run, plan)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """Every upload of the job that S3A has saved is given up; what some may have become is named."""
        return await end.discard(run)


async def _refuse_if_taken_away(run: JobRun, plan: CommitPlan) -> None:
    for batch in plan.batches(1_000):
        found = await run.store.stat_files([entry.target for entry in batch])
        pairs = zip(batch, found, strict=True)
        gone = [entry.target for entry, status in pairs if status is None or status.length != entry.length]
        if gone:
            raise FileChanged(
                f"job {run.layout.job_id} cannot be finished: somebody has deleted or replaced {len(gone)} files, or "
                "more, that were in place",
                where="\n".join(run.url(path) for path in gone[:5]),
                next_step="run the job again once it is known who did",
            )


def _not_ours(run: JobRun) -> UsageError:
    return UsageError(
        "the protocol magic commits jobs whose tasks S3A's magic committer has written; it writes none",
        where=str(run.store.url),
        next_step="leave protocol out, and the job is written by one that this store can carry",
    )

"""The protocol as the engine asks it: each method says which module does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.manifests import committed_tasks, load_manifests
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.engine.run.protocol import Attributes, Protocol
from lockgate.engine.run.store import OutputFile
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import SAVE_MANIFESTS, SET_UP_ATTEMPTS, Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.summary import Summary, encode_summary
from lockgate.model.undone import Undone
from lockgate.protocols.deferred import job_commit, staging, task_commit, undo
from lockgate.protocols.deferred.uploads import keep_of, mark_of, marked_in, refuse_shared


class DeferredProtocol(Protocol):
    """Uploads to the final paths, completed at job commit. The record is the commit point."""

    name: ClassVar[str] = "deferred"
    description: ClassVar[str] = "uploads that nobody sees until the job commit completes them; no renames"
    needs: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.DEFERRED_UPLOAD,
            Capability.CONDITIONAL_WRITE,
            Capability.CREATE_IF_ABSENT,
            Capability.ATOMIC_WRITE,
            Capability.CONSISTENT_LISTING,
        }
    )
    alternative: ClassVar[str] = "on a store with renames choose protocol=manifest"
    commits_by_success: ClassVar[bool] = False
    saves_uploads: ClassVar[bool] = True
    own_options: ClassVar[frozenset[str]] = frozenset({"staging_directory"})
    costs: ClassVar[Costs] = Costs(
        attempts=SET_UP_ATTEMPTS,
        task_commits=(
            Requests("look for the job", task=1),
            SAVE_MANIFESTS,
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=21),
            Requests("read manifests", task=1),
        ),
        summary=7,
        cleanup=2,
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=True,
        task_commit_repeatable=True,
        uncommitted_invisible=True,
        committed_invisible=True,
        recoverable=True,
        holds_through_partition=True,
    )

    async def set_up_job(self, run: JobRun) -> None:
        """Nothing but the marker, which the engine leaves; its directory first, where directories are real."""
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.manifests])

    async def set_up_task(self, run: JobRun) -> None:
        """The job is looked for, so that a late attempt uploads nothing. Files that are to wait on the local disk get
        their directory."""
        (marker,) = await run.store.stat_files([run.layout.job_marker])
        if marker is None:
            raise not_at_work(run, run.layout.job_marker)
        if staging.is_staging(run):
            staging.make_directories(run)

    def shows_begun_tasks(self, run: JobRun) -> bool:
        """Never: attempts have no directories."""
        return False

    def needs_tags(self, run: JobRun) -> bool:
        """Where uploads of one path are one."""
        return run.store.uploads_share_names

    def working_directory(self, run: JobRun) -> str:
        """On the local disk, where files wait there; else there is none, and this is where it would be."""
        return staging.working_directory(run) if staging.is_staging(run) else super().working_directory(run)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """A deferred upload to the final path, or a file on the local disk that will be one."""
        refuse_shared(run, path, nonce)
        mark = mark_of(run, ordinal, nonce)
        if staging.is_staging(run):
            return staging.open_staged(run, path, mark)
        return run.store.open_deferred(path, mark, keep_of(run, run.task_attempt_id))

    async def send_files(
        self, run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str
    ) -> dict[str, FileStatus]:
        """What waits on the local disk is uploaded; it stays there until the attempt has committed."""
        if not staging.is_staging(run):
            return dict(written)
        return await staging.send(run, written, scan=scan, nonce=nonce)

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
        receipt = await task_commit.commit_task(run, attempt, written, counters, scan=scan)
        if staging.is_staging(run):
            staging.clear(run)
        return receipt

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone, then the uploads are given up."""
        await task_commit.abort_task(run, attempt, written)

    async def find_pins(self, run: JobRun) -> list[Pin]:
        """By the manifests that are there."""
        return await load_manifests.find_pins(run)

    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """By the manifests of earlier attempts at the job."""
        return await committed_tasks.committed_tasks(run, deferred=True)

    async def left_out_stays(self, run: JobRun) -> str:
        """Uploads that nobody completes, where the store does not show whose each is."""
        store = run.store
        if Capability.LISTED_UPLOADS not in store.capabilities or store.keeps_uploads:
            return ""
        return (
            "What they wrote is not here. Uploads of theirs may wait, which no reader sees, and which are paid for on "
            f"some stores: {command('uploads', 'list', store.url)} shows them, and {command('gc', store.url)} gives "
            "them up once they are old."
        )

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """From the pinned manifests."""
        return await load_manifests.load_plan(run, pins, deferred=True)

    async def refuse_aborted(self, run: JobRun, pins: Sequence[Pin]) -> None:
        """By tombstones."""
        await load_manifests.refuse_aborted(run, pins)

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """Names looked at, conflicts resolved."""
        return await job_commit.meet(run, plan)

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """The uploads are completed. What they replace stays until the commit point."""
        await job_commit.complete(run, plan)
        # A completion that is repeated may be answered as it was the first time, whatever has been written there since
        # (API reference of Amazon S3, "CompleteMultipartUpload").
        if again or run.options.validate_output:
            await job_commit.refuse_if_taken_away(run, plan)

    async def wait_to_publish(self, run: JobRun, summary: Summary, nonce: str) -> FileStatus:
        """The summary where recovery finds it."""
        return await run.store.write_file(run.layout.summary_temporary(nonce), encode_summary(summary))

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
        """What is replaced goes, and `_SUCCESS` comes."""
        return await job_commit.conclude(run, summary, record)

    async def release(self, run: JobRun) -> None:
        """The uploads of attempts that do not count are given up."""
        if staging.is_staging(run):
            staging.clear_job(run)
        await undo.release(run)

    async def may_be_undone(self, run: JobRun, plan: CommitPlan) -> None:
        """What the job replaces is there still, or not all of its own is."""
        await undo.refuse_if_committed(run, plan)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Uploads are given up, what was completed is taken out, and what that replaced by name comes back."""
        return await undo.undo(run, plan)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """Every upload of the job is given up, and what some have become is taken out."""
        if staging.is_staging(run):
            staging.clear_job(run)
        return await undo.discard(run)

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """What was completed is there, where the record says that all was."""
        if phase is Phase.PUBLISHING:
            await job_commit.refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """An upload is completed."""
        for batch in plan.batches(1_000):
            if any(status is not None for status in await marked_in(run, batch)):
                return True
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """An upload is not."""
        for batch in plan.batches(1_000):
            if any(status is None for status in await marked_in(run, batch)):
                return True
        return False

    async def restore(self, run: JobRun, kept: Sequence[KeptList]) -> Undone:
        """Nothing is ever set aside."""
        return Undone()

"""The manifest protocol, method by method: what each does is in the module that it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.engine.job.conflicts import meet_directories, resolve
from lockgate.engine.manifests import committed_tasks, load_manifests
from lockgate.engine.manifests.found_in_place import refuse_what_is_in_place
from lockgate.engine.renames.move_files import move_files
from lockgate.engine.renames.restore_replaced import restore_from
from lockgate.engine.renames.roll_back import delete_sources, undo_moves
from lockgate.engine.renames.staged_files import any_moved, any_staged
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes, Protocol
from lockgate.engine.run.store import OutputFile
from lockgate.model.capabilities import Capability
from lockgate.model.errors import ManifestInvalid
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone
from lockgate.protocols.manifest import publish, staging, task_commit
from lockgate.protocols.manifest.inspect_staged import (
    refuse_if_staged_changed,
    refuse_if_taken_away,
    refuse_unless_staged,
    with_old_summary_set_aside,
)


class ManifestProtocol(Protocol):
    """Commits by renames: O(1) for a task attempt, a rename a file for the job."""

    name = "manifest"
    description = "tasks save manifests of staged files, the job commit renames them"
    needs = frozenset(
        {
            Capability.RENAME_WITHOUT_REPLACE,
            Capability.IDENTITY_KEPT_BY_RENAME,
            Capability.CREATE_IF_ABSENT,
            Capability.ATOMIC_WRITE,
            Capability.CONSISTENT_LISTING,
        }
    )
    alternative = "use another store, with atomic renames: lockgate plugins lists what each can do"
    costs = Costs(
        attempts=(Requests("set up task attempts", "write", task=1), Requests("make directories", "directory", task=1)),
        task_commits=(
            Requests("save manifests", "write", task=1, in_series=True),
            Requests("save manifests", task=1, in_series=True),
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=21),
            Requests("read manifests", task=1),
            Requests("look at what is staged", "doubt", task=1),
        ),
        cleanup=2,
    )
    attributes = Attributes(
        task_commit_atomic=True,
        task_commit_repeatable=True,
        uncommitted_invisible=True,
        committed_invisible=True,
        recoverable=True,
        holds_through_partition=True,
    )

    async def set_up_job(self, run: JobRun) -> None:
        """The directories of manifests and of task attempts."""
        await staging.set_up_job(run)

    async def set_up_task(self, run: JobRun) -> None:
        """The attempt's working directory."""
        await staging.set_up_task(run)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """A staged file: in the attempt's working directory, under a name that no reader takes for data."""
        return run.store.open_output(run.layout.staged(run.task_attempt_id, ordinal, path, nonce=nonce))

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """A manifest, written and renamed."""
        return await task_commit.commit_task(run, attempt, written, counters, scan=scan)

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone, then the working directory goes."""
        await task_commit.abort_task(run, attempt)

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

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """Staged files inspected, conflicts resolved, directories probed."""
        try:
            await refuse_unless_staged(run, plan)
        except ManifestInvalid as error:
            await refuse_what_is_in_place(run, error)
            raise
        resolved = await resolve(run, plan, whole=True)
        return await with_old_summary_set_aside(run, await meet_directories(run, resolved))

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """Renames, after what they replace has been renamed away."""
        await move_files(run, plan, aside, again=again)

    async def wait_to_publish(self, run: JobRun, summary: Summary, nonce: str) -> FileStatus | None:
        """The summary at its temporary path."""
        return await publish.wait_to_publish(run, summary, nonce)

    def waits_early(self, run: JobRun) -> bool:
        """Where the summary can be written again on condition that it is still there."""
        return Capability.CONDITIONAL_WRITE in run.store.capabilities

    async def save_again(self, run: JobRun, summary: Summary, nonce: str, waiting: FileStatus) -> FileStatus | None:
        """Over the one that waits, by its identity."""
        return await publish.save_again(run, summary, nonce, waiting)

    async def publish(self, run: JobRun, nonce: str, waiting: FileStatus | None = None) -> bool:
        """The summary's rename to `_SUCCESS`."""
        return await publish.publish(run, nonce, waiting)

    async def revoke(self, run: JobRun, nonce: str) -> bool:
        """Another rename of the same summary."""
        return await publish.revoke(run, nonce)

    async def is_waiting(self, run: JobRun, nonce: str) -> bool:
        """By the summary at its temporary path."""
        return await publish.is_waiting(run, nonce)

    async def is_revoked(self, run: JobRun, nonce: str) -> bool:
        """By the summary where `revoke` puts it."""
        return await publish.is_revoked(run, nonce)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """The renames back."""
        return await undo_moves(run, plan, record)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The staged files, and the summary that waits."""
        await delete_sources(run, record)
        return Undone()

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """What is still staged is compared in `moving`, what is in place in `publishing`."""
        if phase is Phase.MOVING:
            await refuse_if_staged_changed(run, plan)
        elif phase is Phase.PUBLISHING:
            await refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """A staged file is gone, and stands at its target."""
        return await any_moved(run, plan)

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """A staged file is there."""
        return await any_staged(run, plan)

    async def restore(self, run: JobRun, kept: Sequence[KeptList]) -> Undone:
        """By renames, too."""
        return await restore_from(run, kept)

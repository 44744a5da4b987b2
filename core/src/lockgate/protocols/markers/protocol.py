"""The protocol as the engine asks it: what differs from `deferred`, since files are in place before the job commits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests import committed_tasks, load_manifests
from lockgate.engine.record.ended_jobs import refuse_if_committed_by_any_sign
from lockgate.engine.record.marker import read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes
from lockgate.engine.run.store import OutputFile
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import LockgateError, ManifestInvalid, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import AND_AGAIN, tagged_by
from lockgate.model.layout import TaskAttempt
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import LOOK_FOR_REPLACING, SAVE_MANIFESTS, SET_UP_ATTEMPTS, Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone
from lockgate.protocols.deferred import DeferredProtocol, job_commit
from lockgate.protocols.in_place.policies import POLICIES, WHY_TASKS
from lockgate.protocols.manifest import publish
from lockgate.protocols.manifest.inspect_staged import refuse_if_taken_away
from lockgate.protocols.markers import announce, take_out, task_commit
from lockgate.protocols.markers.dead_writers import roll_back_dead
from lockgate.protocols.markers.found import paths_marked

OF_OWN_SERVER = ("markers_address", "markers_batch_interval_ms", "markers_batch_threads")
"""The options of the timeline server that a driver has itself."""


class MarkersProtocol(DeferredProtocol):
    """Files at their final paths from the first byte on, each announced by a marker. The record is the commit point."""

    name: ClassVar[str] = "markers"
    description: ClassVar[str] = (
        "Hudi's markers: tasks write to the final paths, and the job commit deletes what it does not count"
    )
    needs: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.CREATE_IF_ABSENT, Capability.ATOMIC_WRITE, Capability.CONSISTENT_LISTING}
    )
    alternative: ClassVar[str] = "use another store: where manifest or deferred can be had, they show nothing early"
    policies: ClassVar[tuple[str, ...]] = POLICIES
    policies_why: ClassVar[str] = WHY_TASKS
    unsafe: ClassVar[str] = (
        "readers see a file as soon as it is written, of attempts too that are not committed; a task attempt that is "
        "cut off may add files after its job has ended"
    )
    writes_in_destination: ClassVar[bool] = True
    saves_uploads: ClassVar[bool] = False
    announces_files: ClassVar[bool] = True
    names_tell: ClassVar[bool] = True
    looks_in_place: ClassVar[int] = 1
    own_options: ClassVar[frozenset[str]] = frozenset(
        {
            "markers_type",
            "markers_operation",
            "markers_batch_interval_ms",
            "markers_batch_threads",
            "markers_address",
            "markers_server",
            "early_conflicts",
        }
    )
    costs: ClassVar[Costs] = Costs(
        attempts=(
            *SET_UP_ATTEMPTS,
            Requests("make directories", "directory", task=1, task_directory=6),
        ),
        task_commits=(
            Requests("look for the job", task=4),
            SAVE_MANIFESTS,
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=30),
            Requests("read manifests", task=2),
            LOOK_FOR_REPLACING,
        ),
        summary=7,
        cleanup=18,
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=True,
        task_commit_repeatable=True,
        uncommitted_invisible=False,
        committed_invisible=False,
        recoverable=True,
        holds_through_partition=False,
    )

    # A job and its task attempts.

    async def set_up_job(self, run: JobRun) -> None:
        """Dead writers are rolled back first."""
        _tell_options_of_no_server(run)
        if await read_marker(run) is None:
            await roll_back_dead(run)
        await super().set_up_job(run)

    async def set_up_task(self, run: JobRun) -> None:
        """The directory of the job's markers."""
        await announce.set_up_task(run)

    async def set_up_directory(self, run: JobRun, directory: str) -> None:
        """The directories of its path, and of its files' markers."""
        await announce.set_up_directory(run, directory)

    def needs_tags(self, run: JobRun) -> bool:
        """By its tag a file is known to be the job's, and no other has its name."""
        return True

    def working_directory(self, run: JobRun) -> str:
        """There is none; this is where it would be."""
        return run.url(run.layout.task_directory(run.task_attempt_id))

    def asks_for_marker_server(self, run: JobRun) -> bool:
        """As the option `markers_type` says."""
        return run.options.markers_type == "timeline_server_based"

    async def announce_file(self, run: JobRun, path: str) -> None:
        """A marker. Of a file that cannot be the job's none is made: neither a commit nor an abort would believe it.

        Raises:
            PathError: it lacks the tag.
        """
        _refuse_untagged(run, path)
        await announce.announce_file(run, path)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """A file at its final path.

        Raises:
            PathError: it lacks the tag.
        """
        _refuse_untagged(run, path)
        return run.store.open_output(path)

    async def send_files(
        self, run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str
    ) -> dict[str, FileStatus]:
        """They are there."""
        return dict(written)

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
        return await task_commit.commit_task(run, attempt, written, counters, scan=scan)

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone; what it has written is taken out."""
        await task_commit.abort_task(run, attempt, written)

    async def left_out_stays(self, run: JobRun) -> str:
        """What no marker names, since somebody has deleted that."""
        unmarked = run.counters.get(take_out.UNMARKED, 0)
        if not unmarked:
            return ""
        return (
            f"{counted(unmarked, 'file')} with a tag of the job in the name may be theirs, whose markers somebody has "
            f"deleted: {command('files', run.store.url)} shows them in no list."
        )

    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """By the manifests of earlier attempts at the job."""
        return await committed_tasks.committed_tasks(run)

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """From the pinned manifests."""
        return await load_manifests.load_plan(run, pins)

    # The job's commit, and its undoing.

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """The conflict policy was kept by the tasks. Everything is in place, and every marker can be believed."""
        for batch in plan.batches():
            refuse_names(run, batch)
        marked = await paths_marked(run)
        await take_out.refuse_unless_marked(run, plan, marked)
        await take_out.refuse_unmarked(run, plan, marked)
        await refuse_if_taken_away(run, plan)
        looks = self.looks_in_place
        return dataclasses.replace(plan, missing_directories=(), in_place=True, looks_in_place=looks)

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """What attempts have written that are not committed is deleted; all else is in place."""
        with run.stage("reconcile_markers"):
            await take_out.take_out_uncommitted(run, plan, await paths_marked(run))
        if again or run.options.validate_output:
            await refuse_if_taken_away(run, plan)
        run.count_committed(plan)

    async def conclude(self, run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
        """`_SUCCESS`, by a rename where the store has no conditional writes: of its source there is one."""
        if Capability.CONDITIONAL_WRITE in run.store.capabilities:
            return await job_commit.conclude(run, summary, record)
        if record.marks_success and record.summary_nonce:
            try:
                await publish.publish(run, record.summary_nonce)
            except StoreError:
                raise
            except LockgateError as error:
                raise StoreError(error.what, where=error.where, next_step=error.next_step) from error
        return summary

    async def release(self, run: JobRun) -> None:
        """The markers, after what they name that does not count."""
        await take_out.forget(run)

    async def may_be_undone(self, run: JobRun, plan: CommitPlan) -> None:
        """It has not committed, as far as anything but its record says.

        Raises:
            OutcomeUnknown: it has.
        """
        await refuse_if_committed_by_any_sign(run)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Every file that was marked is deleted, and those of manifests by their identities."""
        return await self.discard(run, record)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The same."""
        try:
            left = await take_out.take_out_all(run)
        except ManifestInvalid as error:  # the record says by now that the job is undone, and only this is read then
            going_on = command("recover", run.store.url, run.layout.job_id)
            mend = error.next_step.removesuffix(AND_AGAIN)
            told = f"{mend}; then {going_on}: the job can only be undone from now on, and an abort of it is refused"
            raise ManifestInvalid(error.what, where=error.where, next_step=told) from error
        await run.store.delete_files([run.layout.file_list])
        return Undone(left=left)

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """What is in place is compared."""
        if phase in (Phase.MOVING, Phase.PUBLISHING):
            await refuse_if_taken_away(run, plan)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nothing of it shows by the files: they were in place before."""
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nor this."""
        return False


def _tell_options_of_no_server(run: JobRun) -> None:
    """Not refused, as options of other protocols: a session's settings are for jobs of either type of markers."""
    why = "markers_type=direct" if run.options.markers_type == "direct" else ""
    why = f"markers_server={run.options.markers_server}" if run.options.markers_server else why
    usual = JobOptions()
    for name in OF_OWN_SERVER if why else ():
        if getattr(run.options, name) != getattr(usual, name):
            run.log.warning("an option has no effect: the driver serves no markers", option=name, beside=why)


def _refuse_untagged(run: JobRun, path: str) -> None:
    if not tagged_by(path, [run.marker]):
        raise PathError(
            "the name of a file needs the tag of its task attempt: by that it is known to be the job's",
            where=run.url(path),
            next_step="put attempt.tag into the name, with no digit and no letter from a to f right before or behind "
            "it: part-0.TAG.parquet",
        )

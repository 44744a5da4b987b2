"""The protocol as the engine asks it: what differs from `manifest`, until the tasks' directories are adopted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.inspection.other_committers import list_other_jobs
from lockgate.engine.job.conflicts import meet_directories, resolve
from lockgate.engine.manifests.found_in_place import found_in_place
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import TasksElsewhere
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.errors import ManifestInvalid, OptionError
from lockgate.model.file_output import job_part
from lockgate.model.files import FileStatus
from lockgate.model.layout import OURS, JobLayout, TaskAttempt, found_directory, found_layout, parse_attempt_directory
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone
from lockgate.protocols.file_output import job_directories
from lockgate.protocols.file_output.protocol import FileOutputProtocol
from lockgate.protocols.manifest import staging
from lockgate.protocols.manifest.inspect_staged import refuse_unless_staged, with_old_summary_set_aside
from lockgate.protocols.v1 import load, task_commit
from lockgate.protocols.v1.adopt import (
    adopt,
    any_adopted,
    keep_what_was_never_adopted,
    note_what_waits,
    refuse_if_changed,
    waiting,
    where_it_is,
)
from lockgate.protocols.v1.put_by_another import refuse_what_another_has_put


class V1Protocol(FileOutputProtocol):
    """Commits tasks by a rename of their directory, and the job by a rename a file."""

    name = "v1"
    description = "Hadoop's FileOutputCommitter, algorithm 1: a task's directory is renamed, the job commit merges them"
    needs: ClassVar[frozenset[Capability]] = FileOutputProtocol.needs | {
        Capability.ATOMIC_DIRECTORY_RENAME,
        Capability.REAL_DIRECTORIES,
    }
    alternative = "leave protocol out: manifest and deferred need no directory that is renamed as one act"
    works_in_temporary: ClassVar[bool] = True
    found_late: ClassVar[str] = "each directory there with the job's number"
    costs: ClassVar[Costs] = Costs(
        attempts=(
            Requests("set up task attempts", task=1),
            Requests("make directories", "directory", task=1, task_directory=3),
        ),
        task_commits=(
            Requests("look for the job", task=5),
            Requests("look at what is staged", "doubt", task_directory=1),
            Requests("save manifests", "write", task=1, in_series=True),
            Requests("rename directories of tasks", task=1, in_series=True),
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=27),
            Requests("read manifests", task=1),
            Requests("look at directories of tasks", task=4),
            Requests("look at what is staged", "doubt", task=2, task_directory=3),
        ),
        cleanup=5,
    )

    # A job and its task attempts.

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """The directory's rename."""
        return await task_commit.commit_task(run, attempt, written, counters, scan=scan)

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone, then its directories go."""
        await task_commit.abort_task(run, attempt)

    # Jobs that Hadoop has set up.

    async def jobs_of_others(self, run: JobRun) -> list[JobLayout]:
        """Those whose commit here has begun; and, for who asks for this protocol, all that have tasks in `_temporary`:
        nothing there says by which algorithm they are committed."""
        if not self.needs <= run.store.capabilities:
            return []
        found: dict[str, JobLayout] = {}
        for job in await list_all(run.store, found_directory(self.name)):
            layouts = [parse_attempt_directory(status.path) for status in await list_all(run.store, job.path)]
            newest = max((each.job_attempt for each in layouts if each is not None), default=0)
            job_id = job.path.rpartition("/")[2]
            found[job_id] = found_layout(self.name, job_id, newest)
        if run.options.protocol != self.name or run.marker:
            return list(found.values())
        for other in await list_other_jobs(run):
            if other.job_attempt is not None and other.job_id not in found:
                found[other.job_id] = found_layout(self.name, other.job_id, other.job_attempt)
        return list(found.values())

    async def take_over(self, run: JobRun, *, to_commit: bool) -> None:
        """The job's own directory, and the manifests of its tasks there. They have its names, being its own."""
        await staging.set_up_job(run)
        if to_commit:
            await load.keep_all(run)

    async def tasks_elsewhere(self, run: JobRun) -> TasksElsewhere:
        """By the directories below `_temporary`."""
        try:
            job_part(run.layout.job_id)
        except OptionError:
            return TasksElsewhere()
        return await job_directories.tasks_elsewhere(run)

    # The job's plan.

    async def find_pins(self, run: JobRun) -> list[Pin]:
        """By the directories of committed tasks."""
        return await load.find_pins(run)

    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """By those of earlier attempts at the job, Hadoop's too."""
        return await load.committed_tasks(run)

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """By the manifests that their attempts have saved; of a task of Hadoop's by its files."""
        return await load.load_plan(run, pins)

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """As `manifest`, with each task's files where they are yet."""
        ends = await waiting(run, plan.pins)
        try:
            await refuse_unless_staged(run, plan, lambda entry: where_it_is(entry, ends))
        except ManifestInvalid as error:
            await refuse_what_another_has_put(run, error)
            raise
        met = await with_old_summary_set_aside(run, await meet_directories(run, await resolve(run, plan, whole=True)))
        return dataclasses.replace(met, adopted_directories=len(ends))

    # The job's commit, and its undoing.

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """The tasks' directories are adopted, looked at once more, and then it is `manifest`'s."""
        if run.layout.prefix != OURS:
            await load.keep_pinned(run, plan.pins)
        await adopt(run, plan.pins)
        await refuse_if_changed(run, plan)
        if not again:
            await refuse_unless_staged(run, plan)
        await super().perform(run, plan, aside, again=again)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """What is not adopted yet is, so that it is known for not moved, and what never was stays, where another
        program has put it; then it is `manifest`'s."""
        await note_what_waits(run, plan.pins)
        await adopt(run, plan.pins)
        theirs = await keep_what_was_never_adopted(run, plan)
        return await super().undo(run, plan, record) + Undone(by_another=theirs)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The directories below `_temporary` too. What another program's job commit has put in place stays. It is
        looked for once these are gone: such a commit may be under way, and finds nothing to move from then on."""
        await job_directories.delete_of_job(run)
        by_another = await found_in_place(run)
        return await super().discard(run, record) + Undone(by_another=by_another)

    async def left_by_dead_attempts(self, run: JobRun) -> str:
        """Of a job of Hadoop's of which no task has committed by this algorithm, what some have by the second. Of one
        whose commit has pinned such tasks nothing is left where they were."""
        if run.layout.prefix == OURS or (await self.tasks_elsewhere(run)).committed:
            return ""
        if (record := await read_record(run)) is not None and record.pins:
            return ""
        return (
            "If that was a job by FileOutputCommitter's second algorithm, the files of its committed tasks are in the "
            "destination, which nothing here can tell: look for them before the job is run again."
        )

    async def release(self, run: JobRun) -> None:
        """The job's directories below `_temporary`, and nobody else's. Of a job of Hadoop's that is committed here what
        no commit has stays: a task may have committed since its commit began."""
        record = None if run.layout.prefix == OURS else await read_record(run)
        undone = record is not None and record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK)
        if run.layout.prefix == OURS or undone:
            await job_directories.delete_of_job(run)
            return
        pinned, left_out = (record.pins, record.left_out) if record is not None else ((), ())
        await job_directories.delete_counted(run, {pin.task_id for pin in pinned}, left_out)

    async def delete_late_output(self, run: JobRun) -> None:
        """The same directories, all of them."""
        await job_directories.delete_of_job(run)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """As `manifest`, and only if every directory is adopted: files are moved after that."""
        adopted = await any_adopted(run, plan.pins) and not await waiting(run, plan.pins)
        return adopted and await super().has_performed(run, plan)

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """As `manifest`, or a directory is not adopted."""
        return bool(await waiting(run, plan.pins)) or await super().has_pending(run, plan)

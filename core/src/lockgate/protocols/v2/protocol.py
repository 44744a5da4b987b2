"""The protocol as the engine asks it: what differs from `manifest`, since files are in place before the job commits."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import ClassVar

from lockgate.engine.manifests.aborted_attempts import marker_in
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.record_log import fenced, read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.own_commands import interrupted_commits
from lockgate.engine.run.protocol import Attributes, TasksElsewhere
from lockgate.model.files import FileStatus
from lockgate.model.layout import ABORTED_SUFFIX, TaskAttempt, saves_manifest_of
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import LOOK_FOR_REPLACING, Costs, Requests
from lockgate.model.receipt import Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.spooled import windows
from lockgate.model.undone import Undone
from lockgate.protocols.file_output import job_directories
from lockgate.protocols.file_output.protocol import FileOutputProtocol
from lockgate.protocols.in_place.policies import POLICIES, WHY_TASKS
from lockgate.protocols.manifest.inspect_staged import refuse_if_taken_away
from lockgate.protocols.v2 import task_commit
from lockgate.protocols.v2.visible import forestall, keep_unmoved, take_out_all


class V2Protocol(FileOutputProtocol):
    """Commits tasks by a rename a file into the destination, and the job by its `_SUCCESS`."""

    name = "v2"
    description = "Hadoop's FileOutputCommitter, algorithm 2: each task commit moves its files into the destination"
    alternative = "leave protocol out: manifest needs no more of a store, and shows nothing before the job commits"
    works_in_temporary: ClassVar[bool] = True
    policies: ClassVar[tuple[str, ...]] = POLICIES
    policies_why: ClassVar[str] = WHY_TASKS
    unsafe: ClassVar[str] = (
        "readers see a task's files as soon as it commits, and some of them while it does; a task attempt that is cut "
        "off may add files after its job has committed"
    )
    costs: ClassVar[Costs] = Costs(
        attempts=(
            Requests("set up task attempts", task=2),
            Requests("make directories", "directory", task_directory=3),
        ),
        task_commits=(
            Requests("look for the job", task=5),
            Requests("look at files", "doubt", file=1),
            Requests("save manifests", "write", task=1, in_series=True),
            Requests("save manifests", task=1, in_series=True),
            Requests("make directories", "directory", task_directory=2),
            Requests("delete directories of task attempts", task=1),
        ),
        job_commit=(
            Requests("look at the destination, and for other jobs", job=32),
            Requests("read manifests", task=3),
            LOOK_FOR_REPLACING,
        ),
        cleanup=4,
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=False,
        task_commit_repeatable=False,
        uncommitted_invisible=True,
        committed_invisible=False,
        recoverable=True,
        holds_through_partition=False,
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
        """An intent, a rename a file, a manifest."""
        return await task_commit.commit_task(run, attempt, written, counters, scan=scan)

    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """A tombstone; what it has moved is taken out."""
        await task_commit.abort_task(run, attempt)

    async def abort_second_run(self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> None:
        """What is in its working directory is deleted."""
        await task_commit.abort_second_run(run, attempt)

    async def tasks_elsewhere(self, run: JobRun) -> TasksElsewhere:
        """By the directories below `_temporary`."""
        return await job_directories.tasks_elsewhere(run)

    # The job's commit, and its undoing.

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """The conflict policy was kept by the tasks. Everything is in place, and no task commit was interrupted."""
        await _refuse_interrupted(run)
        await refuse_if_taken_away(run, plan)
        await saved(run)  # what cannot be read must be told before anything moves, since it could not be undone then
        return dataclasses.replace(plan, missing_directories=(), in_place=True)

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """What attempts have moved that are not committed is taken out; all else is in place."""
        record = await read_record(run)
        if record is None:
            raise fenced(run, record)
        await take_out_all(run, record, {pin.digest for pin in plan.pins})
        await refuse_if_taken_away(run, plan)
        run.count_committed(plan)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Every file of every task attempt is taken out, each by its identity."""
        return await self.discard(run, record)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """The same, once the directories are gone from which attempts could move more."""
        await forestall(run)
        known = await saved(run)
        await keep_unmoved(run, known)
        await job_directories.delete_of_job(run)
        await super().discard(run, record)
        left = await take_out_all(run, record, kept=known)
        await run.store.delete_files([run.layout.file_list])
        return Undone(left=left)

    async def release(self, run: JobRun) -> None:
        """The job's directories below `_temporary`, and nobody else's."""
        await job_directories.delete_of_job(run)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nothing of it shows by the files: they were in place before."""
        return False

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """Nor this."""
        return False


async def _refuse_interrupted(run: JobRun) -> None:
    names: set[str] = set()
    async for page in run.store.list_directory(run.layout.manifests):
        names |= {status.path.rpartition("/")[2] for status in page}
    aborted = {name.removesuffix(ABORTED_SUFFIX) for name in names if name.endswith(ABORTED_SUFFIX)}
    begun = {attempt for name in names if (attempt := saves_manifest_of(name))} - aborted
    if begun:
        raise interrupted_commits(run, sorted(begun), await _of_an_earlier_job(run, begun))


async def _of_an_earlier_job(run: JobRun, begun: Collection[str]) -> list[str]:
    """Those of these intents that another job has saved which had the id before: of attempts that this job may have
    under the same numbers. They count all the same: whether that job was ended, nobody can tell by them."""
    marker = await readable_marker(run, run.layout)
    if marker is None or not marker.nonce:
        return []
    found: list[str] = []
    for some in windows(sorted(begun), run.options.files_read_at_once):
        paths = [run.layout.manifest_temporary(each) for each in some]
        contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
        pairs = zip(some, contents, strict=True)
        found += [name for name, content in pairs if marker_in(content or b"") not in ("", marker.nonce)]
    return found

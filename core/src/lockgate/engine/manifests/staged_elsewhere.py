"""Task attempts whose files another program has staged, and named: their manifests are saved by the driver.

A task of Spark's own writers writes through Hadoop's filesystem, whose listing lacks what some stores' identity is made
of (the inode of a local disk, the checksum on Cloud Storage). So it tells its driver names and lengths only, and the
driver's store lists the attempt's directory once, which nobody but the attempt writes to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import CommitFailed, DuplicateTarget
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt
from lockgate.model.receipt import Receipt


@dataclass(frozen=True)
class StagedFile:
    """A file in a task attempt's directory, by its name there; `target` is its path in the destination."""

    target: str
    name: str
    length: int


@dataclass(frozen=True)
class StagedTask:
    """What one task attempt has staged, and what it has counted, under the names of the summary's counters."""

    attempt: TaskAttempt
    files: Sequence[StagedFile]
    counters: Mapping[str, int] = field(default_factory=dict)


async def save_manifests(run: JobRun, tasks: Sequence[StagedTask], of: Callable[[str], JobRun]) -> list[Receipt]:
    """Save the manifests of these attempts, and return their receipts. `of` gives the run of one task attempt.

    An attempt that has no file has no manifest, and no receipt.

    Raises:
        CommitFailed: a file is gone, or has another length than its task has told; nothing was moved.
        DuplicateTarget: an attempt tells of two files for one path.
        JobNotFound: the job is over.
    """
    receipts: list[Receipt] = []
    written = [task for task in tasks if task.files]
    window = run.options.files_read_at_once
    for start in range(0, len(written), window):
        receipts += await together(
            _save(of(task.attempt.task_attempt_id), task) for task in written[start : start + window]
        )
    return receipts


async def _save(run: JobRun, task: StagedTask) -> Receipt:
    directory = run.layout.task_directory(task.attempt.task_attempt_id)
    there = {status.path: status for status in await list_all(run.store, directory)}
    staged: dict[str, FileStatus] = {}
    for file in task.files:
        path = f"{directory}/{file.name}"
        status = there.get(path)
        if status is None or status.is_directory or status.length != file.length:
            found = "not found" if status is None else f"{status.length} bytes"
            raise CommitFailed(
                f"a staged file is not as {task.attempt.task_attempt_id} has left it",
                where=f"{run.url(path)}\n{found}; the task has told of {file.length} bytes",
                next_step="nothing was moved; somebody has changed or deleted it: run the job again",
            )
        if file.target in staged:
            raise DuplicateTarget(
                "two files of one task attempt would be written to one path",
                where=file.target,
                next_step="nothing was moved; give one of them another name",
            )
        staged[file.target] = status
    return await run.protocol.commit_task(run, task.attempt, staged, task.counters, scan=False)

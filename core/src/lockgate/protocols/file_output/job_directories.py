"""What `_temporary` shows of a job, of every attempt at it; and deleting that, and nothing of another job's.

Hadoop deletes the whole of `_temporary` when a job ends, whoever else is at work there (SPARK-24238). Here a job
attempt directory stays, empty too: a job of Hadoop's is set up by making it, which changes nothing where it is there
already, and fails at its end if it is gone by then (`FileOutputCommitter.setupJob`, `getAllCommittedTaskPaths`). So
nobody can tell whose it is, and no job of ours ends by deleting it; garbage collection does, once it has stood still
for long.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import TasksElsewhere
from lockgate.engine.run.store import list_all
from lockgate.engine.run.tries import TRIES
from lockgate.model.errors import ManifestInvalid
from lockgate.model.file_output import FileOutputLayout, parse_job_attempt, parse_task, parse_task_attempt
from lockgate.model.files import FileStatus
from lockgate.model.layout import TEMPORARY
from lockgate.protocols.file_output.attempts import places_of


@dataclass
class JobDirectories:
    """One attempt at a job: the directories of its committed tasks by task, and those of its task attempts."""

    places: FileOutputLayout
    tasks: dict[str, FileStatus] = field(default_factory=dict)
    attempts: list[tuple[str, FileStatus]] = field(default_factory=list)

    def paths(self) -> Iterator[str]:
        """All of them."""
        yield from (status.path for status in self.tasks.values())
        yield from (status.path for _, status in self.attempts)


async def attempts_found(run: JobRun) -> list[int]:
    """The numbers of the job attempt directories that are there, whoever's, in order."""
    found = [parse_job_attempt(status.path) for status in await list_all(run.store, TEMPORARY) if status.is_directory]
    return sorted(number for number in found if number is not None)


async def directories_of(run: JobRun, job_attempt: int, *, strictly: bool = False) -> JobDirectories:
    """The directories of the run's job at one attempt. `strictly`: what nobody knows must not be there, since Hadoop
    would commit it with any job.

    Raises:
        ManifestInvalid: something is there that is no committed task's, and `strictly`.
    """
    found = JobDirectories(places_of(run, job_attempt))
    strange: list[str] = []
    # First those at work: one that commits meanwhile is then seen here, there, or in both.
    async for page in run.store.list_directory(found.places.pending):
        for status in page:
            attempt = parse_task_attempt(status.path.rpartition("/")[2])
            if attempt is not None and attempt.job == found.places.job:
                found.attempts.append((attempt.task, status))
    async for page in run.store.list_directory(found.places.attempt_directory):
        for status in page:
            name = status.path.rpartition("/")[2]
            task = parse_task(name)
            if task is not None and status.is_directory:
                if task.job == found.places.job:
                    found.tasks[task.task] = status
            elif not (name == TEMPORARY and status.is_directory):
                strange.append(status.path)
    if strange and strictly:
        one = len(strange) == 1
        those, them = (
            (f"`{strange[0].rpartition('/')[2]}` is", "it") if one else (f"{len(strange):,} names are", "them")
        )
        raise ManifestInvalid(
            f"{those} in a directory for committed tasks, and {'is' if one else 'are'} no task's",
            where="\n".join(run.url(path) for path in sorted(strange)[:5]),
            next_step=f"nothing was moved: find out who wrote {them}, and move {them} away; Hadoop would commit {them}",
        )
    return found


async def all_directories_of(run: JobRun) -> list[JobDirectories]:
    """Those of every attempt at the job."""
    return [await directories_of(run, number) for number in await attempts_found(run)]


async def tasks_elsewhere(run: JobRun) -> TasksElsewhere:
    """What these directories show. A file that grows shows in no directory, so what attempts write is looked at."""
    every = await all_directories_of(run)
    newest = [status.modified for found in every for status in found.tasks.values()]
    begun = {task for found in every for task, _ in found.attempts}
    for found in every:
        for _, directory in found.attempts:
            newest.append(directory.modified)
            async for page in run.store.list_tree(directory.path):
                newest += [status.modified for status in page]
    committed = frozenset(task for found in every for task in found.tasks)
    holding = [found.places.attempt_directory for found in every if any(found.paths())]
    return TasksElsewhere(
        committed, frozenset(begun) | committed, max(newest, default=0.0), holding[-1] if holding else ""
    )


async def delete_counted(run: JobRun, pinned: Container[str], left_out: Container[str]) -> None:
    """Delete the directories of a job that another program has set up, once it is committed here: of every attempt at
    it those of tasks that are `pinned`, and of the attempts of those that were `left_out` as not committed. What a task
    has committed since, or has begun since, stays, being in no commit.

    Raises:
        StoreError: one cannot be deleted.
    """
    every = await all_directories_of(run)
    over = [s.path for found in every for task, s in found.attempts if task in pinned or task in left_out]
    over += [status.path for found in every for task, status in found.tasks.items() if task in pinned]
    await delete_trees(run, over)
    kept = sorted({path for found in await all_directories_of(run) for path in found.paths()})
    if kept:
        run.log.warning("tasks have left more since the commit began: it is kept", where=kept[:5], count=len(kept))


async def delete_of_job(run: JobRun) -> None:
    """Delete the directories of this job, of every attempt at it. Those above stay, which may be another job's too.

    Raises:
        StoreError: one cannot be deleted.
    """
    every = await all_directories_of(run)
    for _ in range(TRIES):
        if not any(found.attempts for found in every):
            break
        # First what can still be renamed to a committed task's; then what was, until that was gone.
        await delete_trees(run, [status.path for found in every for _, status in found.attempts])
        every = await all_directories_of(run)
    await delete_trees(run, [path for found in every for path in found.paths()])

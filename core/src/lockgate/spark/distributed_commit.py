"""A job commit whose files are renamed by Spark's executors: for jobs of so many files, on a store so far away, that
one process cannot keep enough requests under way.

The driver keeps the fence, the record, what is set aside, the directories, and the commit point. Executors read the
manifests of their shares themselves. What keeps a late or repeated task from doing harm is in
`lockgate.engine.renames.move_share`.
"""

from __future__ import annotations

import asyncio
import copy
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.api.job import Job
from lockgate.api.moved_shares import moved
from lockgate.engine.run.logs import get_log
from lockgate.model.counted import counted
from lockgate.model.errors import CommitFailed, LockgateError, UsageError
from lockgate.model.receipt import Receipt
from lockgate.model.shares import Moved, Share
from lockgate.model.summary import Summary
from lockgate.model.urls import parse_url
from lockgate.spark.given_session import check_session
from lockgate.spark.workers import check_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log()

ENDED_SECONDS = 60
"""So long a driver whose commit fails waits for the tasks that it has cancelled."""

LOOK_SECONDS = 1.0
"""So often it is asked whether a task is at work."""

IDLE_SECONDS = 30.0
"""So long a driver waits for a first task to begin, or for another where none is at work any more, before it renames
the files itself."""

DISTRIBUTED_ABOVE = 10_000
"""Fewer files a driver renames by itself in less time than a Spark job takes to start."""


def commit(
    spark: SparkSession,
    job: Job,
    receipts: Sequence[Receipt] | None = None,
    *,
    above: int = DISTRIBUTED_ABOVE,
    tasks: int | None = None,
) -> Summary:
    """`job.commit(receipts)`, and a job of more than `above` files has them renamed by Spark tasks: so many `tasks`, or
    as many as the session runs at once (`defaultParallelism`).

    `requests_per_second_max` is the job's: each task keeps to its part of it. `requests_in_flight` is each task's. The
    options of the job's store, credentials among them, go to the executors as they do for its task attempts: within the
    pickled job. Where files are not renamed (the protocol `deferred`), this is `job.commit`.

    Raises:
        UsageError: no session is given, or one of Spark Connect, which has no tasks for it; or the executors' Python
            lacks what it needs.
        LockgateError: as `Job.commit`.
    """
    check_session(spark, "commit")
    if not hasattr(spark, "_jsparkSession"):
        raise UsageError(
            "a session of Spark Connect runs no tasks of a job commit",
            next_step="job.commit(receipts) renames the files from this process",
        )
    context = spark.sparkContext
    check_workers(spark, parse_url(job.url).scheme)
    return job.commit(receipts, movers=SparkMovers(context, job, above, tasks or context.defaultParallelism))


_RAISED = re.compile(r"\s*[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b:? ")


class SparkGaveUp(Exception):
    """A task that renames files has ended without an answer, more often than Spark tries."""


class SparkMovers:
    """Spark's tasks as the movers of a job, a task for each share."""

    def __init__(self, context: Any, job: Job, above: int, tasks: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._context = context
        self._job = job
        self._above = above
        self._tasks = tasks
        self._idle_seconds = idle_seconds

    def wanted(self, files: int) -> int:
        """None, if the job has no more files than the threshold."""
        return self._tasks if files > self._above else 0

    async def move(self, shares: Sequence[Share]) -> list[Moved] | None:
        """Each share moved, by a Spark job in a group of its own; None where no task of it was at work for a time, as
        where no executor is free.

        Raises:
            LockgateError: of the first share that could not be moved, its own error; of one whose task Spark gave up,
                an error that holds Spark's.
        """
        try:
            return await self.moved(shares)
        except SparkGaveUp as error:
            raise CommitFailed(
                f"Spark gave up a task that renames files: {error}",
                where=self._job.url,
                next_step="job.commit(receipts) renames the files from the driver; a job that was undone is run again",
            ) from error

    async def moved(self, shares: Sequence[Share]) -> list[Moved] | None:
        """As `move`.

        Raises:
            LockgateError: of the first share that could not be moved, its own error.
            SparkGaveUp: of one whose task Spark gave up.
        """
        group = f"lockgate-{uuid.uuid4()}"
        work = asyncio.ensure_future(asyncio.to_thread(self._run, group, shares))
        idle_since = time.monotonic()
        try:
            while True:
                await asyncio.wait([work], timeout=LOOK_SECONDS)
                if work.done():
                    return work.result()
                if await asyncio.to_thread(self._is_at_work, group):
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > self._idle_seconds:
                    log.warning(
                        "no executor of Spark's is free to rename files; the driver renames them",
                        job=self._job.job_id,
                        waited_seconds=self._idle_seconds,
                    )
                    await self._end(group, work)
                    return None
        except asyncio.CancelledError:
            await self._end(group, work)
            raise

    def _is_at_work(self, group: str) -> bool:
        """Whether some task of the group runs now."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(each) for job in jobs if job is not None for each in job.stageIds]
        return any(stage.numActiveTasks for stage in stages if stage is not None)

    async def _end(self, group: str, work: asyncio.Future[Any]) -> None:
        # Again and again: it may not have come to Spark yet.
        for _ in range(ENDED_SECONDS):
            await asyncio.to_thread(self._context.cancelJobGroup, group)
            await asyncio.wait([work], timeout=1.0)
            if work.done():
                work.exception()  # asked for, so that nobody is told of an error that was never retrieved
                break

    def _run(self, group: str, shares: Sequence[Share]) -> list[Moved]:
        context = self._context
        files = sum(share.files for share in shares)
        told = f"lockgate: renames {counted(files, 'file')} of job {self._job.job_id}"
        context.setJobGroup(group, told, interruptOnCancel=True)
        try:
            answers: list[Any] = (
                context.parallelize(shares, len(shares)).mapPartitions(_task(self._job, len(shares))).collect()
            )
        except Exception as error:  # whatever Spark has to say of a task that has ended without an answer
            raise SparkGaveUp(_first_line(error)) from error
        for answer in answers:
            if isinstance(answer, LockgateError):
                raise answer
        return answers


def _task(job: Job, tasks: int) -> Any:
    """What a Spark task does with its share. An error of ours is its answer: Spark would lose its type, and try again
    what is decided."""
    at_most = job.options.requests_per_second_max
    mine = copy.copy(job)
    mine._store = None
    if at_most:
        mine.options = job.options.replace(requests_per_second_max=max(1, at_most // tasks))

    def move(shares: Iterable[Share]) -> Iterator[Moved | LockgateError]:
        for share in shares:
            try:
                yield moved(mine, share)
            except LockgateError as error:
                yield error

    return move


def _first_line(error: Exception) -> str:
    """What Spark says, and, of an exception in a Python worker, what that was: the last line of its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    first = lines[0][:500] if lines else type(error).__name__
    if not first.rstrip().endswith(":"):
        return first
    named = next((line.strip() for line in lines if _RAISED.match(line)), "")
    return f"{first} {named[:500]}".strip()

"""Spark's executors as the movers of a job whose commit runs in a process that has no Spark session.

The commits of `format("lockgate")` and of Spark's own writers run in Python processes that Spark's JVM starts. Where
the driver program has called `lockgate.spark.distribute`, it answers on a Unix socket, which the job's options name,
and has the files renamed for them. Whatever keeps it from doing that, the process renames them itself: the job then
takes longer, and is committed all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from lockgate.api.job import Job
from lockgate.engine.run.logs import get_log
from lockgate.model.errors import LockgateError
from lockgate.model.shares import Moved, Share

log = get_log()

ASK_SECONDS = 10.0
"""So long the driver program may take to say how many movers there are."""


def movers_for(job: Job) -> AskedMovers | None:
    """The movers that the job's options promise; None where they ask for none."""
    return AskedMovers(job) if job.options.movers_above else None


class AskedMovers:
    """Movers that another process of this host and this user has at work."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._connection: Connection[Any, Any] | None = None

    def wanted(self, files: int) -> int:
        """As many as the driver program has executors for; none, if the job has no more files than its option
        `movers_above`, or where that cannot be asked."""
        if files <= self._job.options.movers_above:
            return 0
        socket = self._job.options.movers_socket
        if not socket:
            self._alone("no driver program offers executors: lockgate.spark.distribute(spark) was not called in one")
            return 0
        try:
            # Whoever answers gets the job, with the credentials of its store.
            if Path(socket).stat().st_uid != os.geteuid():
                self._alone(f"{socket} is another user's")
                return 0
            self._connection = Client(socket, family="AF_UNIX")
            self._connection.send("how many")
            if not self._connection.poll(ASK_SECONDS):
                raise TimeoutError(f"no answer in {ASK_SECONDS:.0f} s")
            count = int(self._connection.recv())
        except (OSError, EOFError) as error:
            self._alone(f"the driver program does not answer: {type(error).__name__}: {error}")
            return 0
        if count < 2:
            self._connection.close()
            self._alone(
                "no executors are registered with it, or one only; a local master has none, and nothing is wrong"
            )
        return count

    async def move(self, shares: Sequence[Share]) -> Sequence[Moved] | None:
        """Each share moved by a Spark task; None where Spark could not.

        Raises:
            LockgateError: of the first share that could not be moved, its own error.
        """
        connection = self._connection
        assert connection is not None
        work = asyncio.ensure_future(asyncio.to_thread(_answered, connection, self._job, list(shares)))
        try:
            told, problem = await asyncio.shield(work)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):  # it may have ended itself
                connection.send("end")
            await asyncio.wait([work])  # its tasks have ended by then, or a minute is over
            raise
        finally:
            connection.close()
        if isinstance(told, LockgateError):
            raise told
        if told is None:
            self._alone(problem)
        found: Sequence[Moved] | None = told
        return found

    def _alone(self, why: str) -> None:
        log.warning("executors do not rename the files of this job; the driver does", job=self._job.job_id, why=why)


def _answered(connection: Connection[Any, Any], job: Job, shares: list[Share]) -> tuple[Any, str]:
    """What has become of the shares; or nothing, and why."""
    try:
        connection.send((job, shares))
        told, problem = connection.recv()
        return told, str(problem)
    except Exception as error:  # it has ended, and its executors end with it; or it is of another version
        return None, f"the driver program has not answered: {type(error).__name__}: {error}"

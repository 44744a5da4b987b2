"""What the drivers of this process could not say in their records when their commits failed, said as soon as it can be.

A full disk has no room for a version of the record, so others take such a driver for one that is at work, as long as
its process lives and its last version is not old. It holds the record, and nobody else could say it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import LockgateError, StoreError

SECONDS_BETWEEN = 5.0
"""How long it waits before it tries again by itself."""

_WAITING: dict[int, tuple[JobRun, int]] = {}
"""The runs that have something to say, by their identities, each with the process that it is of: a forked one leaves it
to its parent."""


@contextmanager
def said_later(run: JobRun) -> Iterator[None]:
    """After the body, in which jobs are committed by this run: what they could not say is said once that is possible;
    by itself for as long as anybody could take their drivers for alive."""
    try:
        yield
    finally:
        if run.unsaid:
            _WAITING[id(run)] = run, os.getpid()
            asyncio.run_coroutine_threadsafe(_keep_trying(run), IO_LOOP.loop)


def say_now(run: JobRun) -> None:
    """As `try_to_say`, for callers that are not asynchronous."""
    if _WAITING:
        IO_LOOP.run(try_to_say(run))


async def try_to_say(run: JobRun) -> None:
    """Try to say it of the jobs at the destination of this run. Called before something is done there."""
    for waiting, process in list(_WAITING.values()):
        if process == os.getpid() and waiting.store.url == run.store.url:
            await _say(waiting)


async def _keep_trying(run: JobRun) -> None:
    until = time.monotonic() + run.options.alive_seconds
    try:
        while run.unsaid and time.monotonic() < until:
            await asyncio.sleep(SECONDS_BETWEEN)
            await _say(run)
    finally:
        _WAITING.pop(id(run), None)


async def _say(run: JobRun) -> None:
    for _ in range(len(run.unsaid)):
        if not run.unsaid:  # another has taken it
            return
        say = run.unsaid.pop(0)
        try:
            await say()
        except StoreError as error:
            run.log.info("the commit record could still not say that the commit has failed", error=str(error))
            run.unsaid.append(say)
        except LockgateError as error:  # somebody else has ended the job, or is at it
            run.log.info("nothing is left to say of the commit that has failed", error=str(error))

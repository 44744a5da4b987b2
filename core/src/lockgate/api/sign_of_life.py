"""The sign of life that a driver or a task attempt renews while it is at work."""

from __future__ import annotations

import asyncio
import threading
import weakref

from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.record.signs_of_life import SIGNS_A_TIME, show_life
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import LockgateError


def shown_while(owner: object, run: JobRun, who: str) -> SignOfLife:
    """A sign of life that is shown at most for as long as its owner is held by anybody."""
    sign = SignOfLife(run, who)
    weakref.finalize(owner, sign.stop).atexit = False
    return sign


class SignOfLife:
    """Shown from time to time from now on, until `stop`, the end of the process, or of the job."""

    def __init__(self, run: JobRun, who: str) -> None:
        self._run = run
        self._who = who
        self._seconds = run.options.alive_seconds / SIGNS_A_TIME
        self._stopped = threading.Event()
        self._loop = IO_LOOP.loop
        self._timer: asyncio.TimerHandle | None = None
        self._showing: asyncio.Task[None] | None = None
        if self._seconds:
            self._loop.call_soon_threadsafe(self._wait)

    def stop(self) -> None:
        """Show no more. Does not wait for one that is under way."""
        self._stopped.set()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _wait(self) -> None:
        if not self._stopped.is_set():
            self._timer = self._loop.call_later(self._seconds, self._begin)

    def _begin(self) -> None:
        self._showing = self._loop.create_task(self._show())

    async def _show(self) -> None:
        try:
            if not await show_life(self._run, self._who):
                return
        except LockgateError as error:
            self._run.log.info(
                "the file that says that this job is at work was not renewed", who=self._who, error=str(error)
            )
        self._wait()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

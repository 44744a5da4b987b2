"""One event loop in a thread of its own, for callers that are not asynchronous.

Stores keep connections that belong to an event loop, and Python callers (a notebook, a Spark worker, a REPL) may
or may not have one running. So the engine always runs on this loop, and a synchronous call waits for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")

CANCEL_SECONDS = 600.0
"""How long an interrupted call waits for its rollback before it gives up waiting."""


class IoLoop:
    """The loop and its thread. Made at the first call in a process, and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="lockgate-io", daemon=True).start()
                # Only now: a loop that nobody runs would keep its callers waiting.
                self._loop, self._process = loop, os.getpid()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and wait for it. A KeyboardInterrupt (or any exception raised in the waiting thread, such as
        from a signal handler) cancels the work and waits until its cancellation, rollback included, is over; an error
        of the rollback is a note of the exception."""
        interrupted, ended = threading.Event(), threading.Event()
        started: list[asyncio.Task[Any]] = []
        errors: list[Exception] = []

        async def unless_interrupted() -> T | None:
            try:
                if interrupted.is_set():
                    work.close()
                    return None
                started.append(cast(asyncio.Task[Any], asyncio.current_task()))
                return await work
            except Exception as error:
                if not interrupted.is_set():
                    raise
                # Nobody waits for a result any more.
                errors.append(error)
                return None
            finally:
                ended.set()

        try:
            # An interruption may come before there is anything to wait for: the work may be under way all the same.
            return cast(T, asyncio.run_coroutine_threadsafe(unless_interrupted(), self.loop).result())
        except concurrent.futures.CancelledError:
            raise
        except BaseException as interruption:
            if not ended.is_set():
                interrupted.set()
                _cancel(self.loop, started)
                for error in errors:
                    interruption.add_note(str(error))
            raise


def _cancel(loop: asyncio.AbstractEventLoop, started: list[asyncio.Task[Any]]) -> None:
    """Cancel what has started and wait until it has ended. What has not started by then does not start."""
    done = threading.Event()

    async def cancel() -> None:
        for task in started:
            task.cancel()
        if started:
            await asyncio.wait(started)
        done.set()

    asyncio.run_coroutine_threadsafe(cancel(), loop)
    done.wait(CANCEL_SECONDS)


IO_LOOP = IoLoop()

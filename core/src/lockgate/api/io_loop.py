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
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                threading.Thread(target=self._loop.run_forever, name="lockgate-io", daemon=True).start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and wait for it. A KeyboardInterrupt (or any exception raised in the waiting thread, such as
        from a signal handler) cancels the work and waits until its cancellation, rollback included, is over; an error
        of the rollback is a note of the exception."""
        interrupted = threading.Event()
        errors: list[Exception] = []

        async def unless_interrupted() -> T | None:
            try:
                return await work
            except Exception as error:
                if not interrupted.is_set():
                    raise
                # Nobody waits for a result any more.
                errors.append(error)
                return None

        future = asyncio.run_coroutine_threadsafe(unless_interrupted(), self.loop)
        try:
            return cast(T, future.result())
        except concurrent.futures.CancelledError:
            raise
        except BaseException as interruption:
            if not future.done():
                interrupted.set()
                future.cancel()
                _wait_for_cancellation(self.loop)
                for error in errors:
                    interruption.add_note(str(error))
            raise


def _wait_for_cancellation(loop: asyncio.AbstractEventLoop) -> None:
    # The caller's future is cancelled at once, before its task has ended: so the loop's tasks are what is waited for.
    done = threading.Event()

    async def watch() -> None:
        current = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not current and task.cancelling()]
        if others:
            await asyncio.wait(others)
        done.set()

    asyncio.run_coroutine_threadsafe(watch(), loop)
    done.wait(CANCEL_SECONDS)


IO_LOOP = IoLoop()

"""A server of the lab inside a test's own process, in a thread with an event loop of its own.

For tests that are synchronous, or that must not share an event loop with what they test. The server's CPU is then the
test's: for figures run it as a process of its own (`python -m lockgate_lab`, started by `ServerProcess`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from lockgate_lab.lifecycle import LoopServer, Startable
from lockgate_lab.server_process import LabControl

Result = TypeVar("Result")
Server = TypeVar("Server", bound=LoopServer)


class Lab(Startable, Generic[Server]):
    """Runs a server in a daemon thread from `start` to `stop`; a context manager.

    The server's state belongs to its loop: touch it through `on_loop`, or through the control routes (`control`).
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread and the server in it; raises what the server's start raised."""
        started: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(self._loop, started), daemon=True, name="lab")
        self._thread.start()
        try:
            started.result(30)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server and its thread. Does nothing when it is not running."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)

    def on_loop(self, function: Callable[[], Result]) -> Result:
        """Call a function between two requests, on the server's loop, and return its result."""
        if self._loop is None:
            raise RuntimeError("the server is not running")

        async def called() -> Result:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(30)

    @property
    def url(self) -> str:
        """The server's URL, without a slash at its end."""
        return self.server.url()

    @property
    def control(self) -> LabControl:
        """The server's control routes."""
        return LabControl(f"{self.url}/_lab")

    def _serve(self, loop: asyncio.AbstractEventLoop, started: Future[None]) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self.server.start())
        except BaseException as error:
            started.set_exception(error)
            loop.run_forever()  # until `stop` is called, which is at once
        else:
            started.set_result(None)
            loop.run_forever()
            loop.run_until_complete(self.server.stop())
        finally:
            tasks: set[asyncio.Task[Any]] = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

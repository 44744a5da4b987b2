"""An event loop in a thread of its own, on which files are uploaded while plain code writes them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class UploadLoop:
    """The loop, made at the first use in a process and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def forget(self) -> None:
        """In a forked child: the thread stayed with the parent."""
        self._lock = threading.RLock()
        self._loop = None

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start `work` on the loop. May be called anywhere: by a finalizer, too, on the loop's own thread or on one
        that is about to start something else."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="lockgate-upload", daemon=True).start()
            loop = self._loop
        return asyncio.run_coroutine_threadsafe(work, loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and wait for it; an interrupted wait cancels it. Never called on the loop's own thread."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


UPLOAD_LOOP = UploadLoop()
os.register_at_fork(after_in_child=UPLOAD_LOOP.forget)

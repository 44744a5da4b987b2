"""Blocking calls of a client library, in a bounded number of threads, each with a deadline.

For libraries that have no time-outs, or panic, or block for ever on a server that accepts and never answers. A call
that outlasts its deadline is given up: its caller goes on, and its thread is replaced, until as many calls hang as
there may be threads; then every further call fails at once, without being sent. The threads are daemons, so that a call
that hangs never keeps a process from ending.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockgate.engine.run.logs import get_log
from lockgate.model.errors import AnswerLost, StoreError, StoreUnavailable
from lockgate.stores.http.exchange import Repeat
from lockgate.stores.repeats import GONE_PATIENCE, Repeats

log = get_log("lockgate.stores")

T = TypeVar("T")

BACK_OFF_SECONDS = 0.05
BACK_OFF_SECONDS_MAX = 5.0
IDLE_SECONDS = 10.0


class CallFailed(Exception):
    """A call brought no definite answer. `may_have_acted`: the server may have acted on it; `is_answer`: it has
    answered, and refused for now; `why_never`: why no connection can be made to this address, if that is known."""

    def __init__(self, reason: str, *, may_have_acted: bool, is_answer: bool = False, why_never: str = "") -> None:
        super().__init__(reason)
        self.may_have_acted = may_have_acted
        self.is_answer = is_answer
        self.why_never = why_never


@dataclass(eq=False)
class _Task(Generic[T]):
    work: Callable[[], T]
    future: concurrent.futures.Future[T] = field(default_factory=concurrent.futures.Future)
    began: float | None = None
    given_up: bool = False


class CallThreads:
    """Threads for one store. Calls may come from any event loop and any thread; a forked child makes its own.

    A thread that has had nothing to do for `IDLE_SECONDS` ends; `at_end` is called in each thread that ends.

    `timeout_s` is for one call, from the moment its thread takes it; `patience_s` for a call with its repetitions.
    """

    def __init__(
        self,
        name: str,
        threads_max: int,
        timeout_s: float,
        patience_s: float,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.threads_max = threads_max
        self._at_end = at_end
        self._name = name
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._random = random.Random()
        self._repeats = Repeats()
        self._has_answered = False
        self._is_gone = False
        self._start_over()

    def _start_over(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Task[object] | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._hanging = 0

    async def ask(self, kind: str, where: str, work: Callable[[], T], repeat: Repeat = Repeat.FREELY) -> T:
        """Make a call, again where that is safe; `kind` and `where` are for errors.

        `work` raises `CallFailed` where there is no definite answer. A cancelled `ask` returns once its call has ended,
        or has outlasted its deadline.

        Raises:
            StoreUnavailable: no definite answer for longer than the patience, and surely nothing was done, or it does
                no harm.
            AnswerLost: it may have been done.
        """
        failing_since: float | None = None
        patience_s = self._patience_s * (GONE_PATIENCE if self._is_gone else 1)
        tries = 0
        doubtful = False
        while True:
            try:
                answer = await self._once(work)
            except StoreError:
                self._answered()
                raise
            except CallFailed as error:
                reason = str(error)
                if error.is_answer:
                    self._answered()
                elif error.why_never and not self._has_answered:
                    raise self._unreachable(kind, where, error) from error
                doubtful = doubtful or error.may_have_acted
                now = time.monotonic()
                failing_since = now if failing_since is None else failing_since
                wait_s = min(BACK_OFF_SECONDS_MAX, BACK_OFF_SECONDS * 2 ** min(tries, 10))
                wait_s *= 0.5 + self._random.random()
                tries += 1
                careful = repeat is Repeat.WITH_CARE
                over = now + wait_s > failing_since + patience_s
                if (careful and error.may_have_acted) or over:
                    self._is_gone = over and not error.is_answer
                    raise self._given_up(kind, where, reason, tries, lost=careful and doubtful) from error
            else:
                self._answered()
                return answer
            log.debug("call is repeated", kind=kind, where=where, reason=reason, wait_s=round(wait_s, 3))
            self._repeats.tell(where, reason, now, failing_since, failing_since + patience_s)
            await asyncio.sleep(wait_s)

    def _answered(self) -> None:
        self._has_answered, self._is_gone = True, False

    async def _once(self, work: Callable[[], T]) -> T:
        task = self._submit(work)
        ended = asyncio.wrap_future(task.future)
        try:
            await self._wait(task, ended)
        except asyncio.CancelledError:
            if not task.future.cancel():
                await self._wait(task, ended)
                ended.cancel()
            raise
        if not ended.done():
            self._give_up(task)
            ended.cancel()
            raise CallFailed(f"no answer within {self._timeout_s:g} s", may_have_acted=True)
        return ended.result()

    async def _wait(self, task: _Task[T], ended: asyncio.Future[T]) -> None:
        """Until the call has ended or its deadline has passed; while it waits for a thread it has none."""
        while not ended.done():
            began = task.began
            left_s = self._timeout_s if began is None else began + self._timeout_s - time.monotonic()
            if left_s <= 0:
                return
            await asyncio.wait({ended}, timeout=left_s)

    def _submit(self, work: Callable[[], T]) -> _Task[T]:
        if self._process != os.getpid():
            self._start_over()
        task = _Task(work)
        with self._lock:
            if self._hanging >= self.threads_max:
                raise CallFailed(f"{self._hanging} earlier calls hang", may_have_acted=False)
            if self._idle <= self._queue.qsize() and self._threads - self._hanging < self.threads_max:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"{self._name}-call", daemon=True).start()
            self._queue.put(task)  # type: ignore[arg-type]  # a task of any type is served
        return task

    def close(self) -> None:
        """Let idle threads end now, and busy ones after their call. A later call begins new ones."""
        with self._lock:
            for _ in range(self._threads):
                self._queue.put(None)

    def _give_up(self, task: _Task[T]) -> None:
        with self._lock:
            if not task.future.done():
                task.given_up = True
                self._hanging += 1

    def _serve(self) -> None:
        try:
            while self._serve_one():
                pass
        finally:
            self._at_end()

    def _serve_one(self) -> bool:
        """Serve the next task; False where this thread is to end."""
        with self._lock:
            self._idle += 1
        try:
            task = self._queue.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            task = None
        with self._lock:
            self._idle -= 1
            if task is None:
                # A task may have come since, counting on this thread.
                if not self._queue.empty():
                    return True
                self._threads -= 1
                return False
        if task.future.set_running_or_notify_cancel():
            task.began = time.monotonic()
            self._work(task)
        with self._lock:
            if task.given_up:
                # Another thread has taken this one's place.
                self._hanging -= 1
                self._threads -= 1
        return not task.given_up

    def _work(self, task: _Task[object]) -> None:
        try:
            result, failure = task.work(), None
        except Exception as error:
            result, failure = None, error
        except BaseException as error:  # a panic of a native library is no Exception
            result, failure = None, CallFailed(f"the client panicked: {error}", may_have_acted=True)
        with self._lock:
            if failure is None:
                task.future.set_result(result)
            else:
                task.future.set_exception(failure)

    def _given_up(self, kind: str, where: str, reason: str, tries: int, *, lost: bool) -> StoreUnavailable:
        times = "once" if tries == 1 else f"{tries} times"
        if lost:
            return AnswerLost(f"{kind}: tried {times}, and it may have been done: {reason}", where=where)
        return StoreUnavailable(
            f"{kind}: tried {times}, last: {reason}",
            where=where,
            next_step="check the address; if the store is only slow, raise patience_seconds or timeout_seconds",
        )

    def _unreachable(self, kind: str, where: str, error: CallFailed) -> StoreUnavailable:
        return StoreUnavailable(f"{kind}: no connection: {error}", where=where, next_step=error.why_never)

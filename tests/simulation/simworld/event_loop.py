"""An asyncio event loop that owns time and order: no thread, no socket, no sleep; a seed chooses who runs next.

Real `asyncio.Task` and `asyncio.sleep` run on it. What asyncio offers beyond callbacks, timers, tasks and futures
is absent on purpose: the engine has no business there.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

ACTOR: contextvars.ContextVar[str] = contextvars.ContextVar("actor")
"""Whose work runs. What an actor does at once, in tasks of its own making, has inherited it."""


class Turn:
    """A callback that waits for its turn; the event loop's handle."""

    __slots__ = ("arguments", "call", "context")

    def __init__(self, call: Callable[..., Any], arguments: tuple[Any, ...], context: contextvars.Context | None):
        self.call: Callable[..., Any] | None = call
        self.arguments = arguments
        self.context = context

    def cancel(self) -> None:
        """Never run it."""
        self.call = None


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs what is ready in an order drawn from `random`, and moves `now` (virtual seconds) when it chooses.

    `stickiness` is how likely the callback that became ready last runs next, so that one actor goes on undisturbed;
    `hurry` is how likely a timer fires although others are ready: they are then the slow ones.
    """

    def __init__(self, random: Random, *, stickiness: float, hurry: float) -> None:
        self._draw = random.random
        self._stickiness = stickiness
        self._hurry = hurry
        self._ready: list[Turn] = []
        self._timers: list[tuple[float, int, Turn]] = []
        self._sequence = 0
        self.now = 0.0
        self.turns = 0
        self.choose: Callable[[int], int] | None = None
        """Where set, it chooses instead of chance: of so many actors that are ready, counted from the one that was made
        ready last, which runs next. For systematic exploration. In what order an actor does what it does at once is
        not explored: only chance varies that."""
        self.over = False
        """Set when the history has ended: what actors that crashed leave behind is let go of without a word."""
        self.halted = False
        """Set by a judge that has seen enough."""

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:  # type: ignore[override]
        """Make a callback ready."""
        if context is None and self.choose is not None:
            context = contextvars.copy_context()
        turn = Turn(callback, args, context)
        self._ready.append(turn)
        return turn

    def call_at(self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:  # type: ignore[override]
        """Make a callback ready at a virtual time."""
        if context is None and self.choose is not None:
            context = contextvars.copy_context()
        turn = Turn(callback, args, context)
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, turn))
        return turn

    def call_later(self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None) -> Any:  # type: ignore[override]
        """Make a callback ready after so many virtual seconds."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """A plain future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: contextvars.Context | None = None) -> Any:
        """A plain task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Asked by asyncio only while it runs."""
        return True

    def is_closed(self) -> bool:
        """There is nothing to close."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An exception that nobody awaited is a mistake of the simulation itself, except of actors that crashed."""
        quiet = "was destroyed but it is pending" in context.get("message", "")
        if not quiet and not self.over:
            raise RuntimeError(str(context))

    def run(self, coroutines: Sequence[Coroutine[Any, Any, Any]] = (), *, until: float, turns_max: int) -> bool:
        """Run until nothing is left to run before the virtual time `until`; False: `turns_max` was reached."""
        for coroutine in coroutines:
            self.create_task(coroutine)
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            return self._run(until, turns_max)
        finally:
            asyncio._set_running_loop(before)

    def _run(self, until: float, turns_max: int) -> bool:
        ready, timers, draw, choose = self._ready, self._timers, self._draw, self.choose
        turns = 0
        while not self.halted:
            if timers and (not ready or (self._hurry and draw() < self._hurry)):
                when = timers[0][0]
                if when > until:
                    if not ready:
                        self.now = until
                        self.turns += turns
                        return True
                else:
                    turn = heapq.heappop(timers)[2]
                    if turn.call is None:
                        continue
                    self.now = max(self.now, when)
                    ready.append(turn)
                    while choose is not None and timers and timers[0][0] <= self.now:
                        ready.append(heapq.heappop(timers)[2])
            if not ready:
                self.turns += turns
                return True
            waiting = len(ready)
            if waiting == 1:
                turn = ready.pop()
            elif choose is not None:
                turn = self._take_of_chosen_actor(choose)
            elif draw() < self._stickiness:
                turn = ready.pop()
            else:
                index = int(draw() * waiting)
                turn = ready[index]
                ready[index] = ready[-1]
                ready.pop()
            if turn.call is None:
                continue
            turns += 1
            if turns > turns_max:
                self.turns += turns
                return False
            if turn.context is None:
                turn.call(*turn.arguments)
            else:
                turn.context.run(turn.call, *turn.arguments)
        self.turns += turns
        return True

    def _take_of_chosen_actor(self, choose: Callable[[int], int]) -> Turn:
        latest: dict[object, int] = {}
        for index in range(len(self._ready) - 1, -1, -1):
            context = self._ready[index].context
            assert context is not None
            latest.setdefault(context.get(ACTOR) or id(context), index)
        places = list(latest.values())
        return self._ready.pop(places[choose(len(places))] if len(places) > 1 else places[0])


def simulated_loop(random: Random, stickiness: float = 0.0, hurry: float = 0.0) -> SimulatedLoop:
    """A new loop at virtual second 0."""
    # What asyncio has beyond this is left abstract.
    return SimulatedLoop(random, stickiness=stickiness, hurry=hurry)  # type: ignore[abstract]

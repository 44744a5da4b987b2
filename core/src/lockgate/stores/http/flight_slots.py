"""Places for requests at work: as many as `InFlight` says, given out in the order in which they are asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from lockgate.stores.in_flight import InFlight


class FlightSlots:
    """An asynchronous context manager of one event loop: inside it a request may be at work.

    Callers are served in the order they came. More are let in as soon as `flight` widens, at the next that leaves.
    """

    def __init__(self, flight: InFlight) -> None:
        self.flight = flight
        self._at_work = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def are_full(self) -> bool:
        """Whether no more can be at work now."""
        return self._at_work >= self.flight.limit

    async def __aenter__(self) -> None:
        """Wait for a place."""
        if self._at_work < self.flight.limit and not self._waiting:
            self._at_work += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):  # passed over already
                    self._waiting.remove(turn)
            else:
                # The place was given in the same moment: it is the next one's.
                self._leave()
            raise

    async def __aexit__(self, *failure: object) -> None:
        """Leave the place to the next."""
        self._leave()

    def _leave(self) -> None:
        self._at_work -= 1
        while self._waiting and self._at_work < self.flight.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._at_work += 1
                turn.set_result(None)

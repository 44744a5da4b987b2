"""A proxy that does something at one request of a client: at the k-th since it was armed, counted as they arrive.

Either before the store hears of that request, or when the store has carried it out and nobody was told. Then the
client's connection is reset. What happens is the test's: a client that is killed there with SIGKILL has a moment of
death that is known exactly, which no clock can give; one that is left alive meets a lost request, or a lost answer.
Or the request, or its answer, is held as long as that takes, and then goes on its way: a client that is stopped
meanwhile (SIGSTOP) has slept there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lockgate_lab.fault_proxy import FaultProxy, reset_connection
from lockgate_lab.fault_schedule import FaultSchedule
from lockgate_lab.lab import Lab
from lockgate_lab.request_log import without_signature

STRUCK = "struck"
"""The fault that the request log names."""


@dataclass
class Armed:
    """What a proxy waits for, and what it has seen since: `asked` are the requests, in the order of their arrival.

    `at` None: it only counts. `answered`: the store carries the request out first. `holds`: it is held until what
    happens is over, and nothing is reset.
    """

    at: int | None = None
    answered: bool = False
    holds: bool = False
    happens: Callable[[], None] | None = None
    asked: list[str] = field(default_factory=list)
    in_flight: int = 0

    @property
    def came(self) -> bool:
        """Whether there was such a request."""
        return self.at is not None and len(self.asked) > self.at


class MomentProxy(FaultProxy):
    """A fault proxy that can be armed for one request."""

    def __init__(self, upstream: str, schedule: FaultSchedule | None = None, **options: Any) -> None:
        super().__init__(upstream, schedule, **options)
        self.armed: Armed | None = None

    async def _decide_and_forward(
        self, request: web.BaseRequest, operation: str, body: bytes
    ) -> tuple[web.Response | None, int, str]:
        armed = self.armed
        if armed is None:
            return await super()._decide_and_forward(request, operation, body)
        strikes = len(armed.asked) == armed.at
        armed.asked.append(f"{operation} {request.method} {without_signature(request.raw_path)}")
        armed.in_flight += 1
        try:
            if strikes and not armed.answered:
                if not armed.holds:
                    return self._strike(armed, request, 599)
                await self._hold(armed)
            response, status, fault = await super()._decide_and_forward(request, operation, body)
            if strikes and armed.answered:
                if not armed.holds:
                    return self._strike(armed, request, status)
                await self._hold(armed)
            return response, status, fault
        finally:
            armed.in_flight -= 1

    def _strike(self, armed: Armed, request: web.BaseRequest, status: int) -> tuple[None, int, str]:
        if armed.happens is not None:
            armed.happens()
        reset_connection(request.transport)
        return None, status, STRUCK

    async def _hold(self, armed: Armed) -> None:
        if armed.happens is not None:
            await asyncio.to_thread(armed.happens)


class MomentProxyLab(Lab[MomentProxy]):
    """A `MomentProxy` in a thread of its own; takes the same arguments."""

    def __init__(self, upstream: str, schedule: FaultSchedule | None = None, **options: Any) -> None:
        super().__init__(MomentProxy(upstream, schedule, **options))

    def arm(
        self,
        at: int | None = None,
        *,
        answered: bool = False,
        holds: bool = False,
        happens: Callable[[], None] | None = None,
    ) -> Armed:
        """Count from the next request on, and let `happens` happen at number `at`, from 0: in the proxy's thread, so
        that nothing else passes meanwhile; or, where it `holds` that request, in one of its own."""
        armed = Armed(at, answered, holds, happens)

        def set_armed() -> None:
            self.server.armed = armed

        self.on_loop(set_armed)
        return armed

    def disarm(self) -> None:
        """Let everything pass, once no request that was counted is on its way to the store any more."""
        armed = self.server.armed
        # What a client that was killed had sent has arrived, on loopback: the loop reads it before it does this.
        while armed is not None and self.on_loop(lambda: armed.in_flight):
            time.sleep(0.002)

        def set_disarmed() -> None:
            self.server.armed = None

        self.on_loop(set_disarmed)

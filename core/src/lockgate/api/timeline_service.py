"""The timeline server: an HTTP service in the driver that makes markers for the job's task attempts.

What it answers `protocols.markers.timeline_answers` says, so that Hudi's `TimelineServerBasedWriteMarkers` is a client
of it.

It is not encrypted and asks for no password, as Hudi's is not and does not: whoever reaches it can have markers made
for files whose names hold the job's tags, and read which there are. It deletes nothing.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Awaitable, Callable
from weakref import WeakSet

from aiohttp import web

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import StoreError
from lockgate.protocols.markers.timeline_answers import BASE, GETS, POSTS, SERVED_BY, TimelineAnswers

BACKLOG = 4096
"""So many task attempts may connect at once; one that the system turns away tries again seconds later."""

_LISTENING: WeakSet[socket.socket] = WeakSet()


def _let_go_of_ports() -> None:
    """In a process that the driver forks: it would keep the port when the driver has let go of it, or is dead, and who
    asks there would wait for an answer that nobody gives."""
    for listening in list(_LISTENING):
        listening.close()


os.register_at_fork(after_in_child=_let_go_of_ports)


class TimelineService:
    """The service of one job. `start` and `stop` on the event loop that it is to run on."""

    def __init__(self, run: JobRun) -> None:
        self._answers = TimelineAnswers(run)
        self.batches = self._answers.batches
        self._runner: web.AppRunner | None = None

    async def start(self, address: str) -> str:
        """Listen at HOST or HOST:PORT, or, if that is empty, at this host's address and a free port.

        Returns where tasks reach it.

        At an IPv4 address that this host has it listens there alone; at a name, or at an address that others know this
        host by, at all of its addresses.

        Raises:
            StoreError: it cannot listen there.
        """
        host, _, port = address.rpartition(":") if re.search(r":[0-9]+\Z", address) else (address, "", "")
        app = web.Application()
        app.add_routes([web.get(f"{BASE}/{question}", self._answered(question)) for question in GETS])
        app.add_routes([web.post(f"{BASE}/{question}", self._answered(question)) for question in POSTS])
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        own = host or _own_address()
        try:
            # A host that was given may be how others reach this one, and none of its own addresses.
            everywhere = bool(host) and not _is_own(host)
            await self._listen("0.0.0.0" if everywhere else own, int(port or 0))  # noqa: S104
            listens_at = int(self._runner.addresses[0][1])
            if everywhere:
                await self._listen_by_ipv6(listens_at)
        except (OSError, ValueError) as error:
            await self._runner.cleanup()
            raise StoreError(
                f"the timeline server cannot listen: {error}",
                where=f"markers_address={address}",
                next_step="give another address, or markers_type=direct",
            ) from error
        return f"{own}:{listens_at}"

    async def _listen(self, host: str, port: int) -> None:
        assert self._runner is not None
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
        _LISTENING.add(listening)
        await web.SockSite(self._runner, listening, backlog=BACKLOG).start()

    async def _listen_by_ipv6(self, port: int) -> None:
        """At the port that was found by IPv4: asked for both at once, asyncio takes a free port for each, and tasks are
        told one."""
        try:
            await self._listen("::", port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
            # A host without IPv6.

    async def stop(self) -> None:
        """Take no more requests, answer those that wait, and let go of the port."""
        await self.batches.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _answered(self, question: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def respond(request: web.Request) -> web.Response:
            answer = await self._answers.answer(question, request.query)
            if answer.status == 200:
                return web.json_response(answer.value)
            return web.Response(status=answer.status, text=answer.why, headers={SERVED_BY: "lockgate"})

        return respond


def _is_own(host: str) -> bool:
    """Whether it is an IPv4 address of this host. A name is not looked up: it may be this host's loopback here."""
    try:
        socket.inet_pton(socket.AF_INET, host)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _own_address() -> str:
    """This host's address towards others, as its routes have it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # RFC 5737: nobody's
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])

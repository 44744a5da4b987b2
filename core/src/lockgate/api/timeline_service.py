"""The timeline server: an HTTP service in the driver that makes markers for the job's task attempts.

Its paths, parameters and answers are those of Hudi's (`MarkerOperation`, `RequestHandler` of Hudi 0.15), so that
`TimelineServerBasedWriteMarkers` is a client of it. It serves the markers of its own job, and of no other. What cannot
be done is answered with a status of 400 or more, and why.

It is not encrypted and asks for no password, as Hudi's is not and does not: whoever reaches it can have markers made
for files whose names hold the job's tags, and read which there are. It deletes nothing.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable

from aiohttp import web

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import (
    DestinationConflict,
    FileMissing,
    LockgateError,
    ManifestInvalid,
    PathError,
    StoreError,
)
from lockgate.model.hudi_markers import MarkerLayout, Operation, parse_marker
from lockgate.model.redaction import redact
from lockgate.protocols.markers.batches import MarkerBatches

BASE = "/v1/hoodie/marker"
DIRECTORY = "markerdirpath"
NAME = "markername"

BACKLOG = 4096
"""So many task attempts may connect at once; one that the system turns away tries again seconds later."""

STATUSES: tuple[tuple[type[LockgateError], int], ...] = (
    (FileMissing, 410),
    (DestinationConflict, 409),
    (PathError, 400),
    (ManifestInvalid, 400),
    (StoreError, 503),
)
"""How each kind of failure is answered; the first that fits."""


class TimelineService:
    """The service of one job. `start` and `stop` on the event loop that it is to run on."""

    def __init__(self, run: JobRun) -> None:
        self.batches = MarkerBatches(run)
        self._layout = MarkerLayout(run.layout.job_id)
        self._directory = f"{run.store.url.path.rstrip('/')}/{self._layout.directory}"
        self._runner: web.AppRunner | None = None

    async def start(self, address: str) -> str:
        """Listen at HOST or HOST:PORT, or, if that is empty, at this host's address and a free port.

        Returns where tasks reach it.

        At an IPv4 address that this host has it listens there alone; at a name, or at an address that others know this
        host by, at all of its addresses.

        Raises:
            StoreError: it cannot listen there.
        """
        host, _, port = address.partition(":")
        app = web.Application()
        app.add_routes(
            [
                web.post(f"{BASE}/create", self._answered(self._create)),
                web.get(f"{BASE}/all", self._answered(self._all)),
                web.get(f"{BASE}/create-and-merge", self._answered(self._created_and_merged)),
                web.get(f"{BASE}/append", self._answered(self._appended)),
                web.get(f"{BASE}/dir/exists", self._answered(self._exists)),
                web.post(f"{BASE}/dir/delete", self._answered(self._delete)),
            ]
        )
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
        await web.TCPSite(self._runner, host, port, backlog=BACKLOG).start()

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

    def _answered(
        self, answer: Callable[[web.Request], Awaitable[object]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def respond(request: web.Request) -> web.Response:
            if not self._is_own(request.query.get(DIRECTORY, "")):
                return web.Response(status=404, text="this server serves the markers of its own job only")
            try:
                return web.json_response(await answer(request))
            except LockgateError as error:
                status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
                return web.Response(status=status, text=redact(error.what))

        return respond

    def _is_own(self, directory: str) -> bool:
        """Whether this names the job's markers, by whatever name of the store: the path alone counts."""
        scheme, found, rest = directory.partition("://")
        path = f"/{rest.partition('/')[2]}" if found else directory.removeprefix(f"{scheme.partition(':')[0]}:")
        return path.rstrip("/") == self._directory

    async def _create(self, request: web.Request) -> bool:
        name = request.query.get(NAME, "")
        return await self.batches.create(parse_marker(name, where="as a request"))

    async def _all(self, request: web.Request) -> list[str]:
        return [marker.name for marker in await self.batches.all()]

    async def _created_and_merged(self, request: web.Request) -> list[str]:
        return [marker.name for marker in await self.batches.all() if marker.operation is not Operation.APPEND]

    async def _appended(self, request: web.Request) -> list[str]:
        return [marker.name for marker in await self.batches.all() if marker.operation is Operation.APPEND]

    async def _exists(self, request: web.Request) -> bool:
        return bool(await self.batches.all())

    async def _delete(self, request: web.Request) -> bool:
        """They go with the job, after what they name that does not count."""
        return False


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

"""A proxy in front of an HTTP store: it counts requests, adds latency, limits their rate, and injects faults.

A request passes, in this order: its body is read, fixed latency, rate limit, ordered faults, else the schedule's, the
server behind. What is decided about a request is in the decision log; what became of it, in the request log. Bodies are
held in memory, requests and answers pass otherwise unchanged, with the client's own `Host` header, so that signatures
hold and URLs in answers lead back here.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from lockgate_lab import fault_kinds
from lockgate_lab.control_routes import CONTROL_PREFIX, Steered, control_answer
from lockgate_lab.decision_log import DecisionLog, Struck
from lockgate_lab.dialects import PLAIN, Dialect, Headers, asks_for_a_later_page
from lockgate_lab.fault_kinds import NOTHING, USUAL_SIZES, Decision, FaultSizes
from lockgate_lab.fault_schedule import FaultSchedule, NoFaults, Normalise, as_is
from lockgate_lab.lab import Lab
from lockgate_lab.lifecycle import LoopServer
from lockgate_lab.planned_faults import PlannedFault
from lockgate_lab.request_log import LoggedRequest, without_signature
from lockgate_lab.server import HEADER_BYTES_MAX

_HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
    "upgrade", "expect",
})  # fmt: skip
ORDERED_KINDS = {
    "request-lost": fault_kinds.RESET,
    "answer-lost": fault_kinds.DROP_ANSWER,
}
"""What the ordered faults every server of the lab knows are called here."""


class FaultProxy(Steered, LoopServer):
    """Stands in front of `upstream` (a URL without a path); an async context manager.

    `keep_host=False` sends the server's own host name instead of the client's, for servers that answer only to it;
    URLs of the server in a `Location` header are turned into the proxy's either way.
    """

    def __init__(
        self,
        upstream: str,
        schedule: FaultSchedule | None = None,
        *,
        dialect: Dialect = PLAIN,
        port: int = 0,
        decisions: Path | None = None,
        normalise: Normalise = as_is,
        sizes: FaultSizes = USUAL_SIZES,
        keep_host: bool = True,
    ) -> None:
        super().__init__(frozenset(fault_kinds.KINDS))
        self.upstream = upstream.rstrip("/")
        self.dialect = dialect
        self.sizes = sizes
        about = {"proxy": "http", "upstream": self.upstream, "dialect": dialect.name}
        self.decisions = DecisionLog(schedule or NoFaults(), normalise, decisions, about)
        self._port = port
        self._keep_host = keep_host
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._session: aiohttp.ClientSession | None = None
        self._outage: asyncio.Task[None] | None = None
        self._sequence = 0
        self._in_flight = 0

    async def start(self) -> None:
        """Listen on loopback, on the wanted port or a free one."""
        # The server behind may close an idle connection at any time; ours are given up before it does (Node: 5 s).
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        self._server = web.Server(
            self._serve,
            access_log=None,
            keepalive_timeout=3600,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            auto_decompress=False,
        )
        await self._listen()

    async def stop(self) -> None:
        """Stop listening, close every connection, and close the decision log."""
        if self._outage is not None:
            self._outage.cancel()
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(timeout=1)
        if self._session is not None:
            await self._session.close()
        self.decisions.close()

    def url(self) -> str:
        """Return `http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def struck(self) -> list[Struck]:
        """The requests that were struck so far, in the order of their decisions."""
        return self.decisions.struck

    def refuse_connections(self, seconds: float) -> None:
        """Close the listening socket for a while: new connections are refused by the kernel, open ones go on."""
        if self._outage is None or self._outage.done():
            self._outage = asyncio.get_running_loop().create_task(self._refuse_connections(seconds))

    async def _listen(self) -> None:
        assert self._server is not None
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(self._server, "127.0.0.1", self._port, backlog=1024, reuse_address=True)
        self._listener = listener
        self._port = listener.sockets[0].getsockname()[1]

    async def _refuse_connections(self, seconds: float) -> None:
        assert self._listener is not None
        self._listener.close()
        await asyncio.sleep(seconds)
        await self._listen()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        method, raw_path = request.method, request.raw_path
        if "Expect" in request.headers and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await request.content.read() if request.body_exists else b""
        if raw_path.startswith(CONTROL_PREFIX):
            return control_answer(self, method, raw_path, body)
        started = time.monotonic()
        self._in_flight += 1
        self.log.in_flight_max = max(self.log.in_flight_max, self._in_flight)
        operation = self.dialect.name_operation(method, raw_path, request.headers)
        try:
            response, status, fault = await self._decide_and_forward(request, operation, body)
        finally:
            self._in_flight -= 1
        self._sequence += 1
        self.log.add(
            LoggedRequest(
                sequence=self._sequence,
                started=started,
                ended=time.monotonic(),
                method=method,
                path=without_signature(raw_path),
                operation=operation,
                target=without_signature(raw_path.partition("?")[0]),
                status=status,
                error=response.headers.get("x-ms-error-code", "") if response is not None else "",
                client_request_id=request.headers.get("x-ms-client-request-id", ""),
                bytes_in=len(body),
                bytes_out=len(response.body) if response is not None and isinstance(response.body, bytes) else 0,
                fault=fault,
            )
        )
        if response is None:
            # The connection is gone already; aiohttp wants an answer all the same.
            return web.Response(status=599)
        return response

    async def _decide_and_forward(
        self, request: web.BaseRequest, operation: str, body: bytes
    ) -> tuple[web.Response | None, int, str]:
        """Return the answer (None: the connection was cut), the status the server gave, and the fault."""
        latency = self.latency
        if latency is not None and fnmatchcase(operation, latency.operation):
            await asyncio.sleep(latency.seconds)
        limited = self.limit
        if limited is not None and (wait_s := limited.limit.admit()) > 0:
            retry_after_s = max(1, math.ceil(wait_s)) if limited.retry_after else 0
            return self._refusal(request, limited.status, limited.code, retry_after_s), limited.status, "limit"
        decision = self.decisions.decide(
            operation,
            f"{request.method} {request.raw_path}{_second_name(request.headers)}",
            later_page=asks_for_a_later_page(request.raw_path),
            ordered=self._ordered(operation, request.raw_path),
        )
        kind = decision.kind
        if kind in (fault_kinds.REFUSE, fault_kinds.RESET, fault_kinds.CUT_LISTING):
            if kind == fault_kinds.REFUSE:
                self.refuse_connections(self.sizes.refuse_ms / 1000)
            reset_connection(request.transport)
            return None, 599, kind
        if kind in (fault_kinds.THROTTLE, fault_kinds.THROTTLE_RETRY_AFTER, fault_kinds.ERROR_BEFORE):
            status = decision.status or 503
            return self._refusal(request, status, decision.code, decision.retry_after_s), status, kind
        if decision.delay_s:
            await asyncio.sleep(decision.delay_s)
        response = await self._forward(request, body)
        if response is None:
            reset_connection(request.transport)
            return None, 599, kind or "upstream-lost"
        if decision.delay_after_s:
            await asyncio.sleep(decision.delay_after_s)
        status = response.status
        if kind == fault_kinds.DROP_ANSWER:
            if request.transport is not None:
                request.transport.close()
            return None, status, kind
        if kind == fault_kinds.CUT_ANSWER:
            await _send_half(request, response)
            return None, status, kind
        if kind == fault_kinds.ERROR_AFTER:
            return self._refusal(request, decision.status or 500, decision.code, 0), status, kind
        return response, status, kind

    def _ordered(self, operation: str, raw_path: str) -> Decision:
        fault: PlannedFault | None = self.faults.take(operation, raw_path)
        if fault is None:
            return NOTHING
        kind = ORDERED_KINDS.get(fault.kind, fault.kind)
        retry_after_s = self.sizes.retry_after_s if kind == fault_kinds.THROTTLE_RETRY_AFTER else 0
        delay_s = self.sizes.delay_ms_max / 1000 if kind == fault_kinds.DELAY else 0.0
        return Decision(kind, delay_s=delay_s, status=fault.status, code=fault.code, retry_after_s=retry_after_s)

    def _refusal(self, request: web.BaseRequest, status: int, code: str, retry_after_s: int) -> web.Response:
        return self.dialect.refuse(request.method, request.raw_path, request.headers, status, code, retry_after_s)

    async def _forward(self, request: web.BaseRequest, body: bytes) -> web.Response | None:
        """Ask the server and return its answer, or None when it cut the connection or was not there."""
        assert self._session is not None
        headers = CIMultiDict(
            (name, value) for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP
        )
        if not self._keep_host:
            headers.popall("Host", None)
        skipped = [name for name in ("User-Agent", "Accept", "Accept-Encoding", "Content-Type") if name not in headers]
        try:
            async with self._session.request(
                request.method,
                URL(self.upstream + request.raw_path, encoded=True),
                headers=headers,
                data=body if body or "Content-Length" in headers else None,
                allow_redirects=False,
                skip_auto_headers=skipped,
            ) as answer:
                content = await answer.read()
        except aiohttp.ClientError:
            return None
        sent = CIMultiDict(
            (name, value)
            for name, value in answer.headers.items()
            if name.lower() not in _HOP_BY_HOP and (name.lower() != "content-length" or request.method == "HEAD")
        )
        location = sent.get("Location", "")
        if location.startswith(self.upstream):
            sent["Location"] = self.url() + location.removeprefix(self.upstream)
        return web.Response(status=answer.status, reason=answer.reason, headers=sent, body=content)


class FaultProxyLab(Lab[FaultProxy]):
    """A `FaultProxy` in a thread of its own; takes the same arguments."""

    def __init__(self, upstream: str, schedule: FaultSchedule | None = None, **options: Any) -> None:
        super().__init__(FaultProxy(upstream, schedule, **options))

    @property
    def struck(self) -> list[Struck]:
        """The requests that were struck so far."""
        return list(self.server.struck)


def _second_name(headers: Headers) -> str:
    """Return the other end of a rename or copy, which is a header in two of the protocols; part of a request's key."""
    for name in ("x-ms-rename-source", "x-amz-copy-source", "x-amz-rename-source"):
        if name in headers:
            return f" <- {headers[name]}"
    return ""


def reset_connection(transport: asyncio.BaseTransport | None) -> None:
    """Close a connection with a reset rather than an orderly end, as a host that lost its state would."""
    if not isinstance(transport, asyncio.Transport):
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def _send_half(request: web.BaseRequest, response: web.Response) -> None:
    """Send the head and the first half of the body, then reset; with no body, half of the head."""
    transport = request.transport
    if not isinstance(transport, asyncio.Transport):
        return
    content = response.body if isinstance(response.body, bytes) else b""
    head = [f"HTTP/1.1 {response.status} {response.reason}"]
    head += [f"{name}: {value}" for name, value in response.headers.items() if name.lower() != "content-length"]
    if request.method != "HEAD":
        head.append(f"Content-Length: {len(content)}")
    sent = "\r\n".join(head).encode("utf-8", "surrogateescape")
    sent += b"\r\n\r\n" + content[: len(content) // 2] if content else b""
    transport.write(sent)
    # A reset may overtake what was just written; an orderly end cannot.
    transport.close()
    await asyncio.sleep(0)

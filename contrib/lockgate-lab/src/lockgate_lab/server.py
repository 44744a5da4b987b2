"""The server every emulator of the lab runs in: loopback only, counted, delayed, limited and made to fail on demand.

A store decodes requests and answers them; everything else is here. A request passes, in this order: its body is read,
latency, rate limit, ordered faults, the store, the log. The store's answer is computed without awaiting, so on the one
event loop each operation is atomic without locks. What a test can steer is in `control_routes`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from aiohttp import web
from multidict import CIMultiDictProxy

from lockgate_lab.control_routes import CONTROL_PREFIX, Steered, control_answer
from lockgate_lab.lifecycle import LoopServer
from lockgate_lab.planned_faults import ANSWER_LOST, ERROR_AFTER, ERROR_BEFORE, REQUEST_LOST
from lockgate_lab.request_log import LoggedRequest, without_signature

HEADER_BYTES_MAX = 65_536
"""A rename carries two percent-encoded paths: aiohttp's own limit of 8,190 bytes is less than stores accept."""


class StoreCall:
    """A request as a store decoded it; a store's own subclass carries the rest."""

    __slots__ = ("client_request_id", "headers", "method", "operation", "planned_fault", "raw_path", "target")

    def __init__(self, method: str, raw_path: str, headers: Mapping[str, str]) -> None:
        self.method = method
        self.raw_path = raw_path
        self.headers = headers
        self.operation = "Unknown"
        self.target = ""
        self.client_request_id = ""
        self.planned_fault = ""


Call = TypeVar("Call", bound=StoreCall)


class EmulatedStore(Protocol[Call]):
    """What a store provides to be run by `LabServer`."""

    fault_kinds: frozenset[str]
    """Kinds of fault the store acts out itself: it finds the kind in `call.planned_fault`."""

    def decode(self, method: str, raw_path: str, headers: CIMultiDictProxy[str], endpoint: str) -> Call:
        """Understand a request without acting on it. Must not raise: `answer` reports what is malformed."""

    def answer(self, call: Call, body: bytes) -> web.Response:
        """Perform the call and return its answer, errors included."""

    def weigh(self, call: Call, body: bytes) -> int:
        """Return how many requests a call is to the rate limit: a batch may be many."""

    def refuse(self, call: Call, status: int, code: str, retry_after_s: int | None) -> web.Response:
        """Return an error answer in the store's own form; an empty code means the store's usual one."""

    def error_code(self, response: web.Response) -> str:
        """Return the store's error code in an answer, for the log, or nothing."""

    def configure(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change the named settings and return all; raises ValueError for an unknown one."""

    def clear(self) -> None:
        """Forget all data."""


class LabServer(Steered, LoopServer, Generic[Call]):
    """Runs one store on loopback ports of this event loop; an async context manager.

    `endpoints` names the ports to listen on: a store whose service has several host names can tell by it which one was
    meant. `url()` and `url("name")` are known once started.
    """

    def __init__(self, store: EmulatedStore[Call], endpoints: tuple[str, ...] = ("",), port: int = 0) -> None:
        super().__init__(store.fault_kinds)
        self.store = store
        self._endpoints = endpoints
        self._port = port
        self._listeners: dict[str, asyncio.Server] = {}
        self._servers: list[web.Server] = []
        self._sequence = 0
        self._in_flight = 0

    async def start(self) -> None:
        """Listen on loopback: the first endpoint on the wanted port, the others on free ones."""
        loop = asyncio.get_running_loop()
        for endpoint in self._endpoints:
            server = web.Server(
                partial(self._serve, endpoint),
                access_log=None,
                keepalive_timeout=3600,
                max_line_size=HEADER_BYTES_MAX,
                max_field_size=HEADER_BYTES_MAX,
                auto_decompress=False,
            )
            port = 0 if self._listeners else self._port
            self._listeners[endpoint] = await loop.create_server(server, "127.0.0.1", port, backlog=1024)
            self._servers.append(server)

    async def stop(self) -> None:
        """Stop listening; connections are closed, requests under way get a moment to end."""
        for listener in self._listeners.values():
            listener.close()
        for server in self._servers:
            server.pre_shutdown()
            await server.shutdown(timeout=1)
        self._listeners.clear()
        self._servers.clear()

    def url(self, endpoint: str = "") -> str:
        """Return `http://127.0.0.1:PORT` of an endpoint, without a slash at its end."""
        host, port = self._listeners[endpoint].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def clear_data(self) -> None:
        """Forget the store's data."""
        self.store.clear()

    def configure(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings of the store."""
        return self.store.configure(settings)

    async def _serve(self, endpoint: str, request: web.BaseRequest) -> web.StreamResponse:
        method, raw_path = request.method, request.raw_path
        if "Expect" in request.headers and request.transport is not None:
            # The low-level server leaves this to its handler; a client that waits for it would otherwise hang.
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # The body is read whatever the answer: an unread one would cost the client its connection.
        body = await request.content.read() if request.body_exists else b""
        if raw_path.startswith(CONTROL_PREFIX):
            return control_answer(self, method, raw_path, body)
        started = time.monotonic()
        self._in_flight += 1
        if self._in_flight > self.log.in_flight_max:
            self.log.in_flight_max = self._in_flight
        try:
            call = self.store.decode(method, raw_path, request.headers, endpoint)
            latency = self.latency
            if latency is not None and fnmatchcase(call.operation, latency.operation):
                await asyncio.sleep(latency.seconds)
            response, fault = self._answer(call, body)
            lost = fault in (REQUEST_LOST, ANSWER_LOST)
            self._sequence += 1
            self.log.add(
                LoggedRequest(
                    sequence=self._sequence,
                    started=started,
                    ended=time.monotonic(),
                    method=method,
                    path=without_signature(raw_path),
                    operation=call.operation,
                    target=call.target,
                    status=response.status,
                    error=self.store.error_code(response) if response.status >= 300 else "",
                    client_request_id=call.client_request_id,
                    bytes_in=len(body),
                    bytes_out=0 if lost else _body_length(response),
                    fault=fault,
                )
            )
            if lost and request.transport is not None:
                request.transport.abort()
            return response
        finally:
            self._in_flight -= 1

    def _answer(self, call: Call, body: bytes) -> tuple[web.Response, str]:
        """Return the answer and the fault that struck. Does not await: this is what makes operations atomic."""
        limited = self.limit
        if limited is not None and (wait_s := limited.limit.admit(self.store.weigh(call, body))) > 0:
            retry_after_s = max(1, math.ceil(wait_s)) if limited.retry_after else None
            return self.store.refuse(call, limited.status, limited.code, retry_after_s), "limit"
        fault = self.faults.take(call.operation, call.target)
        if fault is None:
            return self.store.answer(call, body), ""
        if fault.kind == REQUEST_LOST:
            return web.Response(status=599), fault.kind
        if fault.kind == ERROR_BEFORE:
            return self.store.refuse(call, fault.status, fault.code, None), fault.kind
        if fault.kind not in (ERROR_AFTER, ANSWER_LOST):
            call.planned_fault = fault.kind
        response = self.store.answer(call, body)
        if fault.kind == ERROR_AFTER:
            return self.store.refuse(call, fault.status, fault.code, None), fault.kind
        return response, fault.kind


def _body_length(response: web.Response) -> int:
    body = response.body
    return len(body) if isinstance(body, bytes | bytearray) else 0

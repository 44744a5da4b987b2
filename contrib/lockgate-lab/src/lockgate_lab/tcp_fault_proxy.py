"""A proxy in front of a TCP server that injects the faults which need no HTTP; in front of a NameNode, per RPC call.

With `hdfs_rpc=True` the stream is cut into calls: a fault strikes one call, known by its method (`rename2`, `mkdirs`,
`getFileInfo`, …), and `drop-answer` waits for the answer of that very call, so that the NameNode has acted. Without
it a call is whatever arrives at once, which is enough for protocols that ask and answer in turn.

The key of a call is its method: the calls of a run that names its files at random are still the same calls. Rates,
seeds and logs are those of the HTTP proxy. Data of HDFS files goes to the DataNodes and does not pass here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lockgate_lab import fault_kinds
from lockgate_lab.control_routes import Steered
from lockgate_lab.decision_log import DecisionLog, Struck
from lockgate_lab.fault_kinds import NOTHING, USUAL_SIZES, Decision, FaultSizes
from lockgate_lab.fault_proxy import ORDERED_KINDS, reset_connection
from lockgate_lab.fault_schedule import FaultSchedule, NoFaults
from lockgate_lab.hdfs_rpc import FrameCutter, answered_call, request_call
from lockgate_lab.lab import Lab
from lockgate_lab.lifecycle import LoopServer
from lockgate_lab.request_log import LoggedRequest

CONNECTION_SETUP = "connection-setup"
"""The operation of what belongs to a connection and not to a call; no fault strikes it."""


class TcpFaultProxy(Steered, LoopServer):
    """Stands in front of `host:port`; an async context manager. It can be steered in-process only."""

    def __init__(
        self,
        host: str,
        port: int,
        schedule: FaultSchedule | None = None,
        *,
        hdfs_rpc: bool = False,
        listen_port: int = 0,
        decisions: Path | None = None,
        sizes: FaultSizes = USUAL_SIZES,
    ) -> None:
        super().__init__(frozenset(fault_kinds.TCP_KINDS))
        self.upstream = (host, port)
        self.hdfs_rpc = hdfs_rpc
        self.sizes = sizes
        about = {"proxy": "tcp", "upstream": f"{host}:{port}", "hdfs_rpc": hdfs_rpc}
        self.decisions = DecisionLog(schedule or NoFaults(), str, decisions, about)
        self.port = listen_port
        self._listener: asyncio.Server | None = None
        self._outage: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._sequence = 0

    async def start(self) -> None:
        """Listen on loopback, on the wanted port or a free one."""
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, cut every connection, and close the decision log."""
        if self._outage is not None:
            self._outage.cancel()
        if self._listener is not None:
            self._listener.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self.decisions.close()

    def url(self) -> str:
        """Return `tcp://127.0.0.1:PORT`."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def struck(self) -> list[Struck]:
        """The calls that were struck so far, in the order of their decisions."""
        return self.decisions.struck

    def refuse_connections(self, seconds: float) -> None:
        """Close the listening socket for a while: new connections are refused by the kernel, open ones go on."""
        if self._outage is None or self._outage.done():
            self._outage = asyncio.get_running_loop().create_task(self._refuse_connections(seconds))

    async def _refuse_connections(self, seconds: float) -> None:
        assert self._listener is not None
        self._listener.close()
        await asyncio.sleep(seconds)
        await self.start()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # A connection may be cut while it comes up, or goes down by itself.
            with suppress(asyncio.CancelledError):
                await self._carry(reader, writer)
        finally:
            self._connections.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self.upstream)
        except OSError:
            reset_connection(writer.transport)
            return
        swallowed: set[int] = set()
        pumps = [
            asyncio.create_task(self._requests(reader, writer, server_writer, swallowed)),
            asyncio.create_task(self._answers(server_reader, writer, swallowed)),
        ]
        try:
            # Whichever side ends first ends both: what is left on the other is of no use to anyone.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            reset_connection(writer.transport)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for side in (writer, server_writer):
                with suppress(OSError):
                    side.close()

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        client: asyncio.StreamWriter,
        server: asyncio.StreamWriter,
        swallowed: set[int],
    ) -> None:
        cutter = FrameCutter(with_preamble=True)
        with suppress(OSError):
            while piece := await reader.read(65_536):
                for frame in cutter.feed(piece) if self.hdfs_rpc else iter((piece,)):
                    if not await self._request(frame, client, server, swallowed):
                        return
            # What is not whole is nobody's call; the server may make of it what it can.
            server.write(cutter.rest())
            await server.drain()

    async def _request(
        self, frame: bytes, client: asyncio.StreamWriter, server: asyncio.StreamWriter, swallowed: set[int]
    ) -> bool:
        """Pass one call on, or let it be struck; say whether the connection goes on."""
        call_id, method = request_call(frame) if self.hdfs_rpc else (0, "call")
        operation = method or CONNECTION_SETUP
        decision = NOTHING
        if method:
            if self.latency is not None:
                await asyncio.sleep(self.latency.seconds)
            # TCP has no word for "later": what exceeds the limit waits its turn.
            while self.limit is not None and (wait_s := self.limit.limit.admit()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait_s)
            fault = self.faults.take(operation, "")
            ordered = Decision(ORDERED_KINDS.get(fault.kind, fault.kind)) if fault is not None else NOTHING
            decision = self.decisions.decide(operation, operation, later_page=False, ordered=ordered)
        self._log(operation, len(frame), decision.kind)
        if decision.kind in (fault_kinds.REFUSE, fault_kinds.RESET):
            if decision.kind == fault_kinds.REFUSE:
                self.refuse_connections(self.sizes.refuse_ms / 1000)
            reset_connection(client.transport)
            return False
        if decision.kind == fault_kinds.DELAY:
            await asyncio.sleep(decision.delay_s + decision.delay_after_s or self.sizes.delay_ms_max / 1000)
        if decision.kind == fault_kinds.DROP_ANSWER:
            swallowed.add(call_id)
        server.write(frame)
        await server.drain()
        return True

    async def _answers(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter, swallowed: set[int]) -> None:
        cutter = FrameCutter(with_preamble=False)
        with suppress(OSError):
            while piece := await reader.read(65_536):
                frames: Iterator[bytes] = cutter.feed(piece) if self.hdfs_rpc else iter((piece,))
                for frame in frames:
                    if swallowed and (answered_call(frame) if self.hdfs_rpc else 0) in swallowed:
                        reset_connection(client.transport)
                        return
                    client.write(frame)
                await client.drain()

    def _log(self, operation: str, length: int, fault: str) -> None:
        now = time.monotonic()
        self._sequence += 1
        self.log.add(
            LoggedRequest(
                sequence=self._sequence,
                started=now,
                ended=now,
                method="TCP",
                path="",
                operation=operation,
                target="",
                status=0,
                error="",
                client_request_id="",
                bytes_in=length,
                bytes_out=0,
                fault=fault,
            )
        )


class TcpFaultProxyLab(Lab[TcpFaultProxy]):
    """A `TcpFaultProxy` in a thread of its own; takes the same arguments. It has no control routes."""

    def __init__(self, host: str, port: int, schedule: FaultSchedule | None = None, **options: Any) -> None:
        super().__init__(TcpFaultProxy(host, port, schedule, **options))

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self.server.port

    @property
    def struck(self) -> list[Struck]:
        """The calls that were struck so far."""
        return list(self.server.struck)

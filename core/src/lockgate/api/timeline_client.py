"""A task attempt's side of the timeline server: one connection pool a process, requests that are repeated.

A creation may be repeated: a marker that is there already is told as that.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
from collections.abc import Mapping

import aiohttp

from lockgate.engine.record.marker import read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.marker_server import MarkerServer
from lockgate.model.errors import (
    DestinationConflict,
    FileMissing,
    LockgateError,
    PathError,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.hudi_markers import Marker, MarkerLayout

PATH = "/v1/hoodie/marker/create"
RETRY_SECONDS = 0.1
"""The wait before the second try; it doubles with every further one, to 5 s."""

_REFUSED: Mapping[int, type[LockgateError]] = {
    400: PathError,
    404: FileMissing,
    409: DestinationConflict,
    410: FileMissing,
}

_ANSWERS = frozenset({"true", "false"})
"""It was made, or was there. Whatever else a service answers, that has come to listen there since, is no marker."""

_sessions: dict[int, tuple[int, asyncio.AbstractEventLoop, aiohttp.ClientSession]] = {}
"""By process and loop."""


class TimelineClient(MarkerServer):
    """The server at an address, `HOST:PORT`. `is_ours`: it is a Lockgate driver's, and not Hudi's own."""

    def __init__(self, run: JobRun, address: str, *, is_ours: bool) -> None:
        self._run = run
        self._address = address
        self._directory = run.url(MarkerLayout(run.layout.job_id).directory)
        self._patience = run.options.patience_seconds
        self._timeout = aiohttp.ClientTimeout(total=max(run.options.timeout_seconds, 60.0))
        self.finds_conflicts = is_ours
        self._look = (
            "see whether the job's driver is alive, and whether tasks reach it (markers_address)"
            if is_ours
            else "see whether that timeline server is alive, and whether tasks reach it (markers_server)"
        )

    async def create(self, marker: Marker) -> None:
        """Ask until an answer comes. See `MarkerServer.create`."""
        query = {"markerdirpath": self._directory, "markername": marker.name}
        loop = asyncio.get_running_loop()
        ends, wait = loop.time() + self._patience, RETRY_SECONDS
        while True:
            try:
                status, text = await self._post(query)
                if status == 200 and text.strip() not in _ANSWERS:
                    why = f"what answers there is no timeline server: {text[:200]!r}"
                elif status < 500 and status != 429:
                    break
                else:
                    why = f"status {status}: {text[:200]}"
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                why = f"{type(error).__name__}: {error}"
            if await read_marker(self._run) is None:
                # The server went with the job's driver; who waited for it would wait as long as for one that is slow.
                raise FileMissing(
                    "no marker is made any more: the job is over", where=f"http://{self._address}{PATH}\n{marker.path}"
                )
            if loop.time() + wait > ends:
                raise StoreUnavailable(
                    f"the timeline server makes no marker: {why}",
                    where=f"http://{self._address}{PATH}\n{marker.path}",
                    next_step=f"{self._look}; or choose markers_type=direct",
                )
            await asyncio.sleep(wait * (0.5 + random.random()))
            wait = min(2 * wait, 5.0)
        if status != 200:
            raise _REFUSED.get(status, StoreError)(
                text[:1000] or f"the timeline server refuses a marker: status {status}",
                where=f"http://{self._address}{PATH}\n{marker.path}",
                next_step="the file was not opened",
            )

    async def _post(self, query: Mapping[str, str]) -> tuple[int, str]:
        url = f"http://{self._address}{PATH}"
        async with _session().post(url, params=query, timeout=self._timeout, allow_redirects=False) as answer:
            return answer.status, (await answer.read()).decode(errors="replace")


def _session() -> aiohttp.ClientSession:
    """The pool of the running loop. A loop that is no more, as after a fork, has left its own behind."""
    loop, process = asyncio.get_running_loop(), os.getpid()
    known = _sessions.get(id(loop))
    if known is None or known[0] != process or known[1] is not loop:
        known = _sessions[id(loop)] = (
            process,
            loop,
            aiohttp.ClientSession(
                # As many at once as there are task attempts in this process.
                connector=aiohttp.TCPConnector(limit=0)
            ),
        )
    return known[2]


@atexit.register
def _close() -> None:
    for process, loop, session in _sessions.values():
        if process == os.getpid() and loop.is_running():
            with contextlib.suppress(Exception):
                asyncio.run_coroutine_threadsafe(session.close(), loop).result(1)

"""A task attempt's requests to the timeline server over HTTP, by one connection pool a process."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
from collections.abc import Mapping

import aiohttp

from lockgate.engine.run.job_run import JobRun
from lockgate.protocols.markers.timeline_answers import BASE, SERVED_BY
from lockgate.protocols.markers.timeline_requests import NoAnswer, TimelineRequests
from lockgate.stores.http.transport import reason_of

_sessions: dict[int, tuple[int, asyncio.AbstractEventLoop, aiohttp.ClientSession]] = {}
"""By process and loop."""


class TimelineClient(TimelineRequests):
    """The server at an address, `HOST:PORT`. `is_ours`: it is a Lockgate driver's, and not Hudi's own."""

    def __init__(self, run: JobRun, address: str, *, is_ours: bool) -> None:
        timeout = aiohttp.ClientTimeout(total=max(run.options.timeout_seconds, 60.0))

        async def post(query: Mapping[str, str]) -> tuple[int, str]:
            try:
                url = f"http://{address}{BASE}/create"
                async with _session().post(url, params=query, timeout=timeout, allow_redirects=False) as answer:
                    text = (await answer.read()).decode(errors="replace")
                    if is_ours and answer.status != 200 and SERVED_BY not in answer.headers:
                        raise NoAnswer(f"what answers there is no timeline server: status {answer.status}")
                    return answer.status, text
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise NoAnswer(reason_of(error)) from error

        super().__init__(run, address, post, is_ours=is_ours)


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

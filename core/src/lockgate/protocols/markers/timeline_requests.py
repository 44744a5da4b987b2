"""A task attempt's side of the timeline server: requests that are repeated until an answer comes.

A creation may be repeated: a marker that is there already is told as that. What carries a request comes from outside:
over HTTP it is `api.timeline_client`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

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
from lockgate.protocols.markers.timeline_answers import BASE, DIRECTORY, NAME

RETRY_SECONDS = 0.1
"""The wait before the second try; it doubles with every further one, to 5 s."""
RETRY_SECONDS_MAX = 5.0

_REFUSED: Mapping[int, type[LockgateError]] = {
    400: PathError,
    404: FileMissing,
    409: DestinationConflict,
    410: FileMissing,
}

_ANSWERS = frozenset({"true", "false"})
"""It was made, or was there. Whatever else a service answers, that has come to listen there since, is no marker."""


class NoAnswer(Exception):
    """A request was not answered: it did not arrive, or nobody knows whether it did."""


Post = Callable[[Mapping[str, str]], Awaitable[tuple[int, str]]]
"""Sends a request that creates a marker, with these parameters; the status and the text of its answer.

Raises:
    NoAnswer: none came.
"""


class TimelineRequests(MarkerServer):
    """The server at an address, `HOST:PORT`, to which `post` sends. `is_ours`: it is a Lockgate driver's, and not
    Hudi's own."""

    def __init__(self, run: JobRun, address: str, post: Post, *, is_ours: bool) -> None:
        self._run = run
        self._post = post
        self._place = f"http://{address}{BASE}/create"
        self._directory = run.url(MarkerLayout(run.layout.job_id).directory)
        self.finds_conflicts = is_ours
        self._look = (
            "see whether the job's driver is alive, and whether tasks reach it (markers_address)"
            if is_ours
            else "see whether that timeline server is alive, and whether tasks reach it (markers_server)"
        )

    async def create(self, marker: Marker) -> None:
        """Ask until an answer comes. See `MarkerServer.create`."""
        status, text = await self._ask({DIRECTORY: self._directory, NAME: marker.name}, marker)
        if status != 200:
            raise _REFUSED.get(status, StoreError)(
                text[:1000] or f"the timeline server refuses a marker: status {status}",
                where=f"{self._place}\n{marker.path}",
                next_step="the file was not opened: wait until the other job is over, and run this one again"
                if status == 409
                else f"the file was not opened; nothing of this attempt is committed: {self._look}",
            )

    async def _ask(self, query: Mapping[str, str], marker: Marker) -> tuple[int, str]:
        runtime = self._run.runtime
        ends, wait = runtime.tick() + self._run.options.patience_seconds, RETRY_SECONDS
        while True:
            try:
                status, text = await self._post(query)
                if status == 200 and text.strip() not in _ANSWERS:
                    why = f"what answers there is no timeline server: {text[:200]!r}"
                elif status < 500 and status != 429:
                    return status, text
                else:
                    why = f"status {status}: {text[:200]}"
            except NoAnswer as error:
                why = str(error)
            if await read_marker(self._run) is None:
                # The server went with the job's driver; who waited for it would wait as long as for one that is slow.
                raise FileMissing("no marker is made any more: the job is over", where=f"{self._place}\n{marker.path}")
            if runtime.tick() + wait > ends:
                raise StoreUnavailable(
                    f"the timeline server makes no marker: {why}",
                    where=f"{self._place}\n{marker.path}",
                    next_step=f"{self._look}; or choose markers_type=direct",
                )
            await asyncio.sleep(wait * (0.5 + runtime.random.random()))
            wait = min(2 * wait, RETRY_SECONDS_MAX)

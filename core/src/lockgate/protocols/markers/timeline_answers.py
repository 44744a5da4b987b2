"""What the timeline server of a job answers, whatever carries the requests: over HTTP `api.timeline_service` does.

Its questions, parameters and answers are those of Hudi's (`MarkerOperation`, `RequestHandler` of Hudi 0.15). It serves
the markers of its own job, and of no other. What cannot be done is answered with a status of 400 or more, and why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import (
    DestinationConflict,
    FileMissing,
    LockgateError,
    ManifestInvalid,
    PathError,
    StoreError,
)
from lockgate.model.hudi_markers import Marker, MarkerLayout, Operation, parse_marker
from lockgate.model.redaction import redact
from lockgate.protocols.markers.batches import MarkerBatches

BASE = "/v1/hoodie/marker"
"""The path below which the questions are."""

SERVED_BY = "lockgate-timeline"
"""A header of refusals: those of another service that has come to listen at the address lack it."""

DIRECTORY = "markerdirpath"
NAME = "markername"

GETS = ("all", "create-and-merge", "append", "dir/exists")
"""What is asked for by GET."""
POSTS = ("create", "dir/delete")
"""What is asked for by POST."""

STATUSES: tuple[tuple[type[LockgateError], int], ...] = (
    (FileMissing, 410),
    (DestinationConflict, 409),
    (PathError, 400),
    (ManifestInvalid, 400),
    (StoreError, 503),
)
"""How each kind of failure is answered; the first that fits."""


@dataclass(frozen=True)
class Answer:
    """What is said to who asks: `value`, as JSON, if the status is 200; else `why` not."""

    status: int
    value: object = None
    why: str = ""


class TimelineAnswers:
    """The server of one job, without what carries requests to it. Used on one event loop."""

    def __init__(self, run: JobRun) -> None:
        self.batches = MarkerBatches(run)
        self._layout = MarkerLayout(run.layout.job_id)
        self._directory = f"{run.store.url.path.rstrip('/')}/{self._layout.directory}"
        self._by_question: Mapping[str, Callable[[Mapping[str, str]], Awaitable[object]]] = {
            "create": self._create,
            "all": self._all,
            "create-and-merge": self._created_and_merged,
            "append": self._appended,
            "dir/exists": self._exists,
            "dir/delete": self._delete,
        }

    async def answer(self, question: str, query: Mapping[str, str]) -> Answer:
        """The answer to one of `GETS` or `POSTS`."""
        if not self._is_own(query.get(DIRECTORY, "")):
            return Answer(404, why="this server serves the markers of its own job only")
        try:
            return Answer(200, await self._by_question[question](query))
        except LockgateError as error:
            status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
            return Answer(status, why=redact(error.what))

    def _is_own(self, directory: str) -> bool:
        """Whether this names the job's markers, by whatever name of the store: the path alone counts."""
        scheme, found, rest = directory.partition("://")
        path = f"/{rest.partition('/')[2]}" if found else directory.removeprefix(f"{scheme.partition(':')[0]}:")
        return path.rstrip("/") == self._directory

    async def _create(self, query: Mapping[str, str]) -> bool:
        return await self.batches.create(parse_marker(query.get(NAME, ""), where="as a request"))

    async def _all(self, query: Mapping[str, str]) -> list[str]:
        return _names(await self.batches.all())

    async def _created_and_merged(self, query: Mapping[str, str]) -> list[str]:
        return _names(each for each in await self.batches.all() if each.operation is not Operation.APPEND)

    async def _appended(self, query: Mapping[str, str]) -> list[str]:
        return _names(each for each in await self.batches.all() if each.operation is Operation.APPEND)

    async def _exists(self, query: Mapping[str, str]) -> bool:
        return bool(await self.batches.all())

    async def _delete(self, query: Mapping[str, str]) -> bool:
        """They go with the job, after what they name that does not count."""
        return False


def _names(markers: Iterable[Marker]) -> list[str]:
    return [marker.name for marker in markers]

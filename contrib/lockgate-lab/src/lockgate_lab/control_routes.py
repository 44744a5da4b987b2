"""The control routes every HTTP server of the lab has under `/_lab/`, in JSON, so that a test can steer it.

| route                 | effect |
| --------------------- | ------ |
| `GET requests`        | the log; `?after=SEQUENCE&operation=NAME&count=N` |
| `GET counts`          | counters per operation, status, error code and fault; CPU seconds used |
| `POST reset`          | clears log and counters; `"settings": true` latency, limit, faults; `"data": true` data |
| `POST latency`        | `{"ms": 20, "operation": "*"}`: each matching request waits so long first; 0 ends it |
| `POST limit`          | `{"per_second": N, "burst": N, "retry_after": true, "status": 503}`; a null rate ends it |
| `POST faults`         | orders a fault or a list of them (see `planned_faults`); `DELETE` drops, `GET` counts them |
| `POST store`          | settings of the store itself; `GET` shows them |
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from lockgate_lab.planned_faults import FaultPlan
from lockgate_lab.rate_limit import RateLimit
from lockgate_lab.request_log import RequestLog

CONTROL_PREFIX = "/_lab/"


@dataclass(frozen=True, slots=True)
class Latency:
    """A fixed wait before each request whose operation matches the shell pattern."""

    seconds: float
    operation: str


@dataclass(frozen=True, slots=True)
class LimitedAnswer:
    """A rate limit, and how what exceeds it is refused; an empty code means the store's usual one."""

    limit: RateLimit
    retry_after: bool
    status: int
    code: str


class Steered:
    """What a test can steer and read while a server runs: log, latency, limit, ordered faults."""

    def __init__(self, fault_kinds: frozenset[str] = frozenset()) -> None:
        self.log = RequestLog()
        self.faults = FaultPlan(fault_kinds)
        self.latency: Latency | None = None
        self.limit: LimitedAnswer | None = None

    def set_latency(self, ms: float, operation: str = "*") -> None:
        """Let each matching request wait `ms` before it is looked at; 0 ends it."""
        self.latency = Latency(ms / 1000, operation) if ms > 0 else None

    def set_limit(
        self,
        per_second: float | None,
        *,
        burst: float | None = None,
        retry_after: bool = False,
        status: int = 503,
        code: str = "",
    ) -> None:
        """Refuse what exceeds `per_second` after a burst (by default a tenth of a second's worth); None ends it."""
        if per_second is None:
            self.limit = None
            return
        limit = RateLimit(per_second, max(1.0, per_second / 10) if burst is None else burst, time.monotonic)
        self.limit = LimitedAnswer(limit, retry_after, status, code)

    def reset(self, *, settings: bool = False, data: bool = False) -> None:
        """Clear the log and the counters, and on request latency, limit and faults, and the store's data."""
        self.log.reset()
        if settings:
            self.latency = self.limit = None
            self.faults.clear()
        if data:
            self.clear_data()

    def clear_data(self) -> None:
        """Forget the store's data; a server without data does nothing."""

    def configure(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change the named settings of the store and return all; raises ValueError for an unknown one."""
        if settings:
            raise ValueError(f"no such setting: {', '.join(settings)}")
        return {}


def control_answer(steered: Steered, method: str, raw_path: str, body: bytes) -> web.Response:
    """Perform a control request and return its answer: 400 says what was wrong with it."""
    path, _, query = raw_path.partition("?")
    try:
        wanted = json.loads(body) if body else {}
        answer = _perform(steered, method, path.removeprefix(CONTROL_PREFIX), query, wanted)
    except (ValueError, TypeError) as error:
        return web.json_response({"error": str(error)}, status=400)
    if answer is None:
        return web.json_response({"error": f"no control route {method} {path}"}, status=404)
    return web.json_response(answer)


def _perform(steered: Steered, method: str, name: str, query: str, wanted: Any) -> Any:
    match method, name:
        case "GET", "requests":
            asked = {key: values[-1] for key, values in parse_qs(query).items()}
            after, count_max = int(asked.get("after", 0)), int(asked.get("count", 10_000))
            return steered.log.listing(after, asked.get("operation", ""), count_max)
        case "GET", "counts":
            return steered.log.counts()
        case "POST", "reset":
            steered.reset(**wanted)
            return {}
        case "POST", "latency":
            steered.set_latency(**wanted)
            return {}
        case "POST", "limit":
            steered.set_limit(**wanted)
            return {}
        case "POST", "faults":
            for fault in wanted if isinstance(wanted, list) else [wanted]:
                steered.faults.order(**fault)
            return {"pending": steered.faults.pending()}
        case "GET", "faults":
            return {"pending": steered.faults.pending()}
        case "DELETE", "faults":
            steered.faults.clear()
            return {"pending": 0}
        case "POST" | "GET", "store":
            return steered.configure(wanted)
    return None

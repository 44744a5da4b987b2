"""What a server of the lab was asked: each request, and counters over them.

Promises: every request that reached the server is logged once, in the order of its end; counters cover all requests
since the last reset even when the log, which is bounded, has forgotten some; no SAS signature is kept.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass
from typing import Any

_SIGNATURE = re.compile(r"([?&]sig=)[^&]*", re.IGNORECASE)


def without_signature(raw_path: str) -> str:
    """Return the request target with the value of a SAS `sig` replaced."""
    if "sig=" not in raw_path and "SIG=" not in raw_path:
        return raw_path
    return _SIGNATURE.sub(r"\1REDACTED", raw_path)


@dataclass(slots=True)
class LoggedRequest:
    """One request as it was understood and answered.

    `operation` and `target` are the store's decoding; `status` is what was decided, also where `fault` says that the
    client never saw it. Times are seconds of the server's monotonic clock.
    """

    sequence: int
    started: float
    ended: float
    method: str
    path: str
    operation: str
    target: str
    status: int
    error: str
    client_request_id: str
    bytes_in: int
    bytes_out: int
    fault: str


class RequestLog:
    """The latest requests, and counters per operation, status and error code over all of them."""

    def __init__(self, capacity: int = 200_000) -> None:
        self.requests: deque[LoggedRequest] = deque(maxlen=capacity)
        self.reset()

    def reset(self) -> None:
        """Forget every request and counter; requests under way are counted when they end."""
        self.requests.clear()
        self.operations: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.errors: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.bytes_in = self.bytes_out = 0
        self.in_flight_max = 0
        self._cpu_started = time.process_time()

    def add(self, request: LoggedRequest) -> None:
        """Log a request that has ended."""
        self.requests.append(request)
        self.operations[request.operation] += 1
        self.statuses[request.status] += 1
        if request.error:
            self.errors[request.error] += 1
        if request.fault:
            self.faults[request.fault] += 1
        self.bytes_in += request.bytes_in
        self.bytes_out += request.bytes_out

    def counts(self) -> dict[str, Any]:
        """Return the counters, and the CPU seconds this process used since the last reset, as JSON values."""
        return {
            "total": self.operations.total(),
            "operations": dict(self.operations),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "errors": dict(self.errors),
            "faults": dict(self.faults),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "in_flight_max": self.in_flight_max,
            "cpu_seconds": time.process_time() - self._cpu_started,
        }

    def listing(self, after: int = 0, operation: str = "", count_max: int = 10_000) -> list[dict[str, Any]]:
        """Return logged requests with a sequence number above `after`, oldest first, as JSON values."""
        found = []
        for request in self.requests:
            if request.sequence > after and (not operation or request.operation == operation):
                found.append(asdict(request))
                if len(found) == count_max:
                    break
        return found

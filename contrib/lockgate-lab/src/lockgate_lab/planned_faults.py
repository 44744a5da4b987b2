"""Faults a test orders in advance: the nth request of some kind goes wrong, at a stated moment.

The moments, as a client can meet them: `request-lost` (the connection drops, nothing was done), `error-before` (an
error answer, nothing was done), `error-after` (an error answer although it was done), `answer-lost` (it was done, the
connection drops before the answer). A store adds kinds of its own. Order is by count, never by chance, so a failing
test fails again.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

REQUEST_LOST = "request-lost"
ERROR_BEFORE = "error-before"
ERROR_AFTER = "error-after"
ANSWER_LOST = "answer-lost"
KINDS = frozenset({REQUEST_LOST, ERROR_BEFORE, ERROR_AFTER, ANSWER_LOST})


@dataclass(slots=True)
class PlannedFault:
    """`kind` strikes `times` requests that match, after letting `skip` of them pass.

    `operation` and `target` are shell patterns over the store's decoding of the request; in `target`, `*` crosses `/`.
    `status` and `code` say which error `error-before` and `error-after` answer.
    """

    kind: str
    operation: str = "*"
    target: str = "*"
    skip: int = 0
    times: int = 1
    status: int = 503
    code: str = ""

    def strikes(self, operation: str, target: str) -> bool:
        """Count a request against this fault, and say whether it is struck."""
        if self.times <= 0 or not fnmatchcase(operation, self.operation) or not fnmatchcase(target, self.target):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


class FaultPlan:
    """The faults ordered and not yet used up; each request is struck by one fault at most, the oldest first."""

    def __init__(self, store_kinds: frozenset[str] = frozenset()) -> None:
        self.kinds = KINDS | store_kinds
        self._pending: list[PlannedFault] = []

    def order(self, **values: Any) -> PlannedFault:
        """Add a fault; raises ValueError, naming the kinds, when this server does not know the kind."""
        try:
            fault = PlannedFault(**values)
        except TypeError as error:
            raise ValueError(f"not a fault: {error}") from None
        if fault.kind not in self.kinds:
            raise ValueError(f"unknown fault kind {fault.kind!r}; this server knows {', '.join(sorted(self.kinds))}")
        self._pending.append(fault)
        return fault

    def take(self, operation: str, target: str) -> PlannedFault | None:
        """Return the fault that strikes this request, if any."""
        if not self._pending:
            return None
        for fault in self._pending:
            if fault.strikes(operation, target):
                if fault.times <= 0:
                    self._pending.remove(fault)
                return fault
        return None

    def clear(self) -> None:
        """Drop every fault not yet used up."""
        self._pending.clear()

    def pending(self) -> int:
        """Say how many more requests the ordered faults would strike."""
        return sum(fault.times for fault in self._pending)

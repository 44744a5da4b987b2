"""The faults a proxy can inject, each a thing that happens in the field, and the decision about one request.

| kind | the server acted | the client meets |
| --- | --- | --- |
| `refuse` | no | its connection is reset, and new ones are refused for a moment |
| `reset` | no | its connection is reset before any answer |
| `throttle` | no | 503 or 429, without Retry-After |
| `throttle-retry-after` | no | 503 or 429, with Retry-After |
| `error-before` | no | 500 or 503 |
| `delay` | yes | the answer, late: some of the wait before the server acts, the rest after |
| `drop-answer` | yes | its connection is closed before any answer |
| `cut-answer` | yes | half the answer, then its connection is reset |
| `error-after` | yes | 500 |
| `cut-listing` | no | a listing whose first page came, and whose next page's request is reset |
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

REFUSE = "refuse"
RESET = "reset"
THROTTLE = "throttle"
THROTTLE_RETRY_AFTER = "throttle-retry-after"
ERROR_BEFORE = "error-before"
DELAY = "delay"
DROP_ANSWER = "drop-answer"
CUT_ANSWER = "cut-answer"
ERROR_AFTER = "error-after"
CUT_LISTING = "cut-listing"

KINDS = (
    REFUSE, RESET, THROTTLE, THROTTLE_RETRY_AFTER, ERROR_BEFORE, DELAY, DROP_ANSWER, CUT_ANSWER, ERROR_AFTER,
    CUT_LISTING,
)  # fmt: skip
TCP_KINDS = (REFUSE, RESET, DELAY, DROP_ANSWER)
"""The kinds that need no HTTP."""


@dataclass(frozen=True, slots=True)
class FaultRates:
    """The share of requests each kind strikes, 0 to 1; one request is struck by one kind at most.

    `cut_listing` is a share of the requests for a second or later page, which no other kind then strikes.
    """

    refuse: float = 0.0
    reset: float = 0.0
    throttle: float = 0.0
    throttle_retry_after: float = 0.0
    error_before: float = 0.0
    delay: float = 0.0
    drop_answer: float = 0.0
    cut_answer: float = 0.0
    error_after: float = 0.0
    cut_listing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shares that are none, or that add up to more than all requests."""
        shares = [getattr(self, known.name) for known in fields(self)]
        if any(not 0 <= share <= 1 for share in shares) or sum(shares) - self.cut_listing > 1 + 1e-9:
            raise ValueError(f"rates must lie between 0 and 1 and add up to at most 1: {self}")

    @classmethod
    def each(cls, share: float) -> Self:
        """Return the same share of every kind."""
        return cls(**{known.name: share for known in fields(cls)})

    @classmethod
    def each_tcp(cls, share: float) -> Self:
        """Return the same share of every kind that needs no HTTP."""
        return cls(**{kind.replace("-", "_"): share for kind in TCP_KINDS})

    def rate(self, kind: str) -> float:
        """Return the share of a kind."""
        return float(getattr(self, kind.replace("-", "_")))


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one request: `kind` is empty when nothing does.

    `delay_s` is waited before the server is asked, `delay_after_s` after it answered; `status` and `retry_after_s` (0:
    no such header) belong to the error kinds.
    """

    kind: str = ""
    delay_s: float = 0.0
    delay_after_s: float = 0.0
    status: int = 0
    retry_after_s: int = 0
    code: str = ""

    def __post_init__(self) -> None:
        """Refuse a kind that no proxy knows."""
        if self.kind and self.kind not in KINDS:
            raise ValueError(f"unknown fault kind {self.kind!r}; known: {', '.join(KINDS)}")

    def as_json(self) -> dict[str, Any]:
        """Return the values that are not at their defaults."""
        usual = asdict(NOTHING)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


NOTHING = Decision()


@dataclass(frozen=True, slots=True)
class FaultSizes:
    """How hard the faults strike."""

    delay_ms_max: float = 250.0
    refuse_ms: float = 50.0
    retry_after_s: int = 1
    throttle_statuses: tuple[int, ...] = field(default=(503, 429))


USUAL_SIZES = FaultSizes()

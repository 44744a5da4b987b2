"""A limit on requests per second, as store accounts have one.

Promises: over any span the limit lets through at most `burst + per_second * span` requests (a batch may exceed
it once, and is paid back), and it says when the next
one would be let through. The clock is passed in. It leaves out what accounts also limit: bytes, and name ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """A token bucket: `admit` answers 0.0, or the seconds until a request would be let through."""

    per_second: float
    burst: float
    clock: Callable[[], float]
    _tokens: float = field(init=False)
    _filled_at: float = field(init=False)

    def __post_init__(self) -> None:
        """Start full, as an idle account is."""
        if not self.per_second > 0 or not self.burst >= 1:
            raise ValueError("a rate limit needs per_second > 0 and burst >= 1")
        self._tokens = self.burst
        self._filled_at = self.clock()

    def admit(self, count: int = 1) -> float:
        """Take tokens and return 0.0, or take none and return the seconds to wait for one.

        A request that counts for many is let through when one token is there, and leaves a debt for the next ones.
        """
        now = self.clock()
        self._tokens = min(self.burst, self._tokens + (now - self._filled_at) * self.per_second)
        self._filled_at = now
        if self._tokens >= 1:
            self._tokens -= count
            return 0.0
        return (1 - self._tokens) / self.per_second

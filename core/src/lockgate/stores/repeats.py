"""What whoever waits is told of a store that does not do what it is asked, and how long it is asked again."""

from __future__ import annotations

from lockgate.engine.run.logs import get_log

log = get_log("lockgate.stores")

GONE_PATIENCE = 1 / 8
"""What of the patience a request has where the one before it was given up and nothing has been answered since: what a
failing commit does at its end is several requests one after the other, and whoever waits is to hear of the first."""

TOLD_AFTER_SECONDS = 5.0
TOLD_EVERY_SECONDS = 30.0


class Repeats:
    """What the requests of one store have met so far."""

    def __init__(self) -> None:
        self._told_at = float("-inf")

    def tell(self, where: str, reason: str, now: float, failing_since: float, until: float) -> None:
        """Say once in a while that requests fail, and for how long they will be repeated."""
        if now - failing_since < TOLD_AFTER_SECONDS or now - self._told_at < TOLD_EVERY_SECONDS:
            return
        self._told_at = now
        log.warning(
            "the store does not do what it is asked, and is asked again",
            where=where,
            reason=reason,
            seconds_left=round(until - now),
        )

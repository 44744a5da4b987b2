"""Which request meets which fault: drawn from a seed, or replayed from the log of an earlier run.

Requests arrive in no fixed order when many are in flight, so a decision never depends on the order of different
requests: it is a function of the seed, of what the request is (its key), and of how often that was asked before. The
same requests therefore meet the same faults, however they interleave. Keys that hold what changes from run to run (a
job id, say) need a `normalise` function that takes it out.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from lockgate_lab.fault_kinds import (
    CUT_LISTING,
    DELAY,
    ERROR_AFTER,
    ERROR_BEFORE,
    KINDS,
    NOTHING,
    THROTTLE,
    THROTTLE_RETRY_AFTER,
    USUAL_SIZES,
    Decision,
    FaultRates,
    FaultSizes,
)


class FaultSchedule(Protocol):
    """Decides about each request, once."""

    def decide(self, operation: str, key: str, occurrence: int, *, later_page: bool) -> Decision:
        """Return what happens to the request with this key that was asked `occurrence` times before."""

    def describe(self) -> dict[str, object]:
        """Return what to log so that the schedule can be had again."""


class NoFaults:
    """Lets every request pass."""

    def decide(self, operation: str, key: str, occurrence: int, *, later_page: bool) -> Decision:
        """Return nothing."""
        return NOTHING

    def describe(self) -> dict[str, object]:
        """Return the name."""
        return {"schedule": "none"}


class SeededFaults:
    """Draws a fault for each request from a seed.

    `only` and `never` are shell patterns over operations: a request is struck if its operation matches one of `only`
    and none of `never`. `strikes_in_a_row_max` is how often running one key is struck at most: with that bound a client
    that retries gets through in the end, and a run that does not end is the client's fault.
    """

    def __init__(
        self,
        seed: int,
        rates: FaultRates,
        *,
        sizes: FaultSizes = USUAL_SIZES,
        only: Iterable[str] = ("*",),
        never: Iterable[str] = (),
        strikes_in_a_row_max: int = 3,
    ) -> None:
        self.seed, self.rates, self.sizes = seed, rates, sizes
        self.only, self.never, self.strikes_in_a_row_max = tuple(only), tuple(never), strikes_in_a_row_max
        self._in_a_row: Counter[str] = Counter()

    def decide(self, operation: str, key: str, occurrence: int, *, later_page: bool) -> Decision:
        """Draw what happens to a request."""
        if not _matches(operation, self.only) or _matches(operation, self.never):
            return NOTHING
        if self._in_a_row[key] >= self.strikes_in_a_row_max:
            del self._in_a_row[key]
            return NOTHING
        digest = hashlib.blake2b(f"{self.seed}\n{key}\n{occurrence}".encode(), digest_size=8).digest()
        decision = self._draw(random.Random(int.from_bytes(digest)), later_page)
        if decision.kind:
            self._in_a_row[key] += 1
        else:
            self._in_a_row.pop(key, None)
        return decision

    def describe(self) -> dict[str, object]:
        """Return seed, rates and patterns."""
        rates = {kind: self.rates.rate(kind) for kind in KINDS if self.rates.rate(kind)}
        patterns = {"only": self.only, "never": self.never, "strikes_in_a_row_max": self.strikes_in_a_row_max}
        return {"schedule": "seeded", "seed": self.seed, "rates": rates, **patterns}

    def _draw(self, rng: random.Random, later_page: bool) -> Decision:
        drawn = rng.random()
        if later_page and self.rates.cut_listing:
            return Decision(CUT_LISTING) if drawn < self.rates.cut_listing else NOTHING
        for kind in KINDS:
            if kind == CUT_LISTING:
                continue
            rate = self.rates.rate(kind)
            if drawn < rate:
                return self._sized(kind, rng)
            drawn -= rate
        return NOTHING

    def _sized(self, kind: str, rng: random.Random) -> Decision:
        sizes = self.sizes
        if kind == DELAY:
            total_s = rng.uniform(0.1, 1.0) * sizes.delay_ms_max / 1000
            before_s = round(total_s * rng.random(), 4)
            return Decision(kind, delay_s=before_s, delay_after_s=round(total_s - before_s, 4))
        if kind == THROTTLE:
            return Decision(kind, status=rng.choice(sizes.throttle_statuses))
        if kind == THROTTLE_RETRY_AFTER:
            return Decision(kind, status=rng.choice(sizes.throttle_statuses), retry_after_s=sizes.retry_after_s)
        if kind == ERROR_BEFORE:
            return Decision(kind, status=rng.choice((500, 503)))
        if kind == ERROR_AFTER:
            return Decision(kind, status=500)
        return Decision(kind)


class ReplayedFaults:
    """Repeats the decisions of a log that a proxy wrote; a request that the log does not know passes."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._decisions: dict[tuple[str, int], Decision] = {}
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if "key" in entry:
                self._decisions[entry["key"], entry["occurrence"]] = Decision(**entry["decision"])

    def decide(self, operation: str, key: str, occurrence: int, *, later_page: bool) -> Decision:
        """Return what happened to this request when the log was written."""
        return self._decisions.get((key, occurrence), NOTHING)

    def describe(self) -> dict[str, object]:
        """Return where the decisions come from."""
        return {"schedule": "replayed", "log": str(self.log)}


def as_is(key: str) -> str:
    """Return the key: the `normalise` of requests that are the same in every run."""
    return key


Normalise = Callable[[str], str]


def _matches(operation: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(operation, pattern) for pattern in patterns)

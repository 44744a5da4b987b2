"""What may go wrong at a store operation, and when. A fault has a moment: before, after, between two files of a batch.

The fault model. An actor may crash before or after any operation and between two files of a batch; be asleep for
longer than anybody waits, at the same moments; be answered "unavailable" though nothing was done; not be answered
at all though it was done, or will be done later; be throttled on single files; or have its clock jump. Contents are
never damaged, and what a store's capabilities promise holds: that is what must be relied on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import NamedTuple, Protocol


class Kind(StrEnum):
    """One kind of fault."""

    CRASH_BEFORE = "crash before"
    CRASH_BETWEEN = "crash between"
    CRASH_AFTER = "crash after"
    SLEEP_BEFORE = "sleep before"
    SLEEP_BETWEEN = "sleep between"
    SLEEP_AFTER = "sleep after"
    UNAVAILABLE = "unavailable"
    LOST = "answer lost"
    LATE = "answer lost, done later"
    THROTTLED = "throttled"
    CLOCK_JUMP = "clock jumps"


CRASHES = (Kind.CRASH_BEFORE, Kind.CRASH_BETWEEN, Kind.CRASH_AFTER)
SLEEPS = (Kind.SLEEP_BEFORE, Kind.SLEEP_BETWEEN, Kind.SLEEP_AFTER)
ANSWERS = (Kind.UNAVAILABLE, Kind.LOST, Kind.LATE, Kind.THROTTLED)


class Fault(NamedTuple):
    """A fault at one operation; `item` is the file of the batch it strikes at, `seconds` how long it lasts. Of a lost
    answer: for how many more of the actor's operations the store is `away`, so that nobody can look what became of it.
    What is done later may be done `in_a_look`: at the actor's next look at several files, between two of them, whose
    last is looked at first. Then, and where it is `stuck`, whoever asks for the same before has no answer either.
    """

    kind: Kind
    item: int = 0
    seconds: float = 0.0
    away: int = 0
    in_a_look: bool = False
    stuck: bool = False

    def __str__(self) -> str:
        away = f", and away for {self.away} operations" if self.away else ""
        away += ", in a look" if self.in_a_look else ""
        away += ", as often as it is asked for" if self.stuck else ""
        return f"{self.kind.value}" + (f" {self.seconds:.0f} s" if self.seconds else "") + away


class Faults(Protocol):
    """Decides what strikes an operation."""

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """The fault at an actor's operation `number` (from 0) on so many files, if any."""


class NoFaults:
    """Nothing goes wrong any more."""

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """None."""
        return None


@dataclass
class PlannedFaults:
    """Faults at chosen operations: (actor, number of its operation) to fault. For systematic exploration."""

    plan: Mapping[tuple[str, int], Fault]

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """The planned fault."""
        return self.plan.get((actor, number))


@dataclass
class RandomFaults:
    """Faults by chance: at an operation with probability `rate`, of a kind drawn from `kinds`, at most `left` in all.

    Each run leaves some kinds out altogether, so that rare mixtures come up.
    """

    random: Random
    rate: float
    kinds: tuple[Kind, ...]
    left: int
    sleep_seconds_max: float
    exempt: frozenset[str] = frozenset()

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """Draw."""
        if self.random.random() >= self.rate or self.left <= 0 or actor in self.exempt:
            return None
        self.left -= 1
        kind = self.kinds[int(self.random.random() * len(self.kinds))]
        item = int(self.random.random() * items) if items > 1 else 0
        seconds = 0.0
        if kind in SLEEPS:
            seconds = 0.01 * (self.sleep_seconds_max / 0.01) ** self.random.random()
        elif kind is Kind.CLOCK_JUMP:
            seconds = 10_000.0 * (self.random.random() - 0.5)
        elif kind is Kind.LATE:
            seconds = 0.01 * (300 / 0.01) ** self.random.random()
        return Fault(kind, item, seconds)

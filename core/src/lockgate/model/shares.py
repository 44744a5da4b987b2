"""Shares of a job's renames, for movers of its driver: planned by counting, without a look at any file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from lockgate.model.receipt import Pin
from lockgate.model.statistics import Statistics


class Part(Struct, frozen=True, gc=False):
    """The entries of one manifest from `begin` to before `end`, in the manifest's order."""

    pin: Pin
    begin: int
    end: int


class Share(Struct, frozen=True):
    """What one mover renames. `holder` is the nonce of the driver that gives it out: for that driver alone, and while
    the job's record says that it moves, its files may be renamed."""

    holder: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> int:
        """How many files it has."""
        return sum(part.end - part.begin for part in self.parts)


class Moved(Struct, frozen=True):
    """What a mover answers when its share is in place: how many files, and what it has counted and measured."""

    files: int
    counters: Mapping[str, int] = field(default_factory=dict)
    statistics: Statistics = Statistics()


def shares_of(holder: str, manifests: Iterable[tuple[Pin, int]], files: int, most: int) -> Sequence[Share]:
    """At most so many shares, of equal numbers of files or one less, that together hold each file of these manifests,
    given with how many files each has, once."""
    shares: list[Share] = []
    parts: list[Part] = []
    done = 0
    for pin, count in manifests:
        begin = 0
        while begin < count:
            ends = files * (len(shares) + 1) // most
            end = min(count, begin + ends - done)
            if end > begin:
                parts.append(Part(pin, begin, end))
            done += end - begin
            begin = end
            if done == ends:
                if parts:
                    shares.append(Share(holder, tuple(parts)))
                    parts = []
                else:  # fewer files than movers
                    most -= 1
    return shares

"""Sorting what a listing shows, when it may be a million files: in sorted runs, spooled, and merged.

A list that is short enough stays one, and is never encoded.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from lockgate.model.spooled import Spool, Spooled, Spools, windows

RUN = 20_000
"""So many members are sorted at a time, and at most so many are held."""

READ_AHEAD = 200
"""So many members of each run are held while the runs are merged."""

Member = TypeVar("Member")


class Sorter(Generic[Member]):
    """Takes msgspec structs of one `kind` in any order, and gives them in the order of `key`."""

    def __init__(self, spools: Spools, kind: type[Any], key: Callable[[Member], Any]) -> None:
        self._spools = spools
        self._kind = kind
        self._key = key
        self._held: list[Member] = []
        self._spool: Spool | None = None
        self._runs: list[range] = []
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]

    def add(self, members: Iterable[Member]) -> None:
        """Take more in."""
        self._held += members
        if len(self._held) >= RUN:
            self._put_away()

    def _put_away(self) -> None:
        if self._spool is None:
            self._spool = self._spools()
        spool, encode = self._spool, msgspec.msgpack.Encoder().encode
        first = len(spool)
        for window in windows(sorted(self._held, key=self._key), READ_AHEAD):
            spool.append(encode(window))
        self._runs.append(range(first, len(spool)))
        self._held = []

    def in_order(self) -> Iterator[Member]:
        """All that was taken in, in order; what is equal in the order in which it came."""
        self._held.sort(key=self._key)
        return heapq.merge(*map(self._read, self._runs), self._held, key=self._key)

    def _read(self, run: range) -> Iterator[Member]:
        assert self._spool is not None
        for number in run:
            yield from self._decode(self._spool[number])

    def collected(self, members: Iterable[Member]) -> Sequence[Member]:
        """These, of which there are no more than were taken in: a list if that was short, else spooled."""
        if not self._runs:
            return list(members)
        return Spooled(self._spools, self._kind, members)

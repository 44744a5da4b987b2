"""Sequences kept encoded in a spool: as long as a destination has files, and never a Python object for each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, overload

import msgspec

CHUNK = 1_000
"""So many members of a sequence are decoded at a time."""

Member = TypeVar("Member")


class Spool(Protocol):
    """An append-only sequence of byte strings that can be read again and again. Its place is not the model's
    business: memory for a small job, a local temporary file for a large one. A list is one."""

    def append(self, chunk: bytes, /) -> None:
        """Add a chunk at the end."""

    def __iter__(self) -> Iterator[bytes]:
        """The chunks from the first."""

    def __getitem__(self, number: int, /) -> bytes:
        """The chunk of this number, counted from 0."""

    def __len__(self) -> int:
        """How many chunks there are."""


Spools = Callable[[], Spool]
"""Makes a new, empty spool."""


def windows(members: Iterable[Member], size: int) -> Iterator[list[Member]]:
    """The members in order, in lists of `size`; the last may be shorter."""
    remaining = iter(members)
    while window := list(islice(remaining, size)):
        yield window


class Spooled(Sequence[Member], Generic[Member]):
    """A sequence of msgspec structs of one `kind` in a spool. Read by passes: each decodes `CHUNK` members at a time,
    and so does a member that is asked for by its place, unless it is near the last that was.

    Never changed: `plus` answers with another, which shares what it can.
    """

    def __init__(self, spools: Spools, kind: type[Any], members: Iterable[Member] = ()) -> None:
        self._kind = kind
        self._spool = spools()
        self._chunks = array("q")
        self._last: list[Member] = []
        self._near: tuple[int, list[Member]] = (-1, [])
        self._decode = msgspec.msgpack.Decoder(list[kind]).decode  # type: ignore[valid-type]
        self._take(members)

    def _take(self, members: Iterable[Member]) -> None:
        encode = msgspec.msgpack.Encoder().encode
        remaining = iter(members)
        while more := list(islice(remaining, CHUNK - len(self._last))):
            self._last += more
            if len(self._last) == CHUNK:
                self._chunks.append(len(self._spool))
                self._spool.append(encode(self._last))
                self._last = []

    def plus(self, members: Iterable[Member]) -> Spooled[Member]:
        """This sequence with more members at its end. The spool is shared: what either adds, the other does not see."""
        more = Spooled[Member](lambda: self._spool, self._kind)
        more._chunks = self._chunks[:]
        more._last = self._last[:]
        more._take(members)
        return more

    def __len__(self) -> int:
        return len(self._chunks) * CHUNK + len(self._last)

    def __iter__(self) -> Iterator[Member]:
        for number in range(len(self._chunks)):
            yield from self._decode(self._spool[self._chunks[number]])
        yield from self._last

    @overload
    def __getitem__(self, place: int) -> Member: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Member]: ...

    def __getitem__(self, place: int | slice) -> Member | Sequence[Member]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        whole = place + len(self) if place < 0 else place
        if not 0 <= whole < len(self):
            raise IndexError(f"no member {place} among {len(self)}")
        number, within = divmod(whole, CHUNK)
        if number == len(self._chunks):
            return self._last[within]
        if self._near[0] != number:
            self._near = (number, self._decode(self._spool[self._chunks[number]]))
        return self._near[1][within]

    def __repr__(self) -> str:
        return f"Spooled({self._kind.__name__}, {len(self)} members)"

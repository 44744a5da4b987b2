"""A set of numbers, a bit each: of files by their places in a list."""

from __future__ import annotations

from collections.abc import Iterable

_PAGE_BITS = 16
_PAGE_BYTES = (1 << _PAGE_BITS) // 8


class Numbers:
    """A set of numbers from 0. A page of bits for each range in which there is one: a number that somebody has made up
    costs no more than another."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._pages: dict[int, bytearray] = {}
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> None:
        """Put a number in."""
        page = self._pages.get(number >> _PAGE_BITS)
        if page is None:
            page = self._pages[number >> _PAGE_BITS] = bytearray(_PAGE_BYTES)
        within = number & ((1 << _PAGE_BITS) - 1)
        page[within >> 3] |= 1 << (within & 7)

    def discard(self, number: int) -> None:
        """Take a number out, if it is in."""
        if number in self:
            within = number & ((1 << _PAGE_BITS) - 1)
            self._pages[number >> _PAGE_BITS][within >> 3] &= ~(1 << (within & 7)) & 0xFF

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        page = self._pages.get(number >> _PAGE_BITS)
        within = number & ((1 << _PAGE_BITS) - 1)
        return page is not None and bool(page[within >> 3] & (1 << (within & 7)))

    def __bool__(self) -> bool:
        return any(any(page) for page in self._pages.values())

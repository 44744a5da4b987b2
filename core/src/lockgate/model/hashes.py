"""Hashes of many paths: eight bytes each, to ask whether a path may be among them. Equal hashes may be chance; whoever
asks compares the names."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence


class PathHashes:
    """The hashes of paths, gathered one by one. They hold for this process only."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        # One array for each top byte, so that they are sorted, which makes an object of every number, a part at a time.
        self._parts = [array("q") for _ in range(256)]
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Take a path in."""
        value = hash(path)
        self._parts[(value >> 56) + 128].append(value)

    def in_order(self) -> array[int]:
        """All of them in order. What was gathered is let go of."""
        whole = array("q")
        for number, part in enumerate(self._parts):
            whole.extend(sorted(part))
            self._parts[number] = array("q")
        return whole


def may_hold(hashes: Sequence[int], path: str) -> bool:
    """Whether a path's hash is among these, which are in order."""
    value = hash(path)
    at = bisect_left(hashes, value)
    return at < len(hashes) and hashes[at] == value

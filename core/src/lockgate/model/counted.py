"""Numbers of things in errors and answers."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """`count` with the words for one or for several: "1 file has", "2,000 files have". `many` empty: `one` and an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"

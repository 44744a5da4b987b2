"""Lengths of time as people write them: `90`, `90s`, `1.5h`, `5m`."""

from __future__ import annotations

import re

_SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
}
_TEXT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]*)", re.IGNORECASE)


def seconds_of(text: str) -> float:
    """The seconds that a text says; a number alone is seconds.

    Raises:
        ValueError: it is no length of time.
    """
    match = _TEXT.fullmatch(text.strip())
    unit = match[2].lower() if match else ""
    factor = 1.0 if not unit else _SECONDS.get(unit) or _SECONDS.get(unit.removesuffix("s"))
    if match is None or factor is None:
        raise ValueError("not a length of time")
    return float(match[1]) * factor


def milliseconds_of(text: str) -> int:
    """The whole milliseconds that a text says; a number alone is milliseconds.

    Raises:
        ValueError: it is no length of time, or none of whole milliseconds.
    """
    try:
        return int(text.strip())
    except ValueError:
        found = round(seconds_of(text) * 1000, 6)
    if found != int(found):
        raise ValueError("not whole milliseconds")
    return int(found)

"""Dates, times and intervals as Spark prints them, of any year.

Python's own dates end at the years 1 and 9999 and Arrow's text of them at the year 32767; Spark's do not. Sources:
Spark's `DateFormatter` and `TimestampFormatter` (pattern `uuuu`, with a sign outside of 0000 to 9999), and
`IntervalUtils.toDayTimeIntervalString`.
"""

from __future__ import annotations

import datetime

EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
DAYS_IN_400_YEARS = 146_097
DAY_MICROS = 86_400_000_000

_INTERVAL_FIELDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def date_of(days: int) -> str:
    """The date so many days after 1970-01-01, of the proleptic Gregorian calendar."""
    cycles, rest = divmod(days + EPOCH_ORDINAL - 1, DAYS_IN_400_YEARS)
    date = datetime.date.fromordinal(rest + 1)
    year = date.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{date:%m-%d}"


def time_of(nanos: int) -> str:
    """The time of day so many nanoseconds after midnight; no zeros end the fraction."""
    seconds, fraction = divmod(nanos, 1_000_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def timestamp_of(micros: int, separator: str = " ") -> str:
    """Date and time of day so many microseconds after 1970-01-01 00:00; no zeros end the fraction."""
    days, rest = divmod(micros, DAY_MICROS)
    return f"{date_of(days)}{separator}{time_of(rest * 1000)}"


def interval_of(micros: int, kind: str) -> str:
    """A day-time interval as a SQL literal. `kind` is its type, such as `interval day to second`."""
    words = kind.split()
    start, end = words[1], words[-1]
    names = list(_INTERVAL_FIELDS)
    rest, fraction = divmod(abs(micros), 1_000_000)
    text = "-" if micros < 0 else ""
    for name in names[names.index(start) : names.index(end) + 1]:
        value, rest = divmod(rest, _INTERVAL_FIELDS[name])
        before = "" if name == start else " " if name == "hour" else ":"
        text += before + (str(value) if name == "day" else f"{value:02d}")
    if end == "second" and fraction:
        text += f".{fraction:06d}".rstrip("0")
    unit = start if start == end else f"{start} to {end}"
    return f"INTERVAL '{text}' {unit.upper()}"

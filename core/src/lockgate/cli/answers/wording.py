"""How values are written for people: sizes, times, counts, facts of one thing."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from typing import Any

from lockgate.cli.terminal import Rows
from lockgate.engine.inspection.advise import Pace
from lockgate.engine.record.signs_of_life import AHEAD_SECONDS
from lockgate.model.counted import counted
from lockgate.model.prediction import told_at_once

LISTED_MAX = 20
"""How many files a table for people shows; `--json` has them all."""


def size(count: int) -> str:
    """Bytes for people: three digits and a binary unit."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def files(count: int) -> str:
    """So many files."""
    return counted(count, "file")


def age(since: float) -> str:
    """How long ago a time was, in its largest unit; nothing for a time that is not known (0). What is dated
    `AHEAD_SECONDS` ahead of this host's clock says so."""
    if not since:
        return ""
    seconds = time.time() - since
    if seconds <= -AHEAD_SECONDS:
        return f"{_length(-seconds)} ahead"
    return _length(max(0.0, seconds))


def _length(seconds: float) -> str:
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def when(seconds: float) -> str:
    """A time, in seconds since 1970, in UTC; nothing for one that is not known (0)."""
    if not seconds:
        return ""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # of another program, and no time of any calendar
        return f"{seconds:.0f} s after 1970"


def facts_table(title: str, facts: Mapping[str, Any]) -> Rows:
    """A row for each fact that is known."""
    rows = [(name, str(value)) for name, value in facts.items() if value not in ("", None)]
    return Rows(title, ("", ""), rows)


def pace_told(pace: Pace, *, measured: bool) -> str:
    """By what costs were predicted, for people."""
    limit = f", {pace.rate:g} operations a second" if pace.rate else ""
    by = " (measured)" if measured else ""
    return f"at {pace.latency * 1000:.3g} ms an operation{by}, {told_at_once(pace.in_flight)}{limit}"


def pace_fields(pace: Pace, *, measured: bool) -> dict[str, Any]:
    """The same for programs."""
    return {
        "latency_ms": round(pace.latency * 1000, 3),
        "latency_measured": measured,
        "rate": pace.rate,
        "in_flight": pace.in_flight,
    }

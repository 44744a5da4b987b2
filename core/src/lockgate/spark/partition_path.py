"""The directory of a partition, named as Spark names it, so that Spark finds the partitions again.

Source: Spark's `ExternalCatalogUtils.escapePathName`, `PartitioningUtils.getPathFragment` and `Cast` to string.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from collections.abc import Sequence
from typing import Any

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The name of the partition of nulls, and of empty strings."""

_ESCAPED = frozenset([*map(chr, range(1, 0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"])


def escape(name: str) -> str:
    """Percent-encode what Spark and Hive percent-encode in a directory's name."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in name)


def partition_directory(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """`a=1/b=x%3Ay` for these columns and values, outermost first."""
    return "/".join(
        f"{escape(column)}={escape(value) if value else NULL_PARTITION}"
        for column, value in zip(columns, values, strict=True)
    )


def value_text(value: Any, *, single: bool = False) -> str | None:
    """A partition value as Spark casts it to a string; None for null. `single` says a 32-bit float."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_float(_shortest_single(value) if single else repr(value), value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime.datetime):
        text = f"{value.year:04d}-{value:%m-%d %H:%M:%S}"
        return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text
    if isinstance(value, datetime.date):
        return f"{value.year:04d}-{value:%m-%d}"
    return str(value)


def _shortest_single(value: float) -> str:
    if math.isfinite(value):
        for digits in range(1, 10):
            text = f"{value:.{digits}g}"
            if struct.pack("f", float(text)) == struct.pack("f", value):
                return text
    return repr(value)


def _java_float(shortest: str, value: float) -> str:
    """Java's `Double.toString`: plain between 1e-3 and 1e7, else `d.dE±n`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = decimal.Decimal(shortest).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    prefix = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{prefix}0.{'0' * -point}{text}"
        whole, rest = text[:point].ljust(point, "0"), text[point:]
        return f"{prefix}{whole}.{rest or '0'}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"

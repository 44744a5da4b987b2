"""The directory of a partition, named as Spark names it, so that Spark finds the partitions again.

Source: Spark's `ExternalCatalogUtils.escapePathName`, `PartitioningUtils.getPathFragment` and `Cast` to string.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lockgate.spark.formats.civil_text import date_of, interval_of, time_of, timestamp_of
from lockgate.spark.formats.spark_type import interval_type
from lockgate.spark.session_zone import local_micros, zone_named

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


def value_texts(values: pa.Array, field: pa.Field) -> list[str | None]:
    """Partition values as Spark casts them to strings; None for null.

    Bytes that are not UTF-8 become U+FFFD, as in Spark: values that differ in such bytes only share a partition.

    Raises:
        OptionError: the session's time zone is not known to Python.
    """
    return [None if value is None else text(value) for text, value in _with_text(values, field)]


def _with_text(values: pa.Array, field: pa.Field) -> Iterator[tuple[Callable[[Any], str], Any]]:
    kind = values.type
    text: Callable[[Any], str] = str
    if pa.types.is_boolean(kind):
        text = {True: "true", False: "false"}.__getitem__
    elif pa.types.is_floating(kind):
        text = functools.partial(float_text, single=pa.types.is_float32(kind))
    elif pa.types.is_decimal(kind):
        text = "{:f}".format
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        values, text = values.cast(pa.large_binary()), functools.partial(bytes.decode, errors="replace")
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        values, text = values.cast(pa.binary()), functools.partial(bytes.decode, errors="replace")
    elif pa.types.is_date(kind):
        values, text = values.cast(pa.int32()), date_of
    elif pa.types.is_time(kind):
        values, text = values.cast(pa.time64("ns")).cast(pa.int64()), time_of
    elif pa.types.is_duration(kind):
        values, text = values.cast(pa.int64()), functools.partial(interval_of, kind=interval_type(field))
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        text = timestamp_of if kind.tz is None else functools.partial(_instant, zone=zone_named(field.type.tz))
    return ((text, value) for value in values.to_pylist())


def _instant(micros: int, zone: datetime.tzinfo) -> str:
    return timestamp_of(local_micros(micros, zone))


def float_text(value: float, *, single: bool = False) -> str:
    """A number as Java prints it (`Double.toString`); `single` says a 32-bit float.

    The digits are those of Java 19 and later: the fewest that tell the number from its neighbours, two at least. Older
    ones print some numbers with a digit too many; what they print reads back as the same number.
    """
    return _java_float(_shortest_single(value) if single else _shortest(value), value)


def _shortest(value: float) -> str:
    # Of the two-digit numbers that read back as this one Java takes the nearest, also where one digit would do.
    two = f"{value:.1e}"
    return two if float(two) == value else repr(value)


def _shortest_single(value: float) -> str:
    if math.isfinite(value):
        for digits in range(2, 10):
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

"""Columns of single values as columns of the text that Spark's own readers take; nulls stay null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.spark.formats.civil_text import date_of, interval_of, timestamp_of
from lockgate.spark.formats.spark_type import interval_type

_DAYS_PLAIN = (-719_162, 2_932_896)
"""0001-01-01 and 9999-12-31: between them Arrow's text of a date is Spark's."""
_DAY_MICROS = 86_400_000_000
_MICROS_PLAIN = (_DAYS_PLAIN[0] * _DAY_MICROS, (_DAYS_PLAIN[1] + 1) * _DAY_MICROS - 1)


def scalar_text(column: pa.Array, field: pa.Field) -> pa.Array:
    """Strings, numbers, booleans, dates, times, timestamps and day-time intervals."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return valid_utf8(column)
    if pa.types.is_timestamp(kind):
        return timestamp_text(column)
    if pa.types.is_date(kind):
        return date_text(column)
    if pa.types.is_duration(kind):
        name = interval_type(field)
        return _each(column.cast(pa.int64()), lambda micros: interval_of(micros, name))
    if pa.types.is_floating(kind):
        return float_text(column)
    return column.cast(pa.large_string())


def valid_utf8(strings: pa.Array) -> pa.Array:
    """Strings with U+FFFD for what is not UTF-8, as Spark's writers of text put it. A Spark string may hold any bytes;
    a text file may not."""
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        large = pa.types.is_large_string(strings.type)
        raw = strings.cast(pa.large_binary() if large else pa.binary())
        texts = [None if value is None else value.decode(errors="replace") for value in raw.to_pylist()]
        return pa.array(texts, strings.type)
    return strings


def date_text(column: pa.Array) -> pa.Array:
    """`2024-02-29`; with a sign outside of the years 0000 to 9999."""
    days = column.cast(pa.int32())
    if _within(days, _DAYS_PLAIN):
        return column.cast(pa.large_string())
    return _each(days, date_of)


def timestamp_text(column: pa.Array) -> pa.Array:
    """ISO 8601; with `Z`, in UTC, where it is a point in time.

    Milliseconds as Spark's own, microseconds where a value has them: a reader with the setting
    `spark.sql.legacy.timeParserPolicy=LEGACY` takes the digits, however many, for milliseconds.
    """
    # The same ticks without the zone are the time of day in UTC.
    ticks = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if _within(ticks, _MICROS_PLAIN):
        text = pc.strftime(ticks.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S").cast(pa.large_string())
        in_millis = pc.equal(pc.multiply(pc.divide(ticks, 1000), 1000), ticks)
        text = pc.if_else(in_millis, pc.utf8_slice_codeunits(text, 0, len("2024-02-29T12:34:56.123")), text)
    else:
        text = _each(ticks, _far_timestamp)
    return joined(text, "Z") if column.type.tz is not None else text


def _far_timestamp(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f"{fraction:06d}"
    return f"{timestamp_of(seconds * 1_000_000, 'T')}.{digits[:3] if digits.endswith('000') else digits}"


def float_text(column: pa.Array) -> pa.Array:
    """The shortest text that reads back as the same number; `NaN`, `Infinity` and `-Infinity` as Spark names them."""
    text = column.cast(pa.large_string())
    # Without the point a reader of JSON takes it for a whole number, which has no negative zero.
    text = pc.if_else(pc.equal(text, "-0"), _constant("-0.0"), text)
    if not pc.any(pc.invert(pc.is_finite(column))).as_py():
        return text
    text = pc.if_else(pc.is_nan(column), _constant("NaN"), text)
    named = pc.if_else(pc.greater(column, 0), _constant("Infinity"), _constant("-Infinity"))
    return pc.if_else(pc.is_inf(column), named, text)


def joined(*parts: Any, separator: str = "", **options: Any) -> pa.Array:
    """Columns and constants joined row by row; a null makes a null unless `options` say otherwise."""
    large = [part.cast(pa.large_string()) if isinstance(part, pa.Array) else _constant(part) for part in parts]
    return pc.binary_join_element_wise(*large, _constant(separator), **options)


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _within(numbers: pa.Array, limits: tuple[int, int]) -> bool:
    found = pc.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (limits[0] <= least and most <= limits[1])


def _each(numbers: pa.Array, text: Callable[[int], str]) -> pa.Array:
    """One value after the other: for what Arrow has no function for."""
    return pa.array([None if each is None else text(each) for each in numbers.to_pylist()], pa.large_string())

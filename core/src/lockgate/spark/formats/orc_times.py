"""The few dates and timestamps that an ORC file cannot carry from Arrow's writer to Spark's reader.

- A fraction of a second before 1970. Arrow's writer rounds the seconds towards zero, so that the nanoseconds are
  negative (`TimestampAppender` in Arrow's `adapters/orc/util.cc`); Java refuses to read them.
- A timestamp before 1900. Spark takes what it reads for a timestamp of Java's old calendar and time zones, which know
  no local mean time, and turns it into one of the new ones by the zone that its JVM happens to be in
  (`RebaseDateTime.rebaseJulianToGregorianMicros`; its last switch, in any zone, is at 1900-01-01T00:00:00Z). What a
  file holds would be read as another time by each JVM.
- A date from 1582-10-05 to 1582-10-14, which Java's old calendar does not have, and one before the year 1, where ORC's
  Java reader, told that the file is proleptic, confuses the eras. Spark's own ORC files change the former as well.
"""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.model.errors import OptionError
from lockgate.spark.formats.civil_text import date_of, timestamp_of

FIRST_MICROS = -2_208_988_800_000_000
"""1900-01-01T00:00:00Z."""
FIRST_DAY = -719_162
"""0001-01-01."""
_GAP = (-141_437, -141_428)
"""1582-10-05 and 1582-10-14."""
_SECOND = 1_000_000


def refuse_times(column: pa.Array, path: str) -> None:
    """Look through a column, nested values included.

    Raises:
        OptionError: it holds a date or a timestamp that Spark would not read back.
    """
    kind = column.type
    if pa.types.is_date(kind):
        _refuse_dates(column.cast(pa.int32()), path)
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        _refuse_timestamps(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()), path)
    elif pa.types.is_struct(kind):
        for child, values in zip(kind, column.flatten(), strict=True):
            refuse_times(values, f"{path}.{child.name}")
    elif pa.types.is_map(kind):
        entries = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        for name, values in zip(("key", "value"), entries.flatten().flatten(), strict=True):
            refuse_times(values, f"{path}.{name}")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        refuse_times(column.flatten(), f"{path}.element")


def _refuse_dates(days: pa.Array, path: str) -> None:
    if _least(days, 0) >= 0:
        return
    in_gap = pc.and_(pc.greater_equal(days, _GAP[0]), pc.less_equal(days, _GAP[1]))
    bad = days.filter(pc.or_(pc.less(days, FIRST_DAY), in_gap))
    if len(bad):
        _refuse(
            f"the date {date_of(bad[0].as_py())}",
            f"column {path}: date",
            "ORC's Java readers know no date before the year 1 nor from 1582-10-05 to 1582-10-14; use parquet, or cast "
            "the column to a string",
        )


def _refuse_timestamps(micros: pa.Array, path: str) -> None:
    least = _least(micros, 0)
    if least >= 0:
        return
    if least < FIRST_MICROS:
        _refuse(
            f"the timestamp {timestamp_of(least)} UTC",
            f"column {path}: timestamp",
            "Spark reads timestamps before 1900 in ORC by the time zone of its JVM; use parquet, or cast the column to "
            "timestamp_ntz or to a string",
        )
    early = micros.filter(pc.less(micros, 0))
    bad = early.filter(pc.not_equal(pc.multiply(pc.divide(early, _SECOND), _SECOND), early))
    if len(bad):
        _refuse(
            f"the timestamp {timestamp_of(bad[0].as_py())} UTC",
            f"column {path}: timestamp",
            "Arrow's ORC writer spoils fractions of a second before 1970; use parquet, or cut them off with "
            "date_trunc('second', …), or cast the column to timestamp_ntz",
        )


def _least(numbers: pa.Array, default: int) -> int:
    least = pc.min(numbers).as_py()
    return default if least is None else least


def _refuse(what: str, where: str, next_step: str) -> NoReturn:
    raise OptionError(f"orc files cannot hold {what}", where=where, next_step=next_step)

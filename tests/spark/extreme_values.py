"""Rows of extreme and random values of every Spark type, drawn by Hypothesis from a seed, as one DataFrame."""

from __future__ import annotations

import math
import os
import struct
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

ROUNDS = int(os.environ.get("TEST_VALUES", "1"))
"""How many seeds are tried; `nox -s long` tries more."""
SEEDS = tuple(range(1, ROUNDS + 1))
ROWS = 150

DAY = 86_400_000_000
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
DAYS = (FIRST_DAY, -171_499, -141_438, -141_437, -141_428, -141_427, -31_451, -25_567, -1, 0, 1, 24_855, LAST_DAY)
"""Among them 1500-06-12, the days before, in and after the gap of 1582, 1883-11-20, and 1900-01-01."""
FAR_DAYS = (-10_000_000, FIRST_DAY - 1, LAST_DAY + 1, 20_000_000)
MICROS = (
    *(day * DAY for day in (FIRST_DAY, -171_499, -141_427, -31_451, -25_567, -1, 0, LAST_DAY)),
    -2_717_640_000_000_000,  # 1883-11-18 17:00 UTC, the last noon of local mean time in New York
    -2_717_640_237_500_000,
    -2_208_988_800_000_000,
    -2_208_988_800_000_001,
    -1_500_000,
    -1_000_000,
    -999_999,
    -1,
    1,
    999_999,
    1_710_055_801_123_456,
    253_402_300_799_999_999,
)
FAR_MICROS = (-(10**17), (FIRST_DAY - 400) * DAY + 1, 253_402_400_800_000_001, 10**17)

_SPECIAL = (
    0.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    1e7,
    9999999.0,
    1e-3,
    9.99e-4,
    5e-324,
    1e23,
    1.7976931348623157e308,
)
_LETTERS = st.text(st.sampled_from("aé☃🦆 ,;\"'\\\n\r\t#|{}[]:\x01\x7f"), max_size=12)
_TEXT = st.one_of(
    st.sampled_from(
        ["", " ", "\\", '"', '""', "null", "NaN", "\\N", "#", "x" * 9_000, " a ", "a\\", '\\"', ",\\", "\ufeff"]
    ),
    _LETTERS,
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=20),
)


def _single(value: float) -> float:
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    whole = st.one_of(st.sampled_from([0, 1, -1, most, -most]), st.integers(-most, most))
    return whole.map(lambda number: Decimal(number).scaleb(-scale, _exactly(digits)))


def _exactly(digits: int) -> Any:
    import decimal

    return decimal.Context(prec=digits)


def _whole(bits: int) -> st.SearchStrategy[int]:
    limit = 1 << (bits - 1)
    return st.one_of(st.sampled_from([-limit, limit - 1, 0, -1]), st.integers(-limit, limit - 1))


RAW: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "byte": ("tinyint", _whole(8)),
    "short": ("smallint", _whole(16)),
    "int": ("int", _whole(32)),
    "long": ("bigint", _whole(64)),
    "float": ("float", st.one_of(st.sampled_from(_SPECIAL), st.floats(width=32)).map(_single)),
    "double": ("double", st.one_of(st.sampled_from(_SPECIAL), st.floats())),
    "dec38": ("decimal(38,0)", _decimals(38, 0)),
    "dec38_38": ("decimal(38,38)", _decimals(38, 38)),
    "dec18": ("decimal(18,6)", _decimals(18, 6)),
    "dec5": ("decimal(5,2)", _decimals(5, 2)),
    "bool": ("boolean", st.booleans()),
    "text": ("string", _TEXT),
    "raw": ("binary", st.one_of(st.binary(max_size=20), st.sampled_from([b"", b"\xff", bytes(9_000)]))),
    "day": ("int", st.one_of(st.sampled_from(DAYS), st.integers(FIRST_DAY, LAST_DAY))),
    "micros": ("bigint", st.one_of(st.sampled_from(MICROS), st.integers(FIRST_DAY * DAY + DAY, LAST_DAY * DAY))),
    "far_day": ("int", st.sampled_from(FAR_DAYS)),
    "far_micros": ("bigint", st.sampled_from(FAR_MICROS)),
    "span": ("bigint", st.one_of(st.sampled_from([0, -1, 1, -DAY, 10**15]), st.integers(-(10**17), 10**17))),
    "noon": ("int", st.sampled_from([0, 1, 45_296_123, 86_399_999])),
}
"""What Python hands to Spark: the type, and the values. Points in time are numbers, since Python's own end too soon."""

SCALARS = {
    **{name: name for name in ("byte", "short", "int", "long", "float", "double", "bool", "text", "raw")},
    **{name: name for name in ("dec38", "dec38_38", "dec18", "dec5")},
    "date": "date_from_unix_date(day)",
    "instant": "timestamp_micros(micros)",
    "local": "cast(timestamp_micros(micros) as timestamp_ntz)",
    "span": "make_dt_interval(0, 0, 0, cast(cast(span as decimal(38,0)) / 1000000 as decimal(18,6)))",
    "hours": "cast(make_dt_interval(0, cast(span % 100000 as int)) as interval hour)",
    "clock": "cast(make_dt_interval(0, 0, cast(span % 100000 as int)) as interval day to minute)",
    "broken": "cast(raw as string)",
    "padded": "cast(text as char(5))",
    "short_text": "cast(substr(text, 1, 3) as varchar(3))",
    "nothing": "cast(null as string)",
}
FAR = {
    "far_date": "date_from_unix_date(far_day)",
    "far_instant": "timestamp_micros(far_micros)",
    "far_local": "cast(timestamp_micros(far_micros) as timestamp_ntz)",
}
TIMES = {"noon": "make_time(noon div 3600000, noon div 60000 % 60, (noon % 60000) / 1000)"}


def rows_of(number: int) -> list[tuple[Any, ...]]:
    """Rows by their seed: first those of nulls only, then random ones, in which any value may be null."""
    columns = [st.one_of(values, values, values, values, st.none()) for _, values in RAW.values()]
    rows: list[tuple[Any, ...]] = [(None,) * len(RAW)]

    @seed(number)
    @settings(
        max_examples=ROWS,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*columns))
    def draw(row: tuple[Any, ...]) -> None:
        rows.append(row)

    draw()
    print(f"values of seed {number}: {len(rows)} rows (TEST_VALUES={ROUNDS} tries the seeds from 1 on)")
    return rows


def raw_frame(spark: Any, number: int) -> Any:
    """The numbers and texts that the columns are made of, with a column `id`."""
    schema = "id int, " + ", ".join(f"`{name}` {kind}" for name, (kind, _) in RAW.items())
    return spark.createDataFrame([(n, *row) for n, row in enumerate(rows_of(number))], schema).coalesce(1)


def nested(scalars: dict[str, str]) -> dict[str, str]:
    """Arrays, maps and structs of the same values, with nulls at every level."""
    made = {}
    for n, (name, value) in enumerate(scalars.items()):
        whole = f"case when id % {3 + n % 3} = 0 then null else "
        made[f"list_{name}"] = f"{whole} array({value}, null, {value}) end"
        made[f"deep_{name}"] = f"{whole} struct(array(struct({value} as v), null) as l, id as n) end"
        made[f"map_{name}"] = f"{whole} map('k', {value}, 'ключ', null) end"
    return made

"""Values at the edge of every type: Spark reads from Lockgate's files what it was given.

The judge is Spark's own writer: a value must read back as it was, or, where Spark's own files change it too (its csv
and json cut timestamps to milliseconds, its csv trims strings), as it was or as theirs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from extreme_values import FAR, SCALARS, SEEDS, TIMES, nested, raw_frame
from pyarrow import orc
from pyspark.sql import functions as F

FILES = {
    "parquet": SCALARS | FAR | TIMES | nested(SCALARS | FAR),
    "orc": SCALARS | TIMES | nested(SCALARS) | {"far_local": FAR["far_local"]},
    "json": SCALARS | FAR | TIMES | nested(SCALARS | FAR),
    "csv": {name: value for name, value in (SCALARS | FAR | TIMES).items() if name != "raw"},
}
READ_OPTIONS = {"csv": {"multiLine": "true"}}
ORC_ONLY_FROM = {
    "date_from_unix_date(day)": "case when day between -141437 and -141428 then null else date_from_unix_date(day) end",
    "timestamp_micros(micros)": (
        "case when micros < -2208988800000000 or (micros < 0 and micros % 1000000 != 0) then null "
        "else timestamp_micros(micros) end"
    ),
}
"""What ORC refuses is null there: see test_what_orc_cannot_hold_is_refused_by_name."""


@contextlib.contextmanager
def conf(spark: Any, **settings: str) -> Iterator[None]:
    """Settings of the session, for a while; `__` stands for a dot."""
    names = {name.replace("__", "."): value for name, value in settings.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def frame(spark: Any, number: int, file_format: str) -> Any:
    columns = FILES[file_format]
    if file_format == "orc":
        columns = {name: _with(value, ORC_ONLY_FROM) for name, value in columns.items() if "local" not in name} | {
            name: value for name, value in columns.items() if "local" in name
        }
    return raw_frame(spark, number).selectExpr("id", *(f"{value} as `{name}`" for name, value in columns.items()))


def _with(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def texts(df: Any) -> dict[int, dict[str, Any]]:
    """Every value as a text that tells all of them apart, by id and column."""
    shown = [F.col("id")]
    for field in df.schema:
        kind = field.dataType.simpleString()
        if field.name != "id":
            column = F.col(f"`{field.name}`")
            shown.append(
                (F.hex(column.cast("binary")) if kind in ("string", "binary") else column.cast("string")).alias(
                    field.name
                )
            )
    return {row["id"]: row.asDict() for row in df.select(*shown).collect()}


def differences(given: dict, ours: dict, theirs: dict) -> list[str]:
    assert sorted(ours) == sorted(given), "no row is lost or doubled"
    return [
        f"row {n}, {name}: given {value!r:.200}, read {ours[n][name]!r:.200}, from Spark's own {theirs[n][name]!r:.200}"
        for n, row in given.items()
        for name, value in row.items()
        if ours[n][name] != value and (theirs[n][name] == value or ours[n][name] != theirs[n][name])
    ]


def read(spark: Any, df: Any, file_format: str, path: Path) -> dict:
    return texts(
        spark.read.schema(df.schema).format(file_format).options(**READ_OPTIONS.get(file_format, {})).load(str(path))
    )


def write_both(df: Any, file_format: str, root: Path, **options: str) -> tuple[Path, Path]:
    saver = df.write.format("lockgate").mode("append").options(format=file_format, maxRecordsPerFile="61", **options)
    saver.save(str(root / "ours"))
    df.write.format(file_format).save(str(root / "theirs"))
    return root / "ours", root / "theirs"


SETTINGS = {
    "spark__sql__timeType__enabled": "true",
    # Java would compile some hundred columns anew for each query.
    "spark__sql__codegen__wholeStage": "false",
    "spark__sql__codegen__factoryMode": "NO_CODEGEN",
}
READ_SETTINGS: dict[str, list[dict[str, str]]] = {
    "parquet": [
        {},
        {"spark__sql__parquet__enableVectorizedReader": "false"},
        {
            "spark__sql__parquet__datetimeRebaseModeInRead": "LEGACY",
            "spark__sql__parquet__int96RebaseModeInRead": "LEGACY",
        },
    ],
    "orc": [{}, {"spark__sql__orc__enableVectorizedReader": "false"}],
    "json": [{}, {"spark__sql__session__timeZone": "Asia/Kolkata"}],
    "csv": [{}, {"spark__sql__session__timeZone": "Asia/Kolkata"}],
}


@pytest.mark.parametrize("number", SEEDS)
@pytest.mark.parametrize("file_format", FILES)
def test_any_value_reads_back_as_spark_reads_it_from_its_own_files(spark, tmp_path, file_format, number) -> None:
    with conf(spark, **SETTINGS):
        df = frame(spark, number, file_format)
        ours, theirs = write_both(df, file_format, tmp_path)
        for settings in READ_SETTINGS[file_format]:
            with conf(spark, **settings):
                wrong = differences(texts(df), read(spark, df, file_format, ours), read(spark, df, file_format, theirs))
            assert not wrong, f"{len(wrong)} values with {settings}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("number", SEEDS)
def test_pyarrow_reads_from_arrow_and_orc_files_what_spark_was_given(spark, tmp_path, number) -> None:
    """Where the truth is in numbers: days, microseconds, and what both sides have a type for."""
    plain = ["byte", "short", "int", "long", "float", "double", "dec38", "dec38_38", "dec5", "bool", "text", "raw"]
    numbers = {"days": "unix_date({})", "micros": "unix_micros({})"}
    for file_format, spoken in (("arrow", {}), ("orc", ORC_ONLY_FROM)):
        day, instant = (_with(SCALARS[name], spoken) for name in ("date", "instant"))
        df = raw_frame(spark, number).selectExpr(
            "id",
            *plain,
            f"{day} as d",
            f"{instant} as t",
            f"{numbers['days'].format(day)} as days",
            f"{numbers['micros'].format(instant)} as ticks",
            "cast(timestamp_micros(micros) as timestamp_ntz) as local",
            "span as micros",
            f"{SCALARS['span']} as span",
            f"case when id % 3 = 0 then null else array({day}, null) end as ds",
            f"map('k', {instant}) as ts",
        )
        if file_format == "orc":
            # PyArrow reads the timestamps of ORC files in nanoseconds, which end in 2262.
            df = df.where("micros is null or micros < 9000000000000000")
        saver = df.write.format("lockgate").mode("append").options(format=file_format, maxRecordsPerFile="61")
        saver.save(str(tmp_path / file_format))
        files = sorted((tmp_path / file_format).glob(f"*.{file_format}"))
        assert len(files) > 1
        opened = (
            pa.ipc.open_file(str(path)).read_all() if file_format == "arrow" else orc.read_table(path) for path in files
        )
        table = pa.concat_tables(opened)
        given = {row["id"]: row for row in df.select("id", "days", "ticks", "micros", *plain).collect()}
        assert sorted(table["id"].to_pylist()) == sorted(given)
        for name in plain:
            found = dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))
            expected = {n: _plain(row[name]) for n, row in given.items()}
            assert {n: _plain(value) for n, value in found.items()} == expected, name
        assert table["d"].cast(pa.int32()).equals(table["days"])
        assert table["t"].cast(pa.timestamp("us", table["t"].type.tz)).cast(pa.int64()).equals(table["ticks"])
        assert table["span"].cast(pa.int64()).equals(table["micros"])
        lists = table["ds"].combine_chunks()
        assert [each if each is None else each[0] for each in lists.cast(pa.list_(pa.int32())).to_pylist()] == [
            None if n % 3 == 0 else given[n]["days"] for n in table["id"].to_pylist()
        ]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value  # 2E-38 and 2.0E-38 are equal, and have two texts
    return repr(bytes(value) if isinstance(value, bytearray) else value)


PARTITIONED = {
    **{name: value for name, value in SCALARS.items() if name in ("date", "local", "span", "hours", "clock", "bool")},
    **{name: value for name, value in SCALARS.items() if name.startswith("dec")},
    **FAR,
    **TIMES,
    "blank": "if(id % 2 = 0, '', null)",
    "instant": SCALARS["instant"],
    "broken": "cast(substr(raw, 1, 9) as string)",
    "sign": "substr(text, 1, 3)",
}


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Amsterdam", "GMT+05:30", "IST"])
def test_any_partition_value_has_the_directory_that_spark_gives_it(spark, tmp_path, zone) -> None:
    """Floats are left out: how many digits they have depends on the version of Java. See test_spark_round_trip."""
    columns = (
        PARTITIONED if zone == "America/New_York" else {name: PARTITIONED[name] for name in ("instant", "far_instant")}
    )
    with conf(spark, **SETTINGS, spark__sql__session__timeZone=zone):
        df = raw_frame(spark, 1).where("position(X'00', coalesce(raw, X'')) = 0")
        df = df.selectExpr("id", *(f"{value} as `{name}`" for name, value in columns.items()))
        saver = df.write.format("lockgate").mode("append").option("partitionBy", ",".join(columns))
        saver.save(str(tmp_path / "ours"))
        df.write.partitionBy(*columns).parquet(str(tmp_path / "theirs"))
    ours, theirs = (
        {path.parent.relative_to(root).as_posix() for path in root.rglob("*.parquet")}
        for root in (tmp_path / "ours", tmp_path / "theirs")
    )
    assert sorted(ours - theirs) == []
    assert sorted(theirs - ours) == []
    assert len(ours) > 10


def test_variants_in_json_are_the_json_that_spark_writes(spark, tmp_path) -> None:
    held = [
        r'{"a":[1,"x",null,true,1.5,1e300,12345678901234567890,"é☃\u0001\"\\"],"b":{"c":{}}}',
        *('"s"', "null", "1", "[]", "123.456", "1e-7", "false"),
    ]
    rows = spark.createDataFrame(list(enumerate(held)), "id int, text string").coalesce(1)
    df = rows.selectExpr("id", "if(id = 5, null, parse_json(text)) as v", "array(parse_json(text), null) as l")
    ours, theirs = write_both(df, "json", tmp_path)

    def lines(root: Path) -> list[Any]:
        return [json.loads(line) for path in sorted(root.glob("part-*")) for line in path.read_text().splitlines()]

    assert lines(ours) == lines(theirs)
    assert lines(ours)[0]["v"] == json.loads(held[0])


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_a_reader_with_the_old_parser_of_timestamps_reads_milliseconds_rightly(spark, tmp_path, file_format) -> None:
    df = spark.range(1).selectExpr(
        "id", "timestamp'2024-03-10 01:30:01.123' as t", "timestamp'2024-03-10 01:30:00' as u"
    )
    ours, theirs = write_both(df, file_format, tmp_path)
    with conf(spark, spark__sql__legacy__timeParserPolicy="LEGACY"):
        assert read(spark, df, file_format, ours) == read(spark, df, file_format, theirs) == texts(df)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json", "csv"])
def test_large_arrow_strings_are_written_like_small_ones(spark, tmp_path, file_format) -> None:
    df = spark.createDataFrame([(1, "a", b"x"), (2, "", b""), (3, None, None)], "id int, s string, b binary").coalesce(
        1
    )
    df = df.selectExpr("id", "s", "s as p") if file_format == "csv" else df.selectExpr("*", "array(s) as l", "s as p")
    with conf(spark, spark__sql__execution__arrow__useLargeVarTypes="true"):
        saver = df.write.format("lockgate").mode("append").options(format=file_format, partitionBy="p")
        saver.save(str(tmp_path / "ours"))
    df.write.partitionBy("p").format(file_format).save(str(tmp_path / "theirs"))
    assert read(spark, df, file_format, tmp_path / "ours") == read(spark, df, file_format, tmp_path / "theirs")

"""The formats without Spark: what they write, Arrow and Python read back."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockgate.errors import OptionError
from lockgate.spark.formats.file_format import FormatOptions
from lockgate.spark.formats.registry import FORMATS, format_named


def written(name: str, table: pa.Table, compression: str = "none", **settings: str) -> bytes:
    file = io.BytesIO()
    file_format = format_named(name)
    options = FormatOptions(compression, {key.lower(): value for key, value in settings.items()})
    file_format.check(table.schema, options)
    writer = file_format.open(file, table.schema, options)
    writer.write(table)
    writer.close()
    assert not file.closed, "the task attempt closes it"
    return file.getvalue()


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(st.lists(st.one_of(st.none(), TEXT), min_size=1, max_size=10))
@settings(max_examples=200, deadline=None)
def test_any_string_survives_json(values) -> None:
    table = pa.table({"s": pa.array(values, pa.string()), "n": range(len(values))})
    lines = [json.loads(line) for line in written("json", table).decode().split("\n")[:-1]]
    assert [line.get("s") for line in lines] == values
    assert all(("s" in line) == (value is not None) for line, value in zip(lines, values, strict=True))


@given(st.lists(TEXT.filter(lambda text: "\x00" not in text), min_size=1, max_size=10))
@settings(max_examples=200, deadline=None)
def test_any_string_survives_csv_in_a_dialect_that_python_reads(values) -> None:
    table = pa.table({"s": pa.array(values, pa.string()), "n": [str(n) for n in range(len(values))]})
    content = written("csv", table, escape='"').decode()
    assert [row[0] for row in csv.reader(io.StringIO(content, newline=""))] == values


def test_json_leaves_nulls_out_or_writes_them() -> None:
    table = pa.table({"a": pa.array([1, None]), "s": pa.array([{"x": None}, {"x": 2}])})
    assert written("json", table) == b'{"a":1,"s":{}}\n{"s":{"x":2}}\n'
    kept = written("json", table, ignoreNullFields="false")
    assert kept == b'{"a":1,"s":{"x":null}}\n{"a":null,"s":{"x":2}}\n'


def test_json_of_every_scalar() -> None:
    table = pa.table(
        {
            "f": pa.array([float("nan"), float("inf"), 1.5]),
            "d": pa.array([Decimal("1.10")] * 3),
            "b": pa.array([b"\x00\xff"] * 3),
            "t": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 6)] * 3, pa.timestamp("us", "America/New_York")),
            "n": pa.array([datetime.datetime(2024, 1, 2)] * 3, pa.timestamp("us")),
            "y": pa.array([datetime.date(2024, 1, 2)] * 3),
            "l": pa.array([[True, None]] * 3),
        }
    )
    first, second, _ = [json.loads(line) for line in written("json", table).splitlines()]
    assert first == {
        "f": "NaN",
        "d": 1.10,
        "b": "AP8=",
        "t": "2024-01-02T03:04:05.000006Z",
        "n": "2024-01-02T00:00:00.000000",
        "y": "2024-01-02",
        "l": [True, None],
    }
    assert second["f"] == "Infinity"


def test_csv_header_and_nulls() -> None:
    table = pa.table({"a,b": ["x", None, ""], "n": [1, 2, None]})
    assert written("csv", table, header="true") == b'"a,b",n\nx,1\n,2\n"",\n'
    assert written("csv", table, nullValue="-", sep=";") == b'x;1\n-;2\n"";-\n'


def test_lines_are_compressed_and_their_file_stays_open() -> None:
    table = pa.table({"a": ["x"] * 1000})
    assert gzip.decompress(written("csv", table, "gzip")) == b"x\n" * 1000


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rows", [0, 3])
def test_a_file_without_rows_is_a_file(name, rows) -> None:
    table = pa.table({"a": pa.array(range(rows), pa.int64())})
    file_format = FORMATS[name]
    for compression in file_format.compressions:
        written(name, table, compression)


def test_parquet_keeps_sparks_schema_and_day_time_intervals_as_integers() -> None:
    table = pa.table({"i": pa.array([datetime.timedelta(seconds=1)], pa.duration("us"))})
    file = io.BytesIO()
    options = FormatOptions("snappy", {}, '{"type":"struct"}')
    writer = format_named("parquet").open(file, table.schema, options)
    writer.write(table)
    writer.close()
    read = pq.ParquetFile(io.BytesIO(file.getvalue()))
    assert read.metadata.metadata[b"org.apache.spark.sql.parquet.row.metadata"] == b'{"type":"struct"}'
    assert read.read()["i"].to_pylist() == [1_000_000]


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("csv", pa.array([[1]]), "arrays"),
        ("csv", pa.array([b"x"]), "binary"),
        ("parquet", pa.nulls(1), "void"),
        ("orc", pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us")), "without time zone"),
        ("orc", pa.array([[datetime.timedelta(1)]]), "intervals"),
        ("json", pa.array([datetime.timedelta(1)]), "intervals"),
    ],
)
def test_a_type_that_a_format_cannot_hold_is_refused_with_its_column(name, column, message) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        written(name, pa.table({"the_column": column}))
    assert "the_column" in caught.value.where

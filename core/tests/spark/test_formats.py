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
from pyarrow import orc


def written(name: str, table: pa.Table, compression: str = "none", attempt: str = "", **settings: str) -> bytes:
    file = io.BytesIO()
    file_format = format_named(name)
    options = FormatOptions(compression, {key.lower(): value for key, value in settings.items()}, attempt=attempt)
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


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]])
def test_a_row_of_nulls_is_a_row_in_json(columns) -> None:
    table = pa.table({name: pa.array([None, 1, None]) for name in columns})
    assert [json.loads(line) for line in written("json", table).splitlines()] == [{}, dict.fromkeys(columns, 1), {}]


def test_negative_zero_in_json_is_a_float() -> None:
    table = pa.table({"a": pa.array([-0.0, 0.0, None]), "l": pa.array([[-0.0]] * 3, pa.list_(pa.float32()))})
    assert written("json", table) == b'{"a":-0.0,"l":[-0.0]}\n{"a":0,"l":[-0.0]}\n{"l":[-0.0]}\n'


def test_a_null_struct_may_have_children_that_are_not_nullable_in_orc() -> None:
    kind = pa.struct([pa.field("n", pa.int32(), nullable=False), pa.field("t", pa.timestamp("us"), nullable=False)])
    table = pa.table({"s": pa.array([None, {"n": 1, "t": 2}, None], kind), "n": range(3)}).slice(1)
    assert orc.ORCFile(io.BytesIO(written("orc", table))).read()["s"].to_pylist() == [{"n": 1, "t": 2}, None]


def test_a_slice_of_structs_keeps_its_own_nulls_in_orc() -> None:
    values = [None, {"n": 1}, None, {"n": 3}, {"n": 4}, None] * 50
    array = pa.array(values, pa.struct({"n": pa.int32()}))
    table = pa.table({"s": pa.chunked_array([array.slice(1, 70), array.slice(71, 3), array.slice(74)])})
    assert orc.ORCFile(io.BytesIO(written("orc", table))).read()["s"].to_pylist() == values[1:]


def test_a_null_alone_in_its_row_is_a_row_in_csv() -> None:
    assert written("csv", pa.table({"a": pa.array([None, 1])})) == b'""\n1\n'


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
        "n": "2024-01-02T00:00:00.000",
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


def test_parquet_has_dictionaries_only_where_they_make_a_file_smaller() -> None:
    count = 50_000
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "mod": pa.array([n % 20 for n in range(count)], pa.int64()),
            "text": pa.array([str(n % 1000) for n in range(count)]),
            "all different": pa.array([f"value {n}" for n in range(count)]),
            "half.null": pa.array([n if n % 2 else None for n in range(count)], pa.int32()),
            "none": pa.array([None] * count, pa.int32()),
            "yes": pa.array([n % 2 == 0 for n in range(count)]),
            "price": pa.array([Decimal(n % 7) for n in range(count)], pa.decimal128(9, 2)),
            "list": pa.array([[n % 3] for n in range(count)], pa.list_(pa.int64())),
            "map": pa.array([[("k", n % 3)] for n in range(count)], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"a": {"b": n % 3}} for n in range(count)]),
        }
    )
    content = written("parquet", table)
    found = pq.ParquetFile(io.BytesIO(content))
    assert found.read().equals(table)
    group = found.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == {
        "mod", "text", "none", "price", "list.list.element", "map.key_value.key", "map.key_value.value", "struct.a.b",
    }  # fmt: skip
    sizes = {column.path_in_schema: column.total_uncompressed_size for column in columns}
    assert sizes["id"] < count * 8 * 1.01


def test_nested_values_in_json_keep_their_nulls_wherever_a_slice_begins() -> None:
    kind = pa.struct(
        {"l": pa.list_(pa.struct({"x": pa.int8(), "f": pa.float32()})), "m": pa.map_(pa.int8(), pa.list_(pa.string()))}
    )
    values = [
        None,
        {"l": None, "m": [(1, ["a", None]), (2, None)]},
        {"l": [{"x": 1, "f": float("-inf")}, None, {"x": None, "f": 0.5}], "m": []},
        {"l": [], "m": None},
    ]
    table = pa.table({"v": pa.array(values * 3, kind), "n": range(12)}).slice(3, 7)
    lines = [json.loads(line) for line in written("json", table).splitlines()]
    expected = [
        None,
        {"m": {"1": ["a", None], "2": None}},
        {"l": [{"x": 1, "f": "-Infinity"}, None, {"f": 0.5}], "m": {}},
        {"l": []},
    ] * 3
    assert [line.get("v") for line in lines] == expected[3:10]


def test_years_that_python_does_not_know_have_a_sign_in_text() -> None:
    days = pa.array([-719_529, 2_932_897, 0, None, 20_000_000], pa.int32()).cast(pa.date32())
    micros = pa.array([-62_167_219_200_000_001, 253_402_300_800_000_000, 1, None, 0]).cast(pa.timestamp("us", "UTC"))
    assert written("csv", pa.table({"d": days, "t": micros})).decode().splitlines() == [
        "-0001-12-31,-0001-12-31T23:59:59.999999Z",
        "+10000-01-01,+10000-01-01T00:00:00.000Z",
        "1970-01-01,1970-01-01T00:00:00.000001Z",
        ",",
        "+56728-02-22,1970-01-01T00:00:00.000Z",
    ]


def test_what_is_not_utf_8_is_marked_in_text_files_as_spark_marks_it() -> None:
    raw = pa.array([b"a\xffb", "é".encode(), None], pa.binary())
    strings = pa.StringArray.from_buffers(3, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0])
    table = pa.table({"s": strings, "n": [1, 2, 3]})
    assert written("json", table).decode() == '{"s":"a\ufffdb","n":1}\n{"s":"é","n":2}\n{"n":3}\n'
    assert written("csv", table).decode() == "a\ufffdb,1\né,2\n,3\n"


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "zlib", "lz4"])
@pytest.mark.parametrize("rows", [0, 3, 200_000])
def test_an_orc_file_names_its_calendar_and_stays_readable(compression, rows) -> None:
    table = pa.table({"n": pa.array(range(rows), pa.int64()), "d": pa.array(range(rows), pa.int32()).cast(pa.date32())})
    content = written("orc", table, compression)
    assert orc.ORCFile(io.BytesIO(content)).read().equals(table)
    postscript = content[-1 - content[-1] : -1]
    end = len(content) - 1 - len(postscript)
    assert content[end - 2 : end] == bytes([11 << 3, 2]), "CalendarKind.PROLEPTIC_GREGORIAN"


def test_orc_keeps_what_it_has_no_type_for_as_spark_does() -> None:
    table = pa.table(
        {
            "n": pa.array([-1, 2], pa.timestamp("us")),
            "i": pa.array([[-1], None], pa.list_(pa.duration("us"))),
            "t": pa.array([{"t": 1}, {"t": None}], pa.struct({"t": pa.time64("ns")})),
        }
    )
    read = orc.ORCFile(io.BytesIO(written("orc", table))).read()
    assert read.to_pylist() == [{"n": -1, "i": [-1], "t": {"t": 1}}, {"n": 2, "i": None, "t": {"t": None}}]


UTC_MICROS = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("column", "where", "message"),
    [
        (pa.array([None, 0, -1], UTC_MICROS), "c: timestamp", "1969-12-31 23:59:59.999999"),
        (pa.array([-2_208_988_800_000_001], UTC_MICROS), "c: timestamp", "1899-12-31 23:59:59.999999"),
        (pa.array([[0, -(10**16)]], pa.list_(UTC_MICROS)), "c.element: timestamp", "1653-02-10"),
        (pa.array([[("k", -1)]], pa.map_(pa.string(), UTC_MICROS)), "c.value: timestamp", "1969"),
        (pa.array([{"d": -719_163}], pa.struct({"d": pa.date32()})), "c.d: date", "0000-12-31"),
        (pa.array([datetime.date(1582, 10, 5)]), "c: date", "1582-10-05"),
        (pa.array([datetime.date(1582, 10, 14)]), "c: date", "1582-10-14"),
    ],
)
def test_a_time_that_spark_would_read_otherwise_from_orc_is_refused_with_its_column(column, where, message) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        written("orc", pa.table({"c": column}))
    assert caught.value.where == f"column {where}"
    assert "parquet" in caught.value.next_step


def test_times_at_the_limits_of_orc_are_not_refused() -> None:
    table = pa.table(
        {
            "t": pa.array([-2_208_988_800_000_000, -1_000_000, 1, None], UTC_MICROS),
            "d": pa.array([-719_162, -141_438, -141_427, None], pa.int32()).cast(pa.date32()),
        }
    )
    assert orc.ORCFile(io.BytesIO(written("orc", table))).read()["d"].equals(table["d"])


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("csv", pa.array([[1]]), "arrays"),
        ("csv", pa.array([b"x"]), "binary"),
        ("parquet", pa.nulls(1), "void"),
        ("csv", pa.nulls(1), "void"),
        ("orc", pa.nulls(1), "void"),
        ("orc", pa.array([[{"a": None}]]), "void"),
        ("json", pa.array([[([1], 2)]], pa.map_(pa.list_(pa.int8()), pa.int8())), "keys are arrays"),
    ],
)
def test_a_type_that_a_format_cannot_hold_is_refused_with_its_column(name, column, message) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        written(name, pa.table({"the_column": column}))
    assert "the_column" in caught.value.where


READERS = {
    "parquet": lambda content: pq.read_table(io.BytesIO(content)),
    "orc": lambda content: orc.read_table(io.BytesIO(content)),
    "arrow": lambda content: pa.ipc.open_file(io.BytesIO(content)).read_all(),
}


@pytest.mark.parametrize("name", READERS)
def test_the_same_rows_of_two_attempts_are_not_the_same_bytes(name: str) -> None:
    """Where a store knows files by their content, what one of them deletes late would fit the other's."""
    table = pa.table({"id": pa.array(range(1000)), "name": pa.array([f"n{n % 7}" for n in range(1000)])})
    for compression in ("none", "zstd"):
        one, other = (written(name, table, compression, attempt) for attempt in ("one", "other"))
        assert one != other
        assert b"lockgate.attempt" in one
        assert [READERS[name](content).equals(table) for content in (one, other)] == [True, True]
    assert b"lockgate.attempt" not in written(name, table)


def test_an_orc_file_says_in_its_footer_which_attempt_has_written_it() -> None:
    """So that ORC's own tools show it, and the calendar beside it still counts."""
    table = pa.table({"day": pa.array([datetime.date(1500, 3, 1)])})
    for compression in ("none", "zstd"):
        content = written("orc", table, compression, "the-attempt")
        footer = orc.ORCFile(io.BytesIO(content))
        assert footer.metadata[b"lockgate.attempt"] == b"the-attempt"
        assert footer.read().equals(table)

"""One task's rows to files, without Spark: partitions, sizes, memory, and their names."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockgate.errors import OptionError
from lockgate.spark.formats.file_format import FormatOptions
from lockgate.spark.partition_path import NULL_PARTITION, escape, partition_directory, value_texts
from lockgate.spark.split_partitions import PartitionSplitter
from lockgate.spark.task_write import TaskWrite
from lockgate.spark.write_options import WriteOptions


def write(table_fixture, data: pa.Table, **options: str) -> dict[str, int]:
    """Write a table as one task, commit, and return the rows of each file."""
    job = table_fixture.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    parsed = WriteOptions.parse({"path": str(table_fixture.root), **options})
    task = TaskWrite(attempt, parsed, data.schema, FormatOptions("snappy"), "part-00000")
    task.write(data.to_batches(max_chunksize=10_000))
    task.close(at_least_one=True)
    job.commit([attempt.commit(scan=False)])
    assert task.rows == data.num_rows
    paths = sorted(table_fixture.root.rglob("*.parquet"))
    return {path.relative_to(table_fixture.root).as_posix(): pq.read_metadata(path).num_rows for path in paths}


def test_one_file_without_partitions(table) -> None:
    assert write(table, pa.table({"a": range(25_000)})) == {"part-00000.c000.snappy.parquet": 25_000}


def test_an_empty_task_leaves_the_schema(table) -> None:
    assert write(table, pa.table({"a": pa.array([], pa.int8())})) == {"part-00000.c000.snappy.parquet": 0}


def test_partitions_side_by_side(table) -> None:
    found = write(table, pa.table({"a": range(9), "p": [0, 1, None] * 3}), partitionBy="p")
    assert {name.rpartition("/")[0]: rows for name, rows in found.items()} == {
        "p=0": 3,
        "p=1": 3,
        f"p={NULL_PARTITION}": 3,
    }


def test_null_and_empty_string_share_sparks_null_partition(table) -> None:
    found = write(table, pa.table({"a": [1, 2], "p": ["", None]}), partitionBy="p")
    assert list(found.values()) == [2]


def test_files_of_so_many_records(table) -> None:
    assert list(write(table, pa.table({"a": range(25)}), maxRecordsPerFile="10").values()) == [10, 10, 5]


def test_little_memory_makes_more_files_and_loses_nothing(table) -> None:
    data = pa.table({"a": range(40_000), "p": [n % 50 for n in range(40_000)]})
    found = write(table, data, partitionBy="p", writeMemoryBytes="16k", maxOpenFiles="3")
    assert sum(found.values()) == 40_000
    assert len(found) > 50


class CountedAttempt:
    """A task attempt that counts the files which are open at once."""

    def __init__(self, attempt) -> None:
        self._attempt = attempt
        self.open_now = self.open_most = 0

    def open(self, path: str):
        file = self._attempt.open(path)
        close = file.close

        def closed() -> None:
            close()
            self.open_now -= 1

        file.close = closed
        self.open_now += 1
        self.open_most = max(self.open_most, self.open_now)
        return file


@pytest.mark.parametrize("options", [{}, {"maxRecordsPerFile": "7"}])
def test_no_more_files_are_open_at_once_than_the_limit_allows(table, options) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    counted = CountedAttempt(attempt)
    given_options = {"partitionBy": "p", "maxOpenFiles": "4", "writeMemoryBytes": "4k", **options}
    parsed = WriteOptions.parse({"path": str(table.root), **given_options})
    data = pa.table({"a": range(10_000), "p": [n % 500 for n in range(10_000)]})
    task = TaskWrite(counted, parsed, data.schema, FormatOptions("snappy"), "part-00000")
    task.write(data.to_batches(max_chunksize=1000))
    task.close(at_least_one=True)
    job.commit([attempt.commit(scan=False)])
    assert counted.open_most == 4
    assert counted.open_now == 0
    rows = [pq.read_metadata(path).num_rows for path in table.root.rglob("*.parquet")]
    assert sum(rows) == 10_000
    assert max(rows) <= 20
    assert not options or max(rows) <= 7


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b=c", "", None, "x/y"]), st.one_of(st.none(), st.integers(-2, 2))), max_size=60
    )
)
@settings(max_examples=100, deadline=None)
def test_splitting_loses_no_row_and_mixes_none(rows) -> None:
    batch = pa.record_batch(
        {
            "n": pa.array(range(len(rows)), pa.int64()),
            "s": pa.array([row[0] for row in rows], pa.string()),
            "i": pa.array([row[1] for row in rows], pa.int64()),
        }
    )
    seen: list[int] = []
    for directory, part in PartitionSplitter(batch.schema, ["s", "i"]).split(batch):
        assert part.schema.names == ["n"]
        for number in part["n"].to_pylist():
            text, value = rows[number]
            assert directory == partition_directory(["s", "i"], [text, None if value is None else str(value)])
            seen.append(number)
    assert sorted(seen) == list(range(len(rows)))


def test_many_columns_of_many_values_leave_every_row_in_its_partition() -> None:
    """A number for each combination of values leaves 64 bits long before a batch has so many rows."""
    names = [f"p{n}" for n in range(10)]
    order = random.Random(5).sample(range(101), 101)
    columns = {name: [(row * (n + 1)) % 101 for row in order] for n, name in enumerate(names)}
    batch = pa.record_batch({"n": order, **columns})
    seen = []
    for directory, rows in PartitionSplitter(batch.schema, names).split(batch):
        for row in rows["n"].to_pylist():
            assert directory == "/".join(f"p{n}={(row * (n + 1)) % 101}" for n in range(10))
            seen.append(row)
    assert sorted(seen) == list(range(101))


def test_combinations_beyond_64_bits_do_not_split_a_partition() -> None:
    names = [f"p{n}" for n in range(12)]
    batch = pa.record_batch({"n": range(600), **{name: [row % 300 for row in range(600)] for name in names}})
    parts = list(PartitionSplitter(batch.schema, names).split(batch))
    assert len(parts) == len({directory for directory, _ in parts}) == 300
    assert all(rows.num_rows == 2 for _, rows in parts)


def test_nested_columns_come_along() -> None:
    batch = pa.record_batch(
        {
            "p": pa.array([1, 2, 1]),
            "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "l": pa.array([[{"x": 1}], [], None]),
        }
    )
    parts = dict(PartitionSplitter(batch.schema, ["p"]).split(batch))
    assert parts["p=1"].to_pylist() == [{"m": [("k", 1)], "l": [{"x": 1}]}, {"m": [], "l": None}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["q"], "there is no column"), (["l"], "cannot be a partition column"), (["P", "l", "n"], "cannot|every column")],
)
def test_bad_partition_columns(columns, message) -> None:
    schema = pa.schema({"p": pa.int64(), "l": pa.list_(pa.int64()), "n": pa.int64()})
    with pytest.raises(OptionError, match=message):
        PartitionSplitter(schema, columns)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-0.0, "-0.0"),
        (123456789.125, "1.23456789125E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (4.9e-324, "4.9E-324"),
        (1e23, "1.0E23"),
        (True, "true"),
        (datetime.timedelta(days=-1, microseconds=500000), "INTERVAL '-0 23:59:59.5' DAY TO SECOND"),
        (datetime.time(1, 2, 3, 40), "01:02:03.00004"),
        (Decimal("1E-10"), "0.0000000001"),
        (b"ab", "ab"),
        (None, None),
    ],
)
def test_partition_values_as_java_prints_them(value, text) -> None:
    values = pa.array([value])
    assert value_texts(values, pa.field("p", values.type)) == [text]


@given(st.text(max_size=20))
def test_escaping_leaves_no_character_that_divides_a_path(text) -> None:
    assert not set(escape(text)) & set('/:="\\?#*[]^{')

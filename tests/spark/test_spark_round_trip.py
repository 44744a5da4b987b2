"""What Spark writes through Lockgate, Spark reads back: the same rows, the same schema, the same directories."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

NASTY = [
    "",
    None,
    "plain",
    " leading",
    "trailing ",
    'a "quoted" word',
    '"',
    '""',
    "\\",
    "\\\\",
    'back\\"slash',
    "a,b",
    "semi;colon",
    "tab\there",
    "ünïcode ☃ 🦆",
    "null",
    "NULL",
    "#hash",
    "%41",
    "a=b",
    "'single'",
    "ends with backslash\\",
    ',"',
]

ATOMIC = T.StructType(
    [
        T.StructField("byte", T.ByteType()),
        T.StructField("short", T.ShortType()),
        T.StructField("int", T.IntegerType()),
        T.StructField("long", T.LongType()),
        T.StructField("float", T.FloatType()),
        T.StructField("double", T.DoubleType()),
        T.StructField("decimal", T.DecimalType(38, 10)),
        T.StructField("small", T.DecimalType(9, 2)),
        T.StructField("bool", T.BooleanType()),
        T.StructField("text", T.StringType()),
        T.StructField("date", T.DateType()),
        T.StructField("instant", T.TimestampType()),
        T.StructField("local", T.TimestampNTZType()),
        T.StructField("required", T.LongType(), nullable=False, metadata={"comment": "kept"}),
    ]
)
INSTANT = datetime.datetime(2024, 3, 10, 7, 30, 1, 123456, tzinfo=datetime.UTC)
LOCAL = datetime.datetime(2024, 3, 10, 2, 30, 1, 123456)
ATOMIC_ROWS = [
    (1, -2, 3, 2**62, 1.5, 1e-300, Decimal("1.0000000001"), Decimal("-0.01"), True, "x", datetime.date(1969, 7, 20),
     INSTANT, LOCAL, 1),
    (-128, 2**15 - 1, -(2**31), -(2**63), float("inf"), float("nan"), Decimal("-9" * 1 + "9" * 27), Decimal("0.00"),
     False, "", datetime.date(9999, 12, 31), datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
     datetime.datetime(1900, 1, 1), 2),
    (*[None] * 13, 3),
]  # fmt: skip

INNER = T.StructType([T.StructField("t", T.TimestampType())])
PAIR = T.StructType([T.StructField("a", T.IntegerType()), T.StructField("b", T.StringType())])
NESTED = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("list", T.ArrayType(PAIR)),
        T.StructField("map", T.MapType(T.StringType(), T.ArrayType(T.DoubleType()))),
        T.StructField("by_number", T.MapType(T.IntegerType(), T.DateType())),
        T.StructField("deep", T.StructType([T.StructField("s", INNER)])),
        T.StructField("binary", T.BinaryType()),
    ]
)
NESTED_ROWS = [
    (1, [Row(a=1, b='q"\\\n'), Row(a=None, b=None), None], {"k": [1.0, None], "e": []}, {7: datetime.date(2020, 1, 1)},
     Row(s=Row(t=INSTANT)), bytearray(b"\x00\xff")),
    (2, [], {}, {}, Row(s=Row(t=None)), bytearray()),
    (3, None, None, None, None, None),
]  # fmt: skip


def assert_same(left, right) -> None:
    assert left.exceptAll(right).count() == 0
    assert right.exceptAll(left).count() == 0


def without_maps(df):
    """Rows with maps as sorted lists of entries: Spark compares no maps."""
    for field in df.schema:
        if isinstance(field.dataType, T.MapType):
            df = df.withColumn(field.name, F.sort_array(F.map_entries(field.name)))
    return df


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json", "csv"])
def test_every_atomic_type_reads_back_equal(spark, destination, file_format) -> None:
    df = spark.createDataFrame(ATOMIC_ROWS, ATOMIC)
    options = {}
    if file_format == "orc":
        df = df.drop("local")
    if file_format == "csv":
        options["nullValue"] = "-"  # by default Spark reads an empty string as null, from its own files too
    df.write.format("lockgate").mode("append").options(format=file_format, **options).save(destination)
    back = spark.read.schema(df.schema).format(file_format).options(**options).load(destination)
    if file_format == "parquet":
        inferred = spark.read.parquet(destination).schema
        assert [(f.name, f.dataType, f.metadata) for f in inferred] == [
            (f.name, f.dataType, f.metadata) for f in ATOMIC
        ]
    assert_same(df, back)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json"])
def test_nested_types_read_back_equal(spark, destination, file_format) -> None:
    df = spark.createDataFrame(NESTED_ROWS, NESTED)
    if file_format == "json":
        df = df.drop("by_number")  # Spark itself cannot read a map with keys that are not strings from JSON
    df.write.format("lockgate").mode("append").option("format", file_format).save(destination)
    if file_format == "parquet":
        assert spark.read.parquet(destination).schema == NESTED
    assert_same(without_maps(df), without_maps(spark.read.schema(df.schema).format(file_format).load(destination)))


def test_types_of_newer_sparks_read_back_equal_from_parquet(spark, destination) -> None:
    df = spark.sql(
        "select interval '1 02:03:04.567891' day to second as span, array(interval '-5' minute) as spans, "
        "map('k', interval 3 day) as named, 'c' collate UTF8_LCASE as folded, cast('ab' as string) as s"
    )
    df.write.format("lockgate").mode("append").save(destination)
    back = spark.read.parquet(destination)
    assert back.schema.simpleString() == df.schema.simpleString()  # all but nullability: what is read may be null
    assert (
        back.selectExpr("span", "spans", "named['k']", "folded", "s").collect()
        == df.selectExpr("span", "spans", "named['k']", "folded", "s").collect()
    )


def test_variants_read_back_equal_from_parquet(spark, destination) -> None:
    df = spark.sql("""select parse_json('{"a": [1, "x", null]}') as v, 1 as id""")
    df.write.format("lockgate").mode("append").save(destination)
    back = spark.read.parquet(destination)
    assert back.schema.simpleString() == df.schema.simpleString()  # all but nullability: what is read may be null
    assert back.selectExpr("to_json(v)").first() == df.selectExpr("to_json(v)").first()


@pytest.mark.parametrize("file_format", ["parquet", "orc", "json", "csv"])
def test_nasty_strings_read_back_equal(spark, destination, file_format) -> None:
    df = spark.createDataFrame([(n, text, text) for n, text in enumerate(NASTY)], "n int, text string, more string")
    options = {"nullValue": "-"} if file_format == "csv" else {}
    df.coalesce(1).write.format("lockgate").mode("append").options(format=file_format, **options).save(destination)
    assert_same(df, spark.read.schema(df.schema).format(file_format).options(**options).load(destination))


def test_csv_with_line_breaks_reads_back_with_multi_line(spark, destination) -> None:
    df = spark.createDataFrame([(1, "a\nb"), (2, "c\r\nd"), (3, "e\rf")], "n int, text string")
    df.coalesce(1).write.format("lockgate").mode("append").options(format="csv", header=True).save(destination)
    assert_same(df, spark.read.schema(df.schema).csv(destination, multiLine=True, header=True))


def test_csv_takes_the_usual_dialects(spark, destination) -> None:
    df = spark.createDataFrame([(1, "a|b"), (2, None), (3, "'x'")], "n int, text string")
    options = {"sep": "|", "header": "true", "quote": "'", "nullValue": "-"}
    df.coalesce(1).write.format("lockgate").mode("append").options(format="csv", **options).save(destination)
    assert_same(df, spark.read.schema(df.schema).options(**options).csv(destination))


def test_arrow_files_hold_the_same_rows(spark, destination) -> None:
    df = spark.range(1000).withColumn("s", F.col("id").cast("string")).coalesce(1)
    df.write.format("lockgate").mode("append").options(format="arrow", compression="zstd").save(destination)
    (file,) = Path(destination).glob("*.zstd.arrow")
    table = pa.ipc.open_file(pa.OSFile(str(file))).read_all()
    assert table.to_pylist() == [{"id": n, "s": str(n)} for n in range(1000)]


PARTITION_COLUMNS = {
    "text": ("string", [*NASTY, "a:b", "a/b", "?x", "[y]", "{z", "^", "*", "\x01\x7f", "a\nb", "."]),
    "number": ("double", [1.0, 1e7, 1.5e-5, 0.001, 123456789.125, -0.5, float("nan"), float("inf"), None, 1e300]),
    "single": ("float", [0.1, 1e10, 3.4028235e38, 1e-38, 16777216.0, None]),
    "day": ("date", [datetime.date(2024, 2, 29), None]),
    "instant": ("timestamp", [INSTANT, INSTANT.replace(microsecond=0), INSTANT.replace(microsecond=500000), None]),
    "local": ("timestamp_ntz", [LOCAL, LOCAL.replace(microsecond=0), None]),
    "decimal": ("decimal(20,10)", [Decimal("0.0000000001"), Decimal("12.5"), Decimal(0), None]),
    "flag": ("boolean", [True, False, None]),
    "small": ("tinyint", [1, -1, None]),
}


@pytest.mark.parametrize("name", PARTITION_COLUMNS)
def test_partition_directories_are_named_as_spark_names_them(spark, tmp_path, name) -> None:
    kind, values = PARTITION_COLUMNS[name]
    df = spark.createDataFrame(list(enumerate(values)), f"n int, `{name} %key` {kind}")
    df.write.partitionBy(f"{name} %key").parquet(str(tmp_path / "theirs"))
    df.write.format("lockgate").mode("append").option("partitionBy", f"{name} %key").save(str(tmp_path / "ours"))

    def directories(root: Path) -> set[str]:
        return {path.parent.relative_to(root).as_posix() for path in root.rglob("*.parquet")}

    assert directories(tmp_path / "ours") == directories(tmp_path / "theirs")


def test_partitions_in_two_columns_read_back_equal(spark, destination) -> None:
    df = spark.range(5000).selectExpr("id", "id % 7 as a", "concat('k:', id % 3) as b", "id * 2 as c")
    df.repartition(3).write.format("lockgate").mode("append").option("partitionBy", "a, b").save(destination)
    back = spark.read.parquet(destination)
    assert back.columns == ["id", "c", "a", "b"]
    assert_same(df, back.selectExpr("id", "cast(a as bigint) a", "b", "c"))
    assert len(list(Path(destination).glob("a=*/b=*/*.parquet"))) >= 21


def test_many_partitions_in_little_memory(spark, destination) -> None:
    df = spark.range(0, 20000, 1, 1).selectExpr("id", "id % 500 as p", "repeat('x', 100) as s")
    options = {"partitionBy": "p", "writeMemoryBytes": "64k", "maxOpenFiles": "8"}
    df.write.format("lockgate").mode("append").options(**options).save(destination)
    assert_same(df, spark.read.parquet(destination).selectExpr("id", "cast(p as bigint) p", "s"))


@pytest.mark.parametrize(
    ("file_format", "compression", "ending"),
    [
        ("parquet", "zstd", ".zstd.parquet"),
        ("parquet", "gzip", ".gz.parquet"),
        ("parquet", "none", ".parquet"),
        ("parquet", "lz4", ".lz4raw.parquet"),
        ("csv", "gzip", ".csv.gz"),
        ("csv", "bzip2", ".csv.bz2"),
        ("json", "gzip", ".json.gz"),
        ("orc", "snappy", ".snappy.orc"),
        ("orc", "zlib", ".zlib.orc"),
    ],
)
def test_compression(spark, destination, file_format, compression, ending) -> None:
    df = spark.range(1000).selectExpr("id", "repeat('lockgate', 20) as s")
    df.write.format("lockgate").mode("append").options(format=file_format, compression=compression).save(destination)
    names = [path.name for path in Path(destination).iterdir() if path.name.startswith("part-")]
    assert names
    assert all(name.endswith(ending) for name in names)
    assert_same(df, spark.read.schema(df.schema).format(file_format).load(destination))


def test_max_records_per_file(spark, destination) -> None:
    df = spark.range(0, 1050, 1, 1)
    df.write.format("lockgate").mode("append").option("maxRecordsPerFile", 100).save(destination)
    rows = sorted(pq.read_metadata(path).num_rows for path in Path(destination).glob("*.parquet"))
    assert rows == [50] + [100] * 10


def test_a_batch_is_not_a_row_group(spark, destination) -> None:
    df = spark.range(0, 500_000, 1, 1)
    df.write.format("lockgate").mode("append").save(destination)
    (path,) = Path(destination).glob("*.parquet")
    assert pq.read_metadata(path).num_row_groups == 1, "Spark sends 10,000 rows at a time"


def test_row_groups_of_the_size_asked_for(spark, destination) -> None:
    df = spark.range(0, 4_000_000, 1, 1)
    df.write.format("lockgate").mode("append").option("rowGroupBytes", "8m").save(destination)
    (path,) = Path(destination).glob("*.parquet")
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert len(sizes) in (3, 4)
    assert max(sizes) * 8 >= 8 << 20


def test_an_empty_table_keeps_its_schema(spark, destination) -> None:
    df = spark.createDataFrame([], ATOMIC)
    df.write.format("lockgate").mode("append").save(destination)
    back = spark.read.parquet(destination)
    assert back.count() == 0
    assert [f.dataType for f in back.schema] == [f.dataType for f in ATOMIC]


def test_rows_and_bytes_are_in_the_summary(spark, destination) -> None:
    from lockgate.spark import write

    summary = write(spark.range(1234).repartition(3), destination)
    assert summary is not None
    assert summary.counters["rows_written"] == 1234
    assert summary.counters["committer_files_committed"] == summary.files == 3
    assert summary.bytes == sum(path.stat().st_size for path in Path(destination).glob("*.parquet"))

"""Parity: one set of writes, by Spark's default committer and through Lockgate, in one session. The same rows, and the
same layout: directories, files, and their names apart from the job's id.

Here is what needs no more than a local session and is not in test_spark_native's cases, which are the same comparison:
formats, codecs, empty and missing rows, nested types, buckets, `maxRecordsPerFile`, appends, overwrites. Elsewhere:
Avro (test_spark_native_avro); a speculated task, a stage that is tried again after its executor was lost, a cancelled
job (test_spark_native_faults); a killed driver (test_spark_native_killed); other stores (test_spark_native_stores);
Spark's issues by number (test_spark_native_issues); partitions in locations of their own
(test_spark_native_locations).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lockgate.spark
import pytest
import troubled_tasks
from pyspark import cloudpickle
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)

JOB_ID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ARROW_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
LeftOver = Callable[[str], list[str]]


def layout_of(root: Path) -> list[str]:
    """The directories and files that readers see, without the job's id."""
    paths = [path.relative_to(root) for path in root.rglob("*")]
    seen = [path for path in paths if not any(part.startswith((".", "_")) and "=" not in part for part in path.parts)]
    return sorted(JOB_ID.sub("-ID", str(path)) for path in seen)


class Pair:
    """Does everything twice, through Lockgate in the directory `ours` and by Spark's default in `theirs`."""

    def __init__(self, spark: Any, base: Path) -> None:
        self.spark = spark
        self.base = base

    def each(self, do: Callable[[str], Any]) -> None:
        """Do it in both directories, and compare what came of it: an answer or an error, and the layouts."""
        ours, theirs = (self._done(name, do) for name in ("ours", "theirs"))
        assert ours == theirs
        self.same_layout()

    def same_layout(self) -> None:
        assert layout_of(self.base / "ours") == layout_of(self.base / "theirs")

    def same_rows(self, read: Callable[[Any, str], Any]) -> int:
        """Compare schemas and rows; how many rows there are."""
        frames = [read(self.spark.read, str(self.base / name)) for name in ("ours", "theirs")]
        assert frames[0].schema == frames[1].schema
        ours, theirs = (sorted(map(str, frame.collect())) for frame in frames)
        assert ours == theirs
        return len(ours)

    def _done(self, name: str, do: Callable[[str], Any]) -> tuple[str, Any]:
        (lockgate.spark.enable if name == "ours" else lockgate.spark.disable)(self.spark)
        try:
            return "done", do(str(self.base / name))
        except Exception as error:
            told = re.search(r"\[[A-Z_.]+\]|told to fail", str(error))
            if told is None:
                raise
            return "failed", told.group()
        finally:
            lockgate.spark.disable(self.spark)


@pytest.fixture
def pair(spark: Any, tmp_path: Path) -> Iterator[Pair]:
    yield Pair(spark, tmp_path)
    for name in (OVERWRITE_MODE, ARROW_BATCH, "spark.sql.files.maxRecordsPerFile"):
        spark.conf.unset(name)


def rows_of(spark: Any, begin: int = 0, end: int = 60) -> Any:
    """One column of text and two for partitions, which every format takes."""
    return spark.range(begin, end, 1, 2).selectExpr("CAST(id AS STRING) AS s", "id % 3 AS p", "id % 2 AS q")


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *(("parquet", "static"), ("parquet", "dynamic"), ("orc", "static")),
        *(("csv", "dynamic"), ("json", "static"), ("text", "dynamic")),
    ],
)
def test_parity_of_every_save_mode_in_both_overwrite_modes(pair: Pair, kind: str, how: str) -> None:
    """Two levels of partitions; each write finds what the ones before have left."""
    spark = pair.spark
    spark.conf.set(OVERWRITE_MODE, how)

    def write(mode: str, rows: Any) -> Callable[[str], None]:
        return lambda path: rows.write.mode(mode).format(kind).partitionBy("p", "q").save(path)

    pair.each(write("errorifexists", rows_of(spark)))
    pair.each(write("errorifexists", rows_of(spark)))
    pair.each(write("ignore", rows_of(spark, 60, 90)))
    pair.each(write("append", rows_of(spark, 60, 90)))
    pair.each(write("overwrite", rows_of(spark, 0, 10).where("p > 0 AND q = 0")))
    pair.each(write("overwrite", rows_of(spark, 0, 10).where("p > 2")))
    pair.each(write("append", rows_of(spark, 0, 10).where("p > 2")))
    if how == "dynamic":
        assert pair.same_rows(lambda read, path: read.format(kind).load(path)) == 90 - 30 + 3
    pair.each(write("append", rows_of(spark)))
    assert pair.same_rows(lambda read, path: read.format(kind).load(path)) == (123 if how == "dynamic" else 60)


VALUES = {
    "STRING": [
        *("''", "' '", "'a b'", "'='", "'a=b'", "'/'", "'a/b'", "'%'", "'%2F'", "'%zz'", "'é/ü'", "'日本'", "'🦆'"),
        *("'null'", "'.'", "'..'", "'_hidden'", "'.hidden'", "'a:b'", "'a\\\\b'"),
        *("'\"'", "'*?[]{}'", "'a\\nb'", "'a\\tb'", "'#'", "'^'", "'+'", "'&amp;'", "'trailing. '", "'e\\u0301'"),
        *("repeat('x', 200)", "'_temporary'", "'_SUCCESS'", "'part-00000'"),
    ],
    "DATE": ["DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"],
    "BOOLEAN": ["true", "false"],
    "DECIMAL(20, 4)": ["1.5", "-0.0001", "1234567890123456.7891", "0"],
    "DOUBLE": ["0D", "-0D", "1.5e300D", "double('NaN')", "double('Infinity')", "1e-7D"],
    "TIMESTAMP": ["TIMESTAMP '2024-03-10 02:30:00'", "TIMESTAMP '1970-01-01 00:00:00.000001'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ '2024-03-10 02:30:00'"],
    "BINARY": ["X'4142'", "X'ff2f'"],
    "TINYINT": ["127Y", "-128Y"],
}


@pytest.mark.parametrize(("kind", "how"), [("STRING", "dynamic"), *((kind, "static") for kind in VALUES)])
def test_parity_of_partition_values(pair: Pair, kind: str, how: str) -> None:
    """Null and special values: the same directories, the same rows when Spark reads them back, and none that an
    overwrite of the same partitions leaves twice."""
    spark = pair.spark
    spark.conf.set(OVERWRITE_MODE, how)
    listed = ", ".join(f"({at}, CAST({value} AS {kind}))" for at, value in enumerate([*VALUES[kind], "NULL"]))
    rows = spark.sql(f"SELECT * FROM VALUES {listed} AS t(n, v)").coalesce(1)
    pair.each(lambda path: rows.write.partitionBy("v").json(path))
    schema = f"n INT, v {'STRING' if kind == 'BINARY' else kind}"
    count = pair.same_rows(lambda read, path: read.schema(schema).json(path))
    assert count == len(VALUES[kind]) + 1
    pair.each(lambda path: rows.write.mode("overwrite").partitionBy("v").json(path))
    assert pair.same_rows(lambda read, path: read.schema(schema).json(path)) == count


def test_a_value_that_is_named_as_the_partition_of_nulls_is_written_beside_nulls(spark: Any, destination: str) -> None:
    """One task would write two files of one name: Spark's default fails when it makes the second; Lockgate gives names
    to what would clash. Both are read as null."""
    rows = spark.sql("SELECT * FROM VALUES (0, '__HIVE_DEFAULT_PARTITION__'), (1, NULL) AS t(n, v)").coalesce(1)
    lockgate.spark.disable(spark)
    with pytest.raises(Exception, match="TASK_WRITE_FAILED"):
        rows.write.partitionBy("v").json(f"{destination}-by-spark")
    lockgate.spark.enable(spark)
    try:
        rows.write.partitionBy("v").json(destination)
    finally:
        lockgate.spark.disable(spark)
    read = spark.read.schema("n INT, v STRING").json(destination).collect()
    assert sorted((row.n, row.v) for row in read) == [(0, None), (1, None)]


def test_parity_of_special_names_of_partition_columns(pair: Pair) -> None:
    columns = ["a b", "a=b", "a/b", "%41", "é", "P", "x:y"]
    rows = pair.spark.range(4).selectExpr("id", *(f"id % 2 AS `{name}`" for name in columns))
    pair.each(lambda path: rows.write.partitionBy(*columns).parquet(path))
    assert pair.same_rows(lambda read, path: read.parquet(path)) == 4


def test_parity_of_tables_in_sql(pair: Pair) -> None:
    """The catalog's partitions, too: managed by Spark, told by the same commits."""
    spark = pair.spark

    def table(path: str) -> list[list[str]]:
        name = f"lg_parity_{Path(path).name}"
        columns = "(id BIGINT, a STRING, b DATE) USING orc PARTITIONED BY (a, b)"
        spark.sql(f"CREATE TABLE {name} {columns} LOCATION '{path}'")
        try:
            spark.sql(f"INSERT INTO {name} SELECT id, CAST(id % 2 AS STRING), DATE '2024-01-01' FROM range(20)")
            spark.sql(f"INSERT INTO {name} PARTITION (a = 'x/y', b = DATE '2024-02-29') SELECT id FROM range(3)")
            spark.sql(f"INSERT INTO {name} PARTITION (a = 'x/y', b) SELECT id, NULL FROM range(3)")
            spark.sql(f"INSERT OVERWRITE {name} PARTITION (a = '1', b) SELECT id, DATE '2025-01-01' FROM range(2)")
            spark.sql(f"INSERT OVERWRITE {name} PARTITION (a = '0', b = DATE '2024-01-01') SELECT 1 WHERE false")
            told = [[row.partition for row in spark.sql(f"SHOW PARTITIONS {name}").collect()]]
            return [*told, sorted(map(str, spark.table(name).collect()))]
        finally:
            spark.sql(f"DROP TABLE {name}")

    pair.each(table)


def test_parity_of_buckets_that_are_overwritten(pair: Pair) -> None:
    spark = pair.spark

    def table(path: str) -> list[str]:
        name = f"lg_parity_{Path(path).name}"
        write = rows_of(spark).write.bucketBy(3, "s").sortBy("s").partitionBy("p").option("path", path)
        write.saveAsTable(name)
        try:
            rows_of(spark, 0, 30).write.mode("append").bucketBy(3, "s").sortBy("s").partitionBy("p").saveAsTable(name)
            rows_of(spark, 5, 9).select("s", "q", "p").write.insertInto(name, overwrite=True)
            return sorted(map(str, spark.table(name).where("s > '6'").collect()))
        finally:
            spark.sql(f"DROP TABLE {name}")

    pair.each(table)


def test_parity_of_files_that_are_cut_by_the_sessions_setting(pair: Pair) -> None:
    pair.spark.conf.set("spark.sql.files.maxRecordsPerFile", "4")
    pair.each(lambda path: rows_of(pair.spark).write.partitionBy("p").csv(path))
    assert len(layout_of(pair.base / "ours")) > 15
    assert pair.same_rows(lambda read, path: read.csv(path)) == 60


def failing_at(pair: Pair, path: str, wrong: dict[str, str]) -> Any:
    """Rows whose tasks go wrong."""
    pair.spark.conf.set(ARROW_BATCH, "10")
    told = Path(f"{path}-told")
    told.mkdir(exist_ok=True)
    rows = rows_of(pair.spark)
    return rows.mapInArrow(going_wrong(str(told), wrong), rows.schema)


@pytest.mark.parametrize("how", ["static", "dynamic"])
def test_parity_of_a_task_that_fails_and_is_tried_again(pair: Pair, how: str) -> None:
    pair.spark.conf.set(OVERWRITE_MODE, how)
    pair.each(lambda path: rows_of(pair.spark, 60, 90).write.partitionBy("p").parquet(path))
    pair.each(
        lambda path: (
            failing_at(pair, path, {"0-0": "fail", "1-0": "die"})
            .write.mode("overwrite")
            .partitionBy("p")
            .option("maxRecordsPerFile", "3")
            .parquet(path)
        )
    )
    assert pair.same_rows(lambda read, path: read.parquet(path)) == 60


@pytest.mark.parametrize("mode", ["append", "errorifexists"])
def test_parity_of_a_task_that_fails_for_good(pair: Pair, mode: str) -> None:
    """Where nothing was overwritten, Spark's default keeps what was there, too. What an overwrite does is in
    test_spark_native."""
    if mode == "append":
        pair.each(lambda path: rows_of(pair.spark).write.partitionBy("p").parquet(path))
    wrong = {"1-0": "fail", "1-1": "fail"}
    pair.each(lambda path: failing_at(pair, path, wrong).write.mode(mode).partitionBy("p").parquet(path))
    assert all("p=" in path for path in layout_of(pair.base / "ours"))


@pytest.mark.parametrize("with_lockgate", [True, False])
def test_undoable_when_the_job_commit_fails(
    spark: Any, tmp_path: Path, destination: str, left_over: LeftOver, with_lockgate: bool
) -> None:
    """A directory where `_SUCCESS` belongs: the job commit gets as far as its last act. By Spark's default the old rows
    are gone by then and the new ones stay, though the write has failed."""
    rows_of(spark).write.partitionBy("p").parquet(destination)
    (Path(destination) / "_SUCCESS").unlink()
    (Path(destination) / "_SUCCESS" / "in the way").mkdir(parents=True)
    before = sorted(path.name for path in Path(destination).rglob("part-*"))
    (lockgate.spark.enable if with_lockgate else lockgate.spark.disable)(spark)
    try:
        with pytest.raises(Exception, match="_SUCCESS"):
            rows_of(spark, 0, 7).write.mode("append").partitionBy("p").parquet(destination)
    finally:
        lockgate.spark.disable(spark)
    assert (sorted(path.name for path in Path(destination).rglob("part-*")) == before) is with_lockgate
    assert left_over(destination) == [] or not with_lockgate

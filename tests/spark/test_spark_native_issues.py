"""Spark's own issues of the commit path, each by its number: what Spark's default committer does today, with the
newest PySpark, and what its writers do through Lockgate. `mended` says that this Spark has the fault no more.

Elsewhere: SPARK-24238 (two jobs append at once) in test_spark_native; SPARK-29037 (a killed application's tasks) in
test_spark_native_killed; SPARK-39195 and SPARK-41448 (an executor that dies after its task commit), and SPARK-24552 and
SPARK-26682 (attempts of a stage that is tried again) in test_spark_native_faults; SPARK-23815 and SPARK-34298, which
take HDFS, in test_spark_native_stores; SPARK-21435 and SPARK-23271 (files without rows) in test_spark_native's cases
"tasks without rows" and "empty". Not for native writers: SPARK-27210 (a stream's file sink) is refused; SPARK-41551,
SPARK-40034 and SPARK-56588 are of PathOutputCommitProtocol.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lockgate.spark
import pyarrow.parquet as pq
import pytest
import troubled_tasks
from pyspark import cloudpickle
from pyspark.sql.functions import udf
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)

LeftOver = Callable[[str], list[str]]

both = pytest.mark.parametrize("with_lockgate", [True, False])


@pytest.fixture
def writers(spark: Any, with_lockgate: bool) -> Iterator[Any]:
    """The session, whose own writers commit through Lockgate or by Spark's default."""
    (lockgate.spark.enable if with_lockgate else lockgate.spark.disable)(spark)
    yield spark
    lockgate.spark.disable(spark)


@contextmanager
def told(spark: Any, **settings: str) -> Iterator[None]:
    """Settings of the session, for a while; `__` for a dot."""
    names = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def rows_of(spark: Any, begin: int, end: int) -> Any:
    return spark.range(begin, end, 1, 2).selectExpr("id", "id % 3 AS p")


@pytest.fixture
def table(writers: Any, tmp_path: Path) -> Iterator[str]:
    """With the partitions p=1 and p=2, of ten rows each, and nothing else."""
    columns = "(id BIGINT, p INT) USING parquet PARTITIONED BY (p)"
    writers.sql(f"CREATE TABLE lg_issue {columns} LOCATION '{tmp_path / 'table'}'")
    writers.sql("INSERT INTO lg_issue SELECT id, CAST(1 + id % 2 AS INT) FROM range(20)")
    yield "lg_issue"
    writers.sql("DROP TABLE lg_issue")


def counts(spark: Any, table: str) -> dict[Any, int]:
    return {row.p: row.n for row in spark.sql(f"SELECT p, count(*) n FROM {table} GROUP BY p").collect()}


def held_until(go: Path, smallest: int = 0) -> Any:
    """A function for columns whose task waits until this file is there, at numbers from `smallest` on."""

    def hold(value):  # Spark would make something of type hints
        if value >= smallest:
            (go.parent / "begun").touch()
            while not go.exists():
                time.sleep(0.05)
        return value

    return udf(hold, "long")


def tasks_ended(spark: Any) -> int:
    """Of the stages at work."""
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)


def beside(
    spark: Any, go: Path, slow: Callable[[], None], quick: Callable[[], None], after: int = 0
) -> list[BaseException]:
    """Run `quick` from its beginning to its end while `slow` holds a task, and has ended `after` others. What went
    wrong in either."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=guarded, args=(slow,))
    thread.start()
    while not (go.parent / "begun").exists() or tasks_ended(spark) < after:
        thread.join(0.1)
        assert thread.is_alive(), failures
    guarded(quick)
    go.touch()
    thread.join()
    return failures


@both
@pytest.mark.parametrize("slow_fails", [True, False])
def test_spark_37210_two_static_partitions_are_overwritten_at_once(
    writers: Any, table: str, tmp_path: Path, with_lockgate: bool, slow_fails: bool
) -> None:
    """By Spark's default both stage below the table's `_temporary/0`, and whoever ends first commits what tasks of the
    other have done, and deletes what was there: rows are seen before their job has ended, and stay if it fails."""
    go, seen = tmp_path / "go", []
    writers.udf.register("held", held_until(go, smallest=3))
    end = "CAST(raise_error('no more') AS BIGINT)" if slow_fails else "held(id)"

    def slow() -> None:
        rows = f"SELECT CASE WHEN held(id) = 5 THEN {end} ELSE id END FROM range(0, 6, 1, 2)"
        writers.sql(f"INSERT OVERWRITE {table} PARTITION (p = 1) {rows}")

    def quick() -> None:
        writers.sql(f"INSERT OVERWRITE {table} PARTITION (p = 2) SELECT id FROM range(0, 7, 1, 1)")
        seen.append(len(list((tmp_path / "table" / "p=1").glob("*.parquet"))))

    failures = beside(writers, go, slow, quick, after=1)
    assert ["no more" in str(each) for each in failures] == [True] * slow_fails
    if with_lockgate:
        assert counts(writers, table) == {1: 10 if slow_fails else 6, 2: 7}
    else:
        assert seen == [1], "a file of the job that had not ended, and none of those before it"
        assert counts(writers, table) == {1: 3 if slow_fails else 6, 2: 7}


@both
def test_spark_28945_disjoint_partitions_are_overwritten_dynamically_at_once(
    writers: Any, tmp_path: Path, with_lockgate: bool
) -> None:
    """Mended: each job stages below a directory of its own."""
    url, go = str(tmp_path / "table"), tmp_path / "go"
    rows_of(writers, 0, 60).write.partitionBy("p").parquet(url)
    hold = held_until(go)

    def overwrite(rows: Any) -> None:
        write = rows.coalesce(1).write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        write.partitionBy("p").parquet(url)

    failures = beside(
        writers,
        go,
        lambda: overwrite(rows_of(writers, 0, 30).where("p = 1").select(hold("id").alias("id"), "p")),
        lambda: overwrite(rows_of(writers, 0, 15).where("p = 2")),
    )
    assert failures == []
    found = {row.p: row["count"] for row in writers.read.parquet(url).groupBy("p").count().collect()}
    assert found == {0: 20, 1: 10, 2: 5}


@both
def test_spark_33019_a_failed_job_shows_no_task_by_algorithm_2(
    writers: Any, destination: str, tmp_path: Path, with_lockgate: bool, left_over: LeftOver
) -> None:
    """Version 2 of Hadoop's committer moves a task's files to their places when the task commits: they stay there if
    the job fails, unless it is aborted in time, and Spark has no list of them."""
    rows_of(writers, 0, 60).write.parquet(destination)
    failing = "CASE WHEN id = 99 THEN raise_error('no more') ELSE id END AS id"
    # Four tasks in two threads: when the last one begins, at least two have committed.
    rows = writers.range(0, 100, 1, 4).selectExpr(failing, "id % 3 AS p")
    with told(writers, mapreduce__fileoutputcommitter__algorithm__version="2"), pytest.raises(Exception) as caught:
        rows.write.mode("append").parquet(destination)
    assert "no more" in str(caught.value)
    count = writers.read.parquet(destination).count()
    assert (count == 60) is with_lockgate
    if with_lockgate:
        assert left_over(destination) == []


@both
def test_spark_29302_a_task_that_is_tried_again_in_a_dynamic_overwrite_meets_no_file_of_its_first_attempt(
    writers: Any, tmp_path: Path, with_lockgate: bool
) -> None:
    """Also SPARK-27194. Mended: attempts of one task wrote to one name."""
    url, seen = str(tmp_path / "table"), tmp_path / "seen"
    seen.mkdir()
    rows_of(writers, 0, 60).write.partitionBy("p").parquet(url)
    df = rows_of(writers, 0, 30).where("p > 0")
    with told(writers, spark__sql__execution__arrow__maxRecordsPerBatch="5"):
        failing = df.mapInArrow(going_wrong(str(seen), {"0-0": "fail", "1-0": "fail"}), df.schema)
        write = failing.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        write.partitionBy("p").parquet(url)
    assert {"0-1", "1-1"} <= {path.name for path in seen.iterdir()}
    found = {row.p: row["count"] for row in writers.read.parquet(url).groupBy("p").count().collect()}
    assert found == {0: 20, 1: 10, 2: 10}
    assert len(list(Path(url).glob("p=[12]/*.parquet"))) == 4


@both
def test_spark_30112_a_table_is_overwritten_dynamically_with_what_was_read_from_it(writers: Any, table: str) -> None:
    """What is replaced is read until the last task has ended."""
    with told(writers, spark__sql__sources__partitionOverwriteMode="dynamic"):
        writers.sql(f"INSERT OVERWRITE {table} PARTITION (p) SELECT id + 1, p FROM {table}")
        writers.sql(f"INSERT OVERWRITE {table} PARTITION (p) SELECT id + 1, p + 1 FROM {table}")
    found = sorted((row.p, row.id) for row in writers.table(table).collect())
    once = [(1 + number % 2, number + 1) for number in range(20)]
    assert found == sorted([pair for pair in once if pair[0] == 1] + [(p + 1, number + 1) for p, number in once])


@both
def test_spark_30112_a_path_is_overwritten_dynamically_with_its_own_rows(writers: Any, destination: str) -> None:
    rows_of(writers, 0, 60).write.partitionBy("p").parquet(destination)
    with told(writers, spark__sql__sources__partitionOverwriteMode="dynamic"):
        own = writers.read.parquet(destination).where("p = 1").selectExpr("id + 1000 AS id", "p")
        own.write.mode("overwrite").partitionBy("p").parquet(destination)
    back = writers.read.parquet(destination)
    assert (back.count(), back.where("id >= 1000").count(), back.where("p = 1").count()) == (60, 20, 20)


@both
def test_spark_15824_one_statement_inserts_twice_into_one_table(writers: Any, table: str) -> None:
    writers.sql(
        f"WITH made AS (SELECT id FROM range(10)) FROM made"
        f" INSERT INTO {table} PARTITION (p = 3) SELECT id WHERE id < 5"
        f" INSERT INTO {table} PARTITION (p = 3) SELECT id WHERE id >= 5"
    )
    assert counts(writers, table) == {1: 10, 2: 10, 3: 10}


@both
def test_spark_24860_the_overwrite_mode_of_a_write_goes_before_the_sessions(writers: Any, destination: str) -> None:
    rows_of(writers, 0, 60).write.partitionBy("p").parquet(destination)

    def overwrite(session: str, write: str) -> int:
        with told(writers, spark__sql__sources__partitionOverwriteMode=session):
            some = rows_of(writers, 0, 60).where("p = 1").write.mode("overwrite").partitionBy("p")
            some.option("partitionOverwriteMode", write).parquet(destination)
        return writers.read.parquet(destination).count()

    assert overwrite("static", "dynamic") == 60
    assert overwrite("dynamic", "static") == 20


@both
def test_spark_34926_a_static_partition_may_be_null(writers: Any, table: str, tmp_path: Path) -> None:
    for how, count in (("INTO", 3), ("INTO", 6), ("OVERWRITE", 2)):
        added = 2 if how == "OVERWRITE" else 3
        writers.sql(f"INSERT {how} {table} PARTITION (p = null) SELECT id FROM range({added})")
        assert counts(writers, table) == {1: 10, 2: 10, None: count}
    assert list((tmp_path / "table" / "p=__HIVE_DEFAULT_PARTITION__").glob("*.parquet"))


@both
def test_spark_20236_a_dynamic_overwrite_replaces_a_partition_in_a_location_of_its_own(
    writers: Any, table: str, tmp_path: Path, with_lockgate: bool
) -> None:
    writers.sql(f"ALTER TABLE {table} PARTITION (p = 2) SET LOCATION '{tmp_path / 'two'}'")
    for count in (9, 4):
        with told(writers, spark__sql__sources__partitionOverwriteMode="dynamic"):
            writers.sql(f"INSERT OVERWRITE {table} PARTITION (p) SELECT id, 2 FROM range({count})")
        assert counts(writers, table) == {1: 10, 2: count}
        assert pq.read_table([str(path) for path in (tmp_path / "two").glob("*.parquet")]).num_rows == count


@both
def test_spark_35106_a_dynamic_overwrite_makes_the_directories_above_a_partitions_location(
    writers: Any, table: str, tmp_path: Path, with_lockgate: bool
) -> None:
    """Mended: the rename into a directory that was not there lost the rows without a word."""
    location = tmp_path / "not" / "there yet" / "two"
    writers.sql(f"ALTER TABLE {table} PARTITION (p = 2) SET LOCATION '{location}'")
    with told(writers, spark__sql__sources__partitionOverwriteMode="dynamic"):
        writers.sql(f"INSERT OVERWRITE {table} PARTITION (p) SELECT id, CAST(2 + id % 2 AS INT) FROM range(8)")
    assert counts(writers, table) == {1: 10, 2: 4, 3: 4}
    assert list(location.glob("*.parquet"))


@both
def test_spark_31968_a_partition_column_that_is_named_twice_is_refused(
    writers: Any, destination: str, with_lockgate: bool
) -> None:
    with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
        rows_of(writers, 0, 6).write.partitionBy("p", "p").parquet(destination)
    assert not Path(destination).exists()


@both
def test_spark_40588_rows_that_are_sorted_within_partitions_stay_so(writers: Any, destination: str) -> None:
    """Mended: sorting by the partition columns alone undid the order."""
    rows = rows_of(writers, 0, 3000).repartition(2, "p").sortWithinPartitions("p", "id")
    rows.write.partitionBy("p").parquet(destination)
    files = list(Path(destination).glob("p=*/*.parquet"))
    assert len(files) == 3
    for path in files:
        read = pq.ParquetFile(path).read()["id"].to_pylist()
        assert read == sorted(read)


@both
def test_spark_22252_columns_keep_the_querys_case_and_the_partition_columns_come_last(
    writers: Any, destination: str
) -> None:
    writers.range(10).selectExpr("id AS P", "id AS Id", "id AS q").write.partitionBy("P").parquet(destination)
    assert writers.read.parquet(destination).columns == ["Id", "q", "P"]


@both
def test_spark_37231_partitions_of_intervals(writers: Any, destination: str) -> None:
    rows = writers.sql("SELECT 0 AS id, INTERVAL '100' YEAR AS i UNION ALL SELECT 1, INTERVAL '-3' YEAR")
    rows.write.partitionBy("i").json(destination)
    back = writers.read.schema("id INT, i INTERVAL YEAR").json(destination)
    assert sorted(map(str, back.selectExpr("id", "CAST(i AS STRING) AS i").collect())) == sorted(
        map(str, rows.selectExpr("id", "CAST(i AS STRING) AS i").collect())
    )


@pytest.mark.parametrize("with_lockgate", [True])
@pytest.mark.parametrize("how", ["INTO", "OVERWRITE"])
def test_declared_an_insert_that_a_static_overwrite_of_the_table_overtakes_is_not_in_sparks_catalog(
    writers: Any, table: str, tmp_path: Path, how: str
) -> None:
    """The overwrite drops from the catalog the partitions that it has not written, and the insert adds none that it has
    seen there when it began. Both have committed, and the files of both are there."""
    go = tmp_path / "go"
    writers.udf.register("held", held_until(go))

    def slow() -> None:
        writers.sql(f"INSERT {how} {table} SELECT held(id), 2 FROM range(0, 3, 1, 1)")

    def quick() -> None:
        writers.sql(f"INSERT OVERWRITE {table} SELECT id, 1 FROM range(0, 7, 1, 1)")

    assert beside(writers, go, slow, quick) == []
    assert counts(writers, table) == ({1: 7} if how == "INTO" else {})
    writers.sql(f"MSCK REPAIR TABLE {table}")
    assert counts(writers, table) == ({1: 7, 2: 3} if how == "INTO" else {2: 3})


@pytest.mark.parametrize("with_lockgate", [True])
def test_declared_a_static_overwrite_that_is_left_out_drops_what_it_has_not_written_from_sparks_catalog(
    writers: Any, table: str
) -> None:
    def write(txn_id: str, statement: str, mode: str = "static") -> None:
        with told(writers, spark__lockgate__txn_id=txn_id, spark__sql__sources__partitionOverwriteMode=mode):
            writers.sql(statement)

    first = f"INSERT OVERWRITE {table} SELECT id, 1 FROM range(7)"
    write("load/1", first)
    write("load/2", f"INSERT INTO {table} SELECT id, 2 FROM range(3)")
    write("load/1", first, mode="dynamic")
    assert counts(writers, table) == {1: 7, 2: 3}
    write("load/1", first)
    assert counts(writers, table) == {1: 7}
    writers.sql(f"MSCK REPAIR TABLE {table}")
    assert counts(writers, table) == {1: 7, 2: 3}

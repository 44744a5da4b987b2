"""Spark's own writers, committed through Lockgate: the same rows and the same layout as by Spark's default, and what
Spark's default does not keep."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pyarrow.parquet as pq
import pytest
from lockgate.errors import UsageError
from lockgate.spark.native_session import COMMIT_PROTOCOL_SETTING, PYTHON_SETTING, _show_to_every_thread
from spark_pages import stages_on_pages, writes_on_pages

ROWS = "id", "id % 3 AS p", "CAST(id AS STRING) AS s"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def rows_of(spark: Any, count: int = 60) -> Any:
    return spark.range(0, count, 1, 2).selectExpr(*ROWS)


def layout_of(root: Path) -> list[str]:
    """The files that readers see, without what differs from job to job."""
    paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    seen = [path for path in paths if not any(part.startswith((".", "_")) and "=" not in part for part in path.parts)]
    return sorted(re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "-UUID", str(path)) for path in seen)


def failing(spark: Any) -> Any:
    """Rows of which the last cannot be had."""
    rows = spark.range(0, 60, 1, 2)
    return rows.selectExpr("CASE WHEN id = 59 THEN raise_error('no more') ELSE id END AS id", "id % 3 AS p")


Write = Callable[[Any, str], None]


def _values(spark: Any) -> Any:
    return spark.createDataFrame(
        [(1, None), (2, "a b"), (3, "é/ü"), (4, "x=y:z"), (5, ""), (6, "%41")], "n INT, v STRING"
    )


def _bucketed(spark: Any, path: str, *by: str) -> None:
    writer = rows_of(spark).write.bucketBy(4, "id").sortBy("id").option("path", path)
    (writer.partitionBy(*by) if by else writer).saveAsTable("lg_bucketed")
    try:
        assert spark.table("lg_bucketed").where("id = 7").count() == 1
    finally:
        spark.sql("DROP TABLE lg_bucketed")


CASES: dict[str, Write] = {
    **{
        f"{name} {how}": lambda spark, path, name=name, by=by: (
            rows_of(spark).select("s", "p").write.format(name).partitionBy(*by).save(path)
            if by or name != "text"
            else rows_of(spark).select("s").write.format(name).save(path)
        )
        for name in ("parquet", "orc", "csv", "json", "text")
        for how, by in (("plain", ()), ("partitioned", ("p",)))
    },
    "gzip": lambda spark, path: rows_of(spark).write.option("compression", "gzip").csv(path),
    "empty": lambda spark, path: rows_of(spark).where("id < 0").write.parquet(path),
    "empty partitioned": lambda spark, path: rows_of(spark).where("id < 0").write.partitionBy("p").parquet(path),
    "special values": lambda spark, path: _values(spark).coalesce(1).write.partitionBy("v").json(path),
    "tasks without rows": lambda spark, path: spark.range(0, 60, 1, 4).where("id < 20").write.parquet(path),
    "header and nulls": lambda spark, path: _values(spark).coalesce(1).write.option("header", True).csv(path),
    "bucketed and sorted": lambda spark, path: _bucketed(spark, path, "p"),
    "bucketed without partitions": lambda spark, path: _bucketed(spark, path),
    "max records": lambda spark, path: rows_of(spark).write.option("maxRecordsPerFile", "7").parquet(path),
    "nested": lambda spark, path: (
        rows_of(spark).selectExpr("struct(id, array(s)) x", "map(s, p) m").write.parquet(path)
    ),
    "appended": lambda spark, path: [rows_of(spark).write.mode("append").parquet(path) for _ in range(2)],
    "overwritten": lambda spark, path: [
        rows_of(spark, count).write.mode("overwrite").partitionBy("p").parquet(path) for count in (60, 2)
    ],
    "ignored": lambda spark, path: [rows_of(spark, count).write.mode("ignore").parquet(path) for count in (60, 2)],
    "dynamic": lambda spark, path: [
        rows_of(spark, count)
        .write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .partitionBy("p")
        .parquet(path)
        for count in (60, 2)
    ],
    "directory": lambda spark, path: spark.sql(
        f"INSERT OVERWRITE DIRECTORY '{path}' USING json SELECT * FROM range(5)"
    ),
}


def _format_of(name: str, root: Path) -> str:
    first = name.split()[0]
    known = {"gzip": "csv", "header": "csv", "special": "json", "directory": "json"}
    return first if first in ("parquet", "orc", "csv", "json", "text") else known.get(first, "parquet")


@pytest.mark.parametrize("name", CASES)
def test_parity_of_rows_and_layout_with_sparks_default(spark: Any, tmp_path: Path, name: str) -> None:
    write = CASES[name]
    lockgate.spark.enable(spark)
    try:
        write(spark, str(tmp_path / "ours"))
    finally:
        lockgate.spark.disable(spark)
    write(spark, str(tmp_path / "theirs"))
    assert layout_of(tmp_path / "ours") == layout_of(tmp_path / "theirs")
    assert (tmp_path / "ours" / "_lockgate").is_dir()
    if name == "empty partitioned":
        return
    read = [spark.read.format(_format_of(name, tmp_path)).load(str(tmp_path / who)) for who in ("ours", "theirs")]
    assert read[0].schema == read[1].schema
    assert sorted(map(str, read[0].collect())) == sorted(map(str, read[1].collect()))


def test_what_is_written_pyarrow_reads(native: Any, destination: str) -> None:
    rows_of(native).write.partitionBy("p").parquet(destination)
    assert pq.read_table(destination).num_rows == 60


def test_mode_error_refuses_what_is_there(native: Any, destination: str) -> None:
    rows_of(native).write.parquet(destination)
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        rows_of(native).write.parquet(destination)


@pytest.mark.parametrize("turned_on", [True, False])
def test_a_failed_overwrite_keeps_the_old_data(spark: Any, destination: str, turned_on: bool) -> None:
    """Spark deletes before the job. With its default committer the old data is gone; through Lockgate it is not."""
    rows_of(spark).write.parquet(destination)
    if turned_on:
        lockgate.spark.enable(spark)
    try:
        with pytest.raises(Exception, match="no more"):
            failing(spark).write.mode("overwrite").parquet(destination)
    finally:
        lockgate.spark.disable(spark)
    left = layout_of(Path(destination)) if Path(destination).exists() else []
    assert len(left) == (2 if turned_on else 0)
    if turned_on:
        assert spark.read.parquet(destination).count() == 60


@pytest.mark.parametrize("turned_on", [True, False])
def test_declared_save_as_table_with_overwrite_drops_the_table_first_and_an_insert_does_not(
    spark: Any, tmp_path: Path, turned_on: bool
) -> None:
    """Spark's catalog drops it, with a managed table's files, before there is a job; no commit protocol hears of it."""
    root = tmp_path / "lg_managed"
    spark.sql("CREATE DATABASE lg_db LOCATION '" + str(tmp_path) + "'")
    (lockgate.spark.enable if turned_on else lockgate.spark.disable)(spark)
    try:
        rows_of(spark).select("id", "p").write.saveAsTable("lg_db.lg_managed")
        with pytest.raises(Exception, match="no more"):
            failing(spark).write.insertInto("lg_db.lg_managed", overwrite=True)
        assert len(list(root.glob("*.parquet"))) == (2 if turned_on else 0)
        with pytest.raises(Exception, match="no more"):
            failing(spark).write.mode("overwrite").saveAsTable("lg_db.lg_managed")
        assert not list(root.glob("*.parquet"))
    finally:
        lockgate.spark.disable(spark)
        spark.sql("DROP DATABASE lg_db CASCADE")


def test_writers_with_a_protocol_of_their_own_are_left_alone(native: Any, tmp_path: Path) -> None:
    """A stream's file sink, and what an RDD writes by Hadoop's output formats."""
    rows_of(native).write.parquet(str(tmp_path / "source"))
    stream = native.readStream.schema("id BIGINT").parquet(str(tmp_path / "source")).writeStream.format("parquet")
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query.start(str(tmp_path / "sink")).awaitTermination()
    assert native.read.parquet(str(tmp_path / "sink")).count() == 60
    assert (tmp_path / "sink" / "_spark_metadata").is_dir()
    native.sparkContext.parallelize(["a", "b"], 2).saveAsTextFile(str(tmp_path / "text"))
    assert sorted(row.value for row in native.read.text(str(tmp_path / "text")).collect()) == ["a", "b"]
    assert not (tmp_path / "sink" / "_lockgate").exists()
    assert not (tmp_path / "text" / "_lockgate").exists()


def test_a_failed_dynamic_overwrite_keeps_every_partition(native: Any, destination: str, left_over: Any) -> None:
    rows_of(native).write.partitionBy("p").parquet(destination)
    before = sorted(path.name for path in Path(destination).rglob("*.parquet"))
    with pytest.raises(Exception, match="no more"):
        failing(native).write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("p").parquet(
            destination
        )
    assert sorted(path.name for path in Path(destination).rglob("*.parquet")) == before
    assert left_over(destination) == []


def test_a_failed_append_leaves_nothing(native: Any, destination: str, left_over: Any) -> None:
    with pytest.raises(Exception, match="no more"):
        failing(native).write.mode("append").parquet(destination)
    assert layout_of(Path(destination)) == []
    assert left_over(destination) == []


def held_until(go: Path) -> Any:
    """A function for columns whose task waits until this file is there."""
    from pyspark.sql.functions import udf

    def hold(value):  # Spark would make something of type hints
        (go.parent / "begun").touch()
        while not go.exists():
            time.sleep(0.05)
        return value

    return udf(hold, "string")


@pytest.mark.parametrize("turned_on", [True, False])
def test_spark_24238_two_jobs_append_to_one_table_at_once(spark: Any, tmp_path: Path, turned_on: bool) -> None:
    """By Spark's default both stage below `_temporary/0`, and the first to end deletes it: the other's rows are lost,
    or it fails. Through Lockgate each has its own directory."""
    table, go = str(tmp_path / "table"), tmp_path / "go"
    if turned_on:
        lockgate.spark.enable(spark)
    df = rows_of(spark).coalesce(1)
    failure: list[Exception] = []

    def slow() -> None:
        try:
            df.select("id", "p", held_until(go)("s").alias("s")).write.mode("append").parquet(table)
        except Exception as error:
            failure.append(error)

    try:
        spark.range(0).write.parquet(table)
        thread = threading.Thread(target=slow)
        thread.start()
        while not (tmp_path / "begun").exists():
            thread.join(0.1)
            assert thread.is_alive(), failure
        df.write.mode("append").parquet(table)
        go.touch()
        thread.join()
    finally:
        lockgate.spark.disable(spark)
    whole = spark.read.parquet(table).count() == 120 and not failure
    assert whole is turned_on, failure


def test_a_write_from_a_thread_that_did_not_enable_it(native: Any, destination: str) -> None:
    failure: list[Exception] = []

    def write() -> None:
        try:
            rows_of(native).write.parquet(destination)
        except Exception as error:
            failure.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert failure == []
    assert (Path(destination) / "_lockgate").is_dir()


def test_a_job_is_not_at_work_for_ever_where_spark_cannot_look_for_it(
    native: Any, destination: str, tmp_path: Path, left_over: Callable[[str], list[str]]
) -> None:
    """The engine has set the job up, and Spark's filesystem cannot look for its marker: Spark then aborts nothing."""
    import pyspark

    rows_of(native).write.parquet(destination)
    source = Path(__file__).with_name("BlindFileSystem.java")
    jars = Path(pyspark.__file__).parent / "jars"
    subprocess.run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(tmp_path), str(source)], check=True)
    with zipfile.ZipFile(tmp_path / "blind.jar", "w") as jar:
        jar.write(tmp_path / "BlindFileSystem.class", "BlindFileSystem.class")
    _show_to_every_thread(native._jvm, str(tmp_path / "blind.jar"))
    blind = {"fs.file.impl": "BlindFileSystem", "fs.file.impl.disable.cache": "true"}
    with pytest.raises(Exception, match=r"the job cannot be set up: .*no answer"):
        rows_of(native).write.mode("append").options(**blind).parquet(destination)
    assert left_over(destination) == []
    assert [state.status.value for state in lockgate.jobs(destination)] == ["committed"]
    assert native.read.parquet(destination).count() == 60


def test_of_two_create_table_as_select_at_once_one_adds_rows_with_conflict_fail(native: Any, tmp_path: Path) -> None:
    """Spark finds out after the second one's job commit that its table is there; by default its rows then are, too."""
    done: list[int] = []
    refused: list[str] = []

    def create(number: int) -> None:
        session = native.newSession()
        session.conf.set(COMMIT_PROTOCOL_SETTING, native.conf.get(COMMIT_PROTOCOL_SETTING))
        session.conf.set(PYTHON_SETTING, native.conf.get(PYTHON_SETTING))
        session.conf.set("spark.lockgate.conflict", "fail")
        columns = f"SELECT id, {number} AS number FROM range(0, 100, 1, 3)"
        try:
            session.sql(f"CREATE TABLE lg_raced USING parquet LOCATION '{tmp_path / 'raced'}' AS {columns}")
            done.append(number)
        except Exception as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(refused) == 1, refused
    try:
        assert [row.number for row in native.table("lg_raced").collect()] == done * 100
    finally:
        native.sql("DROP TABLE lg_raced")


def test_exactly_once_when_a_batch_of_foreach_batch_runs_again(native: Any, tmp_path: Path) -> None:
    """Spark repeats a batch whose end it has not noted: here the note is taken away."""
    table, checkpoint = str(tmp_path / "table"), tmp_path / "checkpoint"
    rows_of(native).write.parquet(str(tmp_path / "source"))
    run: list[int] = []

    def write(batch: Any, number: int) -> None:
        run.append(number)
        batch.write.mode("append").option("lockgate.txnId", f"a-query/{number}").parquet(table)

    for _ in range(2):
        stream = native.readStream.schema("id BIGINT, p BIGINT, s STRING").parquet(str(tmp_path / "source"))
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start().awaitTermination()
        for note in (checkpoint / "commits").iterdir():
            note.unlink()
    assert run == [0, 0]
    assert native.read.parquet(table).count() == 60
    assert (Path(table) / "_lockgate").is_dir()


@pytest.fixture
def table(native: Any, tmp_path: Path) -> Iterator[str]:
    columns = "(id BIGINT, a INT, b INT) USING parquet PARTITIONED BY (a, b)"
    native.sql(f"CREATE TABLE lg_t {columns} LOCATION '{tmp_path / 'lg_t'}'")
    native.sql("INSERT INTO lg_t SELECT id, CAST(id % 2 AS INT), CAST(id % 3 AS INT) FROM range(60)")
    yield "lg_t"
    native.sql("DROP TABLE lg_t")


def counts(spark: Any, table: str) -> dict[tuple[int, int], int]:
    return {(row.a, row.b): row.n for row in spark.sql(f"SELECT a, b, count(*) n FROM {table} GROUP BY a, b").collect()}


def test_a_static_prefix_replaces_every_partition_below_it_and_no_other(native: Any, table: str) -> None:
    native.sql(f"INSERT OVERWRITE {table} PARTITION (a = 1, b) SELECT id, 1 FROM range(7)")
    assert counts(native, table) == {(0, 0): 10, (0, 1): 10, (0, 2): 10, (1, 1): 7}


def test_an_empty_static_overwrite_empties_its_partition(native: Any, table: str) -> None:
    native.sql(f"INSERT OVERWRITE {table} PARTITION (a = 0, b = 0) SELECT id FROM range(7) WHERE id < 0")
    assert counts(native, table) == {(0, 1): 10, (0, 2): 10, (1, 0): 10, (1, 1): 10, (1, 2): 10}


def test_a_dynamic_insert_overwrite_replaces_what_it_writes(native: Any, table: str) -> None:
    native.conf.set(OVERWRITE_MODE, "dynamic")
    try:
        native.sql(f"INSERT OVERWRITE {table} SELECT id, 1, 1 FROM range(4)")
    finally:
        native.conf.unset(OVERWRITE_MODE)
    assert counts(native, table)[1, 1] == 4
    assert sum(counts(native, table).values()) == 54


def test_a_bucketed_table_and_create_table_as_select(native: Any, tmp_path: Path) -> None:
    rows_of(native).write.bucketBy(4, "id").sortBy("id").option("path", str(tmp_path / "b")).saveAsTable("lg_b")
    native.sql(f"CREATE TABLE lg_c USING orc LOCATION '{tmp_path / 'c'}' AS SELECT * FROM lg_b")
    try:
        assert native.table("lg_b").where("id = 7").count() == 1
        assert native.table("lg_c").count() == 60
        assert all(re.search(r"_0000[0-3]\.c000", name) for name in layout_of(tmp_path / "b"))
        assert (tmp_path / "c" / "_lockgate").is_dir()
    finally:
        native.sql("DROP TABLE IF EXISTS lg_c")
        native.sql("DROP TABLE lg_b")


def test_a_streams_file_sink_is_refused_rather_than_unsafe(native: Any, tmp_path: Path) -> None:
    """In words that the query's exception has: what is thrown while Spark makes the protocol by reflection is lost."""
    setting, table = "spark.sql.streaming.commitProtocolClass", tmp_path / "table"
    rows_of(native).write.parquet(str(tmp_path / "source"))
    native.conf.set(setting, native.conf.get(COMMIT_PROTOCOL_SETTING))
    try:
        source = native.readStream.schema("id long, p int, s string").parquet(str(tmp_path / "source"))
        stream = source.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = stream.trigger(availableNow=True).start(str(table))
        with pytest.raises(Exception, match="a file sink of a stream cannot commit"):
            query.awaitTermination(120)
    finally:
        native.conf.unset(setting)
    assert not list(table.rglob("*.parquet"))


def test_a_streams_file_sink_hides_what_any_other_protocol_commits(spark: Any, tmp_path: Path) -> None:
    """Why ours refuses it: the sink makes `_spark_metadata` by itself, and Spark's readers believe its empty list."""
    setting, table = "spark.sql.streaming.commitProtocolClass", str(tmp_path / "table")
    rows_of(spark).write.parquet(str(tmp_path / "source"))
    spark.conf.set(setting, "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol")
    try:
        stream = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "source")).writeStream.format("parquet")
        checkpointed = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        checkpointed.trigger(availableNow=True).start(table).awaitTermination()
    finally:
        spark.conf.unset(setting)
    assert pq.read_table([str(path) for path in Path(table).glob("*.parquet")]).num_rows == 60
    assert spark.read.schema("id BIGINT").parquet(table).count() == 0


def test_a_policy_that_contradicts_the_save_mode_is_refused(native: Any, destination: str) -> None:
    rows_of(native).write.parquet(destination)
    with pytest.raises(Exception, match="contradicts"):
        rows_of(native).write.mode("append").option("lockgate.conflict", "replace").parquet(destination)
    with pytest.raises(Exception, match=r"contradicts(?s:.)*given by the option conflict"):
        rows_of(native).write.mode("overwrite").option("conflict", "fail").parquet(destination)
    with pytest.raises(Exception, match="did you mean fail"):
        rows_of(native).write.mode("append").option("conflict", "fial").parquet(destination)
    assert native.read.parquet(destination).count() == 60


@pytest.mark.parametrize("there", [False, True], ids=["first run", "second run"])
def test_an_overwrite_takes_and_refuses_the_same_policies_in_its_first_run_and_later(
    native: Any, destination: str, there: bool
) -> None:
    if there:
        rows_of(native, 3).write.parquet(destination)
    overwrite = rows_of(native, 7).write.mode("overwrite")
    with pytest.raises(Exception, match=r"'append' contradicts(?s:.)*given by the option conflict"):
        overwrite.option("conflict", "append").parquet(destination)
    overwrite.option("conflict", "replace").parquet(destination)
    assert native.read.parquet(destination).count() == 7


@pytest.mark.parametrize("there", [False, True], ids=["first run", "second run"])
def test_an_insert_overwrite_of_a_partition_is_refused_the_policy_replace_in_its_first_run_and_later(
    native: Any, there: bool
) -> None:
    native.sql("CREATE TABLE lg_first_run (x BIGINT, p INT) USING parquet PARTITIONED BY (p)")
    try:
        native.sql("INSERT INTO lg_first_run VALUES (1, 0)")
        if there:
            native.sql("INSERT INTO lg_first_run VALUES (2, 1)")
        native.conf.set("spark.lockgate.conflict", "replace")
        with pytest.raises(Exception, match="'replace' contradicts it"):
            native.sql("INSERT OVERWRITE lg_first_run PARTITION (p = 1) VALUES (3)")
        assert native.table("lg_first_run").count() == 1 + there
    finally:
        native.conf.unset("spark.lockgate.conflict")
        native.sql("DROP TABLE lg_first_run")


def test_save_as_table_with_overwrite_takes_the_policy_replace_in_its_first_run_and_later(native: Any) -> None:
    """Spark has dropped the table before the job is asked for: a refusal would leave none."""
    native.conf.set("spark.lockgate.conflict", "replace")
    try:
        for rows in (3, 7):
            rows_of(native, rows).select("id", "p").write.mode("overwrite").saveAsTable("lg_made_anew")
            assert native.table("lg_made_anew").count() == rows
    finally:
        native.conf.unset("spark.lockgate.conflict")
        native.sql("DROP TABLE IF EXISTS lg_made_anew")


@pytest.mark.parametrize("overwrite_mode", ["static", "dynamic"])
def test_an_overwrite_does_not_replace_what_a_policy_that_was_named_would_keep(
    native: Any, destination: str, overwrite_mode: str
) -> None:
    """`append` is also the policy of who names none; who names it, in the write or the session, has said to keep."""
    rows = rows_of(native)
    rows.write.partitionBy("p").parquet(destination)
    overwrite = rows.limit(1).write.mode("overwrite").partitionBy("p").option("partitionOverwriteMode", overwrite_mode)
    with pytest.raises(Exception, match=r"'append' contradicts(?s:.)*given by the option conflict"):
        overwrite.option("conflict", "append").parquet(destination)
    native.conf.set("spark.lockgate.conflict", "append")
    try:
        overwrite = rows.limit(1).write.mode("overwrite").partitionBy("p")
        with pytest.raises(Exception, match=r"'append' contradicts(?s:.)*given by spark.lockgate.conflict"):
            overwrite.parquet(destination)
    finally:
        native.conf.unset("spark.lockgate.conflict")
    assert native.read.parquet(destination).count() == 60


def test_options_of_write_session_and_hadoop_count(native: Any, destination: str) -> None:
    rows_of(native).write.option("txnId", "one").parquet(destination)
    rows_of(native).write.mode("append").option("txnId", "one").parquet(destination)
    assert native.read.parquet(destination).count() == 60
    native.conf.set("spark.lockgate.noSuchOption", "1")
    try:
        with pytest.raises(Exception, match="there is no option"):
            rows_of(native).write.mode("append").parquet(destination)
    finally:
        native.conf.unset("spark.lockgate.noSuchOption")
    name = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    rows_of(native).write.option(name, "false").parquet(f"{destination}-2")
    native.conf.set(f"spark.hadoop.{name}", "false")
    try:
        rows_of(native).write.parquet(f"{destination}-3")
        rows_of(native).write.option(name, "true").parquet(f"{destination}-4")
    finally:
        native.conf.unset(f"spark.hadoop.{name}")
    assert [(Path(f"{destination}-{each}") / "_SUCCESS").exists() for each in (2, 3, 4)] == [False, False, True]


def test_an_option_of_a_write_counts_in_every_spelling_and_one_of_a_store_is_never_passed_over(
    native: Any, destination: str
) -> None:
    for name in ("txnId", "txn.id", "txn_id"):
        rows_of(native).write.mode("append").option(name, "one").parquet(destination)
    assert native.read.parquet(destination).count() == 60
    with pytest.raises(Exception, match=r"takes an option store.bananas"):
        rows_of(native).write.mode("append").option("store.bananas", "1").parquet(destination)


def test_rows_files_and_bytes_are_right_in_the_summary_and_on_sparks_pages(native: Any, destination: str) -> None:
    """Five tasks, one without rows, and a file for every seven rows."""
    rows = native.range(0, 100, 1, 5).where("id < 80").selectExpr("id", "id % 3 AS p")
    rows.write.partitionBy("p").option("maxRecordsPerFile", "7").csv(destination)
    files = list(Path(destination).rglob("*.csv"))
    counters = json.loads((Path(destination) / "_SUCCESS").read_text())["iostatistics"]["counters"]
    written = sum(path.stat().st_size for path in files)
    assert counters["rows_written"] == 80
    assert counters["committer_files_committed"] == len(files)
    assert counters["committer_bytes_committed"] == written
    assert (80, written) in stages_on_pages(native)
    assert [str(len(files)), "80", f"{written}.0 B"] in writes_on_pages(native)


def test_without_a_python_the_write_fails_in_words_and_nothing_is_visible(native: Any, destination: str) -> None:
    rows_of(native).write.parquet(destination)
    before = layout_of(Path(destination))
    native.conf.set(PYTHON_SETTING, "/no/such/python")
    with pytest.raises(Exception, match=r"set spark\.lockgate\.python"):
        rows_of(native).write.mode("overwrite").parquet(destination)
    assert layout_of(Path(destination)) == before


def test_a_program_that_is_no_python_of_ours_and_never_answers_is_ended(
    native: Any, destination: str, tmp_path: Path
) -> None:
    """Without a limit the write would wait for ever, and nobody would know for what."""
    silent = tmp_path / "silent"
    silent.write_text(f"#!/bin/sh\necho $$ > {tmp_path / 'pid'}\nexec sleep 100000\n")
    silent.chmod(0o755)
    native.conf.set(PYTHON_SETTING, str(silent))
    native._jvm.java.lang.System.setProperty("lockgate.python.silent.seconds", "3")
    try:
        with pytest.raises(Exception, match=r"has said nothing for 3 seconds(?s:.)*set spark\.lockgate\.python"):
            rows_of(native).write.parquet(destination)
    finally:
        native._jvm.java.lang.System.clearProperty("lockgate.python.silent.seconds")
    assert not Path(destination).exists()
    ended = subprocess.run(["ps", "-p", (tmp_path / "pid").read_text()], capture_output=True, check=False)
    assert ended.returncode != 0


@pytest.mark.parametrize("said", ['{"level": "info"}', "null"])
def test_a_python_whose_wrapper_prints_something_before_it_fails_the_write_in_words(
    native: Any, destination: str, tmp_path: Path, said: str
) -> None:
    """What cannot be an answer ends the one thread that takes them: nobody is left waiting for more."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!/bin/sh\necho '{said}'\nexec {sys.executable} \"$@\"\n")
    wrapper.chmod(0o755)
    native.conf.set(PYTHON_SETTING, str(wrapper))
    with pytest.raises(Exception, match=r"its answer cannot be read(?s:.)*set spark\.lockgate\.python"):
        rows_of(native).write.parquet(destination)
    assert not Path(destination).exists()


def test_a_python_that_dies_is_started_anew(native: Any, destination: str) -> None:
    rows_of(native).write.parquet(destination)
    found = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    jvm = native._jvm.java.lang.ProcessHandle.current().pid()
    ours = [line.split()[0] for line in found if "native_driver" in line and line.split()[1] == str(jvm)]
    assert ours
    for pid in ours:
        os.kill(int(pid), signal.SIGKILL)
    rows_of(native).write.mode("append").parquet(destination)
    assert native.read.parquet(destination).count() == 120


@pytest.mark.parametrize("function", [lockgate.spark.enable, lockgate.spark.disable, lockgate.spark.distribute])
def test_a_session_that_was_stopped_is_refused(function: Any) -> None:
    class Stopped:
        """What is left of a session whose context was stopped: the tests' own must go on."""

        conf = createDataFrame = _jsparkSession = object()
        sparkContext = type("Context", (), {"_jsc": None})

    with pytest.raises(UsageError, match="this one was stopped"):
        function(Stopped())


@pytest.mark.parametrize("function", [lockgate.spark.enable, lockgate.spark.disable, lockgate.spark.distribute])
@pytest.mark.parametrize("given", [None, "spark"])
def test_what_is_no_session_is_refused_by_its_type(function: Any, given: Any) -> None:
    words = rf"lockgate.spark.{function.__name__} takes a session(?s:.)*given: {type(given).__name__}"
    with pytest.raises(UsageError, match=words):
        function(given)


def test_configure_of_a_session_says_that_enable_is_for_that(native: Any) -> None:
    with pytest.raises(UsageError, match=r"takes the builder(?s:.)*lockgate.spark.enable\(spark\)"):
        lockgate.spark.configure(native)


@pytest.mark.parametrize("stopped", [False, True])
def test_configure_may_be_called_again_in_a_running_session_and_after_one(
    spark: Any, sessions: Any, destination: str, stopped: bool
) -> None:
    """As a notebook's cell is run again."""
    builder = lockgate.spark.configure(type(spark).builder)
    if stopped:
        sessions.stop()
        builder = lockgate.spark.configure(type(spark).builder.master("local[2]"))
    session = builder.getOrCreate()
    try:
        rows_of(session).write.parquet(destination)
        assert json.loads((Path(destination) / "_SUCCESS").read_text())["committer"] == "lockgate"
    finally:
        lockgate.spark.disable(session)
        session.conf.unset(PYTHON_SETTING)
        if stopped:
            session.stop()


def test_disable_gives_the_writers_back(native: Any, destination: str) -> None:
    lockgate.spark.disable(native)
    rows_of(native).write.parquet(destination)
    assert not (Path(destination) / "_lockgate").exists()


def test_the_jar_says_where_it_is() -> None:
    told = subprocess.run([sys.executable, "-m", "lockgate_spark_native"], capture_output=True, text=True, check=True)
    assert Path(told.stdout.strip()).is_file()

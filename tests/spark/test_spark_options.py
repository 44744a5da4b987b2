"""What a Spark user can say, rightly and wrongly."""

from __future__ import annotations

import json
import time
from pathlib import Path

import lockgate
import pyarrow as pa
import pytest
from lockgate.errors import CommitFailed, DestinationConflict, JobNotFound, OptionError, PathError
from lockgate.spark import write


def save(df, destination: str, mode: str = "append", **options: object) -> None:
    df.write.format("lockgate").mode(mode).options(**options).save(destination)


def test_mode_error_refuses_a_destination_that_holds_data(spark, destination) -> None:
    write(spark.range(10), destination)
    with pytest.raises(DestinationConflict, match="holds data"):
        write(spark.range(5), destination)
    assert spark.read.parquet(destination).count() == 10


def test_what_mode_error_suggests_does_not_contradict_it(spark, destination) -> None:
    write(spark.range(10), destination)
    with pytest.raises(DestinationConflict) as caught:
        write(spark.range(5), destination)
    assert "the mode append or overwrite" in caught.value.next_step
    assert write(spark.range(5), destination, mode="append") is not None


def test_options_of_the_store_are_taken_as_a_mapping_as_by_a_job(spark, destination) -> None:
    write(spark.range(3), destination, store={"two_step_renames": "allow"}, job_id=None)
    with pytest.raises(OptionError, match=r"did you mean store\.two_step_renames"):
        write(spark.range(3), destination, mode="append", store={"two_step_rename": "allow"})
    assert spark.read.parquet(destination).count() == 3


def test_a_relative_path_and_a_path_object_are_taken_as_by_a_job(spark, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(spark.range(3), "events")
    write(spark.range(3), Path("events"), mode="append")
    assert spark.read.parquet(str(tmp_path / "events")).count() == 6


def test_a_file_as_destination_is_told_plainly(spark, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(PathError, match="this is a file"):
        write(spark.range(3), str(tmp_path / "file"), mode="append")


def test_mode_append_adds(spark, destination) -> None:
    for _ in range(2):
        write(spark.range(10), destination, mode="append")
    assert spark.read.parquet(destination).count() == 20


def test_mode_overwrite_replaces(spark, destination) -> None:
    write(spark.range(10), destination)
    summary = write(spark.range(5), destination, mode="overwrite")
    assert summary is not None
    assert summary.lockgate is not None
    assert summary.lockgate.policy == "replace"
    assert spark.read.parquet(destination).count() == 5


def test_mode_overwrite_with_a_policy_replaces_partitions_only(spark, destination) -> None:
    write(spark.range(10).selectExpr("id", "id % 2 as p"), destination, partition_by="p")
    new = spark.range(100, 101).selectExpr("id", "1 as p")
    write(new, destination, mode="overwrite", partition_by=["p"], conflict="replace-partitions")
    assert sorted(row["id"] for row in spark.read.parquet(destination).collect()) == [0, 2, 4, 6, 8, 100]


def test_mode_ignore_leaves_data_alone(spark, destination) -> None:
    assert write(spark.range(10), destination, mode="ignore") is not None
    assert write(spark.range(5), destination, mode="ignore") is None
    assert spark.read.parquet(destination).count() == 10


def test_sparks_own_modes_work_through_the_data_source(spark, destination) -> None:
    save(spark.range(10), destination)
    save(spark.range(5), destination, mode="overwrite")
    assert spark.read.parquet(destination).count() == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "upsert"}, "mode takes"),
        ({"mode": "error", "conflict": "replace"}, "contradict"),
        ({"format": "parqet"}, "did you mean parquet"),
        ({"compression": "snapy"}, "did you mean snappy"),
        ({"max_records_per_file": "many"}, "whole number"),
        ({"partitionby_": "id", "partition_by": "id"}, "given twice"),
        ({"partition_by": "nope"}, "there is no column 'nope'"),
        ({"conflictt": "append"}, "did you mean conflict"),
        ({"header": "true"}, "belongs to csv"),
        ({"format": "csv", "sep": "||"}, "one character"),
        ({"format": "csv", "header": "maybe"}, "true or false"),
        ({"maxRecordPerFile": "5"}, "did you mean maxRecordsPerFile"),
    ],
)
def test_a_bad_option_is_an_error_that_helps(spark, destination, arguments, message) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.range(10), destination, **arguments)
    assert not list(Path(destination).rglob("*.parquet"))


def test_a_bad_mode_is_refused_before_spark_is_asked(spark, destination) -> None:
    with pytest.raises(OptionError):
        write(spark.range(1), destination, mode="sometimes")


def test_a_type_that_a_format_cannot_hold_is_named(spark, destination) -> None:
    df = spark.range(1).selectExpr("array(id) as ids")
    with pytest.raises(Exception, match="csv files cannot hold arrays"):
        write(df, destination, format="csv")


def test_reading_says_how_to_read(spark, destination) -> None:
    write(spark.range(1), destination)
    with pytest.raises(Exception, match=r"read with the format of the files"):
        spark.read.format("lockgate").load(destination)


def test_settings_of_the_session_count(spark, destination, tmp_path) -> None:
    spark.conf.set("spark.lockgate.summary_report_directory", str(tmp_path / "reports"))
    spark.conf.set("spark.lockgate.conflict", "replace-partitions")
    try:
        save(spark.range(10), destination, conflict="append")
        save(spark.range(5), destination, mode="overwrite")
        save(spark.range(3), destination, conflict="append")
    finally:
        spark.conf.unset("spark.lockgate.summary_report_directory")
        spark.conf.unset("spark.lockgate.conflict")
    assert spark.read.parquet(destination).count() == 8, "an option of the write goes before the session's setting"
    reports = [json.loads(path.read_text()) for path in (tmp_path / "reports").iterdir()]
    assert sorted(report["lockgate"]["policy"] for report in reports) == ["append", "append", "replace-partitions"]


def test_hadoops_names_are_understood(spark, destination) -> None:
    save(spark.range(3), destination, **{"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"})
    assert spark.read.parquet(destination).count() == 3
    assert not (Path(destination) / "_SUCCESS").exists()


def test_hadoops_names_in_the_session_count_with_spark_hadoop_before_them_and_in_write_without(
    spark, destination
) -> None:
    """Spark sends its tasks what begins with `spark`; `write` sees the session's whole conf, and hands on the rest."""
    name = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    for setting, way, marked in (
        (name, "write", False),
        (f"spark.hadoop.{name}", "write", False),
        (f"spark.hadoop.{name}", "format", False),
        (name, "format", True),
    ):
        url = f"{destination}/{way}-{marked}-{len(setting)}"
        spark.conf.set(setting, "false")
        try:
            if way == "write":
                write(spark.range(3), url)
            else:
                save(spark.range(3), url)
        finally:
            spark.conf.unset(setting)
        assert (Path(url) / "_SUCCESS").exists() is marked, (setting, way)


def test_a_transaction_id_takes_effect_once(spark, destination) -> None:
    first = write(spark.range(10), destination, mode="append", txn_id="run 7")
    second = write(spark.range(10), destination, mode="append", txn_id="run 7")
    third = write(spark.range(10), destination, txn_id="run 7")
    assert first is not None
    assert [each.job_id for each in (second, third) if each] == [first.job_id] * 2, "the first summary, in any mode"
    assert spark.read.parquet(destination).count() == 10
    assert len(list(Path(destination).glob("*.parquet"))) == first.files


def _marker_as_seen(destination: str):
    """A function of Arrow batches that answers, for each task, with its job's marker as that task finds it.

    Spark may run it before the write's own part of the task has begun: it waits for what the session says to be there.
    """

    def look(batches):
        for _ in batches:
            (marker,) = Path(destination).glob("_lockgate/jobs/*/*/job.json")
            until = time.monotonic() + 60
            while "tx1" not in marker.read_text() and time.monotonic() < until:
                time.sleep(0.05)
            schema = pa.schema([("marker", pa.string()), ("p", pa.int32())])
            yield pa.RecordBatch.from_pylist([{"marker": marker.read_text(), "p": 1}], schema)

    return look


@pytest.mark.parametrize("how", ["format", "write"])
def test_what_the_session_says_of_a_job_is_in_its_marker_before_a_task_commits(spark, destination, how) -> None:
    """Who commits the job in the place of a driver that died goes by the marker: a table would be replaced whole."""
    write(spark.createDataFrame([("old", 0), ("old", 1)], "marker string, p int"), destination, partition_by="p")
    new = spark.range(1).mapInArrow(_marker_as_seen(destination), "marker string, p int")
    settings = {
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.lockgate.txn_id": "tx1",
        "spark.lockgate.on_failure": "leave",
        "spark.lockgate.delete_success_at_setup": "true",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        if how == "write":
            write(new, destination, mode="overwrite", partition_by="p")
        else:
            new.write.format("lockgate").option("partitionBy", "p").mode("overwrite").save(destination)
    finally:
        for name in settings:
            spark.conf.unset(name)
    found = spark.read.parquet(destination)
    assert {row["p"] for row in found.collect()} == {0, 1}
    (row,) = found.where("p = 1").collect()
    options = json.loads(row["marker"])["options"]
    assert options["conflict"] == "replace-partitions"
    assert (options["txn_id"], options["on_failure"]) == ("tx1", "leave")


@pytest.mark.parametrize("session", [False, True])
def test_the_old_success_is_gone_while_tasks_are_at_work_where_the_session_asks_for_it(
    spark, destination, session
) -> None:
    write(spark.range(1), destination)

    def look(batches):
        for _ in batches:
            # Spark may run this before the write's own part of the task has begun, which is what deletes the file.
            until = time.monotonic() + 60
            while session and (Path(destination) / "_SUCCESS").exists() and time.monotonic() < until:
                time.sleep(0.05)
            yield pa.RecordBatch.from_pylist([{"there": (Path(destination) / "_SUCCESS").exists()}])

    if session:
        spark.conf.set("spark.lockgate.delete_success_at_setup", "true")
    try:
        spark.range(1).mapInArrow(look, "there boolean").write.format("lockgate").mode("append").save(destination)
    finally:
        spark.conf.unset("spark.lockgate.delete_success_at_setup")
    found = spark.read.option("mergeSchema", "true").parquet(destination)
    seen = [row["there"] for row in found.collect() if row["there"] is not None]
    assert seen == [not session]


@pytest.mark.parametrize("mode", ["append", "overwrite", "error"])
def test_a_job_id_that_has_committed_is_refused_and_not_told_as_this_writes_success(spark, destination, mode) -> None:
    write(spark.range(5), destination, jobId="load-1")
    with pytest.raises(JobNotFound, match="job load-1 has committed already"):
        write(spark.range(100, 107), destination, mode=mode, jobId="load-1")
    assert spark.read.parquet(destination).count() == 5


def test_a_write_whose_tasks_fail_is_not_told_as_an_earlier_jobs_success(spark, destination) -> None:
    write(spark.range(5), destination)
    with pytest.raises(Exception, match="boom"):
        write(
            spark.range(2).selectExpr("cast(raise_error('boom') as bigint) as id"),
            destination,
            mode="append",
            jobId="fails",
        )
    assert spark.read.parquet(destination).count() == 5


def test_two_spellings_of_one_setting_that_differ_are_refused(spark, destination) -> None:
    write(spark.range(5), destination)
    spark.conf.set("spark.lockgate.conflict", "append")
    spark.conf.set("spark.lockgate.CONFLICT", "replace")
    try:
        with pytest.raises(OptionError, match="conflict is given twice"):
            write(spark.range(100, 102), destination, mode="append")
    finally:
        spark.conf.unset("spark.lockgate.conflict")
        spark.conf.unset("spark.lockgate.CONFLICT")
    with pytest.raises(Exception, match="given twice"):
        save(spark.range(1), destination, **{"lockgate.conflict": "append", "conflict": "replace"})
    assert spark.read.parquet(destination).count() == 5


@pytest.mark.parametrize("by", ["a", "A"])
def test_columns_that_differ_in_case_only_are_told_apart_where_the_session_does(spark, destination, by) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = spark.createDataFrame([(1, 10, "x"), (2, 20, "y")], "a int, A int, v string")
        write(rows, destination, partition_by=by)
        found = spark.read.parquet(destination).select("a", "A", "v").collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert sorted(tuple(row) for row in found) == [(1, 10, "x"), (2, 20, "y")]
    values = {"a": (1, 2), "A": (10, 20)}[by]
    assert {path.name for path in Path(destination).glob("*=*")} == {f"{by}={value}" for value in values}


def test_a_job_that_an_operator_commits_half_way_is_no_success_of_its_writer(spark, destination) -> None:
    def commit_from_outside(batches):
        for batch in batches:
            if batch.column(0)[0].as_py() == 0:
                yield batch
                continue
            manifests = "_lockgate/jobs/*/*/manifests/task_*-manifest.json"
            # When the task is tried again, the job is over.
            while not list(Path(destination).glob(manifests)) and not (Path(destination) / "_SUCCESS").exists():
                time.sleep(0.05)
            for job in Path(destination).glob("_lockgate/jobs/*"):
                lockgate.commit(destination, job.name, force=True)
            yield batch

    halves = spark.range(0, 2, 1, 2).mapInArrow(commit_from_outside, "id long")
    with pytest.raises(CommitFailed, match="committed by somebody else while it was at work"):
        write(halves, destination)
    assert spark.read.parquet(destination).count() == 1


def test_what_the_environment_of_this_process_says_counts_in_a_running_session(spark, destination, monkeypatch) -> None:
    """A job is planned in a process of Spark's, which was started before."""
    write(spark.range(10), destination)
    monkeypatch.setenv("LOCKGATE_CONFLICT", "fail")
    with pytest.raises(DestinationConflict):
        write(spark.range(5), destination, mode="append")
    # What the write says itself comes first.
    write(spark.range(5), destination, mode="append", conflict="append")
    monkeypatch.delenv("LOCKGATE_CONFLICT")
    monkeypatch.setenv("LOCKGATE_TXN_ID", "daily/1")
    first = write(spark.range(5), destination, mode="append")
    assert write(spark.range(5), destination, mode="append").job_id == first.job_id
    assert spark.read.parquet(destination).count() == 20


def test_hadoop_reads_the_success_that_follows_one_of_its_own(spark, destination) -> None:
    """Its local file system keeps a checksum beside each file, and refuses one that does not fit."""
    spark.range(3).write.parquet(destination)
    assert Path(destination, "._SUCCESS.crc").exists()
    write(spark.range(4), destination, mode="overwrite")
    hadoop = spark.sparkContext._jvm.org.apache.hadoop
    path = hadoop.fs.Path(f"{destination}/_SUCCESS")
    stream = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).open(path)
    assert stream.read() == ord("{")
    stream.close()

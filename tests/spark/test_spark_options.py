"""What a Spark user can say, rightly and wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lockgate.errors import DestinationConflict, OptionError, PathError
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
        ({"partitionby_": "id", "partition_by": "id"}, "every column is a partition column|named twice"),
        ({"partition_by": "nope"}, "there is no column 'nope'"),
        ({"conflictt": "append"}, "did you mean conflict"),
        ({"header": "true"}, "belongs to csv"),
        ({"format": "csv", "sep": "||"}, "one character"),
        ({"format": "csv", "header": "yes"}, "true or false"),
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


def test_a_transaction_id_takes_effect_once(spark, destination) -> None:
    first = write(spark.range(10), destination, mode="append", txn_id="run 7")
    second = write(spark.range(10), destination, mode="append", txn_id="run 7")
    third = write(spark.range(10), destination, txn_id="run 7")
    assert first is not None
    assert [each.job_id for each in (second, third) if each] == [first.job_id] * 2, "the first summary, in any mode"
    assert spark.read.parquet(destination).count() == 10
    assert len(list(Path(destination).glob("*.parquet"))) == first.files

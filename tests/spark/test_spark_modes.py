"""Save modes through `write` and through `format("lockgate")`: nothing is replaced, or left out, without a word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from lockgate.errors import (
    DestinationConflict,
    FileMissing,
    JobNotFound,
    OptionError,
    PathError,
    PluginError,
    UsageError,
)
from lockgate.spark import write

DYING_JOB = """
import os, sys
from faulty_store import make_faulty
from lockgate import Job
job = Job(sys.argv[1], conflict="replace", on_failure="leave", job_id="dead")
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
with attempt.open("part-0.parquet") as file:
    file.write(b"x")
receipt = attempt.commit()
when = {"before": lambda name, subject: name == "rename_files",
        "after": lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)}[sys.argv[2]]
def die(name, subject):
    if when(name, subject):
        os._exit(7)
make_faulty(job).before = die
job.commit([receipt])
"""


def a_job_dies(destination: str, moment: str) -> None:
    """`before` its first file is moved, or `after` its last one."""
    paths = Path(__file__).parents[2] / "core" / "tests" / "engine"
    done = subprocess.run([sys.executable, "-c", DYING_JOB, destination, moment], env={"PYTHONPATH": str(paths)})
    assert done.returncode == 7


@contextmanager
def session_setting(spark: Any, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def save(df: Any, destination: str, mode: str = "append", **options: object) -> None:
    df.write.format("lockgate").mode(mode).options(**options).save(destination)


def by_partition(spark: Any, rows: dict[int, list[int]]) -> Any:
    return spark.createDataFrame([(each, p) for p, ids in rows.items() for each in ids], "id long, p long")


def read(spark: Any, destination: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in spark.read.parquet(destination).collect():
        found.setdefault(row["p"], []).append(row["id"])
    return {p: sorted(ids) for p, ids in found.items()}


def test_append_with_a_replacing_session_setting_is_refused(spark, destination) -> None:
    write(spark.range(10), destination)
    with session_setting(spark, "spark.lockgate.conflict", "replace"):
        with pytest.raises(OptionError, match=r"'append' keeps what is there.*'replace' contradicts"):
            write(spark.range(5), destination, mode="append")
        with pytest.raises(Exception, match="contradicts"):
            save(spark.range(5), destination)
    with pytest.raises(Exception, match="contradicts"):
        save(spark.range(5), destination, conflict="replace")
    with pytest.raises(Exception, match="contradicts"):
        save(spark.range(5), destination, mode="overwrite", conflict="append")
    assert spark.read.parquet(destination).count() == 10


def test_dynamic_partition_overwrite_is_honoured(spark, destination) -> None:
    setting = "spark.sql.sources.partitionOverwriteMode"
    old = by_partition(spark, {1: [1, 2], 2: [3], 3: [4]})
    write(old, destination, partition_by="p")
    with session_setting(spark, setting, "dynamic"):
        write(by_partition(spark, {1: [10]}), destination, mode="overwrite", partition_by="p")
        assert read(spark, destination) == {1: [10], 2: [3], 3: [4]}
        save(by_partition(spark, {2: [20]}), destination, mode="overwrite", partitionBy="p")
        assert read(spark, destination) == {1: [10], 2: [20], 3: [4]}
        save(old, destination, mode="overwrite", partitionBy="p", partitionOverwriteMode="static")
        assert read(spark, destination) == {1: [1, 2], 2: [3], 3: [4]}
    save(
        by_partition(spark, {3: [30]}), destination, mode="overwrite", partitionBy="p", partitionOverwriteMode="dynamic"
    )
    assert read(spark, destination) == {1: [1, 2], 2: [3], 3: [30]}
    write(by_partition(spark, {3: [31]}), destination, mode="overwrite", partition_by="p")
    assert read(spark, destination) == {3: [31]}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ignore_says_so_where_a_dead_job_holds_the_ground(spark, destination, moment) -> None:
    a_job_dies(destination, moment)
    with pytest.raises(DestinationConflict, match="lockgate recover"):
        write(spark.range(5), destination, mode="ignore")


def test_ignore_ignores_a_table_beside_a_dead_job(spark, destination) -> None:
    write(spark.range(10), destination)
    a_job_dies(destination, "before")
    assert write(spark.range(5), destination, mode="ignore") is None


DEAD_TASKS = """
import os, sys
from lockgate import Job
job = Job(sys.argv[1], protocol=sys.argv[2], accept_unsafe=True, job_id="dead")
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
with attempt.open(f"part-0-{attempt.tag}.parquet") as file:
    file.write(b"x")
if sys.argv[3] == "committed":
    attempt.commit()
os._exit(7)
"""


def a_task_shows_its_file(destination: str, protocol: str, how: str = "committed") -> None:
    done = subprocess.run([sys.executable, "-c", DEAD_TASKS, destination, protocol, how], check=False, timeout=120)
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("protocol", "how"),
    [*((each, "committed") for each in ("v2", "direct", "stocator", "markers")), ("direct", "open")],
)
def test_ignore_does_not_take_what_tasks_of_a_dead_job_show_for_a_table(spark, destination, protocol, how) -> None:
    """It returned None, `gc` then left an empty destination, and the rows were nowhere."""
    a_task_shows_its_file(destination, protocol, how)
    with pytest.raises(DestinationConflict, match="all the data there is of jobs that have not committed") as raised:
        write(spark.range(5), destination, mode="ignore")
    assert "dead  " in raised.value.where


def test_ignore_does_not_take_them_for_a_table_beside_an_empty_one(spark, destination) -> None:
    write(
        spark.range(5).withColumnRenamed("id", "p").where("p < 0").selectExpr("p", "p as q"),
        destination,
        partition_by="p",
    )
    a_task_shows_its_file(destination, "v2")
    with pytest.raises(DestinationConflict, match="all the data there is of jobs that have not committed"):
        write(spark.range(5), destination, mode="ignore")


def test_ignore_ignores_another_programs_table_beside_a_job_at_work(spark, destination) -> None:
    spark.range(5).write.parquet(destination)
    Path(destination, "_SUCCESS").unlink()
    a_task_shows_its_file(destination, "v2")
    assert write(spark.range(5), destination, mode="ignore") is None


def test_a_conflict_is_known_by_its_type_not_by_its_text(spark, tmp_path) -> None:
    with pytest.raises(OptionError, match="DestinationConflict"):
        write(spark.range(5), str(tmp_path / "t"), mode="ignore", conflict_="DestinationConflict")

    def fails(batches: Any) -> Any:
        raise RuntimeError("lockgate.errors.DestinationConflict: the destination holds data")

    with pytest.raises(Exception, match="RuntimeError") as caught:
        write(spark.range(5).mapInArrow(fails, "id long"), str(tmp_path / "t"), mode="ignore")
    assert not isinstance(caught.value, DestinationConflict)


def test_an_error_of_setup_comes_as_what_it_is(spark, destination) -> None:
    Path(destination).write_bytes(b"a file")
    with pytest.raises(PathError, match="is a file"):
        write(spark.range(5), destination, mode="append")


def test_an_error_of_a_task_comes_as_what_it_is(spark, destination) -> None:
    def loses_its_job(batches: Any) -> Any:
        shutil.rmtree(Path(destination, "_lockgate/jobs"), ignore_errors=True)
        yield from batches

    with pytest.raises((FileMissing, JobNotFound)):
        write(spark.range(5).mapInArrow(loses_its_job, "id long"), destination)


def test_an_error_of_the_commit_comes_as_what_it_is(spark, destination) -> None:
    def fills(batches: Any) -> Any:
        Path(destination, "late.parquet").touch()
        yield from batches

    with pytest.raises(DestinationConflict, match="holds data"):
        write(spark.range(5).mapInArrow(fills, "id long"), destination)


def test_what_the_session_says_of_files_is_honoured(spark, tmp_path) -> None:
    with (
        session_setting(spark, "spark.sql.parquet.compression.codec", "gzip"),
        session_setting(spark, "spark.sql.orc.compression.codec", "none"),
        session_setting(spark, "spark.sql.files.maxRecordsPerFile", "3"),
    ):
        save(spark.range(0, 10, 1, 1), str(tmp_path / "parquet"))
        write(spark.range(0, 10, 1, 1), str(tmp_path / "said"), compression="zstd", maxRecordsPerFile=0)
        save(spark.range(0, 10, 1, 1), str(tmp_path / "orc"), format="orc")
    files = sorted((tmp_path / "parquet").glob("*.parquet"))
    assert [pq.read_metadata(file).num_rows for file in files] == [3, 3, 3, 1]
    assert {pq.read_metadata(file).row_group(0).column(0).compression for file in files} == {"GZIP"}
    (said,) = (tmp_path / "said").glob("*.parquet")
    assert pq.read_metadata(said).row_group(0).column(0).compression == "ZSTD"
    assert len(list((tmp_path / "orc").glob("part-*.c*.orc"))) == 4
    assert not list((tmp_path / "orc").glob("*.zstd.orc"))


def test_what_a_write_lacks_is_found_before_any_task(spark, destination, tmp_path) -> None:
    begun = tmp_path / "begun"

    def step(batches: Any) -> Any:
        begun.touch()
        yield from batches

    df = spark.range(5).mapInArrow(step, "id long")
    for call in (
        lambda: write(df, destination, partition_by="nope"),
        lambda: save(df, destination, partitionBy="nope"),
        lambda: save(df, "nowhere://bucket/table"),
        lambda: write(df, "nowhere://bucket/table"),
        lambda: save(df.selectExpr("array(id) a"), destination, format="csv"),
    ):
        with pytest.raises(Exception, match=r"no column 'nope'|no plugin serves nowhere|csv files cannot hold arrays"):
            call()
    assert not begun.exists()
    with pytest.raises(PluginError):
        write(df, "nowhere://bucket/table")


def test_nothing_is_raised_once_the_job_is_committed(spark, destination) -> None:
    spark.range(3).write.parquet(destination)  # leaves an empty `_SUCCESS`, which is no summary
    summary = write(spark.range(5), destination, mode="append", mark_success=False)
    assert summary is not None
    assert (summary.success, summary.counters["rows_written"]) == (True, 5)
    assert spark.read.parquet(destination).count() == 8


def test_a_destination_may_be_a_path_object(spark, tmp_path) -> None:
    summary = write(spark.range(3), tmp_path / "table")
    assert summary is not None
    assert summary.counters["rows_written"] == 3
    assert spark.read.parquet(str(tmp_path / "table")).count() == 3
    assert write(spark.range(3), tmp_path / "table", mode="ignore") is None


def test_a_relative_path_counts_from_the_current_directory_as_for_spark(spark, tmp_path) -> None:
    """Of this process for `write`; for `save` of the JVM, as Spark has it, wherever its Python has gone since."""
    below = os.path.relpath(tmp_path / "told")
    assert not os.path.isabs(below)
    write(spark.range(3), below)
    save(spark.range(3), os.path.relpath(tmp_path / "saved"))
    spark.range(3).write.parquet(os.path.relpath(tmp_path / "sparks"))
    for name in ("told", "saved", "sparks"):
        assert spark.read.parquet(str(tmp_path / name)).count() == 3


def test_a_tilde_is_refused_since_spark_makes_a_directory_of_that_name(spark) -> None:
    with pytest.raises(PathError, match="~ is not taken for a home directory"):
        write(spark.range(3), "~/table")
    with pytest.raises(Exception, match="~ is not taken for a home directory"):
        save(spark.range(3), "~/table")


@pytest.mark.parametrize("wrong", [[1, 2], None, pq])
def test_what_is_no_dataframe_is_told(spark, destination, wrong) -> None:
    with pytest.raises(UsageError, match="write takes a DataFrame of Spark first"):
        write(wrong, destination)
    with pytest.raises(PathError, match="a destination is a URL or a path, not int"):
        write(spark.range(3), 7)


def test_columns_that_are_one_to_spark_are_refused_as_by_its_own_writer(spark, destination) -> None:
    doubled = spark.range(3).selectExpr("id", "id AS ID")
    with pytest.raises(OptionError, match="two columns have one name"):
        write(doubled, destination)
    with pytest.raises(Exception, match="two columns have one name"):
        save(doubled, destination)
    with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
        doubled.write.parquet(f"{destination}-sparks")


def test_a_job_id_is_taken_however_it_is_spelled(spark, destination) -> None:
    for number, name in enumerate(("jobId", "job_id", "jobid")):
        summary = write(spark.range(3), destination, mode="append", **{name: f"mine-{number}"})
        assert summary is not None
        assert summary.job_id == f"mine-{number}"

"""The main job on every store, Spark included: partitioned, with a failing attempt, replaced, and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lockgate
import pytest
import troubled_tasks
from emulated_stores import REMOTE, destination_on
from lockgate import JobOptions
from lockgate.errors import DestinationConflict, LockgateError
from lockgate.spark import write
from pyspark import cloudpickle
from rows_at_store import rows_at
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)


@pytest.mark.parametrize("kind", [*REMOTE, "s3, staged"])
def test_the_main_job_on_every_store(spark: Any, tmp_path: Path, kind: str) -> None:
    told, staging = tmp_path / "told", tmp_path / "staging"
    told.mkdir()
    kind, _, staged = kind.partition(", ")
    with destination_on(kind, tmp_path) as (url, options):
        options |= {"stagingDirectory": str(staging)} if staged else {}
        df = spark.range(0, 60_000, 1, 4).selectExpr("id", "id % 3 as p", "concat('a:b ', id) as text")
        failing = df.mapInArrow(going_wrong(str(told), {"1-0": "fail"}), df.schema)
        summary = write(failing, url, partition_by="p", **options)
        assert (told / "1-1").exists(), "the failed attempt was tried again"
        assert summary is not None
        assert summary.counters["rows_written"] == 60_000
        expected = sorted((f"p={number % 3}", number) for number in range(60_000))
        assert rows_at(url, options) == expected
        with pytest.raises(DestinationConflict):
            write(df, url, **options)
        new = spark.range(100_000, 100_010).selectExpr("id", "1 as p", "'x' as text")
        write(new, url, mode="overwrite", partition_by="p", conflict="replace-partitions", **options)
        kept = [row for row in expected if row[0] != "p=1"]
        assert rows_at(url, options) == sorted([*kept, *(("p=1", 100_000 + n) for n in range(10))])
        assert not staged or list(staging.iterdir()) == [], "nothing is left on the local disk"


@pytest.mark.parametrize("kind", ["abfs", "gcs", "s3"])
def test_credentials_given_in_the_session_conf_suffice(spark: Any, tmp_path: Path, kind: str) -> None:
    """Also where directories are not real, and nothing shows a task that its job is not set up yet."""
    with destination_on(kind, tmp_path) as (url, options):
        for name, value in options.items():
            spark.conf.set(f"spark.lockgate.{name}", value)
        try:
            spark.range(100).write.format("lockgate").mode("append").save(url)
        finally:
            for name in options:
                spark.conf.unset(f"spark.lockgate.{name}")
        assert len(rows_at(url, options)) == 100


def test_what_the_session_tells_hadoops_connector_suffices(spark: Any, tmp_path: Path) -> None:
    """By the data source and by `write`, in batches and streams; the key is of this bucket only."""
    with destination_on("s3", tmp_path) as (url, options):
        session = {
            "endpoint": options["store.endpoint_url"].removeprefix("http://"),
            "connection.ssl.enabled": "false",
            "path.style.access": "true",
            "access.key": "of other buckets",
            "secret.key": "of other buckets",
            "bucket.data.access.key": options["store.key"],
            "bucket.data.secret.key": options["store.secret"],
        }
        for name, value in session.items():
            spark.conf.set(f"spark.hadoop.fs.s3a.{name}", value)
        try:
            spark.range(100).write.format("lockgate").mode("append").save(url)
            summary = write(spark.range(100), url, mode="append")
            spark.range(100).write.mode("overwrite").parquet(str(tmp_path / "in"))
            stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
            query = stream.writeStream.format("lockgate").option("checkpointLocation", str(tmp_path / "checkpoint"))
            assert query.trigger(availableNow=True).start(url).awaitTermination(300)
        finally:
            for name in session:
                spark.conf.unset(f"spark.hadoop.fs.s3a.{name}")
        assert summary is not None
        assert options["store.secret"] not in str(summary)
        assert len(rows_at(url, options)) == 300


@pytest.mark.parametrize("kind", ["abfs", "gcs", "s3"])
def test_a_stream_writes_to_a_remote_store(spark: Any, tmp_path: Path, kind: str) -> None:
    with destination_on(kind, tmp_path) as (url, options):
        spark.range(100).write.mode("overwrite").parquet(str(tmp_path / "in"))
        stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
        query = (
            stream.writeStream.format("lockgate")
            .options(**options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(url)
        )
        assert query.awaitTermination(300)
        assert len(rows_at(url, options)) == 100


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_two_runs_of_a_job_give_their_files_other_names_where_the_store_knows_files_by_their_content(
    spark: Any, tmp_path: Path, file_format: str
) -> None:
    """What a dead run took out late was what the next run had committed: the same rows, under the same names."""
    with destination_on("s3", tmp_path) as (url, options):
        names = []
        for table in ("one", "other"):
            summary = write(spark.range(10), f"{url}/{table}", format=file_format, jobId="the-job", **options)
            assert summary is not None
            names.append({file.path for file in lockgate.files(f"{url}/{table}", JobOptions.resolve(options)).files})
        assert names[0]
        assert not names[0] & names[1]


def test_no_secret_in_what_spark_shows_of_a_failing_write(spark: Any, tmp_path: Path) -> None:
    with destination_on("abfs", tmp_path) as (url, options):
        key = options["store.connection_string"].partition("AccountKey=")[2].partition(";")[0]
        wrong = options["store.connection_string"].replace(key, "c2VjcmV0" * 8)
        with pytest.raises((LockgateError, Exception)) as caught:
            write(spark.range(10), url, **{"store.connection_string": wrong, "patience_seconds": "2"})
        assert "c2VjcmV0c2VjcmV0" not in str(caught.value)

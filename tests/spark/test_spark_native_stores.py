"""Spark's own writers on stores that are not a local disk, end to end: Hadoop's connectors write, Lockgate commits.

A real HDFS, the Azure emulator by hadoop-azure, and the Cloud Storage emulator by Google's connector. S3 is refused by
native writers (docs/spark-native.md). What could not be pointed at an emulator is in docs/spark-native.md.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pytest
import troubled_tasks
from lockgate.spark.native_session import PYTHON_SETTING, _show_to_every_thread
from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from lockgate_lab.servers import MiniHdfs, abfs_connector_jars, gcs_connector_jar, or_skip, start_or_skip
from pyspark import cloudpickle
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)

KINDS = "hdfs", "abfs", "gs"
ROOT = "table-at-root"
"""A container, or bucket, that is a table."""
FILES = 6
"""Two tasks write three partitions."""


class Place:
    """A store of one kind, reached by a session."""

    def __init__(self, spark: Any, base: str, options: dict[str, str]) -> None:
        self.spark = spark
        self.base = base
        self.options = options

    def files(self, name: str) -> list[str]:
        """Every file that is there, hidden ones too, as Hadoop's connector lists them."""
        path = self.spark._jvm.org.apache.hadoop.fs.Path(f"{self.base}/{name}")
        each = path.getFileSystem(self.spark._jsparkSession.sessionState().newHadoopConf()).listFiles(path, True)
        found = []
        while each.hasNext():
            found.append(each.next().getPath().toString().removeprefix(f"{path.toString().rstrip('/')}/"))
        return sorted(found)

    def visible(self, name: str) -> list[str]:
        """Those that readers see."""
        return [path for path in self.files(name) if not re.search(r"(^|/)[._]", path)]

    def left(self, name: str) -> list[str]:
        """What jobs have left besides the table."""
        return [path for path in self.files(name) if {"_temporary", "jobs", "replaced"}.intersection(path.split("/"))]

    def rows(self, name: str) -> list[tuple[int, int]]:
        read = self.spark.read.schema("id BIGINT, p BIGINT").parquet(f"{self.base}/{name}")
        return sorted((row.id, row.p) for row in read.collect())


@pytest.fixture(scope="module")
def stores() -> Iterator[dict[str, tuple[str, dict[str, str], list[str]]]]:
    """By kind: a URL, what a session is told of it, and the jars that it needs. Started when first asked for."""
    with ExitStack() as running:
        yield _Stores(running)


class _Stores(dict[str, tuple[str, dict[str, str], list[str]]]):
    def __init__(self, running: ExitStack) -> None:
        super().__init__()
        self._running = running

    def __missing__(self, kind: str) -> tuple[str, dict[str, str], list[str]]:
        self[kind] = {"hdfs": self._hdfs, "abfs": self._abfs, "gs": self._gs}[kind]()
        return self[kind]

    def _hdfs(self) -> tuple[str, dict[str, str], list[str]]:
        hdfs = start_or_skip(MiniHdfs())
        self._running.callback(hdfs.stop)
        # A file's last block is told a moment after it is written: a client that waits shorter asks sooner.
        told = {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20"}
        return f"{hdfs.url}/tables", told, []

    def _abfs(self) -> tuple[str, dict[str, str], list[str]]:
        jars = or_skip(abfs_connector_jars)
        azure = self._running.enter_context(AzureLab(AzureSettings(check_signatures=True)))
        for name in ("native", ROOT):
            azure.on_loop(functools.partial(azure.account.create, name))
        # The connector's own settings alone: the engine's store finds key and endpoint in them.
        return "abfs://native@devstoreaccount1.dfs.core.windows.net/tables", azure.hadoop_configuration, jars

    def _gs(self) -> tuple[str, dict[str, str], list[str]]:
        jar = or_skip(gcs_connector_jar)
        gcs = self._running.enter_context(GcsLab())
        gcs.on_loop(lambda: gcs.service.buckets.update({name: Bucket(name) for name in ("native", ROOT)}))
        told = {
            "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
            "fs.gs.storage.root.url": gcs.url,
            "fs.gs.auth.type": "UNAUTHENTICATED",
            "fs.gs.project.id": "a-project",
            # Hadoop 3.5's own defaults say 64m, which this connector does not read.
            "fs.gs.block.size": str(64 << 20),
        }
        return "gs://native/tables", told, [jar]


@pytest.fixture
def place(request: pytest.FixtureRequest, spark: Any, stores: Any) -> Iterator[Place]:
    """The session, told of one store, with its own writers turned on."""
    base, told, jars = stores[request.param]
    for jar in jars:
        _show_to_every_thread(spark._jvm, jar)
        spark.sql(f"ADD JAR '{jar}'")
    for name, value in told.items():
        spark.conf.set(name, value)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    lockgate.spark.enable(spark)
    options = {f"store.{name}": value for name, value in told.items() if name.startswith("fs.azure.")}
    if request.param == "gs":
        options = {"store.endpoint_url": told["fs.gs.storage.root.url"], "store.token": "anon"}
    yield Place(spark, f"{base}/{request.node.originalname}", options)
    lockgate.spark.disable(spark)
    for name in (*told, PYTHON_SETTING, "spark.sql.execution.arrow.maxRecordsPerBatch"):
        spark.conf.unset(name)


def some(spark: Any, begin: int, end: int) -> Any:
    return spark.range(begin, end, 1, 2).selectExpr("id", "id % 3 AS p")


def pairs(*ranges: tuple[int, int]) -> list[tuple[int, int]]:
    return sorted((number, number % 3) for begin, end in ranges for number in range(begin, end))


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_parity_of_rows_and_layout_with_sparks_default_on_a_remote_store(place: Place) -> None:
    spark, layouts = place.spark, {}
    for name, turn in (("ours", lockgate.spark.enable), ("theirs", lockgate.spark.disable)):
        turn(spark)
        url = f"{place.base}/{name}"
        some(spark, 0, 60).write.partitionBy("p").parquet(url)
        some(spark, 60, 80).write.mode("append").partitionBy("p").parquet(url)
        assert place.rows(name) == pairs((0, 80))
        some(spark, 0, 30).write.mode("overwrite").partitionBy("p").parquet(url)
        assert place.rows(name) == pairs((0, 30))
        dynamic = some(spark, 0, 30).where("p = 1").write.mode("overwrite").partitionBy("p")
        dynamic.option("partitionOverwriteMode", "dynamic").parquet(url)
        assert place.rows(name) == pairs((0, 30))
        layouts[name] = [re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "", at) for at in place.visible(name)]
    assert layouts["ours"] == layouts["theirs"]
    assert len(layouts["ours"]) == FILES
    assert place.left("ours") == []
    verification = lockgate.verify(f"{place.base}/ours", options=lockgate.JobOptions.resolve(place.options))
    assert not verification.findings


@pytest.mark.parametrize("place", ["gs"], indirect=True)
def test_spark_34298_spark_cannot_overwrite_the_root_of_a_store(place: Place) -> None:
    """With either committer: it fails over the path before it asks one. Appends and dynamic overwrites do work."""
    spark, root = place.spark, str(re.match(r"\w+://[^/]+/", place.base)[0])
    some(spark, 0, 60).write.mode("append").partitionBy("p").parquet(root)
    for turn in (lockgate.spark.disable, lockgate.spark.enable):
        turn(spark)
        with pytest.raises(Exception, match="Can not create a Path from an empty string"):
            some(spark, 0, 30).write.mode("overwrite").partitionBy("p").parquet(root)
    dynamic = some(spark, 0, 30).where("p = 1").write.mode("overwrite").partitionBy("p")
    dynamic.option("partitionOverwriteMode", "dynamic").parquet(root)
    found = spark.read.schema("id BIGINT, p BIGINT").parquet(*(f"{root}p={number}" for number in range(3)))
    assert found.count() == 50


@pytest.mark.parametrize("place", ["abfs", "gs"], indirect=True)
def test_complete_partitions_in_locations_of_their_own_below_the_root_of_a_store(place: Place) -> None:
    """Their paths were cut short by a letter: rows that nobody saw, and those of another partition overwritten."""
    spark, root = place.spark, str(re.match(r"\w+://[^/]+/", place.base)[0]).replace("native", ROOT)
    spark.sql(f"CREATE TABLE at_root (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{root}'")
    try:
        for partition, location in ((2, "custom/two"), (3, "xthree"), (6, "xp=5")):
            spark.sql(f"ALTER TABLE at_root ADD PARTITION (p={partition}) LOCATION '{root}{location}'")
        spark.sql("INSERT INTO at_root VALUES (1, 1), (2, 2), (3, 3), (5, 5), (6, 6)")
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        spark.sql("INSERT OVERWRITE at_root VALUES (22, 2), (66, 6)")
        found = sorted(tuple(row) for row in spark.sql("SELECT id, p FROM at_root").collect())
        assert found == [(1, 1), (3, 3), (5, 5), (22, 2), (66, 6)]
        visible = {re.sub("/part-.*", "", path) for path in Place(spark, root.rstrip("/"), {}).visible("")}
        assert visible == {"p=1", "custom/two", "xthree", "p=5", "xp=5"}
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
        spark.sql("DROP TABLE at_root")


@pytest.mark.parametrize("place", ["hdfs"], indirect=True)
def test_spark_23815_a_dynamic_overwrite_makes_partitions_of_two_levels(place: Place) -> None:
    """Mended in Spark: HDFS renames nothing into a directory that is not there, which lost the rows without a word."""
    for name, turn in (("ours", lockgate.spark.enable), ("theirs", lockgate.spark.disable)):
        turn(place.spark)
        rows = some(place.spark, 0, 12).selectExpr("id", "p", "id % 2 AS q").coalesce(1)
        write = rows.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("p", "q")
        write.parquet(f"{place.base}/{name}")
        assert place.spark.read.parquet(f"{place.base}/{name}").count() == 12


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_exclusive_when_a_task_fails_on_a_remote_store_and_is_tried_again(place: Place, tmp_path: Path) -> None:
    df = some(place.spark, 0, 60)
    failing = df.mapInArrow(going_wrong(str(tmp_path), {"1-0": "fail"}), df.schema)
    failing.write.partitionBy("p").parquet(f"{place.base}/table")
    assert (tmp_path / "1-1").exists(), "the failed attempt was tried again"
    assert place.rows("table") == pairs((0, 60))
    assert len(place.visible("table")) == FILES
    assert place.left("table") == []


@pytest.mark.parametrize("place", KINDS, indirect=True)
def test_undoable_when_an_overwrite_fails_on_a_remote_store(place: Place, tmp_path: Path) -> None:
    df = some(place.spark, 0, 60)
    df.write.partitionBy("p").parquet(f"{place.base}/table")
    before = place.files("table")
    failing = df.mapInArrow(going_wrong(str(tmp_path), {"1-0": "fail", "1-1": "fail"}), df.schema)
    for how in ("static", "dynamic"):
        write = failing.write.mode("overwrite").partitionBy("p").option("partitionOverwriteMode", how)
        with pytest.raises(Exception, match="told to fail"):
            write.parquet(f"{place.base}/table")
    assert place.visible("table") == [path for path in before if path in place.visible("table")]
    assert place.rows("table") == pairs((0, 60))
    assert place.left("table") == []

"""Spark's own writers on executors that are processes of their own, and die: what is committed is the rows, once."""

from __future__ import annotations

import json
import subprocess
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pytest
import troubled_tasks
from lockgate.spark.native_session import COMMIT_PROTOCOL_SETTING
from native_writers import own_writers_through_lockgate
from pyspark import cloudpickle, inheritable_thread_target
from spark_pages import stages_tried_again
from troubled_tasks import going_wrong, on_two_executors

cloudpickle.register_pickle_by_value(troubled_tasks)  # the executors do not have this directory on their path

pytestmark = pytest.mark.timeout(2700)  # a machine under load starts Spark slowly

LeftOver = Callable[[str], list[str]]
ROWS = 60_000
SPARKS_OWN = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


@pytest.fixture
def native(two_hosts: Any) -> Iterator[Any]:
    """Two executors on two hosts, with speculation; Spark's own writers commit through Lockgate."""
    with own_writers_through_lockgate(two_hosts):
        yield two_hosts


@pytest.fixture
def told(tmp_path: Path) -> Path:
    (tmp_path / "told").mkdir()
    return tmp_path / "told"


def rows_of(spark: Any) -> Any:
    return spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 3 AS p", "concat('row ', id) AS text")


def attempts(told: Path) -> list[str]:
    return sorted(path.name for path in told.iterdir())


def assert_whole(spark: Any, url: str, left_over: LeftOver) -> None:
    """Complete and exclusive, counted right, and nothing left."""
    back = spark.read.parquet(url).selectExpr("id", "CAST(p AS BIGINT) p", "text")
    assert back.count() == ROWS
    assert rows_of(spark).exceptAll(back).count() == 0
    verification = lockgate.verify(url)
    assert not verification.findings
    assert verification.others == 0
    assert left_over(url) == []
    counters = json.loads((Path(url) / "_SUCCESS").read_text())["iostatistics"]["counters"]
    assert counters["rows_written"] == ROWS


def test_exclusive_when_one_task_fails_and_another_is_speculated(
    native: Any, destination: str, told: Path, left_over: LeftOver
) -> None:
    """The first attempt at partition 2 has written all its rows, and is late: either it or its rival may win."""
    df = rows_of(native)
    step = going_wrong(str(told), {"1-0": "fail", "2-0": "late"})
    df.mapInArrow(step, df.schema).write.partitionBy("p").parquet(destination)
    assert {"1-1", "2-1"} <= set(attempts(told))
    assert_whole(native, destination, left_over)


def test_exclusive_when_a_stage_is_tried_again_since_an_executor_is_lost(
    native: Any, destination: str, told: Path, tmp_path: Path, left_over: LeftOver
) -> None:
    """The executor's shuffle files go with it: what reads them fails, and the stage that writes begins again."""
    (tmp_path / "executors").mkdir()
    rows = rows_of(native)
    # Each of the two has some of these, whichever is lost, and however late one of them has come.
    df = rows.mapInArrow(on_two_executors(str(tmp_path / "executors")), rows.schema).repartition(4)
    step = going_wrong(str(told), {"3-0": "kill once"})
    df.mapInArrow(step, df.schema).write.partitionBy("p").parquet(destination)
    assert stages_tried_again(native) > 0
    assert_whole(native, destination, left_over)


def test_abortable_when_the_job_is_cancelled(native: Any, destination: str, told: Path, left_over: LeftOver) -> None:
    df = rows_of(native)
    df.write.partitionBy("p").parquet(destination)
    step = going_wrong(str(told), {"0-0": "hang", "1-0": "hang"})
    failure: list[BaseException] = []

    def job() -> None:
        native.sparkContext.setJobGroup("doomed", "to be cancelled", interruptOnCancel=True)
        try:
            df.mapInArrow(step, df.schema).write.mode("overwrite").partitionBy("p").parquet(destination)
        except Exception as error:
            failure.append(error)

    thread = threading.Thread(target=inheritable_thread_target(native)(job))
    thread.start()
    while "0-0" not in attempts(told):
        thread.join(0.2)
        assert thread.is_alive(), failure
    native.sparkContext.cancelJobGroup("doomed")
    thread.join(90)
    assert failure, "the cancelled job must fail"
    assert_whole(native, destination, left_over)


@pytest.fixture(scope="module")
def dying_commits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jar of `DyingCommits.java`."""
    import pyspark

    work = tmp_path_factory.mktemp("dying")
    jars = Path(pyspark.__file__).parent / "jars"
    source = Path(__file__).with_name("DyingCommits.java")
    subprocess.run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(work), str(source)], check=True)
    with zipfile.ZipFile(work / "dying.jar", "w") as jar:
        jar.write(work / "DyingCommits.class", "DyingCommits.class")
    return work / "dying.jar"


@pytest.mark.parametrize("with_lockgate", [True, False])
def test_spark_39195_an_executor_that_dies_after_its_task_commit_adds_no_rows(
    native: Any, destination: str, dying_commits: Path, with_lockgate: bool
) -> None:
    """The task's output was committed, its driver does not know, and tries it again. Spark's default committer has been
    safe since SPARK-41448: both attempts commit to one directory. Through Lockgate the driver's word counts."""
    native.sql(f"ADD JAR '{dying_commits}'")
    real = native.conf.get(COMMIT_PROTOCOL_SETTING) if with_lockgate else SPARKS_OWN
    native._jvm.System.setProperty("DyingCommits", real)
    native.conf.set(COMMIT_PROTOCOL_SETTING, "DyingCommits")
    rows_of(native).write.partitionBy("p").parquet(destination)
    assert native.read.parquet(destination).count() == ROWS
    names = [path.name for path in Path(destination).rglob("part-00001-*")]
    assert len(names) == 3, "one attempt's files, one for each partition"

"""The guarantees at the level of Spark, on executors that are processes of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lockgate
import pytest
import troubled_tasks
from lockgate.spark import write
from pyspark import cloudpickle
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)  # the executors do not have this directory on their path

pytestmark = pytest.mark.timeout(2700)  # a machine under load starts Spark slowly

ROWS = 60_000


@pytest.fixture
def told(tmp_path: Path) -> Path:
    (tmp_path / "told").mkdir()
    return tmp_path / "told"


def rows_of(spark: Any) -> Any:
    return spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 3 as p", "concat('row ', id) as text")


def troubled(spark: Any, told: Path, wrong: dict[str, str]) -> Any:
    df = rows_of(spark)
    return df.mapInArrow(going_wrong(str(told), wrong), df.schema)


def assert_whole(spark: Any, url: str, left_over: Callable[[str], list[str]]) -> None:
    """Complete and exclusive, and nothing left."""
    back = spark.read.parquet(url).selectExpr("id", "cast(p as bigint) p", "text")
    assert back.count() == ROWS
    assert rows_of(spark).exceptAll(back).count() == 0
    verification = lockgate.verify(url)
    assert not verification.findings
    assert verification.others == 0
    assert left_over(url) == []


def attempts(told: Path) -> list[str]:
    return sorted(path.name for path in told.iterdir())


def test_exclusive_when_a_task_attempt_fails_half_way(cluster, destination, told, left_over) -> None:
    write(troubled(cluster, told, {"1-0": "fail", "3-0": "fail", "3-1": "fail"}), destination, partition_by="p")
    assert {"1-1", "3-2"} <= set(attempts(told))
    assert_whole(cluster, destination, left_over)


def test_exclusive_when_a_python_worker_dies(cluster, destination, told, left_over) -> None:
    write(troubled(cluster, told, {"2-0": "die"}), destination, partition_by="p")
    assert "2-1" in attempts(told)
    assert_whole(cluster, destination, left_over)


def test_exclusive_when_an_executor_is_killed(cluster, destination, told, left_over) -> None:
    write(troubled(cluster, told, {"1-0": "kill"}), destination, partition_by="p")
    assert "1-1" in attempts(told)
    assert_whole(cluster, destination, left_over)


def test_exclusive_when_an_attempt_is_speculated_and_loses(two_hosts, destination, told, left_over) -> None:
    summary = write(troubled(two_hosts, told, {"2-0": "hang"}), destination, partition_by="p")
    assert "2-1" in attempts(told), "Spark started a second attempt beside the hanging one"
    assert summary is not None
    assert summary.counters["committer_tasks_completed"] == 4
    assert_whole(two_hosts, destination, left_over)


def test_pinned_when_an_attempt_commits_after_its_rival(two_hosts, destination, told, left_over) -> None:
    # The first attempt has written all its rows, and is late: the speculative one starts, and either may win.
    summary = write(troubled(two_hosts, told, {"2-0": "late"}), destination, partition_by="p")
    assert "2-1" in attempts(told)
    assert summary is not None
    assert summary.counters["rows_written"] == ROWS
    assert_whole(two_hosts, destination, left_over)


def test_abortable_when_a_task_fails_for_good(cluster, destination, told, left_over) -> None:
    write(rows_of(cluster), destination, partition_by="p")
    with pytest.raises(Exception, match="told to fail"):
        write(
            troubled(cluster, told, {f"1-{n}": "fail" for n in range(4)}),
            destination,
            mode="overwrite",
            partition_by="p",
        )
    assert_whole(cluster, destination, left_over)


def test_abortable_when_the_job_is_cancelled(cluster, destination, told, left_over) -> None:
    write(rows_of(cluster), destination, partition_by="p")
    df = troubled(cluster, told, {"0-0": "hang"})
    failure: list[BaseException] = []

    def job() -> None:
        cluster.sparkContext.setJobGroup("doomed", "to be cancelled", interruptOnCancel=True)
        try:
            write(df, destination, mode="overwrite", partition_by="p")
        except BaseException as error:
            failure.append(error)

    from pyspark import inheritable_thread_target

    thread = threading.Thread(target=inheritable_thread_target(cluster)(job))
    thread.start()
    while "0-0" not in attempts(told):
        thread.join(0.2)
        assert thread.is_alive(), failure
    cluster.sparkContext.cancelJobGroup("doomed")
    thread.join(90)
    assert failure, "the cancelled job must fail"
    assert_whole(cluster, destination, left_over)


def test_abortable_when_the_job_is_cancelled_and_its_tasks_write_on(cluster, destination, told, left_over) -> None:
    """Nobody interrupts them: they open file after file while the driver deletes where they write."""
    write(rows_of(cluster), destination, partition_by="p")
    df = troubled(cluster, told, {"0-0": "write on", "1-0": "write on"})
    failure: list[BaseException] = []

    def job() -> None:
        cluster.sparkContext.setJobGroup("doomed too", "to be cancelled", interruptOnCancel=False)
        try:
            write(df, destination, mode="append", partition_by="p", maxRecordsPerFile=100)
        except BaseException as error:
            failure.append(error)

    from pyspark import inheritable_thread_target

    thread = threading.Thread(target=inheritable_thread_target(cluster)(job))
    thread.start()
    while sum("/tasks/" in path for path in left_over(destination)) < 20:
        thread.join(0.2)
        assert thread.is_alive(), failure
    cluster.sparkContext.cancelJobGroup("doomed too")
    thread.join(90)
    assert failure, "the cancelled job must fail"
    assert [state.status.value for state in lockgate.jobs(destination)] == ["committed"]
    assert_whole(cluster, destination, left_over)


def test_undoable_when_the_job_commit_fails(cluster, destination, left_over) -> None:
    write(rows_of(cluster), destination, partition_by="p")
    before = sorted(str(path) for path in Path(destination).rglob("*.parquet"))
    # A directory where the summary belongs: the job commit gets as far as its commit point and no further.
    (Path(destination) / "_SUCCESS").unlink()
    (Path(destination) / "_SUCCESS").mkdir()
    (Path(destination) / "_SUCCESS" / "in the way").touch()
    with pytest.raises(Exception, match="_SUCCESS"):
        write(rows_of(cluster), destination, mode="overwrite", partition_by="p")
    assert sorted(str(path) for path in Path(destination).rglob("*.parquet")) == before
    assert left_over(destination) == []
    assert rows_of(cluster).count() == cluster.read.parquet(destination).count()


def test_concurrent_when_two_jobs_append_at_once(cluster, destination, left_over) -> None:
    at_once(
        lambda: write(rows_of(cluster).where("id < 30000"), destination, mode="append", partition_by="p"),
        lambda: write(rows_of(cluster).where("id >= 30000"), destination, mode="append", partition_by="p"),
    )
    back = cluster.read.parquet(destination).selectExpr("id", "cast(p as bigint) p", "text")
    assert back.count() == ROWS
    assert rows_of(cluster).exceptAll(back).count() == 0
    assert left_over(destination) == []


def test_concurrent_when_two_jobs_replace_disjoint_partitions_at_once(cluster, destination, left_over) -> None:
    write(rows_of(cluster), destination, partition_by="p")

    def replace(partition: int) -> None:
        df = rows_of(cluster).where(f"p = {partition}").selectExpr("id", "p", "'new' as text")
        write(df, destination, mode="overwrite", partition_by="p", conflict="replace-partitions")

    at_once(lambda: replace(0), lambda: replace(1))
    back = cluster.read.parquet(destination)
    assert back.count() == ROWS
    assert back.where("text = 'new'").count() == 2 * (ROWS // 3)
    assert left_over(destination) == []


def at_once(*works: Callable[[], Any]) -> None:
    failures: list[BaseException] = []

    def guarded(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

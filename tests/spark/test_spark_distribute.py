"""`format("lockgate")` and Spark's own writers, with their files renamed by executors above a threshold: these may be
killed, or busy, or not there, and so may the driver program."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lockgate
import lockgate.spark
import pyarrow.dataset
import pytest
from lockgate.api.destination import last_summary
from lockgate.errors import OptionError, UsageError
from lockgate.spark.native_session import PYTHON_SETTING
from lockgate.spark.offered_movers import ABOVE_SETTING, SOCKET_SETTING
from moving_program import how_the_late_mover_ends, run_program

PROGRAM = Path(__file__).with_name("spread_writes.py")
FILES = 12


def ids(table: Path) -> list[int]:
    return sorted(pyarrow.dataset.dataset(table, partitioning="hive").to_table().column("id").to_pylist())


NEW = list(range(30))


def test_complete_when_executors_rename_are_killed_or_are_busy(java: str, tmp_path: Path) -> None:
    writes = ["native-none", "source-none", "native-executor", "source-executor", "source-busy"]
    assert run_program(PROGRAM, tmp_path, *writes) == 0, (tmp_path / "err").read_text()[-3000:]
    told = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [each["write"] for each in told] == writes
    assert len(list(tmp_path.glob("taken-*"))) == 2, "an executor was killed under each writer"
    for each in told:
        assert each["files"] == FILES
        assert each["counters"]["commit_file_rename"] == FILES
        assert each["counters"]["rows_written"] == len(NEW)
        # Busy executors are waited for, and then the driver does it alone.
        assert each["counters"].get("movers", 0) == (0 if each["write"] == "source-busy" else 2), each
        assert ids(tmp_path / each["write"]) == NEW
        assert statuses(tmp_path / each["write"]) == {"committed"}
        assert not lockgate.verify(tmp_path / each["write"]).findings


def test_continuity_when_the_driver_program_is_killed_while_executors_rename(java: str, tmp_path: Path) -> None:
    """The engine of native writers goes on by itself, though a mover is left that nobody reaches any more."""
    assert run_program(PROGRAM, tmp_path, "native-driver") < 0
    table = tmp_path / "native-driver"
    for _ in range(1200):
        if ids_are_committed(table):
            break
        time.sleep(0.1)
    assert ids(table) == NEW
    assert how_the_late_mover_ends(tmp_path) == "stage-fails"
    assert ids(table) == NEW
    assert not lockgate.verify(table).findings


def ids_are_committed(table: Path) -> bool:
    summary = last_summary(table)
    return summary is not None and summary.files == FILES and statuses(table) == {"committed"}


def statuses(table: Path) -> set[str]:
    return {job.status.value for job in lockgate.jobs(table)}


@pytest.mark.parametrize("writer", ["native", "source"])
def test_without_executors_the_driver_renames_alone(spark: Any, tmp_path: Path, writer: str) -> None:
    """A session in one process has none, with or without a driver program that answers."""
    rows = spark.range(0, 30, 1, 3).selectExpr("id", "id % 4 AS p")
    try:
        for name, turn_on in (("offered", lambda: lockgate.spark.distribute(spark, above=1)), ("not", lambda: None)):
            turn_on()
            if writer == "native":
                lockgate.spark.enable(spark)
                rows.write.option("lockgate.movers_above", "2").partitionBy("p").parquet(str(tmp_path / name))
            else:
                lockgate.spark.write(rows, tmp_path / name, partition_by="p", movers_above=2)
            lockgate.spark.distribute(spark, above=0)
            summary = last_summary(tmp_path / name)
            assert summary is not None
            assert "movers" not in summary.iostatistics.counters
            assert ids(tmp_path / name) == NEW
    finally:
        lockgate.spark.disable(spark)
        for setting in (ABOVE_SETTING, SOCKET_SETTING, PYTHON_SETTING):
            spark.conf.unset(setting)


@pytest.mark.parametrize("above", [-1, "many"])
def test_a_bad_threshold_is_refused_where_it_is_given(spark: Any, above: Any) -> None:
    with pytest.raises(OptionError, match=r"movers_above cannot be(?s:.)*an argument"):
        lockgate.spark.distribute(spark, above=above)
    assert spark.conf.get(ABOVE_SETTING, None) is None


@pytest.mark.parametrize("bad", [{"tasks": -1}, {"tasks": "2"}, {"idle_seconds": float("nan")}, {"idle_seconds": "5"}])
def test_a_bad_number_of_tasks_or_seconds_is_refused_where_it_is_given(spark: Any, bad: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=r"(tasks|idle_seconds) cannot be(?s:.)*an argument"):
        lockgate.spark.distribute(spark, above=1, **bad)
    assert spark.conf.get(ABOVE_SETTING, None) is None


def test_a_client_of_spark_connect_is_told_that_it_has_no_executors() -> None:
    with pytest.raises(UsageError, match="Spark Connect has no executors"):
        # As a session of Connect: without a JVM.
        lockgate.spark.distribute(SimpleNamespace(conf=None, createDataFrame=None))  # type: ignore[arg-type]

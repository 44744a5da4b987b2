"""Spark's own writers, and the death of their driver: its JVM, its Python engine, or both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pytest
from kill_tree import kill_tree, parents
from lockgate.spark.native_session import PYTHON_SETTING
from plugin_site import site_with
from pyspark.sql.functions import udf

LeftOver = Callable[[str], list[str]]
HERE = Path(__file__).parent
DRIVER = HERE / "killed_native_driver.py"
OPTIONS = lockgate.JobOptions(alive_seconds=0)


def python_with(path: Path, **environment: str) -> Path:
    """A command that is this Python in another environment."""
    settings = " ".join(f"{name}={value}" for name, value in environment.items())
    path.write_text(f'#!/bin/sh\nexec env {settings} {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def rows_of(spark: Any, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(path)).collect())


def write_old(spark: Any, path: Path) -> None:
    spark.range(0, 20, 1, 2).selectExpr("id", "id % 3 AS p").write.partitionBy("p").parquet(str(path))


OLD, NEW = list(range(20)), list(range(30))


@pytest.fixture(scope="module")
def killed(java: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `killed_native_driver` has written until its JVM was killed, and one of its two engines with it. The other
    went on with its job commit, and has ended."""
    tmp_path = tmp_path_factory.mktemp("killed")
    base = tmp_path / "base"
    base.mkdir()
    site = site_with(tmp_path / "site", "held_stage")
    environment = {**os.environ, "PYTHONPATH": f"{site}:{HERE}", "HELD_STAGE_BASE": str(base)}
    other = python_with(tmp_path / "other-python", HELD_AS="left")
    log = tmp_path / "driver.log"
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER), str(base), str(other)],
        stdout=subprocess.PIPE,
        stderr=log.open("w"),
        text=True,
        env=environment,
    )
    assert driver.stdout is not None
    try:
        told = next((line for line in driver.stdout if line.startswith("jvm ")), "")
        assert told, log.read_text()[-3000:]
        jvm, left, alone = (
            int(told.split()[1]),
            *(int((base / f"held-{name}").read_text()) for name in ("left", "alone")),
        )
        assert {left, alone} <= {child for child, parent in parents().items() if parent == jvm}
        os.kill(jvm, signal.SIGKILL)
        os.kill(left, signal.SIGKILL)
        (base / "go").touch()
        while Path(f"/proc/{alone}").exists() and not is_zombie(alone):
            time.sleep(0.05)
    finally:
        kill_tree(driver.pid)
        driver.wait()
    return base


def is_zombie(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(happened: Callable[[], bool]) -> None:
    patience = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < patience
        time.sleep(0.05)


def statuses(path: Path) -> list[str]:
    return [state.status.value for state in lockgate.jobs(str(path), OPTIONS)]


def test_a_driver_that_is_killed_leaves_nothing_half_done(native: Any, killed: Path, left_over: LeftOver) -> None:
    # After the job commit.
    assert rows_of(native, killed / "done") == NEW
    # In it: the engine that was alone has finished it.
    assert statuses(killed / "alone") == ["committed"]
    assert rows_of(native, killed / "alone") == NEW
    assert left_over(str(killed / "alone")) == []
    # In it, and its engine killed too: what was replaced is set aside, and comes back.
    (recovery,) = lockgate.recover(str(killed / "left"), undo=True, force=True).values()
    assert recovery.outcome == "undone"
    assert rows_of(native, killed / "left") == OLD
    # Before it: nothing is visible, and gc takes what is there.
    assert list((killed / "before").glob("p=*")) == []
    lockgate.collect_garbage(str(killed / "before"), options=OPTIONS)
    assert left_over(str(killed / "before")) == []


def test_spark_29037_a_killed_writers_tasks_are_not_committed_by_the_next(native: Any, killed: Path) -> None:
    """Spark's default committer takes the staged tasks of the killed application for those of the one that comes after:
    they have one directory, since each is attempt 0 of its job."""
    found = {}
    for name in ("native", "default"):
        columns = "(id BIGINT, s STRING, p INT) USING parquet PARTITIONED BY (p)"
        native.sql(f"CREATE TABLE again_{name} {columns} LOCATION '{killed / name}'")
        if name == "default":
            lockgate.spark.disable(native)
        try:
            native.sql(f"INSERT OVERWRITE again_{name} PARTITION (p = 1) SELECT id, '' FROM range(0, 4, 1, 2)")
            found[name] = rows_of(native, killed / name)
        finally:
            native.sql(f"DROP TABLE again_{name}")
    assert found == {"native": [0, 1, 2, 3], "default": [0, 0, 1, 1, 2, 3]}


def test_an_engine_that_dies_in_a_job_commit_fails_the_write_and_is_recovered(
    native: Any, tmp_path: Path, left_over: LeftOver
) -> None:
    table = tmp_path / "table"
    write_old(native, table)
    site = site_with(tmp_path / "site", "slow_phases")
    dying = python_with(tmp_path / "python", PYTHONPATH=str(site), DIES_IN="rename_files")
    native.conf.set(PYTHON_SETTING, str(dying))
    rows = native.range(0, 30, 1, 2).selectExpr("id", "id % 3 AS p")
    with pytest.raises(Exception, match=r"the Python that commits for Spark's writers has ended, ") as raised:
        rows.write.mode("overwrite").partitionBy("p").parquet(str(table))
    lockgate.spark.enable(native)
    # The error names what to type.
    (job,) = lockgate.jobs(str(table))
    assert f"lockgate recover file:{table} {job.job_id} finishes it" in str(raised.value)
    (recovery,) = lockgate.recover(f"file:{table}", job.job_id, undo=True, force=True).values()
    assert recovery.outcome == "undone"
    assert rows_of(native, table) == OLD
    rows.write.mode("overwrite").partitionBy("p").parquet(str(table))
    assert rows_of(native, table) == NEW
    assert left_over(str(table)) == []


@pytest.mark.parametrize("again", ["lives", "dies"])
def test_a_job_whose_engine_dies_while_its_tasks_are_at_work_is_kept_alive_and_commits(
    native: Any, tmp_path: Path, again: str
) -> None:
    """Its driver is the JVM. What renews its sign of life is an engine, and so another is started at once; if that one
    dies too, the next request starts a third."""
    table, go, starts = tmp_path / "table", tmp_path / "go", tmp_path / "starts"
    dying = tmp_path / "python"
    dies = f'[ "$(wc -l < {starts})" -eq 2 ] && exit 3' if again == "dies" else ""
    dying.write_text(f'#!/bin/sh\necho $$ >> {starts}\n{dies}\nexec {sys.executable} "$@"\n')
    dying.chmod(0o755)

    def hold(value):  # Spark would make something of type hints
        (go.parent / "begun").touch()
        while not go.exists():
            time.sleep(0.05)
        return value

    def write() -> None:
        native.range(0, 4, 1, 2).select(udf(hold, "long")("id").alias("id")).write.parquet(str(table))

    def started() -> list[int]:
        return [int(line) for line in starts.read_text().splitlines()]

    native.conf.set(PYTHON_SETTING, str(dying))
    native.conf.set("spark.lockgate.alive_seconds", "3")
    writing = threading.Thread(target=write)
    writing.start()
    try:
        wait_until((tmp_path / "begun").exists)
        (engine,) = started()
        killed_at = time.time()
        os.kill(engine, signal.SIGKILL)
        if again == "lives":
            wait_until(lambda: any(sign.stat().st_mtime > killed_at + 1 for sign in table.rglob("driver.alive")))
        wait_until(lambda: len(started()) == 2)
        time.sleep(4)
        assert len(started()) == 2
        (job,) = lockgate.jobs(str(table))
        assert "gone" not in job.driver
        lockgate.collect_garbage(str(table), options=lockgate.JobOptions(alive_seconds=1))
        assert [each.job_id for each in lockgate.jobs(str(table))] == [job.job_id]
    finally:
        go.touch()
        writing.join()
        native.conf.unset("spark.lockgate.alive_seconds")
    assert len(started()) == (2 if again == "lives" else 3)
    assert statuses(table) == ["committed"]
    assert rows_of(native, table) == [0, 1, 2, 3]

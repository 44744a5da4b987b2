"""Resumable, with Spark: its driver, JVM and Python, is killed in the middle of a write on `local-cluster`."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from destinations import PHASES, Destination
from kill_tree import kill_tree
from lockgate.model.layout import is_aside

HERE = Path(__file__).parent


@pytest.fixture
def slow_phases(tmp_path: Path) -> dict[str, str]:
    """An environment in which the plugin `slow_phases` is installed."""
    site = tmp_path / "site"
    metadata = site / "lockgate_slow_phases-1.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(HERE / "slow_phases.py", site)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lockgate-slow-phases\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[lockgate]\nslow_phases = slow_phases\n")
    return {**os.environ, "PYTHONPATH": str(site)}


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_resumable_when_a_spark_driver_is_killed(
    local_destination: Destination, chance: random.Random, slow_phases: dict[str, str], kills: int
) -> None:
    if shutil.which("java") is None:
        message = "Spark needs Java 17 or newer: apt install openjdk-17-jdk-headless"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    log = Path(local_destination.url).with_name("driver.log")
    came = Path(local_destination.url).with_name("came")
    version = 0
    outcomes: dict[str, int] = {}
    for number in range(max(3, kills // 5)):
        # The first in the middle of a commit, the others there or at any moment.
        phase = chance.choice([*PHASES, *PHASES, ""]) if number else chance.choice(PHASES)
        came.write_text("")
        process = subprocess.Popen(
            [sys.executable, str(HERE / "spark_driver.py"), local_destination.url, str(version)],
            stdout=subprocess.PIPE,
            stderr=log.open("w"),
            text=True,
            env=slow_phases | {"STOPS_IN": phase, "STOPS_AT": str(came)},
        )
        assert process.stdout is not None
        writing = version
        for line in process.stdout:
            if line.startswith("writing"):
                writing = int(line.split()[1])
                if writing > version:
                    break
        while phase and came.read_text().count("came") < 2:
            assert process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.005)
        if not phase:
            time.sleep(chance.uniform(0.0, 2.0))
        kill_tree(process.pid)
        process.wait()
        undo = chance.random() < 0.5
        for job in local_destination.lockgate_any("jobs", local_destination.url):
            if job["status"] in ("crashed", "committing", "left behind"):
                outcome = local_destination.recover(job["job_id"], undo=undo)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            elif job["status"] in ("running", "abandoned"):
                local_destination.lockgate("abort", local_destination.url, job["job_id"], "--force")
        found = ds.dataset(local_destination.url, partitioning="hive", exclude_invalid_files=True).to_table()
        versions = set(found["version"].to_pylist())
        assert len(versions) == 1, f"kill {number}: a mixture of {versions}"
        assert sorted(found["id"].to_pylist()) == list(range(400)), f"kill {number}"
        assert versions <= {f"v{n}" for n in range(writing - 1, writing + 2)}
        # A tree that was being deleted is nobody's in particular: gc takes it.
        assert [path for path in local_destination.left_over() if not is_aside(path)] == [], f"kill {number}"
        version = writing + 2
    local_destination.lockgate("gc", local_destination.url, "-o", "alive_seconds=0")
    assert local_destination.left_over() == []
    print(outcomes)
    assert outcomes, "no kill came in the middle of a commit"


ONE_WRITE = """
import sys
from lockgate.spark import write
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
try:
    write(spark.range(10), sys.argv[1])
except Exception as error:
    print(*getattr(error, "__notes__", ()))
"""


@pytest.mark.spark
def test_a_write_whose_commit_is_killed_says_that_its_job_has_not_ended(
    local_destination: Destination, slow_phases: dict[str, str]
) -> None:
    """As by the system, for want of memory: Spark says only that a Python worker exited."""
    environment = slow_phases | {"DIES_IN": "rename_files", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", ONE_WRITE, local_destination.url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert "has not ended: lockgate jobs" in done.stdout, done.stdout + done.stderr[-3000:]
    (job,) = local_destination.lockgate_any("jobs", local_destination.url)
    assert job["job_id"] in done.stdout
    told = local_destination.lockgate("recover", local_destination.url, job["job_id"], "--force")
    assert told[job["job_id"]]["outcome"] == "finished"

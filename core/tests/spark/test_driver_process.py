"""Which process a job that Spark writes is bound to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lockgate.spark.driver_process import driver_mark

ASK = "from lockgate.spark.driver_process import driver_process; print(driver_process())"


@pytest.mark.parametrize(
    ("main_class", "is_known"),
    [
        ("org.apache.spark.deploy.SparkSubmit", True),
        ("org.apache.spark.executor.CoarseGrainedExecutorBackend", False),
        ("org.apache.spark.executor.YarnCoarseGrainedExecutorBackend", False),
    ],
)
def test_an_executors_jvm_is_no_jobs_driver(tmp_path: Path, main_class: str, is_known: bool) -> None:
    """A job that Spark's first task had set up counted as abandoned as soon as that executor was gone."""
    (tmp_path / "java").symlink_to(sys.executable)
    script = (
        f"import os, subprocess; print(os.getpid(), flush=True); subprocess.run([{sys.executable!r}, '-c', {ASK!r}])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHOME": sys.base_prefix}
    told = subprocess.run(
        [str(tmp_path / "java"), "-c", script, main_class], capture_output=True, text=True, env=environment, check=True
    )
    jvm, found = map(int, told.stdout.split())
    assert found == (jvm if is_known else 0)


def test_a_drivers_mark_tells_it_from_a_later_process_of_its_number(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(sys.executable)
    ask = "from lockgate.spark.driver_process import driver_mark; print(driver_mark())"
    script = f"import subprocess; [subprocess.run([{sys.executable!r}, '-c', {ask!r}]) for _ in range(2)]"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHOME": sys.base_prefix}
    command = [str(tmp_path / "java"), "-c", script]
    one, another = (
        subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout.splitlines()
        for _ in range(2)
    )
    assert one[0] == one[1] != ""
    assert one[0].split("/")[:2] == another[0].split("/")[:2]
    assert one[0].split("/")[3] != another[0].split("/")[3]
    assert driver_mark() == ""

"""Which process a job that Spark writes is bound to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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

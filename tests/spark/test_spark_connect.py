"""Spark Connect: the client has no JVM; everything travels to a server, which here runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).with_name("connect_client.py")


def test_spark_connect_writes_and_streams(java, tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, str(CLIENT), str(tmp_path)], capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.stdout.splitlines()[-1] == "equal"

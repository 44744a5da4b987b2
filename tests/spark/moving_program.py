"""A Spark program of ours in a process of its own, whose movers have faults (`moving_faults.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from plugin_site import site_with


def run_program(program: Path, base: Path, *arguments: str) -> int:
    """The program's exit status; its outputs are in the files `out` and `err` of `base`, its first argument."""
    environment = os.environ | {
        "PYTHONPATH": str(site_with(base / "site", "moving_faults")),
        "MOVING_FAULTS_BASE": str(base),
    }
    command = [sys.executable, str(program), str(base), *arguments]
    # Files, not pipes: what a killed driver leaves running holds a pipe open.
    with (base / "out").open("w") as out, (base / "err").open("w") as err:
        return subprocess.run(command, env=environment, stdout=out, stderr=err, timeout=900, check=False).returncode


def how_the_late_mover_ends(base: Path) -> str:
    """Let the mover that waits go on, and return what it says of its end."""
    (base / "go").touch()
    for _ in range(600):
        if (base / "late").exists():
            break
        time.sleep(0.1)
    return (base / "late").read_text()

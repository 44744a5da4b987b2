"""Programs whose job commits take long, and whose standard error is a terminal, or a pipe: what they have written
there, and on standard output."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def _slow_renames(site: Path) -> str:
    """A directory for PYTHONPATH in which the plugin `slow_renames` is installed."""
    metadata = site / "lockgate_slow_renames-1.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("slow_renames.py"), site)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lockgate-slow-renames\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[lockgate]\nslow_renames = slow_renames\n")
    return str(site)


def run(command: Sequence[str], site: Path, *, terminal: bool) -> tuple[str, str]:
    """Standard output and standard error of a program that ends well. `site` is a directory for its plugin."""
    environment = os.environ | {"PYTHONPATH": _slow_renames(site)}
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    said = bytearray()
    try:
        while more := os.read(ours, 65536):
            said += more
    except OSError:  # a terminal's end, on Linux
        pass
    os.close(ours)
    assert process.stdout is not None
    out = process.stdout.read().decode()
    assert process.wait(300) == 0, said.decode()
    return out, said.decode()

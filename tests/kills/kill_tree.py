"""End a process that a test started, with all that it started."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def kill_tree(pid: int) -> None:
    """Kill a process that this test started and all that it started, each by its id: Spark's Python processes lead
    groups of their own, and one of them commits the job. They have ended when this returns: a large one takes a moment
    to, and counts as alive as long."""
    doomed = [pid]
    for at in doomed:
        doomed += [child for child, parent in parents().items() if parent == at and child not in doomed]
    for each in doomed:
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for each in doomed:
        while not _has_ended(each):
            time.sleep(0.01)


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found

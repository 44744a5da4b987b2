"""Spark's own writers in a JVM that cannot name what the engine can: on a local disk, in the C locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_declared_a_name_that_sparks_jvm_cannot_give_is_refused_before_anything_is_there(
    java: str, tmp_path: Path
) -> None:
    """Spark's default fails in the task. The engine would put `p=é` in place, where Spark does not find it: an INSERT
    would fail once it has committed, and rows of an INSERT OVERWRITE would be there for others only."""
    program = Path(__file__).with_name("c_locale_session.py")
    # Python coerces the C locale to UTF-8, for its children too, unless LC_ALL is set.
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, env=environment, timeout=300
    )
    told = done.stdout.splitlines()
    assert told == ["'table' append refused", "'table' overwrite refused", "'\\xe9' append refused", "rows 1"]
    assert not (tmp_path / "é").exists()

"""A job commit that takes long shows its progress on the driver's terminal, whatever process commits."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import on_a_terminal


def test_a_job_commit_draws_its_progress_on_the_drivers_terminal_and_nowhere_else(java: str, tmp_path: Path) -> None:
    program = Path(__file__).with_name("progress_session.py")
    command = [sys.executable, str(program), str(tmp_path)]
    out, said = on_a_terminal.run(command, tmp_path / "site", terminal=True)
    assert out == ""
    parts = dict(
        re.findall(r"((?:on|off) (?:parquet|lockgate)|end):\r\n(.*?)(?=o[nf]+ \w+:\r\n|end:\r\n|\Z)", said, re.DOTALL)
    )
    drawn = {name: "\rlockgate: rename files (1 s)" in part for name, part in parts.items()}
    assert drawn == {"on parquet": True, "on lockgate": True, "off parquet": False, "off lockgate": False, "end": False}
    for name in ("on parquet", "on lockgate"):
        assert re.search(r"\r +\r$", parts[name]), "the line is cleared before the write returns"

"""A job commit that takes long says on a terminal how far it is, nowhere else, and clears its line."""

from __future__ import annotations

import itertools
import sys
import threading
from pathlib import Path

import on_a_terminal
import pytest
from lockgate.api.progress_line import Terminal, drawing_on

PROGRAM = Path(__file__).with_name("progress_program.py")


def test_a_job_commit_draws_a_line_on_a_terminal_and_clears_it(tmp_path: Path) -> None:
    out, said = on_a_terminal.run([sys.executable, str(PROGRAM), str(tmp_path / "t")], tmp_path / "site", terminal=True)
    assert out == "1\n"
    assert "\rlockgate: rename files (1 s)" in said
    assert said.endswith(" \r")
    assert "\n" not in said


@pytest.mark.parametrize(("terminal", "option"), [(False, "progress=true"), (True, "progress=false")])
def test_nothing_is_drawn_where_nobody_looks_or_it_is_off(tmp_path: Path, terminal: bool, option: str) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path / "t"), option]
    assert on_a_terminal.run(command, tmp_path / "site", terminal=terminal) == ("1\n", "")


def test_no_line_is_drawn_twice_over_itself(tmp_path: Path) -> None:
    """A notebook keeps each drawing as an output of its own."""
    command = [sys.executable, str(PROGRAM), str(tmp_path / "t")]
    _, said = on_a_terminal.run(command, tmp_path / "site", terminal=True)
    drawn = [line.rstrip() for line in said.split("\r") if line.strip()]
    assert drawn
    assert all(line != after for line, after in itertools.pairwise(drawn))


def test_a_terminal_that_takes_nothing_or_fails_does_not_touch_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate import Job

    monkeypatch.setattr("lockgate.api.progress_line.FIRST_SECONDS", 0.0)
    asked, released = threading.Event(), threading.Event()

    def stopped(text: str) -> None:
        asked.set()
        released.wait(60)

    def broken() -> Terminal:
        raise OSError("the terminal is gone")

    for number, found in enumerate((lambda: Terminal(stopped), broken)):
        job = Job(tmp_path / f"t{number}")
        job.setup()
        attempt = job.task_attempt(task=0)
        attempt.setup()
        with attempt.open("a.bin") as file:
            file.write(b"rows")
        with drawing_on(found):
            assert job.commit([attempt.commit()]).files == 1
    assert asked.is_set()
    released.set()

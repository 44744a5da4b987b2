"""A job commit whose files are renamed by Spark's executors, which may be killed, as may its driver."""

from __future__ import annotations

import json
from pathlib import Path

import lockgate
from moving_program import how_the_late_mover_ends, run_program

PROGRAM = Path(__file__).with_name("distributed_job.py")


def seen(table: Path) -> set[str]:
    found = (path.relative_to(table) for path in table.rglob("*") if path.is_file())
    return {str(path) for path in found if not path.parts[0].startswith("_")}


NEW = {f"p={number % 4}/new-{task}-{number}.bin" for task in range(3) for number in range(10)}
OLD = {"p=1/old.bin", "p=9/old.bin"}


def run(base: Path, fault: str) -> int:
    """The exit status of the program, with a fault, over a table that has files."""
    job = lockgate.Job(base / "table")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path in OLD:
        with attempt.open(path) as file:
            file.write(b"old")
    job.commit([attempt.commit()])
    return run_program(PROGRAM, base, fault)


def test_complete_when_executors_rename_and_one_is_killed(java: str, tmp_path: Path) -> None:
    assert run(tmp_path, "executor") == 0, (tmp_path / "err").read_text()
    told = json.loads((tmp_path / "out").read_text())
    assert told["files"] == 30
    assert told["counters"]["movers"] == 2
    assert told["counters"]["op_rename"] >= 32  # and the two that are set aside
    assert told["counters"]["commit_file_rename"] == 30
    assert seen(tmp_path / "table") == NEW
    assert list(tmp_path.glob("taken-*")), "an executor was killed"


def test_continuity_when_a_mover_goes_on_after_its_job_was_undone(java: str, tmp_path: Path) -> None:
    assert run(tmp_path, "driver") < 0
    (recovery,) = lockgate.recover(str(tmp_path / "table"), undo=True, force=True).values()
    assert recovery.outcome == "undone"
    assert seen(tmp_path / "table") == OLD
    assert how_the_late_mover_ends(tmp_path) == "stage-fails"
    assert seen(tmp_path / "table") == OLD


def test_undoable_when_a_driver_is_interrupted_while_its_movers_are_at_work(java: str, tmp_path: Path) -> None:
    run(tmp_path, "interrupt")
    assert "KeyboardInterrupt" in (tmp_path / "err").read_text()
    assert seen(tmp_path / "table") == OLD
    assert lockgate.recover(str(tmp_path / "table"), force=True) == {}

"""A job commit whose files are renamed by Spark's executors, which may be killed, as may its driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import lockgate
from test_spark_native_killed import site_with

PROGRAM = Path(__file__).with_name("distributed_job.py")


def seen(table: Path) -> set[str]:
    found = (path.relative_to(table) for path in table.rglob("*") if path.is_file())
    return {str(path) for path in found if not path.parts[0].startswith("_")}


NEW = {f"p={number % 4}/new-{task}-{number}.bin" for task in range(3) for number in range(10)}
OLD = {"p=1/old.bin", "p=9/old.bin"}


def run(base: Path, fault: str) -> int:
    """The exit status of the program, with a fault; its outputs are in the files `out` and `err`."""
    job = lockgate.Job(base / "table")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path in OLD:
        with attempt.open(path) as file:
            file.write(b"old")
    job.commit([attempt.commit()])
    environment = os.environ | {
        "PYTHONPATH": str(site_with(base / "site", "moving_faults")),
        "MOVING_FAULTS_BASE": str(base),
    }
    command = [sys.executable, str(PROGRAM), str(base), fault]
    # Files, not pipes: what a killed driver leaves running holds a pipe open.
    with (base / "out").open("w") as out, (base / "err").open("w") as err:
        return subprocess.run(command, env=environment, stdout=out, stderr=err, timeout=900, check=False).returncode


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
    (tmp_path / "go").touch()
    for _ in range(600):
        if (tmp_path / "late").exists():
            break
        time.sleep(0.1)
    assert (tmp_path / "late").read_text() == "stage-fails"
    assert seen(tmp_path / "table") == OLD


def test_undoable_when_a_driver_is_interrupted_while_its_movers_are_at_work(java: str, tmp_path: Path) -> None:
    run(tmp_path, "interrupt")
    assert "KeyboardInterrupt" in (tmp_path / "err").read_text()
    assert seen(tmp_path / "table") == OLD
    assert lockgate.recover(str(tmp_path / "table"), force=True) == {}

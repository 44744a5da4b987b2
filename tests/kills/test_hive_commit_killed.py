"""Resumable: who commits what a Hive job has left is killed at a random moment, and a fresh process finishes or undoes
it; or nobody has begun, and the directory is Hive's as before."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from lockgate import JobOptions
from lockgate.api.jobs import commit, recover

OUTPUT = ".hive-staging_hive_1/_tmp.-ext-10000"
JOB = "hive-staging_hive_1.-ext-10000"
OPTIONS = JobOptions(protocol="hive", duplicates="largest", conflict="replace-partitions")
COMMITTING = f"""
import sys
from lockgate import JobOptions
from lockgate.api.jobs import commit
print("begins", flush=True)
options = JobOptions(protocol="hive", duplicates="largest", conflict="replace-partitions")
commit(sys.argv[1], {JOB!r}, options=options, force=True)
print("ends", flush=True)
"""
TASKS = 150


def put(root: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def files_of(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def table(root: Path) -> dict[str, bytes]:
    return {path: content for path, content in files_of(root).items() if path[0] not in "._"}


def test_resumable_after_sigkill_of_who_commits_what_hive_has_left(
    tmp_path: Path, chance: random.Random, kills: int
) -> None:
    old = {f"ds={task % 5}/{task:06d}_0": b"old" for task in range(TASKS)} | {"ds=kept/000000_0": b"kept"}
    new = {f"ds={task % 5}/{task:06d}_1": b"new!" for task in range(TASKS)}
    left = new | {f"ds={task % 5}/{task:06d}_0": b"cut" for task in range(0, TASKS, 3)}
    done = new | {"ds=kept/000000_0": b"kept"}
    seconds = 0.0
    outcomes: dict[str, int] = {}
    for number in range(kills + 1):
        root = tmp_path / str(number)
        put(root, old)
        put(root / OUTPUT, left)
        driver = subprocess.Popen([sys.executable, "-c", COMMITTING, str(root)], stdout=subprocess.PIPE)
        assert driver.stdout is not None
        driver.stdout.readline()
        began = time.monotonic()
        if number:
            # Most of the time goes before the commit proper: half of the kills wait for it.
            record = root / "_lockgate/found-hive" / JOB / "commit.json"
            while number % 2 and not record.exists() and driver.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, seconds / (4 if number % 2 else 1)))
            driver.send_signal(signal.SIGKILL)
        driver.stdout.read()
        driver.wait(60)
        driver.stdout.close()
        seconds = seconds or time.monotonic() - began
        undo = chance.random() < 0.5
        story = f"kill {number}, undo={undo}"
        with contextlib.suppress(Exception):  # what is committed cannot be undone; then it is finished
            recover(root, JOB, undo=undo, force=True, options=OPTIONS)
        found = recover(root, JOB, force=True, options=OPTIONS)[JOB].outcome
        state = table(root)
        assert state in (old, done), f"{story}: {found}, {sorted(state)[:5]}"
        if state == old and (root / OUTPUT).exists():
            assert files_of(root / OUTPUT) == left, story
            commit(root, JOB, options=OPTIONS, force=True)
            assert table(root) == done, story
            outcomes["not begun"] = outcomes.get("not begun", 0) + 1
        else:
            name = "committed" if state == done else "undone"
            outcomes[name] = outcomes.get(name, 0) + 1
    print(f"a commit takes {seconds:.2f} s;", outcomes)
    assert outcomes.get("committed")

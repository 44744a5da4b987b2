"""Writes to a full disk, in a mount namespace of its own, and prints what it was told.

full_disk.py data DIRECTORY    a task attempt's file does not fit
full_disk.py plan DIRECTORY    the plan of a large job does not fit into the temporary directory
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

from lockgate import Job, LockgateError
from lockgate.engine.run.spool import DiskSpool

mode, root = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", root], check=True)


def data() -> int | None:
    job = Job(f"{root}/events")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    try:
        with attempt.open("p=1/large") as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
    except LockgateError as error:
        print(type(error).__name__, error, sep="\n")
    with attempt.open("p=1/small") as file:
        file.write(b"there is room again")
    return job.commit([attempt.commit()]).files


def plan() -> int:
    tempfile.tempdir = root
    spool = DiskSpool(1_000)
    chunks = 0
    try:
        while chunks < 100:
            spool.append(bytes(10_000))
            chunks += 1
    except LockgateError as error:
        print(type(error).__name__, error, sep="\n")
    return chunks


print({"data": data, "plan": plan}[mode]())

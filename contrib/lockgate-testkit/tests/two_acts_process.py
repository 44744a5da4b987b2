"""A driver that dies, or stands still, between the link and the unlink of a rename. Run as a process of its own.

two_acts_process.py kill URL JOB_ID NUMBER     commit a job of two tasks; killed before its NUMBERth unlink of a source
two_acts_process.py pause ROOT SOURCE TARGET   rename one file; say "linked" and wait for a line before the unlink
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from lockgate import Job, JobOptions
from lockgate.model.files import Rename
from lockgate.model.urls import StoreUrl
from lockgate.stores import local_rename
from lockgate.stores.local import LocalStore

plain_unlink = os.unlink


def unlinks(path: str) -> bool:
    """Whether this is the unlink of a rename of a file that others know of."""
    return sys._getframe(2).f_code is local_rename.link_and_unlink.__code__ and "/." not in path


def kill(url: str, job_id: str, number: str) -> None:
    left = int(number)

    def unlink(path: str, **how: object) -> None:
        nonlocal left
        if unlinks(path):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        plain_unlink(path, **how)

    options = JobOptions(conflict="replace", store={"two_step_renames": "allow"})
    job = Job(url, options, job_id=job_id)
    job.setup()
    receipts = []
    for task in range(2):
        attempt = job.task_attempt(task)
        attempt.setup()
        with attempt.open(f"p={task}/new") as file:
            file.write(b"new %d" % task)
        receipts.append(attempt.commit())
    os.unlink = unlink
    job.commit(receipts)
    print("committed", flush=True)


def pause(root: str, source: str, target: str) -> None:
    def unlink(path: str, **how: object) -> None:
        if unlinks(path):
            print("linked", flush=True)
            sys.stdin.readline()
        plain_unlink(path, **how)

    os.unlink = unlink
    store = LocalStore(StoreUrl("file", "", root), durable=False, two_step_renames=True)
    (outcome,) = asyncio.run(store.rename_files([Rename(source, target)]))
    print(type(outcome).__name__, flush=True)


if __name__ == "__main__":
    {"kill": kill, "pause": pause}[sys.argv[1]](*sys.argv[2:])

"""A driver in a process of its own: writes a job and commits it, telling on standard output how far it is.

    python commit_driver.py '{"url": ..., "job_id": ..., "files": {"p=1/new": "content"}, "tasks": 4, "options": {}}'

With `tells_setup` it says `set up` first.
With `slow`, every rename waits that many seconds first, so that a test can stop it in the middle.
With `stops_in`, it says `stopping` as its job commit comes to that phase, and stops there until it is continued.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from lockgate import Job, JobOptions
from lockgate.engine.run.runtime import Event
from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.registry import registry_for
from lockgate.stores.local import LocalStore


class StopsIn:
    """A plugin that stops this process where its job commit comes to a phase."""

    def __init__(self, phase: str) -> None:
        self._phase = phase

    @hookimpl
    def lockgate_event(self, event: Event) -> None:
        if event.name == "phase" and event.details["phase"] == self._phase:
            print("stopping", flush=True)
            # By its own thread, which the signal finds before the call returns: another's would let it go on a while.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def slow_renames(seconds: float) -> None:
    """Let each rename of the local store take its time, one file a batch."""
    rename_files = LocalStore.rename_files

    async def slow(self: Any, renames: Any, *more: Any) -> Any:
        answers = []
        for rename in renames:
            if not rename.target.startswith("_lockgate"):
                time.sleep(seconds)  # noqa: ASYNC251  # the whole driver is to be slow
            answers += await rename_files(self, [rename])
        return answers

    LocalStore.rename_files = slow  # type: ignore[method-assign]


def main() -> None:
    """Write, say `committing`, commit, say `committed`."""
    told = json.loads(sys.argv[1])
    job = Job(told["url"], JobOptions.resolve(told["options"]), job_id=told["job_id"])
    job.setup()
    if told.get("tells_setup"):
        print("set up", flush=True)
    receipts = []
    paths = sorted(told["files"])
    for task in range(told["tasks"]):
        attempt = job.task_attempt(task)
        attempt.setup()
        for path in paths[task :: told["tasks"]]:
            with attempt.open(f"{path}.{attempt.tag}" if job.needs_tags else path) as file:
                file.write(told["files"][path].encode())
        receipts.append(attempt.commit())
    if told.get("slow"):
        slow_renames(told["slow"])
    if told.get("stops_in"):
        registry_for((), ()).register(StopsIn(told["stops_in"]), "stops-in")
    print("committing", flush=True)
    try:
        job.commit(receipts)
    except Exception as error:
        print(f"failed {type(error).__name__}: {error}", flush=True)
        sys.exit(1)
    print("committed", flush=True)


if __name__ == "__main__":
    main()

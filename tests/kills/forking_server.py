"""A process that has Lockgate imported and forks one process for each thing that it is told to do, so that each starts
at once and knows nothing of the ones before.

It reads a JSON object a line from standard input: `do` names a function of this module, the rest are its arguments.
With `waits` the forked process first says `ready` with the ids of its threads, so that they can be traced, and begins
at the next line. At the end there is one line of JSON with `told` or `error`, and with `signal` where it was killed.

Arguments are the names of plugins for stores elsewhere; without any, local destinations alone are known.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import gc
import json
import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lockgate import Job, JobOptions, LockgateError, Receipt
from lockgate.api import jobs as outside
from lockgate.api.files import files as outside_files
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import registry_of
from lockgate.errors import JobNotFound, UsageError
from lockgate.model.layout import BOOKKEEPING, JOBS

PR_SET_PTRACER = 0x59616D61
ANY_PROCESS = ctypes.c_ulong(-1)


def write(
    url: str, files: dict[str, str], options: dict[str, str], job_id: str, tasks: int = 2, rivals: bool = False
) -> dict[str, Any]:
    """A whole job: setup, tasks, job commit. A character of a file's content is a byte. With `rivals` two more attempts
    at the first task have written a file each: one has saved its manifest, and is not committed; one has died."""
    # By its nonce a job has the same names each time.
    job = Job(url, _plain(**options), job_id=job_id, nonce=job_id)
    job.setup()
    paths = sorted(files)
    shares = [{path: files[path] for path in paths[task::tasks]} for task in range(tasks)]
    receipts = [_attempt_at(job, task, 0, share) for task, share in enumerate(shares)]
    for number, path in enumerate(("p=1/saved", "p=1/unsaved"), 1) if rivals else ():
        _attempt_at(job, 0, number, {path: "of no committed attempt"}, commits=path == "p=1/saved")
    return {"files": job.commit([receipt for receipt in receipts if receipt is not None]).files}


def _attempt_at(job: Job, task: int, number: int, files: Mapping[str, str], *, commits: bool = True) -> Receipt | None:
    """An attempt at a task, with its files. One that fails is aborted, as a task of Spark's does."""
    attempt = job.task_attempt(task, number)
    try:
        attempt.setup()
        for path, text in files.items():
            with attempt.open(f"{path}.{attempt.tag}" if job.needs_tags else path) as file:
                file.write(text.encode("latin-1"))
        return attempt.commit() if commits else None
    except LockgateError:
        with contextlib.suppress(LockgateError):
            attempt.abort()
        raise


def set_up(url: str, options: dict[str, str], job_id: str) -> dict[str, Any]:
    """Set a job up, and leave it to others."""
    Job(url, _plain(**options), job_id=job_id, nonce=job_id).setup()
    return {}


def attempt(
    url: str, files: dict[str, str], options: dict[str, str], job_id: str, number: int, aborts: Sequence[int] = ()
) -> dict[str, Any]:
    """An attempt at the only task of a job that another process has set up, after those that are known to be dead were
    aborted; its receipt, in base64."""
    job = Job(url, _plain(**options), job_id=job_id, nonce=job_id)
    for dead in aborts:
        job.task_attempt(0, dead).abort()
    receipt = _attempt_at(job, 0, number, {path: files[path] for path in sorted(files)})
    return {"receipt": base64.b64encode(pickle.dumps(receipt)).decode()}


def commit(url: str, options: dict[str, str], job_id: str, receipts: Sequence[str]) -> dict[str, Any]:
    """Commit a job that another process has set up."""
    job = Job(url, _plain(**options), job_id=job_id, nonce=job_id)
    held = [pickle.loads(base64.b64decode(each)) for each in receipts]  # this module has written it
    return {"files": job.commit(held).files}


def commit_found(url: str, job_id: str, options: dict[str, str]) -> dict[str, Any]:
    """Commit what the tasks of another program's job have left."""
    return {"files": outside.commit(url, job_id, options=_plain(**options), force=True).files}


def recover(url: str, job_id: str, undo: bool, options: Mapping[str, str] = {}) -> dict[str, Any]:
    """Finish or undo a job; no options of the job are given, those that count are in its record."""
    found = outside.recover(url, job_id, undo=True if undo else None, force=True, options=_plain(**options))
    return {"outcome": found[job_id].outcome}


def abort(url: str, job_id: str, options: Mapping[str, str] = {}) -> dict[str, Any]:
    """Abort a job."""
    outside.abort(url, job_id, options=_plain(**options), force=True)
    return {}


def collect_garbage(url: str, options: Mapping[str, str] = {}) -> dict[str, Any]:
    """Collect garbage, with no patience for what may be alive."""
    now = {"alive_seconds": "0", "upload_alive_seconds": "0"}
    found = outside.collect_garbage(url, options=_plain(**options, **now))
    return {"kept": [f"{each.path}: {each.action}, {each.why}" for each in found if each.action in ("kept", "failed")]}


def verify(url: str, options: Mapping[str, str] = {}) -> dict[str, Any]:
    """What `lockgate verify` finds."""
    return {"findings": [str(finding) for finding in outside.verify(url, options=_plain(**options)).findings]}


def read(url: str, options: Mapping[str, str] = {}) -> dict[str, Any]:
    """What a reader is told to read."""
    return {"files": [file.path for file in outside_files(url, _plain(**options)).files]}


def end(url: str, job_id: str, undo: bool, options: Mapping[str, str]) -> dict[str, Any]:
    """All that others do about a job whose process died, in one process, since many do that in many: what a reader is
    told first; its recovery, or abort where it had not begun its commit; garbage collection; what a reader is told
    then, and what `lockgate verify` finds. Of a job that had committed, `too_late` is what the undoing was told."""
    first, too_late = read(url, options)["files"], ""
    try:
        outcome = recover(url, job_id, undo, options)["outcome"]
    except UsageError as error:
        too_late = str(error)
        outcome = recover(url, job_id, False, options)["outcome"]
    if outcome in ("no trace", "not begun", "nothing"):
        with contextlib.suppress(JobNotFound):
            abort(url, job_id, options)
    told = {"first": first, "outcome": outcome, "too_late": too_late}
    return told | collect_garbage(url, options) | read(url, options) | verify(url, options)


def delete_jobs(url: str) -> dict[str, Any]:
    """What people and programs that tidy up do: the directories of jobs go, and what a killed process was deleting."""
    for path in (Path(url) / JOBS, *(Path(url) / BOOKKEEPING).glob(".aside-*")):
        shutil.rmtree(path, ignore_errors=True)
    return {}


def _plain(**options: Any) -> JobOptions:
    # No other store's plugin is loaded: a small process forks sooner.
    return JobOptions.resolve({"durable": "false", "plugins_allow": ",".join(["local", *sys.argv[1:]])} | options)


DO: dict[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function
    for function in (
        write,
        set_up,
        attempt,
        commit,
        commit_found,
        recover,
        abort,
        collect_garbage,
        verify,
        read,
        end,
        delete_jobs,
    )
}


def _begin_when_told() -> None:
    """Have the engine's thread made, say which the threads are, and wait for a line."""
    threads = {"main": threading.get_native_id(), "loop": 0}

    async def look() -> None:
        threads["loop"] = threading.get_native_id()

    IO_LOOP.run(look())
    # Where Yama allows tracing by a parent only, this process allows it to everybody.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY_PROCESS, 0, 0, 0)
    _say({"ready": threads})
    _read_line()


def _do(told: dict[str, Any]) -> None:
    waits, dies = told.pop("waits", False), told.pop("dies", False)
    function = DO[told.pop("do")]
    if waits:
        _begin_when_told()
    try:
        answer = function(**told)
    except LockgateError as error:
        _say({"error": type(error).__name__, "text": str(error)})
    else:
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        _say({"told": answer})


def _say(told: dict[str, Any]) -> None:
    os.write(1, json.dumps(told).encode() + b"\n")


def _read_line() -> bytes:
    """A line and no byte more: the next belongs to another process."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def main() -> None:
    """Serve until standard input ends."""
    registry_of(_plain())
    # What is there by now is never looked at for garbage, and so not copied by each fork (gc.freeze).
    gc.freeze()
    while line := _read_line():
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _do(json.loads(line))
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        _say({"ended": -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)})


if __name__ == "__main__":
    main()

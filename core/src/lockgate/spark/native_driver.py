"""`python -m lockgate.spark.native_driver`: the engine for Spark's own writers, in a process that the JVM starts.

Requests come as lines of JSON on standard input, answers go as lines to standard output, each with the number of its
request; every request has a thread of its own. A line with `progress` answers nothing: it is what the JVM is to write
to its terminal. The first, which is empty, says that this program is there. A request holds all that is to be known of
its job, since the job's state is on the store: a process that was started anew goes on with it. Signals are ignored:
the JVM says what is to be done, and when the input ends, so does the process, once the commits that are under way
have ended; what else is under way has half a minute.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from typing import Any, TextIO

import msgspec

from lockgate.api.job import Job
from lockgate.api.progress_line import Terminal, drawing_on
from lockgate.api.staged_tasks import keep_alive
from lockgate.model.errors import LockgateError
from lockgate.spark import native_job
from lockgate.spark.driver_terminal import driver_terminal
from lockgate.spark.jar_version import check_jar
from lockgate.spark.native_job import NativeJob

OTHERS_SECONDS = 30.0
"""How long requests that commit nothing are waited for once the input has ended."""


class NativeDriver:
    """The jobs at work, by id and nonce, and the stream that takes answers."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, str], Job] = {}

    def greet(self) -> None:
        """Say that this is no other program, which would never answer."""
        self._send({"progress": "", "number": 0})

    def answer(self, request: dict[str, Any]) -> None:
        """Do what is asked, and answer it, whatever comes of it."""
        try:
            told = self._done(request)
        except LockgateError as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        except BaseException as error:
            traceback.print_exc()
            told = {"error": f"{type(error).__name__}: {error}"}
        self._send({**told, "number": request["number"]})

    def _done(self, request: dict[str, Any]) -> dict[str, Any]:
        check_jar(request.get("jar_version", ""))
        asked = msgspec.convert(request, NativeJob)
        key = (asked.job_id, asked.nonce)
        with self._lock:
            job = self._jobs.get(key)
        job = job or asked.job()
        if request["do"] == "setup":
            told = native_job.set_up(job, asked)
            with self._lock:
                # Held until it ends: for so long its driver's sign of life is renewed.
                self._jobs[key] = job
            return told
        if request["do"] == "keep_alive":
            keep_alive(job)
            with self._lock:
                self._jobs.setdefault(key, job)
            return {}
        try:
            if request["do"] == "commit":
                with drawing_on(self._terminal):
                    return native_job.commit(job, asked, request["messages"])
            return native_job.abort(job)
        finally:
            if request["do"] == "abort" or job.ended:
                with self._lock:
                    self._jobs.pop(key, None)

    def _terminal(self) -> Terminal | None:
        """The JVM's, which draws what it is sent."""
        found = driver_terminal()
        return found and Terminal(lambda text: self._send({"progress": text, "number": 0}), found.columns)

    def _send(self, told: dict[str, Any]) -> None:
        with self._lock:
            print(json.dumps(told), file=self._answers, flush=True)


def main() -> None:
    """Answer until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # What somebody prints must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # No application configures this process's logging, and its standard error is the JVM's.
    warnings = logging.StreamHandler()
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(logging.Formatter("lockgate: %(message)s"))
    logging.getLogger("lockgate").addHandler(warnings)
    driver = NativeDriver(answers)
    driver.greet()
    commits: list[threading.Thread] = []
    others: list[threading.Thread] = []
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            break  # the JVM was killed while it wrote this
        request = json.loads(line)
        thread = threading.Thread(target=driver.answer, args=(request,), daemon=True)
        thread.start()
        kind = commits if request["do"] == "commit" else others
        kind[:] = [each for each in kind if each.is_alive()] + [thread]
    # Once this function has returned, Python starts no threads any more, and a commit may still need some.
    for each in commits:
        each.join()
    # A setup or an abort lasts for as long as a store does not answer, and nobody waits for it any more.
    until = time.monotonic() + OTHERS_SECONDS
    for each in others:
        each.join(max(0.0, until - time.monotonic()))
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

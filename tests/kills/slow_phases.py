"""A plugin for tests: each step of a job commit takes its time, as on a store that is far away.

Where DIES_IN names a stage, the process that comes to it is no more. Where STOPS_IN names a phase, the second job
commit that comes to it goes no further; who comes to it adds a line to the file STOPS_AT, since each commit may have a
process of its own.
"""

import os
import signal
import time
from pathlib import Path

from lockgate.plugins.hookspecs import hookimpl

STOPPED_SECONDS = 600


@hookimpl
def lockgate_event(event):
    if event.name in ("phase", "stage-begins"):
        time.sleep(0.03)
    if event.name == "stage-begins" and event.stage == os.environ.get("DIES_IN"):
        os.kill(os.getpid(), signal.SIGKILL)
    if event.name == "phase" and event.details["phase"] == os.environ.get("STOPS_IN"):
        came = Path(os.environ["STOPS_AT"])
        with came.open("a") as lines:
            lines.write("came\n")
        if came.read_text().count("came") == 2:
            time.sleep(STOPPED_SECONDS)

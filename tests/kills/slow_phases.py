"""A plugin for tests: each step of a job commit takes its time, as on a store that is far away; where DIES_IN names a
stage, the process that comes to it is no more."""

import os
import signal
import time

from lockgate.plugins.hookspecs import hookimpl


@hookimpl
def lockgate_event(event):
    if event.name in ("phase", "stage-begins"):
        time.sleep(0.03)
    if event.name == "stage-begins" and event.stage == os.environ.get("DIES_IN"):
        os.kill(os.getpid(), signal.SIGKILL)

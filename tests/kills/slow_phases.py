"""A plugin for tests: each step of a job commit takes its time, as on a store that is far away."""

import time

from lockgate.plugins.hookspecs import hookimpl


@hookimpl
def lockgate_event(event):
    if event.name in ("phase", "stage-begins"):
        time.sleep(0.03)

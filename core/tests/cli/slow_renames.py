"""A plugin for tests: the renames of a job commit take their time, as on a store that is far away."""

import time

from lockgate.plugins.hookspecs import hookimpl


@hookimpl
def lockgate_event(event):
    if event.name == "stage-begins" and event.stage == "rename_files":
        time.sleep(1.8)

"""A plugin for tests: while BASE has a file `hold`, a job commit waits before its first rename until the file `go` is
there, and says so in a file `held-NAME`, which holds its process id; NAME is HELD_AS. With HELD_NUMBER, of a job that
has parts in several places, it waits before the renames of that many of them."""

import os
import time
from pathlib import Path

from lockgate.plugins.hookspecs import hookimpl

BASE = Path(os.environ["HELD_STAGE_BASE"])
begun = []


@hookimpl
def lockgate_event(event):
    if event.name == "stage-begins" and event.stage == "rename_files" and (BASE / "hold").exists():
        begun.append(event)
        if len(begun) < int(os.environ.get("HELD_NUMBER", "1")):
            return
        written = BASE / f".held-{os.getpid()}"
        written.write_text(str(os.getpid()))
        written.rename(BASE / f"held-{os.environ.get('HELD_AS', 'alone')}")
        while not (BASE / "go").exists():
            time.sleep(0.05)

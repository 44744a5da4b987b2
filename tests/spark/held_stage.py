"""A plugin for tests: while BASE has a file `hold`, a job commit waits before its first rename until the file `go` is
there, and says so in a file `held-NAME`, which holds its process id; NAME is HELD_AS."""

import os
import time
from pathlib import Path

from lockgate.plugins.hookspecs import hookimpl

BASE = Path(os.environ["HELD_STAGE_BASE"])


@hookimpl
def lockgate_event(event):
    if event.name == "stage-begins" and event.stage == "rename_files" and (BASE / "hold").exists():
        written = BASE / f".held-{os.getpid()}"
        written.write_text(str(os.getpid()))
        written.rename(BASE / f"held-{os.environ.get('HELD_AS', 'alone')}")
        while not (BASE / "go").exists():
            time.sleep(0.05)

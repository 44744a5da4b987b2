"""A plugin for tests: the first mover to begin its share has the fault that a file BASE/fault names. `executor`: its
executor is killed, and so is it. `driver`: the driver is killed, and the mover, which nobody reaches any more, waits
for the file `go` before it goes on; how that ends is in the file `late`. `interrupt`: the driver is interrupted, and
the mover goes on for longer than anybody waits."""

import os
import signal
import time
from pathlib import Path

from lockgate.plugins.hookspecs import hookimpl
from lockgate.spark.driver_process import driver_process

BASE = Path(os.environ["MOVING_FAULTS_BASE"])
TAKEN = BASE / f"taken-{os.getpid()}"


@hookimpl
def lockgate_event(event):
    if event.stage != "move_share":
        return
    if event.name in ("stage-ends", "stage-fails") and TAKEN.exists():
        (BASE / "late").write_text(event.name)
    if event.name == "stage-begins":
        try:
            (BASE / "fault").rename(TAKEN)
        except FileNotFoundError:
            return
        if TAKEN.read_text() == "executor":
            os.kill(driver_process(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        if TAKEN.read_text() == "interrupt":
            os.kill(int((BASE / "driver").read_text()), signal.SIGINT)
            time.sleep(600)
        os.setsid()
        os.kill(int((BASE / "driver").read_text()), signal.SIGKILL)
        while not (BASE / "go").exists():
            time.sleep(0.05)

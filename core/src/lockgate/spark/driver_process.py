"""Which process is the driver of a Spark job: the Python processes that plan and commit a write come and go, the JVM
that starts them stays."""

from __future__ import annotations

import os
from pathlib import Path

ANCESTORS_MAX = 6


def driver_process() -> int:
    """The process id of the nearest `java` above this process; 0 where there is none, or it cannot be told, as in an
    executor: its life is not its driver's."""
    process = os.getppid()
    for _ in range(ANCESTORS_MAX):
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # no such process, or no Linux
            return 0
        # proc_pid_stat(5): the name stands in parentheses and may hold any; the parent is the second field after it.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name == "java":
            return 0 if _is_executor(process) else process
        process = int(rest.split()[1])
    return 0


def _is_executor(process: int) -> bool:
    """Whether it is an executor's JVM, by its main class: `CoarseGrainedExecutorBackend`, YARN's and Kubernetes' are
    called so, too."""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument.startswith(b"org.apache.spark.") and b"ExecutorBackend" in argument for argument in arguments)

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


def driver_mark() -> str:
    """What tells the driver's JVM from every other, dead ones and those of other machines and containers included;
    empty where it cannot be told. All Python processes that it starts say the same."""
    process = driver_process()
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    started = stat.rpartition(")")[2].split()[19]  # proc_pid_stat(5): field 22, in ticks since the system's start
    return f"{boot}/{namespace}/{process}/{started}"


def _is_executor(process: int) -> bool:
    """Whether it is an executor's JVM, by its main class: `CoarseGrainedExecutorBackend`, YARN's and Kubernetes' are
    called so, too."""
    try:
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(argument.startswith(b"org.apache.spark.") and b"ExecutorBackend" in argument for argument in arguments)

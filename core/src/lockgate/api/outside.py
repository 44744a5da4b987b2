"""The outside world for the engine: real clocks, real randomness, this process, the plugins' events."""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import random
import socket
import time
from collections.abc import Callable

from lockgate.engine.run.runtime import Event, Runtime
from lockgate.model.record import Holder
from lockgate.stores.staging_disk import LocalStagingDisk


def _version() -> str:
    try:
        return importlib.metadata.version("lockgate")
    except importlib.metadata.PackageNotFoundError:  # shipped to an executor as bare files
        return ""


VERSION = _version()
"""The version of Lockgate that is installed; empty where the package was shipped without its metadata."""


def real_runtime(emit: Callable[[Event], None]) -> Runtime:
    """A runtime of this process."""
    return Runtime(
        wall=time.time,
        tick=time.monotonic,
        random=random.SystemRandom(),
        emit=emit,
        host=socket.gethostname(),
        process=os.getpid(),
        user=_user(),
        version=VERSION,
        is_gone=_is_gone,
        is_alive=_is_alive,
        staging_disk=LocalStagingDisk,
    )


def _is_gone(holder: Holder) -> bool:
    """A process of this host that has ended. Of another host's nothing is known; a host name that two machines
    share is excused by the protocol: finishing the job of a driver that lives is safe, only needless."""
    if holder.host != socket.gethostname() or holder.process <= 0:
        return False
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return _has_ended(holder.process)


def _is_alive(holder: Holder) -> bool:
    """A process of this host that runs; its number may have been given to another since."""
    return holder.host == socket.gethostname() and holder.process > 0 and not _is_gone(holder)


def _has_ended(process: int) -> bool:
    """Whether a process has ended that its parent has not asked after yet: it still has its number. The state is the
    first field after the name, which stands in parentheses and may hold any (proc_pid_stat(5)); elsewhere than on
    Linux nothing is known."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without this user id in its passwd
        return str(os.getuid())

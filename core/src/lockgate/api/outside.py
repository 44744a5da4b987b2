"""The outside world for the engine: real clocks, real randomness, this process, the plugins' events."""

from __future__ import annotations

import getpass
import os
import random
import socket
import time
from collections.abc import Callable

from lockgate.engine.runtime import Event, Runtime
from lockgate.model.record import Holder


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
        is_gone=_is_gone,
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
    return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without this user id in its passwd
        return str(os.getuid())

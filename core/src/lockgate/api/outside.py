"""The outside world for the engine: real clocks, real randomness, this process, the plugins' events."""

from __future__ import annotations

import getpass
import os
import random
import socket
import time
from collections.abc import Callable

from lockgate.engine.runtime import Event, Runtime


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
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without this user id in its passwd
        return str(os.getuid())

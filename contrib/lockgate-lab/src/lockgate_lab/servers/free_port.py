"""A port that is free now, for servers that must be told theirs."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

FIRST = 10_000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From which ports the system chooses those of clients."""


def free_port() -> int:
    """Return a loopback port nobody listens on; another process may take it before the server does. No client's
    connection is given it meanwhile, nor while a server that was killed is not yet started again: it is below those
    that the system gives out."""
    below = 32_768
    with contextlib.suppress(OSError):
        below = int(EPHEMERAL.read_text().split()[0])
    for port in random.sample(range(FIRST, below), 100) if below > FIRST + 100 else []:
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True

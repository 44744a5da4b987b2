"""A port that is free now, for servers that must be told theirs."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a loopback port nobody listens on; another process may take it before the server does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

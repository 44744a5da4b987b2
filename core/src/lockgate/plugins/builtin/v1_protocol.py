"""Hadoop's `FileOutputCommitter`, algorithm 1, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.v1 import V1Protocol

V1 = V1Protocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `v1`."""
    return (V1,)

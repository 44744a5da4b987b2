"""Hadoop's `FileOutputCommitter`, algorithm 2, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.v2 import V2Protocol

V2 = V2Protocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `v2`."""
    return (V2,)

"""Hive's output without manifests, one attempt a task, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.hive import HiveProtocol

HIVE = HiveProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `hive`."""
    return (HIVE,)

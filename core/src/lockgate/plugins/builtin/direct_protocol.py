"""Spark's direct committer, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.direct import DirectProtocol

DIRECT = DirectProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `direct`."""
    return (DIRECT,)

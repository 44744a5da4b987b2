"""IBM's Stocator, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.stocator import StocatorProtocol

STOCATOR = StocatorProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `stocator`."""
    return (STOCATOR,)

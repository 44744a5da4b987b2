"""Hudi's markers, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.markers import MarkersProtocol

MARKERS = MarkersProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `markers`."""
    return (MARKERS,)

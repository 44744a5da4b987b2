"""Uploads that the job commit completes, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.deferred import DeferredProtocol


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """Uploads that are completed at job commit."""
    return [DeferredProtocol()]

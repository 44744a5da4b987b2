"""The manifest committer protocol, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.manifest import ManifestProtocol

MANIFEST = ManifestProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The manifest protocol."""
    return (MANIFEST,)

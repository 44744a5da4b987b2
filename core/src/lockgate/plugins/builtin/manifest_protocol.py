"""The manifest committer protocol, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.protocols import MANIFEST, Protocol


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The manifest protocol."""
    return (MANIFEST,)

"""Amazon's EMRFS S3-optimized committer, offered by name."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.hookspecs import hookimpl
from lockgate.protocols.emrfs import EmrfsProtocol

EMRFS = EmrfsProtocol()


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """The protocol `emrfs`."""
    return (EMRFS,)

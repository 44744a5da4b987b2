"""Preconditions on generations and metagenerations, of the object a call writes or reads and of its source.

Source: the page "Request preconditions" of the Cloud Storage documentation: `ifGenerationMatch=0` holds when there is
no live object; a not-match that fails answers 304 to a read and 412 to anything else.
"""

from __future__ import annotations

from lockgate_lab.gcs.buckets import StoredObject
from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.gcs_errors import NotModifiedError, condition_not_met


def require(call: GcsCall, found: StoredObject | None, *, source: bool = False, read: bool = False) -> None:
    """Raise 412, or the 304 of a read, when a precondition of the call does not hold for what is there."""
    prefix = "ifSource" if source else "if"
    generation = found.generation if found is not None else 0
    metageneration = found.metageneration if found is not None else 0
    for what, actual in (("Generation", generation), ("Metageneration", metageneration)):
        match = call.number(f"{prefix}{what}Match")
        if match is not None and match != actual:
            raise condition_not_met()
        not_match = call.number(f"{prefix}{what}NotMatch")
        if not_match is not None and not_match == actual:
            if read:
                raise NotModifiedError
            raise condition_not_met()

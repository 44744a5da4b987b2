"""The identity of an object: checksum, length and generation.

A move makes a new generation of the same content, so two identities are the same if checksum and length are; the
generation pins a source. (The etag changes with the generation and is no identity here.)
"""

from __future__ import annotations

import base64
import binascii
import datetime
from typing import Any

from lockgate.model.files import FileStatus

from lockgate_gcs.calls import MARK, PROOF


def identity_of(crc32c: str, length: int, generation: str) -> str:
    """`crc32c` as the API writes it, base64; empty (an object without one) gives an empty identity."""
    try:
        checksum = base64.b64decode(crc32c, validate=True).hex()
    except binascii.Error:
        return ""
    return f"{checksum}-{length:x}-{generation}" if checksum else ""


def content_of(identity: str) -> str:
    """The part of an identity that a move keeps."""
    return identity.rpartition("-")[0]


def generation_of(identity: str) -> str:
    """The generation, empty where the identity has none."""
    generation = identity.rpartition("-")[2]
    return generation if generation.isdigit() and identity.count("-") == 2 else ""


def status_of(path: str, resource: dict[str, Any]) -> FileStatus:
    """What an object resource says."""
    length = int(resource.get("size", 0))
    identity = identity_of(str(resource.get("crc32c", "")), length, str(resource.get("generation", "")))
    metadata = resource.get("metadata") or {}
    proof = str(metadata.get(PROOF) or metadata.get(MARK) or "")
    return FileStatus(path, length, identity, modified=_seconds(str(resource.get("updated", ""))), proof=proof)


def _seconds(text: str) -> float:
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0

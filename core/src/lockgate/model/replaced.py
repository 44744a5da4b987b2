"""The list of what one job commit replaces: written before the first file is set aside, beside the files themselves.

With the list of the files that take their place it says enough to restore the destination when the commit record and
the manifests are lost, as when somebody has deleted the job's directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from lockgate.model.errors import LockgateError
from lockgate.model.layout import FOUND_PROTOCOL, JobLayout
from lockgate.model.undecodable import UNDECODABLE

REPLACED_TYPE = "lockgate.ReplacedFiles/1"


class SetAside(Struct, frozen=True, gc=False, array_like=True):
    """One file that a policy replaces: its relative path, length in bytes and identity."""

    path: str
    length: int = 0
    identity: str = ""


class ReplacedFiles(Struct, frozen=True):
    """What a job commit replaces. A file waits under its place in `files`, counted from 0; `replacing_digest` is the
    SHA-256 of the list of new files, `made_directories` are the directories that the commit makes, deepest first;
    `protocol` is the one that brings the files back."""

    job_id: str
    job_attempt: int
    prefix: str
    policy: str
    files: Sequence[SetAside]
    replacing_digest: str
    made_directories: Sequence[str] = ()
    created: float = 0.0
    type: str = REPLACED_TYPE
    protocol: str = FOUND_PROTOCOL


_decoder = msgspec.json.Decoder(ReplacedFiles)
_encoder = msgspec.json.Encoder()


def encode_replaced(replaced: ReplacedFiles) -> bytes:
    """The list as JSON."""
    return _encoder.encode(replaced)


def decode_replaced(content: bytes, *, name: str) -> ReplacedFiles:
    """Read a list of replaced files; `name` is its URL, for errors.

    Raises:
        LockgateError: it is not such a list.
    """
    try:
        replaced = _decoder.decode(content)
    except UNDECODABLE as error:
        raise LockgateError(
            f"the list of replaced files cannot be read: {error}",
            where=name,
            next_step="it was cut short, changed, or written by another version; nothing was touched",
        ) from error
    if replaced.type != REPLACED_TYPE:
        raise LockgateError(
            f"a list of replaced files is of type {replaced.type!r}",
            where=name,
            next_step="another version of Lockgate wrote it, and can go on with its job; nothing was touched",
        )
    return replaced


@dataclass(frozen=True)
class KeptList:
    """One list of replaced files, under the nonce of the driver that wrote it."""

    layout: JobLayout
    nonce: str
    replaced: ReplacedFiles
    digest: str

"""The list of what one job commit replaces: written before the first file is set aside, beside the files themselves.

With the list of the files that take their place it says enough to restore the destination when the commit record and
the manifests are lost, as when somebody has deleted the job's directory.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
from msgspec import Struct

from lockgate.model.errors import LockgateError
from lockgate.model.layout import FOUND_PROTOCOL, JobLayout
from lockgate.model.spooled import CHUNK, Spooled, Spools, windows
from lockgate.model.undecodable import UNDECODABLE

REPLACED_TYPE = "lockgate.ReplacedFiles/1"
WITH_DIRECTORIES_TYPE = "lockgate.ReplacedFiles/2"
"""Of a list that names directories: a version that knows of none must not go by it."""


class SetAside(Struct, frozen=True, gc=False, array_like=True):
    """One file that a policy replaces: its relative path, length in bytes and identity. `version`: a file of the same
    name takes its place, and this version of it stays beneath that; empty where it goes aside, or after the commit."""

    path: str
    length: int = 0
    identity: str = ""
    version: str = ""


class WholeDirectories:
    """Directories that are set aside whole, by their places in a list; none is inside another."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self._numbers = {path: number for number, path in enumerate(paths)}

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def of(self, path: str) -> int | None:
        """The number of the directory that a path is in, however deep; None where it is in none."""
        if not self._numbers:
            return None
        above = path
        while above := above.rpartition("/")[0]:
            if (number := self._numbers.get(above)) is not None:
                return number
        return None

    def __contains__(self, path: object) -> bool:
        """Whether a path is in one of them."""
        return isinstance(path, str) and self.of(path) is not None


class ReplacedFiles(Struct, frozen=True):
    """What a job commit replaces. A file waits under its place in `files`, counted from 0; `replacing_digest` is the
    SHA-256 of the list of new files, `made_directories` are the directories that the commit makes, deepest first;
    `protocol` is the one that brings the files back. `directories` are set aside whole, each under its place here; the
    files in them are in `files` like all others, and wait inside. `part_of` as in the commit record."""

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
    directories: tuple[str, ...] = ()
    part_of: str = ""


class _Undivided(Struct, frozen=True):
    """The same list, its files not decoded yet."""

    job_id: str
    job_attempt: int
    prefix: str
    policy: str
    files: msgspec.Raw
    replacing_digest: str
    made_directories: Sequence[str] = ()
    created: float = 0.0
    type: str = REPLACED_TYPE
    protocol: str = FOUND_PROTOCOL
    directories: tuple[str, ...] = ()
    part_of: str = ""


_decoder = msgspec.json.Decoder(_Undivided)
_encoder = msgspec.json.Encoder()
_files_of = msgspec.json.Decoder(list[SetAside]).decode

_NO_FILES = b'"files":[]'

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_SEVERAL = re.compile(rb"(?:\[" + _TEXT + rb"(?:,-?[0-9]+)?(?:," + _TEXT + rb"){0,2}\](?:,|(?=\]\Z))){1,%d}" % CHUNK)
"""Some files of a list, as `encode_replaced` writes them, each with the comma behind it, unless it is the last."""


def encode_replaced(replaced: ReplacedFiles) -> bytes:
    """The list as JSON. Beside the result, `CHUNK` files are held at a time."""
    kind = WITH_DIRECTORIES_TYPE if replaced.directories else REPLACED_TYPE
    none = msgspec.structs.replace(replaced, files=msgspec.Raw(b"[]"), type=kind)
    # No text before it can hold this: a quote in a text has a backslash before it.
    before, _, after = _encoder.encode(none).partition(_NO_FILES)
    content = io.BytesIO()
    content.write(before + _NO_FILES[:-1])
    for number, window in enumerate(windows(replaced.files, CHUNK)):
        content.write(b"," if number else b"")
        content.write(_encoder.encode(window)[1:-1])
    content.write(_NO_FILES[-1:] + after)
    return content.getvalue()


def decode_replaced(content: bytes, *, name: str, spools: Spools = list) -> ReplacedFiles:
    """Read a list of replaced files; `name` is its URL, for errors. Its files are kept in one of the `spools`.

    Raises:
        LockgateError: it is not such a list.
    """
    try:
        found = _decoder.decode(content)
        files = Spooled[SetAside](spools, SetAside, _divided(found.files))
    except UNDECODABLE as error:
        raise LockgateError(
            f"the list of replaced files cannot be read: {error}",
            where=name,
            next_step="it was cut short, changed, or written by another version; nothing was touched",
        ) from error
    if found.type != (WITH_DIRECTORIES_TYPE if found.directories else REPLACED_TYPE):
        raise LockgateError(
            f"a list of replaced files is of type {found.type!r}",
            where=name,
            next_step="another version of Lockgate wrote it, and can go on with its job; nothing was touched",
        )
    return ReplacedFiles(
        found.job_id,
        found.job_attempt,
        found.prefix,
        found.policy,
        files,
        found.replacing_digest,
        found.made_directories,
        found.created,
        found.type,
        found.protocol,
        found.directories,
        found.part_of,
    )


def _divided(files: msgspec.Raw) -> Iterator[SetAside]:
    """The files of a list, decoded some at a time."""
    text = memoryview(files)
    at, count = 1, 0
    while some := _SEVERAL.match(text, at):
        divided = _files_of(b"[" + some.group().removesuffix(b",") + b"]")
        yield from divided
        at, count = some.end(), count + len(divided)
    if at != len(text) - 1 or bytes(text[:1]) != b"[":
        # Not as this version writes them: decoded as a whole, which is right, or tells what is wrong.
        yield from islice(_files_of(files), count, None)


@dataclass(frozen=True)
class KeptList:
    """One list of replaced files, under the nonce of the driver that wrote it."""

    layout: JobLayout
    nonce: str
    replaced: ReplacedFiles
    digest: str

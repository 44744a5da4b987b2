"""Buckets and their objects: a flat, sorted namespace, generations, checksums.

Promises, from the Cloud Storage documentation: a generation is never given out twice and grows with every write; a move
makes a new generation and keeps content, checksums and metadata; reads and listings show the last write. It knows no
HTTP and no preconditions. Every function completes without awaiting.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import time
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field, replace
from typing import Any

import google_crc32c

from lockgate_lab.gcs.gcs_errors import GcsError

NAME_BYTES_MAX = 1024

_generations = itertools.count(int(time.time() * 1_000_000))


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One generation of an object. `properties` are the writable fields of its resource (contentType, metadata, …)."""

    name: str
    content: bytes
    crc32c: str
    md5: str
    properties: dict[str, Any]
    component_count: int = 0
    generation: int = field(default_factory=lambda: next(_generations))
    metageneration: int = 1
    created: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)

    @property
    def etag(self) -> str:
        """The etag: another one for every generation and metageneration, whatever the content."""
        return base64.b64encode(f"{self.generation}/{self.metageneration}".encode()).decode()

    def under(self, name: str, properties: dict[str, Any] | None = None) -> StoredObject:
        """Return a new generation under another name, with the same content and, unless given, properties."""
        kept = self.properties if properties is None else properties
        return StoredObject(name, self.content, self.crc32c, self.md5, dict(kept), self.component_count)

    def patched(self, properties: dict[str, Any]) -> StoredObject:
        """Return the same generation with other properties and the next metageneration."""
        return replace(self, properties=properties, metageneration=self.metageneration + 1, updated=time.time())


def new_object(name: str, content: bytes, properties: dict[str, Any]) -> StoredObject:
    """Return the object a plain upload makes; raises when the checksums sent with it are not those of the content."""
    made = StoredObject(name, content, crc32c_of(content), md5_of(content), properties)
    for key, computed in (("crc32c", made.crc32c), ("md5Hash", made.md5)):
        sent = properties.pop(key, None)
        if sent is not None and sent != computed:
            raise GcsError(400, f"Provided {key} '{sent}' doesn't match calculated '{computed}'.")
    return made


def composed_object(name: str, pieces: list[StoredObject], properties: dict[str, Any]) -> StoredObject:
    """Return the object that compose makes: it has no MD5."""
    content = b"".join(piece.content for piece in pieces)
    count = sum(piece.component_count or 1 for piece in pieces)
    return StoredObject(name, content, crc32c_of(content), "", properties, count)


def crc32c_of(content: bytes) -> str:
    """Return the CRC32C as the API writes it: big-endian, base64."""
    return base64.b64encode(int(google_crc32c.value(content)).to_bytes(4)).decode()


def md5_of(content: bytes) -> str:
    """Return the MD5 as the API writes it."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


class Bucket:
    """The objects of one bucket by name; the names are kept sorted, so that a page costs its own length only."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.created = time.time()
        self.objects: dict[str, StoredObject] = {}
        self.names: list[str] = []

    def put(self, stored: StoredObject) -> None:
        """Store an object in place of the one of that name; raises when the name is not allowed."""
        name = stored.name
        if not 1 <= len(name.encode()) <= NAME_BYTES_MAX or "\r" in name or "\n" in name or name in (".", ".."):
            raise GcsError(400, f"Disallowed or invalid object name: {name[:80]!r}")
        if name not in self.objects:
            insort(self.names, name)
        self.objects[name] = stored

    def remove(self, name: str) -> None:
        """Remove an object."""
        del self.objects[name]
        del self.names[bisect_left(self.names, name)]

    def page(
        self, prefix: str, delimiter: str, after: str, start: str, end: str, count_max: int
    ) -> tuple[list[StoredObject], list[str], str]:
        """Return objects, prefixes, and the place where the page ends when there is more, else nothing.

        A prefix counts as one, and is skipped as a whole. `start` is inclusive, `end` exclusive. `after` is the place
        where the page before ended: `o` and the name of an object, or `p` and a prefix.
        """
        names = self.names
        index = bisect_left(names, max(prefix, start))
        if after:
            index = max(index, self._behind(after))
        found: list[StoredObject] = []
        prefixes: list[str] = []
        last = ""
        while index < len(names):
            name = names[index]
            if not name.startswith(prefix) or (end and name >= end):
                break
            if len(found) + len(prefixes) == count_max:
                return found, prefixes, last
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut < 0:
                found.append(self.objects[name])
                last = "o" + name
                index += 1
            else:
                prefixes.append(name[: cut + len(delimiter)])
                last = "p" + prefixes[-1]
                index = self._behind(last)
        return found, prefixes, ""

    def _behind(self, place: str) -> int:
        last = place[1:]
        if place[0] == "p":
            return bisect_left(self.names, last[:-1] + chr(ord(last[-1]) + 1))
        return bisect_right(self.names, last)

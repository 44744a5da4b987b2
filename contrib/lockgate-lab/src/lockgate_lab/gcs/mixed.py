"""The two multipart bodies of the API: `multipart/related` uploads and `multipart/mixed` batches.

Lines may end in CRLF or, as some clients write them, in LF alone; the content of a part is taken byte for byte.

Source: the pages "Multipart upload" and "Sending batch requests" of the Cloud Storage documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message
from itertools import pairwise

from multidict import CIMultiDict, CIMultiDictProxy

from lockgate_lab.gcs.gcs_errors import GcsError

_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its headers and its content."""

    headers: CIMultiDictProxy[str]
    content: bytes


def parts_of(content_type: str, body: bytes) -> list[Part]:
    """Return the parts of a multipart body; raises 400 when it is none."""
    described = Message()
    described["Content-Type"] = content_type
    boundary = described.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise GcsError(400, "Missing multipart boundary", "badRequest")
    delimiter = b"--" + boundary.encode()
    # A delimiter stands at the start of a line, and the line end before it is part of it.
    pattern = re.compile(rb"(?:^|\r?\n)" + re.escape(delimiter) + rb"(--)?[ \t]*(?:\r?\n|$)")
    found: list[Part] = []
    matches = list(pattern.finditer(body))
    for opening, closing in pairwise(matches):
        found.append(_part(body[opening.end() : closing.start()]))
    if not found:
        raise GcsError(400, "Malformed multipart body.", "badRequest")
    return found


def split_head(text: bytes) -> tuple[list[str], bytes]:
    """Return the lines of a head, and what follows the empty line after it."""
    match = _END_OF_HEAD.search(text)
    head, rest = (text[: match.start()], text[match.end() :]) if match else (text, b"")
    return head.decode("utf-8", "replace").splitlines(), rest


def headers_of(lines: list[str]) -> CIMultiDictProxy[str]:
    """Return header lines as headers."""
    headers: CIMultiDict[str] = CIMultiDict()
    for line in lines:
        name, separator, value = line.partition(":")
        if separator:
            headers.add(name.strip(), value.strip())
    return CIMultiDictProxy(headers)


def _part(text: bytes) -> Part:
    if text.startswith((b"\r\n", b"\n")):
        return Part(headers_of([]), text.lstrip(b"\r").removeprefix(b"\n"))
    lines, content = split_head(text)
    return Part(headers_of(lines), content)

"""Many calls in one request: `multipart/mixed`, at most 100, each with an answer of its own, in order.

Source: the page "Sending batch requests" of the Cloud Storage documentation.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from urllib.parse import urlsplit

from lockgate.stores.http.exchange import Answer, Call, Repeat

CALLS_MAX = 100
"""More in one request the service refuses."""

_BOUNDARY = re.compile(r'boundary="?([^";]+)"?', re.IGNORECASE)
_CONTENT_ID = re.compile(r"response-item-(\d+)")


def batch_of(calls: Sequence[Call], endpoint: str, where: str) -> Call:
    """One request of these calls, which have no content of their own."""
    boundary = f"batch-{uuid.uuid4().hex}"
    parts = []
    for index, call in enumerate(calls):
        url = urlsplit(call.url)
        target = f"{url.path}?{url.query}" if url.query else url.path
        length = "" if call.method == "DELETE" else "Content-Length: 0\r\n"
        parts.append(
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <item-{index}>\r\n\r\n"
            f"{call.method} {target} HTTP/1.1\r\n{length}\r\n\r\n"
        )
    body = "".join([*parts, f"--{boundary}--\r\n"]).encode()
    careful = any(call.repeat is Repeat.WITH_CARE for call in calls)
    return Call(
        f"batch-{calls[0].kind}",
        "POST",
        f"{endpoint}/batch/storage/v1",
        where,
        {"content-type": f"multipart/mixed; boundary={boundary}"},
        body,
        Repeat.WITH_CARE if careful else Repeat.FREELY,
        cost=len(calls),
    )


def answers_of(answer: Answer, count: int) -> list[Answer | None]:
    """The answer to each call, by the ids that were sent, else by order; None where one is not there."""
    match = _BOUNDARY.search(answer.headers.get("content-type", ""))
    found: list[Answer | None] = [None] * count
    if match is None:
        return found
    pieces = answer.body.split(b"--" + match.group(1).encode())[1:]
    for order, piece in enumerate(pieces):
        if piece.startswith(b"--"):
            break
        envelope, _, inner = piece.lstrip(b"\r\n").partition(b"\r\n\r\n")
        labelled = _CONTENT_ID.search(envelope.decode("latin-1"))
        index = int(labelled.group(1)) if labelled else order
        if index < count:
            found[index] = _one(inner)
    return found


def _one(text: bytes) -> Answer | None:
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").splitlines()
    words = lines[0].split(" ", 2) if lines else []
    if len(words) < 2 or not words[1].isdigit():
        return None
    headers = {}
    for line in lines[1:]:
        name, separator, value = line.partition(":")
        if separator:
            headers[name.strip().lower()] = value.strip()
    return Answer(int(words[1]), headers, body.rstrip(b"\r\n"))

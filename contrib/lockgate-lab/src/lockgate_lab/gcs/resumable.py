"""Resumable uploads: a session that takes chunks until the total is known and reached, and then makes the object.

The precondition of a session is judged when it is finalised, not when it begins. Anyone with the session's URI can
write. A session lives a week, and then is not known any more; what it has become, it says until then. One that was
cancelled answers 499. Where the service has been seen to be kinder than its documentation, as with chunks that are no
multiples of 256 KiB, this is not.

Source: the pages "Resumable uploads" and "Perform resumable uploads" of the Cloud Storage documentation; for sessions
that are not known (404), and cancelled ones that are written to (499), fsouza/fake-gcs-server#1813; for expired ones
(404, not 410), googleapis/gcs-resumable-upload#16; for the preconditions and for bytes that are sent again,
`gcs/upload.py` of googleapis/storage-testbench.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from lockgate_lab.gcs.buckets import StoredObject
from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.gcs_errors import GcsError

CHUNK_UNIT = 256 * 1024
SESSION_SECONDS = 7 * 86400
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)$")


@dataclass(slots=True)
class UploadSession:
    """One session: where it writes, under what preconditions, and what has arrived.

    `call` is the call that began it: its preconditions are judged at the end. `finished` is the object once made.
    """

    call: GcsCall
    name: str
    properties: dict[str, Any]
    received: bytearray = field(default_factory=bytearray)
    finished: StoredObject | None = None
    cancelled: bool = False
    begun: float = field(default_factory=time.time)

    @property
    def has_expired(self) -> bool:
        """Whether its week is over."""
        return time.time() - self.begun >= SESSION_SECONDS

    def take(self, content_range: str | None, body: bytes) -> bool:
        """Take a chunk, or a question about the state; say whether the object is now complete."""
        if content_range is None:
            self._append(0, body)
            return True
        match = _RANGE.match(content_range.strip())
        if match is None:
            raise GcsError(400, f"Invalid Content-Range: {content_range!r}", "badRequest")
        first, last, total = match.groups()
        if first is None:
            return total != "*" and self._is_complete(int(total))
        if int(last) - int(first) + 1 != len(body):
            raise GcsError(400, "The Content-Range does not match the length of the body.", "badRequest")
        is_final = total != "*" and int(last) + 1 == int(total)
        if not is_final and len(body) % CHUNK_UNIT:
            raise GcsError(
                400,
                "Invalid request. The number of bytes uploaded is required to be equal or greater than 262144, "
                "except for the final request (it's recommended to be the exact multiple of 262144). "
                f"The received request contained {len(body)} bytes, which does not meet this requirement.",
                "badRequest",
            )
        self._append(int(first), body)
        return is_final and self._is_complete(int(total))

    def range_header(self) -> dict[str, str]:
        """Return the header that says what is stored; nothing stored, no header."""
        return {"Range": f"bytes=0-{len(self.received) - 1}"} if self.received else {}

    def _append(self, first: int, body: bytes) -> None:
        if first > len(self.received):
            raise GcsError(400, f"Bytes {len(self.received)}-{first - 1} are missing.", "badRequest")
        # What was stored already is kept: a chunk sent again adds only what is new.
        self.received += body[len(self.received) - first :]

    def _is_complete(self, total: int) -> bool:
        if len(self.received) > total:
            raise GcsError(400, f"{len(self.received)} bytes are stored, more than {total}.", "badRequest")
        return len(self.received) == total

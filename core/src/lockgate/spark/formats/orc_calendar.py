"""The calendar of an ORC file, which Arrow's writer does not name and Java's reader therefore takes for the old one.

Dates in Arrow are of the proleptic Gregorian calendar. A Java reader takes a file without a word about its calendar
for one of the hybrid calendar, Julian before 1582-10-15, and Spark turns such dates round: it would read 1500-03-01
as 1500-02-20. The footer has a field for it (ORC's `Footer.calendar`, `CalendarKind`). A protobuf message may be
continued by appending to it, and a compressed one in a chunk of its own that says that it is not compressed; so the
field is put behind the footer, and the footer's length in the postscript is corrected. So is what the file is to say of
itself under names of its own (ORC's `Footer.metadata`, `UserMetadataItem`), for which Arrow's writer has no room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate.spark.formats.kept_open import KeptOpen

_PROLEPTIC_GREGORIAN = b"\x58\x02"
"""Field 11 of the footer, a varint: 2."""
_METADATA, _NAME, _VALUE = b"\x2a", b"\x0a", b"\x12"
"""Field 5 of the footer, a message, of which 1 and 2 are text and bytes."""
_POSTSCRIPT_BYTES_MAX = 256
"""The postscript and the byte with its length."""
_FOOTER_LENGTH, _COMPRESSION = 1, 2


class CalendarFile(KeptOpen):
    """What Arrow's ORC writer writes to. It holds the last bytes back until `finish`."""

    def __init__(self, file: Any, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(file)
        self._metadata = metadata or {}
        self._tail = b""

    def write(self, content: Any) -> Any:
        """Write all but the last bytes through."""
        view = memoryview(content).cast("B")
        if len(view) >= _POSTSCRIPT_BYTES_MAX:
            self._file.write(self._tail)
            self._file.write(view[:-_POSTSCRIPT_BYTES_MAX])
            self._tail = bytes(view[-_POSTSCRIPT_BYTES_MAX:])
        else:
            held = self._tail + bytes(view)
            self._file.write(held[:-_POSTSCRIPT_BYTES_MAX])
            self._tail = held[-_POSTSCRIPT_BYTES_MAX:]
        return len(view)

    def tell(self) -> Any:
        """How many bytes the writer has written."""
        return self._file.tell() + len(self._tail)

    def finish(self) -> None:
        """Write the rest, with the calendar's name and the metadata in it. Called once, after the writer has been
        closed."""
        self._file.write(with_calendar(self._tail, self._metadata))
        self._tail = b""


def with_calendar(tail: bytes, metadata: Mapping[str, str]) -> bytes:
    """The end of an ORC file, with the field for the proleptic Gregorian calendar, and the metadata, at the end of its
    footer."""
    start = len(tail) - 1 - tail[-1]
    postscript = tail[start:-1]
    fields = _numbers(postscript)
    added = _PROLEPTIC_GREGORIAN
    for name, value in metadata.items():
        item = _NAME + _sized(name.encode()) + _VALUE + _sized(value.encode())
        added += _METADATA + _sized(item)
    if fields.get(_COMPRESSION):
        added = (len(added) << 1 | 1).to_bytes(3, "little") + added  # a chunk's header: its length, and "as it is"
    length, rest = _varint(postscript, 1)
    assert postscript[0] == _FOOTER_LENGTH << 3, "protobuf writes fields in the order of their numbers"
    assert length == fields[_FOOTER_LENGTH]
    changed = postscript[:1] + _as_varint(length + len(added)) + postscript[rest:]
    return tail[:start] + added + changed + bytes([len(changed)])


def _numbers(message: bytes) -> dict[int, int]:
    """The fields of a protobuf message that are plain numbers."""
    found: dict[int, int] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == 0:
            found[key >> 3] = value
        else:
            assert key & 7 == 2, "a postscript holds numbers and strings"
            at += value
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _sized(content: bytes) -> bytes:
    return _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

"""Just enough of Hadoop's RPC protocol to cut its byte stream into calls and to know their names.

A connection begins with seven bytes (`hrpc`, version, service class, authentication); then each side sends frames: four
bytes of length, then length-delimited protobuf messages. Of a request the first is `RpcRequestHeaderProto` (field 3:
call id), the second `RequestHeaderProto` (field 1: method name); of an answer `RpcResponseHeaderProto` (field 1: call
id). Negative call ids belong to the connection itself.

Source: apache/hadoop `hadoop-common/src/main/proto/RpcHeader.proto`, `ProtobufRpcEngine2.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator

PREAMBLE_LENGTH = 7
FRAME_LENGTH_MAX = 256 * 1024 * 1024


class NotRpcError(ValueError):
    """The bytes are no RPC frame."""


class FrameCutter:
    """Cuts one direction of a connection into frames, each returned with its four bytes of length."""

    def __init__(self, *, with_preamble: bool) -> None:
        self._buffer = bytearray()
        self._preamble_left = with_preamble

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take bytes as they come and yield what is whole; the preamble is a piece of its own."""
        self._buffer += piece
        if self._preamble_left and len(self._buffer) >= PREAMBLE_LENGTH:
            self._preamble_left = False
            yield self._take(PREAMBLE_LENGTH)
        while not self._preamble_left and len(self._buffer) >= 4:
            length = int.from_bytes(self._buffer[:4])
            if length > FRAME_LENGTH_MAX:
                raise NotRpcError(f"a frame of {length} bytes")
            if len(self._buffer) < 4 + length:
                return
            yield self._take(4 + length)

    def rest(self) -> bytes:
        """Return what is not whole."""
        return bytes(self._buffer)

    def _take(self, length: int) -> bytes:
        taken = bytes(self._buffer[:length])
        del self._buffer[:length]
        return taken


def request_call(frame: bytes) -> tuple[int, str]:
    """Return call id and method name of a request frame; no name where the frame belongs to the connection."""
    try:
        header, after = _delimited(frame, 4)
        call_id = _zigzag(_varint_field(header, 3))
        if call_id < 0:
            return call_id, ""
        method, _ = _delimited(frame, after)
        return call_id, _bytes_field(method, 1).decode()
    except (NotRpcError, IndexError, UnicodeDecodeError):
        return -1, ""


def answered_call(frame: bytes) -> int:
    """Return the call id of an answer frame."""
    try:
        header, _ = _delimited(frame, 4)
        call_id = _varint_field(header, 1)
    except (NotRpcError, IndexError):
        return -1
    # A uint32 that carries the connection's own negative ids in two's complement.
    return call_id - (1 << 32) if call_id >= 1 << 31 else call_id


def _varint(text: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = text[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise NotRpcError("a number without end")


def _delimited(text: bytes, at: int) -> tuple[bytes, int]:
    length, at = _varint(text, at)
    return text[at : at + length], at + length


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
        elif wire == 2:
            content, at = _delimited(message, at)
            yield number, content
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise NotRpcError(f"wire type {wire}")


def _varint_field(message: bytes, wanted: int) -> int:
    for number, value in _fields(message):
        if number == wanted and isinstance(value, int):
            return value
    raise NotRpcError(f"no field {wanted}")


def _bytes_field(message: bytes, wanted: int) -> bytes:
    for number, value in _fields(message):
        if number == wanted and isinstance(value, bytes):
            return value
    raise NotRpcError(f"no field {wanted}")

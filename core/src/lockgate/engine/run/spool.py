"""Where the entries of a plan are kept: in memory, past a limit in a local temporary file."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, gettempdir

from lockgate.model.errors import LockgateError

_LENGTH = struct.Struct("<Q")


class MemorySpool:
    """A `Spool` in memory, for plans that are small by nature."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def append(self, chunk: bytes) -> None:
        """Add a chunk at the end."""
        self._chunks.append(chunk)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class DiskSpool:
    """A `Spool` that moves to a local temporary file once it holds more than `memory_bytes_max`.

    The file has no name and goes with the process.
    """

    def __init__(self, memory_bytes_max: int) -> None:
        self._file = SpooledTemporaryFile(max_size=memory_bytes_max)  # noqa: SIM115  # lives as long as the plan
        self._end = 0

    def append(self, chunk: bytes) -> None:
        """Add a chunk at the end.

        Raises:
            LockgateError: the temporary directory is full.
        """
        with _told():
            self._file.seek(self._end)
            self._file.write(_LENGTH.pack(len(chunk)))
            self._file.write(chunk)
            self._end += _LENGTH.size + len(chunk)

    def __iter__(self) -> Iterator[bytes]:
        at = 0
        while at < self._end:
            # Two readers may be interleaved, so each keeps its own place.
            with _told():
                self._file.seek(at)
                (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
                chunk = self._file.read(length)
            at += _LENGTH.size + length
            yield chunk


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LockgateError(
            f"the plan of the job cannot be kept on this machine's disk: {error.strerror or error}",
            where=gettempdir(),
            next_step="make room there, name another directory by TMPDIR, or raise memory_bytes_max",
        ) from error

"""Where the entries of a plan are kept: in memory, past a limit in a local temporary file."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile, gettempdir

from lockgate.model.errors import LockgateError


class MemorySpool:
    """A `Spool` in memory, for plans that are small by nature."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def append(self, chunk: bytes) -> None:
        """Add a chunk at the end."""
        self._chunks.append(chunk)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def __getitem__(self, number: int) -> bytes:
        return self._chunks[number]

    def __len__(self) -> int:
        return len(self._chunks)


class DiskSpool:
    """A `Spool` that moves to a local temporary file once it holds more than `memory_bytes_max`.

    The file has no name and goes with the process.
    """

    def __init__(self, memory_bytes_max: int) -> None:
        self._file = SpooledTemporaryFile(max_size=memory_bytes_max)  # noqa: SIM115  # lives as long as the plan
        self._ends = array("q", [0])

    def append(self, chunk: bytes) -> None:
        """Add a chunk at the end.

        Raises:
            LockgateError: the temporary directory is full.
        """
        with _told():
            self._file.seek(self._ends[-1])
            self._file.write(chunk)
            self._ends.append(self._ends[-1] + len(chunk))

    def __iter__(self) -> Iterator[bytes]:
        # Two readers may be interleaved, so each keeps its own place.
        at = 0
        while at < len(self):
            yield self[at]
            at += 1

    def __getitem__(self, number: int) -> bytes:
        with _told():
            self._file.seek(self._ends[number])
            return self._file.read(self._ends[number + 1] - self._ends[number])

    def __len__(self) -> int:
        return len(self._ends) - 1


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

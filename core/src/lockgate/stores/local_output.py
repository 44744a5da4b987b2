"""A file that a task attempt writes on a local disk."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any, BinaryIO

from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import StoreError
from lockgate.model.files import FileStatus
from lockgate.model.urls import StoreUrl
from lockgate.stores.local_files import status_of, told

BUFFER_BYTES = 1 << 20


class LocalOutput(OutputFile):
    """A buffered file, made anew. `durable`: it is on the disk when it is closed."""

    def __init__(self, root: StoreUrl, path: str, full: str, *, durable: bool) -> None:
        self._root = root
        self._relative = path
        self._full = full
        self._durable = durable
        raw = _RawFile(full, "xb")
        raw.root, raw.path = root, path
        self._file = io.BufferedWriter(raw, BUFFER_BYTES)
        self._status: FileStatus | None = None

    @property
    def stream(self) -> BinaryIO:
        """The file."""
        return self._file

    def close(self) -> FileStatus:
        """Flush and close it. Repeating it is no failure."""
        if self._status is None:
            with told("write", self._root, self._relative):
                self._file.flush()
                if self._durable:
                    os.fdatasync(self._file.fileno())
                self._status = status_of(self._relative, os.fstat(self._file.fileno()))
                self._file.close()
        return self._status

    def discard(self) -> None:
        """Close and delete it."""
        with contextlib.suppress(OSError, StoreError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._full)


class _RawFile(io.FileIO):
    """Says which file a full disk was met at, whoever holds the stream."""

    root: StoreUrl
    path: str

    def write(self, content: Any, /) -> int:
        with told("write", self.root, self.path):
            return super().write(content)

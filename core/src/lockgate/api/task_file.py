"""The file that a task attempt writes to: a binary file object, known to the attempt once it is closed."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import TracebackType
from typing import Any

from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import StoreError
from lockgate.model.files import FileStatus


class TaskFile(io.BufferedIOBase):
    """Forward only: `write`, `flush`, `tell`, `close`, `discard`.

    Leaving the `with` block by an exception discards the file: it will not be in the manifest. Arrow, csv and json
    writers take it as it is.
    """

    def __init__(self, output: OutputFile, closed: Callable[[FileStatus | None], None]) -> None:
        super().__init__()
        self._output = output
        self._stream = output.stream
        self._tell_closed = closed
        self._position = 0
        self._failure: BaseException | None = None

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, content: Any) -> int:
        """Append bytes, a bytearray, a memoryview or an Arrow buffer; returns how many. Where it fails, nobody knows
        how much of it came through: the file cannot be finished any more."""
        try:
            written = self._stream.write(content)
        except BaseException as error:
            self._failure = error
            raise
        self._position += written
        return written

    def flush(self) -> None:
        """Nothing is promised before `close`."""

    def tell(self) -> int:
        """How many bytes were written."""
        return self._position

    def close(self) -> None:
        """Finish the file. It is in the manifest from now on.

        Raises:
            StoreError: it could not be finished, or a write had failed; it will not be in the manifest.
        """
        if not self.closed and self._failure is not None:
            failure, self._failure = self._failure, None
            self.discard()
            raise StoreError(
                "a file of a task is not whole: a write to it has failed",
                where=getattr(failure, "where", "") or f"after {self._position} bytes",
                next_step="nothing of it is committed: write the file again, or let the task fail",
            ) from failure
        if not self.closed:
            try:
                self._tell_closed(self._output.close())
            finally:
                super().close()

    def discard(self) -> None:
        """Give the file up."""
        if not self.closed:
            self._output.discard()
            self._tell_closed(None)
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # A file object that is dropped unclosed was not finished; io.IOBase would close, and so keep, it.
        if not self.closed:
            self._output.drop()
            self._tell_closed(None)
            super().close()

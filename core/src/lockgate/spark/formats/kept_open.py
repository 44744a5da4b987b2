"""The file object that Arrow's writers are given."""

from __future__ import annotations

from typing import Any


class KeptOpen:
    """Writes through, and stays open when the writer above closes it: the task attempt closes what is below."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def write(self, content: Any) -> Any:
        """Write bytes."""
        return self._file.write(content)

    def flush(self) -> None:
        """Flush what is below."""
        self._file.flush()

    def tell(self) -> Any:
        """How many bytes were written."""
        return self._file.tell()

    def writable(self) -> bool:
        """Yes."""
        return True

    def readable(self) -> bool:
        """No."""
        return False

    def seekable(self) -> bool:
        """No."""
        return False

    def close(self) -> None:
        """Note only that the writer has finished."""
        self.closed = True

"""What csv and json share: columns become columns of text, rows become lines, and lines leave in one piece.

A row-by-row writer in Python is some thirty times slower than this: every step works on a whole column in Arrow,
and the bytes of a column of finished lines, lying one after the other, are the file.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.model.errors import OptionError
from lockgate.spark.formats.file_format import FormatWriter
from lockgate.spark.formats.kept_open import KeptOpen

COMPRESSIONS = {"none": "", "uncompressed": "", "gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
_CODECS = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}


class LinesFile(FormatWriter):
    """A file of lines; a subclass makes the lines of a batch."""

    def __init__(self, file: Any, compression: str) -> None:
        codec = _CODECS.get(compression)
        self._file = file
        self._compressed = None if codec is None else pa.CompressedOutputStream(KeptOpen(file), codec)

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        """One string a row, its line end included."""
        raise NotImplementedError

    def put(self, content: Any) -> None:
        """Write bytes through the compression."""
        (self._compressed or self._file).write(content)

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        for batch in table.to_batches(max_chunksize=65536):
            if batch.num_rows:
                self.put(bytes_of(self.lines(batch)))

    def close(self) -> None:
        """Finish the compressed stream; what is underneath stays open."""
        if self._compressed is not None:
            self._compressed.close()


def bytes_of(strings: pa.Array) -> pa.Buffer:
    """The content of a large-string array without nulls, as it lies in memory."""
    offsets, content = strings.buffers()[1], strings.buffers()[2]
    ends = memoryview(offsets).cast("q")
    start, stop = ends[strings.offset], ends[strings.offset + len(strings)]
    return content.slice(start, stop - start) if content is not None else pa.py_buffer(b"")


def one_character(name: str, value: str) -> str:
    """Return an option that is one character.

    Raises:
        OptionError: it is not.
    """
    if len(value) != 1 or value in "\r\n":
        raise OptionError(f"{name} cannot be {value!r}", next_step=f"{name} takes one character")
    return value

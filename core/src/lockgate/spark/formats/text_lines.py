"""What csv and json share: columns become columns of text, rows become lines, and lines leave in one piece.

A row-by-row writer in Python is some thirty times slower than this: every step works on a whole column in Arrow,
and the bytes of a column of finished lines, lying one after the other, are the file.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.model.errors import OptionError
from lockgate.spark.formats.file_format import FormatWriter

COMPRESSIONS = {"none": "", "uncompressed": "", "gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
_CODECS = {"gzip": "gzip", "bzip2": "bz2", "zstd": "zstd"}


class LinesFile(FormatWriter):
    """A file of lines; a subclass makes the lines of a batch."""

    def __init__(self, file: Any, compression: str) -> None:
        codec = _CODECS.get(compression)
        self._file = file
        self._compressed = None if codec is None else pa.CompressedOutputStream(_KeptOpen(file), codec)

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


class _KeptOpen:
    """A file object that stays open when the compressed stream above it is closed: the task attempt closes it."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def write(self, content: Any) -> Any:
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> Any:
        return self._file.tell()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def joined(*parts: Any, separator: str = "", **options: Any) -> pa.Array:
    """Columns and constants joined row by row; a null makes a null unless `options` say otherwise."""
    large = [part.cast(pa.large_string()) if isinstance(part, pa.Array) else _constant(part) for part in parts]
    return pc.binary_join_element_wise(*large, _constant(separator), **options)


def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


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


def scalar_text(column: pa.Array) -> pa.Array:
    """Numbers, booleans, dates and timestamps as the text that Spark's own readers take; nulls stay null."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if pa.types.is_timestamp(kind):
        return timestamp_text(column)
    if pa.types.is_floating(kind):
        return float_text(column)
    return column.cast(pa.string())


def timestamp_text(column: pa.Array) -> pa.Array:
    """ISO 8601 with microseconds; with `Z`, in UTC, where it is a point in time."""
    instant = column.type.tz is not None
    # The same ticks without the zone are the time of day in UTC.
    naive = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).cast(pa.timestamp("us"))
    text = pc.strftime(naive, format="%Y-%m-%dT%H:%M:%S")
    return joined(text, "Z") if instant else text


def float_text(column: pa.Array) -> pa.Array:
    """The shortest text that reads back as the same number; `NaN`, `Infinity` and `-Infinity` as Spark names them."""
    text = column.cast(pa.large_string())
    if not pc.any(pc.invert(pc.is_finite(column))).as_py():
        return text
    text = pc.if_else(pc.is_nan(column), _constant("NaN"), text)
    named = pc.if_else(pc.greater(column, 0), _constant("Infinity"), _constant("-Infinity"))
    return pc.if_else(pc.is_inf(column), named, text)

"""Arrow's own file format (Feather version 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from lockgate.spark.formats.file_format import ATTEMPT_KEY, FileFormat, FormatOptions, FormatWriter


class Arrow(FileFormat):
    """What every Arrow library maps into memory as it is."""

    name = "arrow"
    extension = "arrow"
    compressions: ClassVar[Mapping[str, str]] = {"none": "", "uncompressed": "", "lz4": "lz4", "zstd": "zstd"}
    default_compression = "none"
    chunk_bytes = 16 << 20

    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """It holds whatever Arrow carries; a variant is a struct of its metadata and its value."""

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """An IPC file with a footer."""
        return _ArrowWriter(file, schema, options)


class _ArrowWriter(FormatWriter):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        codec = None if options.compression in ("none", "uncompressed") else options.compression
        if options.attempt:
            schema = schema.with_metadata({**(schema.metadata or {}), ATTEMPT_KEY: options.attempt})
        self._writer = pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression=codec))

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table.combine_chunks())

    def close(self) -> None:
        self._writer.close()

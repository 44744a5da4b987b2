"""ORC, through Arrow's own writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import orc

from lockgate.spark.formats.file_format import FileFormat, FormatOptions, FormatWriter, refuse_types

STRIPE_BYTES = 64 << 20


class Orc(FileFormat):
    """Columnar files with stripes."""

    name = "orc"
    extension = "orc"
    compressions: ClassVar[Mapping[str, str]] = {
        "zstd": "zstd",
        "none": "",
        "uncompressed": "",
        "snappy": "snappy",
        "zlib": "zlib",
        "lz4": "lz4",
    }
    default_compression = "zstd"
    chunk_bytes = STRIPE_BYTES

    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """Intervals and void have no ORC type; and Spark tells a timestamp without time zone from one with by an
        attribute that Arrow's writer cannot set, so that it would come back shifted."""
        refuse_types(
            self.name,
            schema,
            {
                "a column of the type void": pa.types.is_null,
                "timestamps without time zone": lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
                "intervals": lambda kind: pa.types.is_interval(kind) or pa.types.is_duration(kind),
            },
            "use parquet, or cast the column",
        )

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A file with stripes of 64 MiB."""
        return _OrcWriter(file, schema, options)


class _OrcWriter(FormatWriter):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        codec = "uncompressed" if options.compression == "none" else options.compression
        self._schema = schema
        self._empty = True
        self._writer = orc.ORCWriter(file, compression=codec, stripe_size=STRIPE_BYTES)

    def write(self, table: pa.Table) -> None:
        self._writer.write(table)
        self._empty = False

    def close(self) -> None:
        if self._empty:
            self._writer.write(self._schema.empty_table())
        self._writer.close()

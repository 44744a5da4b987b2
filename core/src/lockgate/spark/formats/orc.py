"""ORC, through Arrow's own writer, with what Spark's reader expects besides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import orc

from lockgate.spark.formats.file_format import ATTEMPT_KEY, FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.orc_calendar import CalendarFile
from lockgate.spark.formats.orc_times import refuse_times
from lockgate.spark.formats.spark_type import CATALYST_TYPE, catalyst_type, interval_type, is_spatial, is_variant

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
        """Void, variants and calendar intervals have no ORC type."""
        refuse_types(
            self.name,
            schema,
            {
                "a column of the type void": pa.types.is_null,
                "variants": is_variant,
                "spatial values": is_spatial,
                "calendar intervals": pa.types.is_interval,
            },
            "use parquet, or cast the column to a string",
        )

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A file with stripes of 64 MiB."""
        return _OrcWriter(file, schema, options)


class _OrcWriter(FormatWriter):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        codec = "uncompressed" if options.compression == "none" else options.compression
        self._schema = pa.schema([_physical(field) for field in schema])
        self._empty = True
        self._file = CalendarFile(file, {ATTEMPT_KEY: options.attempt} if options.attempt else {})
        self._writer = orc.ORCWriter(self._file, compression=codec, stripe_size=STRIPE_BYTES)

    def write(self, table: pa.Table) -> None:
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for chunk in column.chunks:
                refuse_times(chunk, name)
        columns = [_whole(column).cast(field.type) for column, field in zip(table.columns, self._schema, strict=True)]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._schema))
        self._empty = False

    def close(self) -> None:
        if self._empty:
            self._writer.write(self._schema.empty_table())
        self._writer.close()
        self._file.finish()


def _whole(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nested values copied out of the arrays that they are slices of: Arrow's ORC writer takes a slice's nulls from the
    beginning of the whole array (`NormalizeArray` in its `adapters/orc/util.cc`)."""
    if not pa.types.is_nested(column.type) or not any(chunk.offset for chunk in column.chunks):
        return column
    chunks = [chunk.take(pa.array(range(len(chunk)), pa.int64())) for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type)


def _physical(field: pa.Field) -> pa.Field:
    """What Spark writes as a whole number with its own type as an attribute (`OrcUtils.orcTypeDescription`): timestamps
    without time zone and day-time intervals in microseconds, times of day in nanoseconds."""
    kind = field.type
    plain = field.remove_metadata().with_nullable(True)  # a null struct has nulls in children that may not be null
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return _number(plain, "timestamp_ntz")
    if pa.types.is_duration(kind):
        return _number(plain, interval_type(field))
    if pa.types.is_time(kind):
        return _number(plain, catalyst_type(field, "time(6)"))
    if pa.types.is_list(kind):
        return plain.with_type(pa.list_(_physical(kind.value_field)))
    if pa.types.is_map(kind):
        key = _physical(kind.key_field).with_nullable(False)
        return plain.with_type(pa.map_(key, _physical(kind.item_field)))
    if pa.types.is_struct(kind):
        return plain.with_type(pa.struct([_physical(child) for child in kind]))
    return plain


def _number(field: pa.Field, name: str) -> pa.Field:
    return field.with_type(pa.int64()).with_metadata({CATALYST_TYPE: name.encode()})

"""Parquet, as Spark itself would have written it.

The schema that Spark keeps in its own files' metadata is kept here too, so Spark reads back the very schema that
was written (Spark's `ParquetReadSupport.SPARK_METADATA_KEY`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.model.errors import OptionError
from lockgate.spark.formats.file_format import FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.spark_type import is_spatial

SPARK_SCHEMA_KEY = "org.apache.spark.sql.parquet.row.metadata"

SPARK_VERSION_KEY = "org.apache.spark.version"
"""By it a Spark that reads knows that old dates are of the proleptic Gregorian calendar; without it, the setting
`spark.sql.parquet.datetimeRebaseModeInRead` decides (Spark's `DataSourceUtils.datetimeRebaseSpec`)."""

ROW_GROUP_BYTES = 128 << 20
"""Uncompressed Arrow memory in a row group, as Spark's `parquet.block.size`."""


class Parquet(FileFormat):
    """Columnar files with row groups of a sensible size: a Spark batch of 10,000 rows is not a row group."""

    name = "parquet"
    extension = "parquet"
    compressions: ClassVar[Mapping[str, str]] = {
        "snappy": "snappy",
        "none": "",
        "uncompressed": "",
        "gzip": "gz",
        "zstd": "zstd",
        "brotli": "br",
        "lz4": "lz4raw",
        "lz4_raw": "lz4raw",
    }
    default_compression = "snappy"
    chunk_bytes = ROW_GROUP_BYTES

    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """Columns of the type void, and structs without fields, have no Parquet type."""
        refuse_types(
            self.name,
            schema,
            {
                "a column of the type void": pa.types.is_null,
                "a struct without fields": lambda kind: pa.types.is_struct(kind) and not kind.num_fields,
                "spatial values": is_spatial,
                "calendar intervals": pa.types.is_interval,
            },
            "leave the column out, or cast it to a string",
        )
        if not len(schema):
            raise OptionError("parquet files cannot hold rows without columns", next_step="select at least one column")

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A Parquet 2.6 file: timestamps in microseconds, compliant nested types, page indexes left out."""
        return _ParquetWriter(file, schema, options)


class _ParquetWriter(FormatWriter):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(options.compression, options.compression)
        self._schema = _physical(schema)
        self._writer = pq.ParquetWriter(file, self._schema, compression=codec, version="2.6", store_schema=False)
        if options.spark_schema:
            self._writer.add_key_value_metadata({SPARK_SCHEMA_KEY: options.spark_schema})
        if options.spark_version:
            self._writer.add_key_value_metadata({SPARK_VERSION_KEY: options.spark_version})

    def write(self, table: pa.Table) -> None:
        if table.schema != self._schema:
            table = pa.Table.from_arrays(
                [_cast(column, target.type) for column, target in zip(table.columns, self._schema, strict=True)],
                schema=self._schema,
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        self._writer.close()


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == target else column.cast(target)


def _physical(schema: pa.Schema) -> pa.Schema:
    """Spark keeps a day-time interval as a plain 64-bit integer of microseconds."""
    return pa.schema([field.with_type(_physical_type(field.type)) for field in schema])


def _physical_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_physical_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_physical_type(kind.key_type), kind.item_field.with_type(_physical_type(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([child.with_type(_physical_type(child.type)) for child in kind])
    return kind

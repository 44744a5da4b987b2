"""Parquet, as Spark itself would have written it.

The schema that Spark keeps in its own files' metadata is kept here too, so Spark reads back the very schema that
was written (Spark's `ParquetReadSupport.SPARK_METADATA_KEY`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockgate.model.errors import OptionError
from lockgate.spark.formats.file_format import ATTEMPT_KEY, FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.spark_type import is_spatial

SPARK_SCHEMA_KEY = "org.apache.spark.sql.parquet.row.metadata"

SPARK_VERSION_KEY = "org.apache.spark.version"
"""By it a Spark that reads knows that old dates are of the proleptic Gregorian calendar; without it, the setting
`spark.sql.parquet.datetimeRebaseModeInRead` decides (Spark's `DataSourceUtils.datetimeRebaseSpec`)."""

ROW_GROUP_BYTES = 128 << 20
"""Uncompressed Arrow memory in a row group, as Spark's `parquet.block.size`."""


SAMPLE_ROWS = 20_000
"""By so many rows it is decided which columns have a dictionary; as Spark's `parquet.page.row.count.limit`."""


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
        self._codec = {"uncompressed": "none", "lz4_raw": "lz4"}.get(options.compression, options.compression)
        self._file = file
        self._schema = _physical(schema)
        self._options = options
        self._writer: pq.ParquetWriter | None = None

    def write(self, table: pa.Table) -> None:
        if table.schema != self._schema:
            table = pa.Table.from_arrays(
                [_cast(column, target.type) for column, target in zip(table.columns, self._schema, strict=True)],
                schema=self._schema,
            )
        if self._writer is None:
            self._writer = self._open(with_dictionary(table.slice(0, SAMPLE_ROWS)))
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _open(self, dictionary: list[str]) -> pq.ParquetWriter:
        writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression=self._codec,
            version="2.6",
            store_schema=False,
            use_dictionary=dictionary,
        )
        if self._options.spark_schema:
            writer.add_key_value_metadata({SPARK_SCHEMA_KEY: self._options.spark_schema})
        if self._options.spark_version:
            writer.add_key_value_metadata({SPARK_VERSION_KEY: self._options.spark_version})
        if self._options.attempt:
            writer.add_key_value_metadata({ATTEMPT_KEY: self._options.attempt})
        return writer

    def close(self) -> None:
        (self._writer or self._open([])).close()


def with_dictionary(sample: pa.Table) -> list[str]:
    """The Parquet columns for which a dictionary makes these rows smaller, as Spark's writer decides it after a page's
    worth of rows (parquet-java's `DictionaryValuesWriter.isCompressionSatisfying`). pyarrow keeps one until it is
    full, which makes a column of numbers that are all different a quarter larger. What is in lists, maps and structs
    is not looked into, and has one."""
    found: list[str] = []
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        if pa.types.is_nested(column.type):
            found += _leaves(name, column.type)
        elif _is_worth_a_dictionary(column):
            found.append(name)
    return found


def _is_worth_a_dictionary(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return False  # Parquet has none for these
    values = len(column) - column.null_count
    distinct = pc.count_distinct(column, mode="only_valid").as_py()
    if not values:
        return True
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        plain = values * max(1, kind.bit_width // 8)
    else:
        plain = pc.sum(pc.binary_length(column)).as_py() + 4 * values
    indexes = values * (distinct - 1).bit_length() / 8
    return bool(plain * distinct / values + indexes < plain)


def _leaves(path: str, kind: pa.DataType) -> list[str]:
    """The paths of the columns that a nested type has, in pyarrow's compliant form."""
    if pa.types.is_map(kind):
        key, item = f"{path}.key_value.key", f"{path}.key_value.value"
        return [*_leaves(key, kind.key_type), *_leaves(item, kind.item_type)]
    if pa.types.is_struct(kind):
        return [leaf for field in kind for leaf in _leaves(f"{path}.{field.name}", field.type)]
    if pa.types.is_nested(kind):
        return _leaves(f"{path}.list.element", kind.value_type)
    return [path]


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

"""A write's columns, looked at in the driver: what cannot be written is refused before any task runs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructField,
    StructType,
    YearMonthIntervalType,
)

from lockgate.model.errors import OptionError
from lockgate.spark.formats.spark_type import CATALYST_TYPE
from lockgate.spark.pyspark_versions import arrow_schema
from lockgate.spark.split_partitions import PartitionSplitter
from lockgate.spark.write_options import WriteOptions


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Look at every column, as a partition's or as one of the files.

    Raises:
        OptionError: of the first column that cannot be written, with its type, the format, and what to do instead.
    """
    refuse_duplicates(schema, case_sensitive=True)
    arrow_schema = arrow_schema_of(schema, "UTC")
    for name in options.partition_by:
        if not name or name.startswith("."):
            raise OptionError(
                "a column to partition by has a name with which no reader would see a row: readers pass by what "
                "begins with a dot"
                if name
                else "a column to partition by has no name",
                where=f"column {name!r}",
                next_step="rename the column, or partition by another",
            )
    in_files = PartitionSplitter(arrow_schema, options.partition_by).schema
    for field in in_files:
        try:
            options.file_format.check(pa.schema([field]), options.format_options(""))
        except OptionError as error:
            kind = schema[field.name].dataType.simpleString()
            where = f"column {field.name}: {kind}" if error.where.startswith("column ") else error.where
            raise OptionError(error.what, where=where, next_step=error.next_step) from None
    options.file_format.check(in_files, options.format_options(""))


def refuse_duplicates(schema: StructType, *, case_sensitive: bool) -> None:
    """Make sure that no two columns, nor two fields of one, have the same name: Spark writes no such file, and cannot
    read one (`COLUMN_ALREADY_EXISTS`).

    Raises:
        OptionError: two have, with their names.
    """
    seen: dict[str, str] = {}
    for field in schema:
        name = field.name if case_sensitive else field.name.lower()
        if name in seen:
            raise OptionError(
                f"two columns have one name to Spark: {seen[name]} and {field.name}",
                where=f"column {field.name}",
                next_step="rename one of them; spark.sql.caseSensitive=true tells names apart by case",
            )
        seen[name] = field.name
        for struct in _structs_in(field.dataType):
            refuse_duplicates(struct, case_sensitive=case_sensitive)


def _structs_in(kind: DataType) -> Iterator[StructType]:
    if isinstance(kind, StructType):
        yield kind
    elif isinstance(kind, ArrayType):
        yield from _structs_in(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _structs_in(kind.keyType)
        yield from _structs_in(kind.valueType)


def arrow_schema_of(schema: StructType, zone: str) -> pa.Schema:
    """The Arrow schema that Spark's batches have, with the Spark types that Arrow's do not tell.

    Raises:
        OptionError: Spark or PyArrow cannot hand a column of this type to Python.
    """
    return pa.schema([with_spark_type(_arrow_field(field, zone), field.dataType) for field in schema])


def with_spark_type(field: pa.Field, kind: DataType) -> pa.Field:
    """The same field, with the kind of each interval and time of day in its metadata, nested ones included."""
    made = field.type
    if isinstance(kind, DayTimeIntervalType) or pa.types.is_time(made):
        return field.with_metadata({**(field.metadata or {}), CATALYST_TYPE: kind.simpleString().encode()})
    if isinstance(kind, ArrayType):
        return field.with_type(pa.list_(with_spark_type(made.value_field, kind.elementType)))
    if isinstance(kind, MapType):
        key, value = with_spark_type(made.key_field, kind.keyType), with_spark_type(made.item_field, kind.valueType)
        return field.with_type(pa.map_(key, value))
    if isinstance(kind, StructType):
        children = [with_spark_type(child, each.dataType) for child, each in zip(made, kind, strict=True)]
        return field.with_type(pa.struct(children))
    return field


def _arrow_field(field: StructField, zone: str) -> pa.Field:
    try:
        return arrow_schema(StructType([field]), zone).field(0)
    except PySparkException as error:
        raise OptionError(
            f"Spark cannot hand columns of this type to Python: {error}",
            where=f"column {field.name}: {field.dataType.simpleString()}",
            next_step=_instead(field.dataType),
        ) from None


def _instead(kind: DataType) -> str:
    if isinstance(kind, YearMonthIntervalType):
        return "cast the column to a string, or to int for its number of months or years"
    if isinstance(kind, CalendarIntervalType):
        return "cast the column to a string"
    return "leave the column out, or cast it to a string"

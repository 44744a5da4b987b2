"""Rows to partitions: one record batch in, one for each partition value out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.model.errors import OptionError
from lockgate.spark.formats.spark_type import is_spatial, is_variant
from lockgate.spark.partition_path import partition_directory, value_texts

CODES_MAX = 1 << 62
"""More combinations of values than this are numbered anew, so that a row's number never leaves 64 bits."""


def named_columns(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns that these names stand for, in their own spelling: the one that is spelt so, or else the one that
    differs in case only.

    Raises:
        OptionError: there is none, or there are several that differ in case only.
    """
    found = []
    for name in wanted:
        near = [each for each in names if each == name] or [each for each in names if each.lower() == name.lower()]
        if len(near) != 1:
            raise OptionError(
                f"there is no column {name!r} to partition by"
                if not near
                else f"there is no column {name!r} to partition by, and several differ from it in case only",
                next_step=f"the columns are {', '.join(names)}",
            )
        found += near
    return found


class PartitionSplitter:
    """Splits batches of one schema by the values of some columns, which it leaves out of the rows.

    Raises:
        OptionError: a column does not exist, is nested, or no column would be left.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        self._columns = named_columns(schema.names, columns)
        for column in self._columns:
            kind = schema.field(column).type
            if pa.types.is_nested(kind) or pa.types.is_interval(kind):
                raise OptionError(
                    f"{_described(kind)} cannot be a partition column",
                    where=f"column {column}: {kind}",
                    next_step="partition by another column, or by a string made of this one",
                )
        self._fields = [schema.field(column) for column in self._columns]
        self._rest = [name for name in schema.names if name not in self._columns]
        if columns and not self._rest:
            raise OptionError(
                "every column is a partition column, so no column is left for the files",
                where=", ".join(columns),
                next_step="leave at least one column out of partitionBy",
            )
        self.schema = pa.schema([schema.field(name) for name in self._rest]) if columns else schema

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The partitions' directories, each with its rows, in their order. The rows are copies: what is kept of one
        partition does not keep the memory of the others."""
        if not self._columns:
            yield "", batch
            return
        codes, columns = self._codes(batch)
        rows = batch.select(self._rest)
        order = pc.sort_indices(codes)
        runs = pc.run_end_encode(codes.take(order))
        start = 0
        for end in runs.run_ends.to_pylist():
            first = order[start].as_py()
            values = [column.text(first) for column in columns]
            yield partition_directory(self._columns, values), rows.take(order.slice(start, end - start))
            start = end

    def _codes(self, batch: pa.RecordBatch) -> tuple[pa.Array, list[_Column]]:
        """A number for each row, the same for rows of one partition only; and the columns' texts."""
        codes: pa.Array = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
        combinations = 1
        columns: list[_Column] = []
        for field in self._fields:
            column = _Column(batch.column(field.name), field)
            size = len(column.texts)
            if combinations * size > CODES_MAX:
                # There are no more combinations than rows, and a batch has fewer than 2**31 of those.
                dense = codes.dictionary_encode()
                codes, combinations = dense.indices.cast(pa.int64()), len(dense.dictionary)
            codes = pc.add(pc.multiply(codes, size), column.indices.cast(pa.int64()))
            combinations *= size
            columns.append(column)
        return codes, columns


def _described(kind: pa.DataType) -> str:
    if is_variant(kind):
        return "a variant"
    if is_spatial(kind):
        return "a spatial value"
    return "a calendar interval" if pa.types.is_interval(kind) else "an array, map or struct"


class _Column:
    """The distinct values of a partition column in one batch, as text, and which of them each row has."""

    def __init__(self, values: pa.Array, field: pa.Field) -> None:
        encoded = values.dictionary_encode("encode")
        self.indices = encoded.indices
        self.texts = value_texts(encoded.dictionary, field)

    def text(self, row: int) -> str | None:
        """The text of a row's value; none for null."""
        index: int = self.indices[row].as_py()
        return self.texts[index]

"""Rows to partitions: one record batch in, one for each partition value out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.model.errors import OptionError
from lockgate.spark.partition_path import partition_directory, value_text


class PartitionSplitter:
    """Splits batches of one schema by the values of some columns, which it leaves out of the rows.

    Raises:
        OptionError: a column does not exist, is nested, or no column would be left.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        plain = {name.lower(): name for name in schema.names}
        missing = [column for column in columns if column.lower() not in plain]
        if missing:
            raise OptionError(
                f"there is no column {missing[0]!r} to partition by",
                next_step=f"the columns are {', '.join(schema.names)}",
            )
        self._columns = [plain[column.lower()] for column in columns]
        for column in self._columns:
            if pa.types.is_nested(schema.field(column).type):
                raise OptionError(
                    "an array, map or struct cannot be a partition column",
                    where=f"{column}: {schema.field(column).type}",
                )
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
        codes, keys = self._codes(batch)
        rows = batch.select(self._rest)
        order = pc.sort_indices(codes)
        runs = pc.run_end_encode(codes.take(order))
        start = 0
        for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield self._directory(code, keys), rows.take(order.slice(start, end - start))
            start = end

    def _codes(self, batch: pa.RecordBatch) -> tuple[pa.Array, list[list[str | None]]]:
        """A number for each row that tells its partition, and, for each column, the texts of its distinct values."""
        codes: pa.Array | None = None
        keys: list[list[str | None]] = []
        for name in self._columns:
            encoded = batch.column(name).dictionary_encode("encode")
            single = pa.types.is_float32(encoded.dictionary.type)
            keys.append([value_text(value, single=single) for value in encoded.dictionary.to_pylist()])
            indices = encoded.indices.cast(pa.int64())
            codes = indices if codes is None else pc.add(pc.multiply(codes, len(keys[-1])), indices)
        assert codes is not None
        return codes, keys

    def _directory(self, code: int, keys: list[list[str | None]]) -> str:
        values: list[str | None] = []
        for texts in reversed(keys):
            code, index = divmod(code, len(texts))
            values.append(texts[index])
        return partition_directory(self._columns, values[::-1])

"""Comma-separated values, as Spark's own reader takes them with its default options."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.model.errors import OptionError
from lockgate.spark.formats.file_format import FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.spark_type import is_spatial, is_variant
from lockgate.spark.formats.text_lines import COMPRESSIONS, LinesFile, one_character
from lockgate.spark.formats.value_text import joined, scalar_text

CHUNK_BYTES = 8 << 20


class Csv(FileFormat):
    """Lines of text. A null is empty, an empty string is two quotes."""

    name = "csv"
    extension = "csv"
    settings = ("header", "sep", "delimiter", "quote", "escape", "nullValue")
    compressions = COMPRESSIONS
    default_compression = "none"
    chunk_bytes = CHUNK_BYTES

    def file_extension(self, options: FormatOptions) -> str:
        """`csv` or `csv.gz`."""
        codec = self.compressions[options.compression]
        return f"csv.{codec}" if codec else "csv"

    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """Only columns that are one value a row."""
        refuse_types(
            self.name,
            schema,
            {
                "variants": is_variant,
                "spatial values": is_spatial,
                "arrays, maps and structs": pa.types.is_nested,
                "binary columns": lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
                "a column of the type void": pa.types.is_null,
                "calendar intervals": pa.types.is_interval,
            },
            "use parquet, or cast the column to a string",
        )
        _Dialect(options)

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A file, with a line of names first if the option `header` says so."""
        return _CsvFile(file, schema, options)


class _Dialect:
    def __init__(self, options: FormatOptions) -> None:
        by_other_name = options.setting("delimiter", "")
        self.separator = one_character("sep", options.setting("sep", by_other_name or ","))
        if by_other_name not in ("", self.separator):
            raise OptionError(
                "sep and delimiter are two names of one option, and are given differently",
                where=f"sep={self.separator!r}, delimiter={by_other_name!r}",
                next_step="leave one of them out",
            )
        self.quote = one_character("quote", options.setting("quote", '"'))
        self.escape = one_character("escape", options.setting("escape", "\\"))
        self.null = options.setting("nullValue", "")
        self.header = options.flag("header", False)

    def quoted(self, strings: pa.Array) -> pa.Array:
        """Strings with quotes round those that would read back as something else without them."""
        special = "".join(f"\\x{{{ord(each):x}}}" for each in (self.separator, self.quote, self.escape))
        risky = pc.match_substring_regex(strings, rf"^$|^\s|\s$|[{special}\r\n]")
        risky = pc.or_(risky, pc.equal(strings, self.null))
        if not pc.any(risky).as_py():
            return strings
        inner = pc.replace_substring(strings, self.escape, self.escape * 2)
        if self.quote != self.escape:
            inner = pc.replace_substring(inner, self.quote, self.escape + self.quote)
        return pc.if_else(risky, joined(self.quote, inner, self.quote), strings)


class _CsvFile(LinesFile):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        super().__init__(file, options.compression)
        self._schema = schema
        self._dialect = _Dialect(options)
        if self._dialect.header:
            names = self._dialect.quoted(pa.array(schema.names, pa.large_string()))
            self.put((self._dialect.separator.join(names.to_pylist()) + "\n").encode())

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        texts = [self._text(column, field) for column, field in zip(batch.columns, self._schema, strict=True)]
        nulls = {"null_handling": "replace", "null_replacement": self._dialect.null}
        line = joined(*texts, separator=self._dialect.separator, **nulls)
        if len(texts) == 1:
            # Readers skip an empty line, and the row with it; quotes keep it.
            line = pc.if_else(pc.equal(line, ""), pa.scalar(self._dialect.quote * 2, pa.large_string()), line)
        return joined(line, "\n")

    def _text(self, column: pa.Array, field: pa.Field) -> pa.Array:
        text = scalar_text(column, field).cast(pa.large_string())
        plain = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        return self._dialect.quoted(text) if plain else text

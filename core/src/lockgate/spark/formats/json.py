"""JSON lines, as Spark writes and reads them: an object a line, nulls left out."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.spark.formats.file_format import FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.text_lines import COMPRESSIONS, LinesFile, joined, scalar_text

_CONTROL = [(chr(code), f"\\u{code:04x}") for code in range(0x20)]


class Json(FileFormat):
    """One object a line. Binary columns are base64; map keys are strings."""

    name = "json"
    extension = "json"
    settings = ("ignoreNullFields",)
    compressions = COMPRESSIONS
    default_compression = "none"
    chunk_bytes = 8 << 20

    def file_extension(self, options: FormatOptions) -> str:
        """`json` or `json.gz`."""
        codec = self.compressions[options.compression]
        return f"json.{codec}" if codec else "json"

    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """Intervals have no form in JSON that every reader takes."""
        refuse_types(
            self.name,
            schema,
            {"intervals": lambda kind: pa.types.is_interval(kind) or pa.types.is_duration(kind)},
            "use parquet, or cast the column to a string",
        )
        options.flag("ignoreNullFields", True)

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A file of lines."""
        return _JsonFile(file, options)


class _JsonFile(LinesFile):
    def __init__(self, file: Any, options: FormatOptions) -> None:
        super().__init__(file, options.compression)
        self._omit_nulls = options.flag("ignoreNullFields", True)

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        fields = [
            joined(json.dumps(name, ensure_ascii=False) + ":", self._value(column))
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return joined("{", joined(*fields, separator=",", null_handling="skip"), "}\n")

    def _value(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            values = [None if value is None else self._nested(value, kind) for value in column.to_pylist()]
            text = pa.array(values, pa.large_string())
        elif pa.types.is_null(kind):
            text = column.cast(pa.large_string())
        else:
            text = scalar_text(column).cast(pa.large_string())
            if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
                text = _quoted_number(text, column) if pa.types.is_floating(kind) else _quoted(text)
        return text if self._omit_nulls else pc.fill_null(text, "null")

    def _nested(self, value: Any, kind: pa.DataType) -> str:
        if value is None:
            return "null"
        if pa.types.is_struct(kind):
            pairs = ((child.name, value[child.name], child.type) for child in kind)
            return self._object(pairs)
        if pa.types.is_map(kind):
            # Spark keeps a map's entries whose value is null, also where it leaves null fields of structs out.
            entries = [f"{_key(key)}:{self._nested(item, kind.item_type)}" for key, item in value]
            return "{" + ",".join(entries) + "}"
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return "[" + ",".join(self._nested(item, kind.value_type) for item in value) + "]"
        return _scalar(value)

    def _object(self, pairs: Any) -> str:
        shown = [
            f"{json.dumps(name, ensure_ascii=False)}:{self._nested(value, kind)}"
            for name, value, kind in pairs
            if value is not None or not self._omit_nulls
        ]
        return "{" + ",".join(shown) + "}"


def _key(key: Any) -> str:
    text = _scalar(key)
    return text if text.startswith('"') else f'"{text}"'


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, decimal.Decimal)):
        return format(value, "f") if isinstance(value, decimal.Decimal) else str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        naive = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return f'"{naive.isoformat(timespec="microseconds")}Z"'
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return f'"{value.isoformat()}"'
    return json.dumps(value, ensure_ascii=False)


def _quoted(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, r'["\\\x00-\x1f]')).as_py():
        text = pc.replace_substring(text, "\\", "\\\\")
        text = pc.replace_substring(text, '"', '\\"')
        if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
            for raw, escaped in _CONTROL:
                text = pc.replace_substring(text, raw, escaped)
    return joined('"', text, '"')


def _quoted_number(text: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_finite(column), text, _quoted(text))

"""JSON lines, as Spark writes and reads them: an object a line, nulls left out."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.spark.formats.file_format import FileFormat, FormatOptions, FormatWriter, refuse_types
from lockgate.spark.formats.spark_type import is_spatial, is_variant
from lockgate.spark.formats.text_lines import COMPRESSIONS, LinesFile
from lockgate.spark.formats.value_text import joined, scalar_text
from lockgate.spark.formats.variant_json import variant_json

_CONTROL = [(chr(code), f"\\u{code:04x}") for code in range(0x20)]


class Json(FileFormat):
    """One object a line. Binary columns are base64; map keys are strings; a variant is the JSON that it holds."""

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
        """A key in JSON is a string, so a map's keys must be single values."""
        refuse_types(
            self.name,
            schema,
            {
                "spatial values": is_spatial,
                "calendar intervals": pa.types.is_interval,
                "maps whose keys are arrays or structs": lambda kind: (
                    pa.types.is_map(kind) and pa.types.is_nested(kind.key_type)
                ),
            },
            "use parquet, or cast the column to a string",
        )
        options.flag("ignoreNullFields", True)

    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """A file of lines."""
        return _JsonFile(file, schema, options)


class _JsonFile(LinesFile):
    def __init__(self, file: Any, schema: pa.Schema, options: FormatOptions) -> None:
        super().__init__(file, options.compression)
        self._fields = list(schema)
        self._omit_nulls = options.flag("ignoreNullFields", True)

    def lines(self, batch: pa.RecordBatch) -> pa.Array:
        return joined(self._object(batch.columns, self._fields, batch.num_rows), "\n")

    def _object(self, columns: list[pa.Array], fields: list[pa.Field], rows: int) -> pa.Array:
        if not fields:
            return pa.array(["{}"] * rows, pa.large_string())
        members = [
            joined(_name(field.name) + ":", self._value(column, field, null=None if self._omit_nulls else "null"))
            for column, field in zip(columns, fields, strict=True)
        ]
        # Arrow leaves a row out whose parts are all null; the empty part before them keeps it, and costs a comma.
        content = joined("", *members, separator=",", null_handling="skip")
        return joined("{", pc.utf8_slice_codeunits(content, 1), "}")

    def _value(self, column: pa.Array, field: pa.Field, *, null: str | None) -> pa.Array:
        """The JSON of each value; `null` stands for a null, or nothing does."""
        kind = field.type
        if is_variant(kind):
            text = variant_json(column, field)
        elif pa.types.is_struct(kind):
            text = _where_valid(column, self._object(column.flatten(), list(kind), len(column)))
        elif pa.types.is_map(kind):
            text = self._map(column, kind)
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            values = self._value(column.flatten(), kind.value_field, null="null")
            text = _where_valid(column, joined("[", _lists(column, values), "]"))
        elif pa.types.is_null(kind):
            text = column.cast(pa.large_string())
        else:
            text = _scalar(column, field)
        return text if null is None else pc.fill_null(text, null)

    def _map(self, column: pa.Array, kind: pa.MapType) -> pa.Array:
        """Spark keeps a map's entries whose value is null, also where it leaves null fields of structs out."""
        entries = column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        keys, items = entries.flatten().flatten()
        texts = joined(_key(keys, kind.key_field), ":", self._value(items, kind.item_field, null="null"))
        return _where_valid(column, joined("{", _lists(entries, texts), "}"))


def _lists(column: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts of all lists' elements, joined list by list; a null list has none."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_pylist()
    offsets = pa.array(itertools.accumulate(lengths, initial=0), pa.int64())
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), pa.scalar(",", pa.large_string()))


def _where_valid(column: pa.Array, text: pa.Array) -> pa.Array:
    if not column.null_count:
        return text
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.large_string()))


def _scalar(column: pa.Array, field: pa.Field) -> pa.Array:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if value is None else base64.b64encode(value).decode() for value in column.to_pylist()]
        return joined('"', pa.array(texts, pa.large_string()), '"')
    text = scalar_text(column, field).cast(pa.large_string())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_finite(column), text, _quoted(text))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return text
    return _quoted(text)


def _key(keys: pa.Array, field: pa.Field) -> pa.Array:
    text = _scalar(keys, field)
    return pc.if_else(pc.starts_with(text, '"'), text, joined('"', text, '"'))


def _name(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _quoted(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, r'["\\\x00-\x1f]')).as_py():
        text = pc.replace_substring(text, "\\", "\\\\")
        text = pc.replace_substring(text, '"', '\\"')
        if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
            for raw, escaped in _CONTROL:
                text = pc.replace_substring(text, raw, escaped)
    return joined('"', text, '"')

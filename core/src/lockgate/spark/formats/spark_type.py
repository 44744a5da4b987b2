"""What Arrow's types leave out of Spark's: kept beside them, in the metadata of their fields."""

from __future__ import annotations

import pyarrow as pa

CATALYST_TYPE = b"spark.sql.catalyst.type"
"""The metadata key of a field whose Spark type its Arrow type does not tell. In ORC files it is the attribute that
Spark writes and reads for the same end (Spark's `OrcUtils.CATALYST_TYPE_ATTRIBUTE_NAME`)."""


def catalyst_type(field: pa.Field, default: str) -> str:
    """The Spark type that the field's metadata names, such as `interval day to second`."""
    named: bytes | None = (field.metadata or {}).get(CATALYST_TYPE)
    return default if named is None else named.decode()


def interval_type(field: pa.Field) -> str:
    """The kind of a day-time interval."""
    return catalyst_type(field, "interval day to second")


def is_variant(kind: pa.DataType) -> bool:
    """Whether a struct is what Spark makes of a VARIANT in Arrow."""
    return _tagged(kind, "metadata", b"variant")


def is_spatial(kind: pa.DataType) -> bool:
    """Whether a struct is what Spark makes of a GEOMETRY or GEOGRAPHY in Arrow."""
    return _tagged(kind, "wkb", b"geometry") or _tagged(kind, "wkb", b"geography")


def _tagged(kind: pa.DataType, name: str, tag: bytes) -> bool:
    return pa.types.is_struct(kind) and any(
        child.name == name and (child.metadata or {}).get(tag) == b"true" for child in kind
    )

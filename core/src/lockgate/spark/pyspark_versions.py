"""What differs between the versions of PySpark that are supported, 4.0 and later."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def _made_for_arrow_streams() -> type:
    """PySpark 4.0 has no stream writer of Arrow batches; but it hands them to whatever writer is a
    `DataSourceArrowWriter` as well (its `write_into_data_source`, where the task's function is made)."""
    bases = (datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter)
    return type("StreamArrowWriter", bases, {"__module__": __name__})


StreamArrowWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", None) or _made_for_arrow_streams()
"""The base of a stream's writer that is given Arrow batches."""


def arrow_schema(schema: StructType, zone: str) -> pa.Schema:
    """The schema of the Arrow batches that Spark hands to a task; `zone` is the session's time zone.

    PySpark 4.0 and 4.1 mark timestamps as UTC, as they hand them over; later versions with the session's zone.
    """
    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone=zone)
    return to_arrow_schema(schema)

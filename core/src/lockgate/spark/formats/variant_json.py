"""Variants as the JSON that they hold."""

from __future__ import annotations

import json
from typing import NoReturn

import pyarrow as pa

from lockgate.model.errors import OptionError


def variant_json(column: pa.Array, field: pa.Field) -> pa.Array:
    """The JSON of each variant, through PySpark's own reading of the encoding; nulls stay null.

    Raises:
        OptionError: a variant holds what PySpark cannot put into JSON, such as NaN or an interval.
    """
    from pyspark.sql.types import VariantVal

    def text(parts: dict[str, bytes]) -> str:
        try:
            made: str = VariantVal(parts["value"], parts["metadata"]).toJson()
            json.loads(made, parse_constant=_no_constant)
        except Exception as error:
            raise OptionError(
                f"json files cannot hold this variant: {error}",
                where=f"column {field.name}: variant",
                next_step="use parquet, or turn the column into a string with to_json",
            ) from None
        return made

    return pa.array([None if each is None else text(each) for each in column.to_pylist()], pa.large_string())


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")

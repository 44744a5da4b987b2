"""What Lockgate cannot write correctly is refused, with the column's name and another way; nothing becomes visible."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.errors import OptionError
from lockgate.spark import write

UNSPEAKABLE = {
    "interval '1-2' year to month": ("interval year to month", "cast the column to a string, or to int"),
    "array(interval '3' month)": ("array<interval month>", "cast it to a string"),
}
"""What PySpark hands to no Python data source, whatever the format. Calendar intervals Spark refuses by itself."""

REFUSED = {
    "csv": {
        "array(1)": ("arrays, maps and structs", "array<int>"),
        "cast('a' as binary)": ("binary columns", "binary"),
        "parse_json('1')": ("variants", "variant"),
        "null": ("a column of the type void", "void"),
    },
    "json": {
        "map(struct(1 as a), 2)": ("maps whose keys are arrays or structs", "map<struct<a:int>,int>"),
        "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')": ("spatial values", "geometry"),
    },
    "orc": {
        "parse_json('1')": ("variants", "variant"),
        "null": ("a column of the type void", "void"),
        "array(struct(null as x))": ("a column of the type void", "array<struct<x:void>>"),
        "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')": ("spatial values", "geometry"),
    },
    "parquet": {
        "null": ("a column of the type void", "void"),
        "struct()": ("a struct without fields", "struct<>"),
        "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')": ("spatial values", "geometry"),
    },
}


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json", "orc", "arrow"])
def test_a_type_that_cannot_be_written_is_refused_before_any_task(spark, destination, file_format) -> None:
    cases = {value: (kind, f"column the_column: {kind}", hint) for value, (kind, hint) in UNSPEAKABLE.items()}
    for value, (what, kind) in REFUSED.get(file_format, {}).items():
        cases[value] = (f"{file_format} files cannot hold {what}", f"column the_column: {kind}", "cast")
    for value, parts in cases.items():
        ran = spark.sparkContext.accumulator(0)
        df = spark.range(1).rdd.map(lambda row, ran=ran: (ran.add(1), row.id)[1:]).toDF("id long")
        with pytest.raises(OptionError) as caught:
            write(df.selectExpr(f"{value} as the_column", "id"), destination, format=file_format)
        for part in parts:
            assert part in str(caught.value), value
        assert ran.value == 0, "a task ran"
    assert not Path(destination).exists() or not list(Path(destination).rglob("part-*"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("array(id)", "an array, map or struct cannot be a partition column"),
        ("parse_json('1')", "a variant cannot be a partition column"),
    ],
)
def test_a_partition_column_that_cannot_name_directories_is_refused_before_any_task(
    spark, destination, column, message
) -> None:
    with pytest.raises(OptionError, match=message):
        write(spark.range(1).selectExpr("id", f"{column} as p"), destination, partition_by="p")
    assert not Path(destination).exists() or not list(Path(destination).rglob("part-*"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("timestamp'1899-12-31 23:59:59Z'", "the timestamp 1899-12-31 23:59:59 UTC"),
        ("array(timestamp'1969-12-31 23:59:59.5Z')", "column the_column.element: timestamp"),
        ("date'1582-10-10'", "the date 1582-10-10"),
        ("date'-0001-01-01'", "the date -0001-01-01"),
    ],
)
def test_what_orc_cannot_hold_is_refused_by_name(spark, destination, value, message) -> None:
    with pytest.raises(OptionError) as caught:
        write(spark.range(1).selectExpr(f"{value} as the_column"), destination, format="orc")
    assert f"orc files cannot hold the {'date' if 'date' in value else 'timestamp'}" in str(caught.value)
    assert "column the_column" in str(caught.value)
    assert message in str(caught.value)
    assert "use parquet" in str(caught.value)
    assert not list(Path(destination).rglob("*.orc"))

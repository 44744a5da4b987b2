"""What `lockgate.spark.write` is given, before Spark is asked for anything."""

from __future__ import annotations

import json

import pytest
from lockgate.errors import OptionError, UsageError
from lockgate.spark import write
from lockgate.spark.check_schema import check_schema, refuse_duplicates
from lockgate.spark.save import _names, _told_as_arguments
from lockgate.spark.write_options import WriteOptions, is_given
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType


@pytest.mark.parametrize("given", [[1, 2], {"a": 1}, None, "df"])
def test_what_is_no_dataframe_is_refused_by_its_type(given, tmp_path) -> None:
    with pytest.raises(UsageError, match=f"takes a DataFrame of Spark first, not {type(given).__name__}") as caught:
        write(given, str(tmp_path / "t"))
    assert "spark.createDataFrame" in caught.value.next_step
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("given", [3, ["a", 3], {"a": 1}, object()])
def test_partition_columns_that_are_no_names_are_told(given) -> None:
    with pytest.raises(OptionError, match="name of a column or several") as caught:
        _names(given)
    assert "partition_by=" in caught.value.next_step


def test_an_option_that_nobody_knows_is_told_as_the_argument_that_it_was() -> None:
    with pytest.raises(OptionError, match="no option 'conflct'") as caught, _told_as_arguments():
        WriteOptions.parse({"path": "/x", "conflct": "append"})
    assert caught.value.where == "given as an argument"
    with pytest.raises(OptionError) as caught, _told_as_arguments():
        WriteOptions.parse({"path": "/x", "rowGroupBytes": "-1"})
    assert "an option of the write" not in str(caught.value)


TWICE = StructType([StructField("x", LongType()), StructField("X", LongType())])


@pytest.mark.parametrize("kind", [TWICE, ArrayType(TWICE), MapType(StringType(), TWICE)])
def test_names_that_are_one_to_spark_are_refused(kind) -> None:
    for schema in (TWICE, StructType([StructField("nested", kind)])):
        with pytest.raises(OptionError, match="two columns have one name"):
            refuse_duplicates(schema, case_sensitive=False)
        refuse_duplicates(schema, case_sensitive=True)


def test_an_option_is_found_however_it_is_spelled() -> None:
    assert is_given("jobId", {"job_id": "a"})
    assert is_given("jobId", {"lockgate.JOB-ID": "a"})
    assert not is_given("jobId", {"job_attempt": "1"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"partitionOverwriteMode": "dynamic"}, {"partition_overwrite_mode": "static"}),
        ({"jobId": "a"}, {"lockgate.job_id": "b"}),
        ({"nullValue": "-"}, {"null_value": "none"}),
        ({"conflict": "fail"}, {"lockgate.conflict": "append"}),
    ],
)
def test_one_option_in_two_spellings_is_refused_where_the_values_differ(first, second) -> None:
    path = {"path": "/t", "format": "csv"}
    with pytest.raises(OptionError, match="given twice"):
        WriteOptions.parse(path | first | second)
    WriteOptions.parse(path | first | dict.fromkeys(second, *first.values()))


@pytest.mark.parametrize("name", ["jobId", "txn_id", "lockgate.txn_id", "compression", "maxOpenFiles"])
def test_an_empty_value_is_told_as_one_that_was_forgotten(name) -> None:
    with pytest.raises(OptionError, match="is empty"):
        WriteOptions.parse({"path": "/t", name: " " if name == "jobId" else ""})


def test_two_names_of_one_option_with_two_values_are_refused() -> None:
    given = {"path": "/t", "format": "csv", "sep": ";", "delimiter": "|"}
    with pytest.raises(OptionError, match="two names of one option"):
        check_schema(StructType([StructField("a", LongType())]), WriteOptions.parse(given))
    check_schema(StructType([StructField("a", LongType())]), WriteOptions.parse(given | {"delimiter": ";"}))


@pytest.mark.parametrize("name", [".h", "..", ""])
def test_a_partition_column_whose_rows_no_reader_would_see_is_refused(name) -> None:
    schema = StructType([StructField(name, LongType()), StructField("a", LongType())])
    with pytest.raises(OptionError, match="a column to partition by has"):
        check_schema(schema, WriteOptions.parse({"path": "/t", "partitionBy": json.dumps([name])}))

"""What `lockgate.spark.write` is given, before Spark is asked for anything."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError, UsageError
from lockgate.spark import write
from lockgate.spark.check_schema import refuse_duplicates
from lockgate.spark.save import _names
from lockgate.spark.write_options import is_given
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

"""What a Spark write is given: names of columns and of options."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate.spark.check_schema import refuse_duplicates
from lockgate.spark.write_options import is_given
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

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

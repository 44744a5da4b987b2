"""A client of a Spark Connect server whose own writers commit through Lockgate: `… URL TABLE`."""

from __future__ import annotations

import sys

import lockgate.spark
from lockgate.errors import UsageError
from pyspark.sql import SparkSession

builder = SparkSession.builder.remote(sys.argv[1])
try:
    lockgate.spark.configure(builder)  # would name this Python to the server, and a jar that it does not look for
except UsageError as error:
    assert "not turned on by its client" in str(error)
else:
    raise AssertionError("configure took the builder of a session on a server")
spark = builder.getOrCreate()
lockgate.spark.enable(spark)
lockgate.spark.disable(spark)
lockgate.spark.enable(spark)
for count in (60, 30):
    spark.range(0, count, 1, 2).selectExpr("id", "id % 3 AS p").write.mode("overwrite").partitionBy("p").parquet(
        sys.argv[2]
    )
print(spark.read.parquet(sys.argv[2]).count())

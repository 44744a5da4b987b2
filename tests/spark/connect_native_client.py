"""A client of a Spark Connect server whose own writers commit through Lockgate: `… URL TABLE`."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for count in (60, 30):
    spark.range(0, count, 1, 2).selectExpr("id", "id % 3 AS p").write.mode("overwrite").partitionBy("p").parquet(
        sys.argv[2]
    )
print(spark.read.parquet(sys.argv[2]).count())

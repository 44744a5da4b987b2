"""A program for `spark-submit`: two native writes, and one by `format("lockgate")`. `yarn_job.py BASE`."""

from __future__ import annotations

import sys

import lockgate.spark
from pyspark.sql import SparkSession

base = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
df = spark.range(0, 60, 1, 2).selectExpr("id", "id % 3 AS p")
df.write.partitionBy("p").parquet(f"{base}/native")
df.where("id < 30").write.mode("overwrite").partitionBy("p").parquet(f"{base}/native")
# The files of this one are renamed by the executor, which has two cores.
lockgate.spark.distribute(spark, above=2)
df.write.format("lockgate").option("partitionBy", "p").mode("append").save(f"{base}/source")
for name, rows in (("native", 30), ("source", 60)):
    found = spark.read.parquet(f"{base}/{name}").count()
    if found != rows:
        sys.exit(f"{base}/{name} holds {found} rows instead of {rows}")
spark.stop()

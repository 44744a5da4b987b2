"""A program of its own, whose standard error is what a terminal shows of its driver: one transaction id, for two rows
and then for three, and an option that has no effect. Argument: the destination."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for rows in (2, 3):
    writer = session.range(rows).write.format("lockgate").mode("append").option("txnId", "daily")
    writer.option("hive_buckets", "4").save(sys.argv[1])
print(session.read.parquet(sys.argv[1]).count())
session.stop()

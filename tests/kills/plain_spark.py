"""What Spark does without Lockgate: it reads tables, appends a row to each, and reads them again.

    python plain_spark.py DESTINATION...

The last line is JSON: for each destination, the rows read before and after.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession

SCHEMA = "row string, p int"

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def rows(destination: str) -> list[str]:
    """The rows, whether or not there is any file."""
    return sorted(row.row for row in spark.read.schema(SCHEMA).parquet(destination).collect())


found = []
for destination in sys.argv[1:]:
    before = rows(destination)
    df = spark.range(1).selectExpr("'appended' AS row", "7 AS p")
    df.write.mode("append").partitionBy("p").parquet(destination)
    found.append([before, rows(destination)])
print(json.dumps(found))

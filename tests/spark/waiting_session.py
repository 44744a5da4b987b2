"""A program of its own, whose standard error is what a notebook shows of its driver: two writes to a store that answers
nothing but that it is too busy. Arguments: the store's URL, and the way to write."""

from __future__ import annotations

import os
import sys

from lockgate.spark import write
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
endpoint, way = sys.argv[1:]
OPTIONS = {"store.endpoint_url": endpoint, "store.key": "k", "store.secret": "s", "patience_seconds": "8"}
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = session.range(1)
try:
    if way == "write":
        write(rows, "s3://b/t", mode="ignore", **OPTIONS)
    else:
        rows.write.format("lockgate").options(**OPTIONS).mode("append").save("s3://b/t")
except Exception as error:
    print("failed:", type(error).__name__)
finally:
    session.stop()

"""A program of its own, whose standard error is a terminal: a write by Spark's own writer and one by
`format("lockgate")`, then both again with progress turned off. `python progress_session.py BASE`."""

from __future__ import annotations

import os
import sys
from typing import Any

import lockgate.spark
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = lockgate.spark.configure(builder).getOrCreate()


def write_both(name: str) -> None:
    rows: Any = spark.range(0, 4, 1, 1)
    for way in ("parquet", "lockgate"):
        print(f"{name} {way}:", file=sys.stderr, flush=True)
        rows.write.format(way).mode("append").save(f"{sys.argv[1]}/{name}-{way}")


write_both("on")
spark.conf.set("spark.lockgate.progress", "false")
write_both("off")
print("end:", file=sys.stderr, flush=True)
spark.stop()

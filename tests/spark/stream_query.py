"""A streaming query in a process of its own, to be killed: python stream_query.py BASE."""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession

base = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
query = (
    spark.readStream.schema("id long, p long").option("maxFilesPerTrigger", 2).json(f"{base}/in")
    .writeStream.format("lockgate")
    .options(partitionBy="p", checkpointLocation=f"{base}/checkpoint", patience_seconds="5")
    .trigger(availableNow=True)
    .start(f"{base}/out")
)  # fmt: skip
print("started", flush=True)
query.awaitTermination()

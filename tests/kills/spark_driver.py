"""A Spark driver on `local-cluster` that replaces a table again and again, until it is killed.

    python spark_driver.py DESTINATION FIRST_VERSION

It says `writing N` before version N, and slows its commits down through a plugin's hook, so that kills find them.
"""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from lockgate.spark import write
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.executor.memory", "512m")
for name, value in {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS")
    or "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.showConsoleProgress": "false",
}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
destination, version = sys.argv[1], int(sys.argv[2])
while True:
    df = spark.range(0, 400, 1, 4).selectExpr("id", "id % 10 as p", f"'v{version}' as version")
    print(f"writing {version}", flush=True)
    write(df, destination, mode="overwrite", partition_by="p", file_list_inline_max=0)
    version += 1

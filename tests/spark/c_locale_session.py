"""A session whose JVM has the C locale, as in many containers: `python c_locale_session.py BASE`. It writes rows of
partitions `é` and `a`, appended and overwritten, and to a destination `é`, and says what was told and what is there."""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import lockgate.spark
from pyspark.sql import SparkSession

base = sys.argv[1]
settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}
spark = lockgate.spark.configure(SparkSession.builder.master("local[1]").config(map=settings)).getOrCreate()
rows = spark.createDataFrame([(1, "é"), (2, "a")], "id int, p string").coalesce(1)
rows.where("id = 2").write.partitionBy("p").parquet(f"{base}/table")
for path, mode in (("table", "append"), ("table", "overwrite"), ("é", "append")):
    try:
        rows.write.mode(mode).partitionBy("p").parquet(f"{base}/{path}")
        print(ascii(path), mode, "written")
    except Exception as error:
        print(ascii(path), mode, "refused" if "cannot name a file so" in str(error) else ascii(str(error)))
print("rows", spark.read.parquet(f"{base}/table").count())

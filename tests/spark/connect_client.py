"""A Spark Connect client: writes partitioned with every mode, streams, and compares what it reads back."""

from __future__ import annotations

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from lockgate.spark import write
from pyspark.sql import SparkSession

base = sys.argv[1]
builder = SparkSession.builder.remote("local[2]")
for name, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF"}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
assert "connect" in type(spark).__module__, "this is a Connect session"

df = spark.range(0, 5000, 1, 3).selectExpr("id", "id % 3 as p", "concat('x:', id) as s")
df.write.format("lockgate").option("partitionBy", "p").mode("append").save(f"{base}/plain")
summary = write(df, f"{base}/modes", partition_by="p")
assert summary is not None
assert summary.counters["rows_written"] == 5000
assert write(df, f"{base}/modes", mode="ignore") is None
spark.conf.set("spark.lockgate.conflict", "replace-partitions")
write(df.where("p = 1"), f"{base}/modes", mode="overwrite", partition_by="p")
spark.conf.unset("spark.lockgate.conflict")
for name in ("plain", "modes"):
    back = spark.read.parquet(f"{base}/{name}").selectExpr("id", "cast(p as bigint) p", "s")
    assert back.count() == 5000
    assert df.exceptAll(back).count() == 0

stream = spark.readStream.schema("id bigint, s string, p int").option("maxFilesPerTrigger", 2).parquet(f"{base}/plain")
query = (
    stream.writeStream.format("lockgate")
    .option("checkpointLocation", f"{base}/checkpoint")
    .trigger(availableNow=True)
    .start(f"{base}/stream")
)
query.awaitTermination()
assert spark.read.parquet(f"{base}/stream").count() == 5000
spark.stop()
print("equal")

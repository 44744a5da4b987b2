"""A program of its own, on a cluster on this machine: writes whose files executors rename, since it has called
`lockgate.spark.distribute`. `python spread_writes.py BASE WRITER-FAULT…`.

Each write replaces the ten rows of the table BASE/WRITER-FAULT by thirty, in twelve files. WRITER is `native` or
`source`. FAULT is `none`; one of `moving_faults`; or `busy`: when the write's tasks are over, others are on all
executors. A line of JSON tells what became of each.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import lockgate.spark
from lockgate.api.destination import last_summary
from pyspark.sql import DataFrame, SparkSession
from small_jvm import SMALL_JVM

base = Path(sys.argv[1])
settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.executor.memory": "512m"}
settings["spark.executor.extraJavaOptions"] = SMALL_JVM
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings)
spark = lockgate.spark.configure(builder).getOrCreate()
tracker = spark.sparkContext.statusTracker()


def save(rows: DataFrame, writer: str, table: Path) -> None:
    if writer == "native":
        rows.write.mode("overwrite").partitionBy("p").parquet(str(table))
    else:
        rows.write.format("lockgate").mode("overwrite").option("partitionBy", "p").save(str(table))


def hold_executors() -> None:
    while not tracker.getActiveStageIds():
        time.sleep(0.05)
    spark.sparkContext.parallelize(range(2), 2).foreach(lambda _: time.sleep(600))


(base / "driver").write_text(str(os.getpid()))
for name in sys.argv[2:]:
    writer, _, fault = name.partition("-")
    lockgate.spark.distribute(spark, above=0)
    save(spark.range(0, 10, 1, 2).selectExpr("id", "id % 4 AS p"), writer, base / name)
    # An executor that was killed may be long in coming back; a busy one does not.
    lockgate.spark.distribute(spark, above=11, tasks=2, idle_seconds=5.0 if fault == "busy" else 300.0)
    rows = spark.range(0, 30, 1, 3).selectExpr("id", "id % 4 AS p")
    if fault == "busy":
        threading.Thread(target=hold_executors, daemon=True).start()
        rows = rows.where("reflect('java.lang.Thread', 'sleep', 200L) IS NULL OR true")
    elif fault != "none":
        (base / "fault").write_text(fault)
    save(rows, writer, base / name)
    summary = last_summary(str(base / name))
    assert summary is not None
    told = {"write": name, "files": summary.files, "counters": summary.iostatistics.counters}
    print(json.dumps(told), flush=True)
os._exit(0)

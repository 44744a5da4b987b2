"""A Spark driver that is killed with an overwrite of a table with partitions elsewhere under way:
`python killed_locations_driver.py BASE WHEN`. WHEN is `commit`: its job commit is held (`held_stage`) when the parts in
the other places have moved their files; or `tasks`: its first task has committed, and its second hangs. It says so
then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import lockgate.spark
from pyspark.sql import SparkSession

base, when = Path(sys.argv[1]), sys.argv[2]
settings = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.warehouse.dir": str(base / "warehouse"),
}
spark = lockgate.spark.configure(SparkSession.builder.master("local[2]").config(map=settings)).getOrCreate()
spark.sql(f"CREATE TABLE t (id BIGINT, s STRING, p INT) USING parquet PARTITIONED BY (p) LOCATION '{base / 'table'}'")
for p, place in ((2, "two"), (3, "three")):
    spark.sql(f"ALTER TABLE t ADD PARTITION (p = {p}) LOCATION '{base / place}'")
spark.sql("INSERT INTO t SELECT id, '', CAST(1 + id % 3 AS INT) FROM range(0, 30, 1, 2)")


def insert() -> None:
    hangs = "reflect('java.lang.Thread', 'sleep', 600000L)" if when == "tasks" else "''"
    text = f"CASE WHEN id > 5 THEN {hangs} ELSE '' END"
    spark.sql(f"INSERT OVERWRITE t SELECT id, {text}, CAST(1 + id % 3 AS INT) FROM range(0, 12, 1, 2)")


if when == "commit":
    (base / "hold").touch()
threading.Thread(target=insert, daemon=True).start()
tracker = spark.sparkContext.statusTracker()
while True:
    time.sleep(0.1)
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    if when == "tasks" and [stage.numCompletedTasks for stage in stages if stage is not None] == [1]:
        break
    if (base / "held-alone").exists():
        break
print("ready", flush=True)
time.sleep(600)

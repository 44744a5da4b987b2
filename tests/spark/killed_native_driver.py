"""A Spark driver that is killed with writes at every stage: `python killed_native_driver.py BASE OTHER_PYTHON`.

Of the tables `done`, `alone` and `left`, which hold twenty rows, it replaces `done` to its end, and holds the job
commits of the others before their first rename (`held_stage`), each in a Python engine of its own. It hangs in the
second task of inserts into `before`, `native` and `default`, whose first task has committed. It says so then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import lockgate.spark
from lockgate.spark.native_session import COMMIT_PROTOCOL_SETTING, PYTHON_SETTING
from pyspark import SparkContext
from pyspark.sql import SparkSession

SPARKS_OWN = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
HANGING_ROWS = "CASE WHEN id > 1 THEN reflect('java.lang.Thread', 'sleep', 600000L) ELSE '' END AS s"

base = Path(sys.argv[1])
settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}
builder = SparkSession.builder.master("local[6]").config(map=settings)
spark = lockgate.spark.configure(builder).getOrCreate()


def replace(session: Any, name: str, count: int = 30) -> None:
    rows = session.range(0, count, 1, 2).selectExpr("id", "id % 3 AS p")
    rows.write.mode("overwrite").partitionBy("p").parquet(str(base / name))


def insert(session: Any, name: str) -> None:
    columns = "(id BIGINT, s STRING, p INT) USING parquet PARTITIONED BY (p)"
    session.sql(f"CREATE TABLE {name}_t {columns} LOCATION '{base / name}'")
    session.sql(f"INSERT OVERWRITE {name}_t PARTITION (p = 1) SELECT id, {HANGING_ROWS} FROM range(0, 4, 1, 2)")


def begin(what: Any, session: Any, name: str) -> None:
    threading.Thread(target=what, args=(session, name), daemon=True).start()


for name in ("done", "alone", "left"):
    replace(spark, name, 20)
replace(spark, "done")
in_other_python, sparks_own = spark.newSession(), spark.newSession()
in_other_python.conf.set(PYTHON_SETTING, sys.argv[2])
sparks_own.conf.set(COMMIT_PROTOCOL_SETTING, SPARKS_OWN)
begin(insert, spark, "before")
begin(insert, spark, "native")
begin(insert, sparks_own, "default")
tracker = spark.sparkContext.statusTracker()
committed: list[int] = []
while committed != [1, 1, 1]:
    time.sleep(0.1)
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    committed = [stage.numCompletedTasks for stage in stages if stage is not None]
(base / "hold").touch()
begin(replace, spark, "alone")
begin(replace, in_other_python, "left")
while len(list(base.glob("held-*"))) < 2:
    time.sleep(0.1)
gateway: Any = SparkContext._gateway
print(f"jvm {gateway.jvm.java.lang.ProcessHandle.current().pid()}", flush=True)
time.sleep(600)

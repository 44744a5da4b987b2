"""A program of its own: a job of thirty files that replaces what BASE/table holds, committed by the executors of a
cluster on this machine. `python distributed_job.py BASE FAULT`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import lockgate.spark
from lockgate import Job
from pyspark.sql import SparkSession
from small_jvm import SMALL_JVM

base, fault = Path(sys.argv[1]), sys.argv[2]
os.environ["PYSPARK_PYTHON"] = sys.executable
settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.executor.memory": "512m"}
settings["spark.executor.extraJavaOptions"] = SMALL_JVM
spark = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
job = Job(base / "table", conflict="replace")
job.setup()
receipts = []
for task in range(3):
    attempt = job.task_attempt(task)
    attempt.setup()
    for number in range(10):
        with attempt.open(f"p={number % 4}/new-{task}-{number}.bin") as file:
            file.write(b"new")
    receipts.append(attempt.commit())
(base / "driver").write_text(str(os.getpid()))
if fault:
    (base / "fault").write_text(fault)
summary = lockgate.spark.commit(spark, job, receipts, above=29, tasks=2)
print(json.dumps({"files": summary.files, "counters": summary.iostatistics.counters}))
spark.stop()

"""A program of its own, whose session has what its stores need from the start, as those of a cluster have it: writes by
`format("lockgate")`, one a line of standard input. A line is JSON: `url`, `options`, and `fails`, whether a task is to
raise before any has committed, or `set`, settings of the session that come now. The answer to each: `ok`, or the error.

Argument: the settings, as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

os.environ["PYSPARK_PYTHON"] = sys.executable
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
session.sparkContext.setLogLevel("OFF")


def failing(number: int) -> int:
    """Fails in every row of the first task, and before it."""
    raise ValueError(f"bad row {number}")


for line in sys.stdin:
    asked = json.loads(line)
    for name, value in asked.get("set", {}).items():
        session.conf.set(name, value)
    df = session.range(0, 10, 1, 2)
    if asked.get("fails"):
        df = df.select(udf(failing, "long")("id").alias("id"))
    try:
        df.write.format("lockgate").options(**asked.get("options", {})).mode("append").save(asked["url"])
        print(json.dumps("ok"), flush=True)
    except Exception as error:
        print(json.dumps(str(error)), flush=True)
session.stop()

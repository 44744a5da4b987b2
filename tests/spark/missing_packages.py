"""What a user sees where packages are missing in the Pythons that Spark starts. Run by test_spark_found.py."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from lockgate.errors import UsageError
from lockgate.spark import write
from pyspark.sql import SparkSession

case, base = sys.argv[1], Path(sys.argv[2])
hidden = base / "hidden"
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
if case == "installed-later":
    # From here on, so that it counts for the Pythons that Spark starts and not for this one.
    os.environ["PYTHONPATH"] = str(base / "site")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    hidden.write_text("pyspark_lockgate")
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
df = spark.range(3)


def fails(call: Any, *words: str) -> None:
    try:
        call()
    except Exception as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"{missing} are not said in: {error}"
        return
    raise AssertionError(f"nothing was said of {words}")


def save(name: str) -> None:
    df.write.format("lockgate").mode("append").save(str(base / name))


if case == "not-activated":
    fails(lambda: write(df, str(base / "t")), "No module named 'lockgate'", "PYSPARK_PYTHON", sys.executable)
    fails(lambda: save("t"), "DATA_SOURCE_NOT_FOUND")  # all that Spark says
    assert not (base / "t").exists()
    print("told")
else:
    fails(lambda: save("t"), "DATA_SOURCE_NOT_FOUND")
    fails(lambda: write(df, str(base / "t")), "No module named 'pyspark_lockgate'", "PYSPARK_PYTHON", sys.executable)
    hidden.write_text("pyarrow")
    spark.dataSource.register(__import__("pyspark_lockgate").DefaultSource)
    everywhere = ("pyarrow", 'pip install "lockgate[spark]"', "driver's Python", "PYSPARK_PYTHON", "every executor")
    fails(lambda: save("t"), "the Python that Spark started to plan the write has none", sys.executable)
    fails(lambda: save("t"), *everywhere)
    try:
        write(df, str(base / "fresh"))
    except UsageError as error:
        assert "pyarrow" in str(error)
    hidden.unlink()
    save("t")
    failures: list[BaseException] = []

    def in_a_thread() -> None:
        try:
            write(df, str(base / "t"), mode="append")
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert not failures, failures
    assert spark.read.parquet(str(base / "t")).count() == 6
    print("told and found")
spark.stop()

"""Spark's own Parquet writer, committed through Lockgate and by Spark's default committer, in turns.

    python tests/benchmarks/bench_spark_native.py [--quick] [--json FILE] [--directory DIR] [--rows N] [--rounds N]

8 million rows of 5 columns, plain and with `partitionBy`; seven rounds after one to warm up, and each round begins with
the other committer, so that neither always comes first. The goal is 1.0 times Spark's default, within noise.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from given_directory import given_directory

ROWS = 8_000_000
QUICK = 20_000
ROUNDS = 7
COMMITTERS = ("Spark's default", "Lockgate")


def write(spark: Any, rows: int, destination: Path, committer: str, *, partitioned: bool) -> float:
    """The seconds that one write takes."""
    import lockgate.spark

    df = spark.range(rows).selectExpr(
        "id", "id % 20 AS p", "rand(1) AS x", "CAST(id % 1000 AS STRING) AS s", "timestamp_seconds(id) AS t"
    )
    (lockgate.spark.enable if committer == "Lockgate" else lockgate.spark.disable)(spark)
    writer = df.write.partitionBy("p") if partitioned else df.write
    began = time.perf_counter()
    writer.parquet(str(destination))
    seconds = time.perf_counter() - began
    shutil.rmtree(destination)
    return seconds


def measure(spark: Any, rows: int, rounds: int, warm: int, directory: Path, *, partitioned: bool) -> dict[str, Any]:
    """Every round's seconds after `warm` ones, and of each committer the median, and the ratio of the medians."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMITTERS}
    for number in range(1 - warm, rounds + 1):
        for name in COMMITTERS if number % 2 else reversed(COMMITTERS):
            took = write(spark, rows, directory / "table", name, partitioned=partitioned)
            if number > 0:
                seconds[name].append(took)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    ratio = medians["Lockgate"] / medians["Spark's default"]
    return {"partitioned": partitioned, "rows": rows, "seconds": seconds, "medians": medians, "ratio": ratio}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--directory", type=given_directory)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args()
    rows = given.rows or (QUICK if given.quick else ROWS)
    rounds, warm = given.rounds or (1 if given.quick else ROUNDS), 0 if given.quick else 1
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "2g").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory(dir=given.directory) as scratch:
        found = [measure(spark, rows, rounds, warm, Path(scratch), partitioned=each) for each in (False, True)]
    spark.stop()
    print(f"{rows} rows, 5 columns, median of {rounds}\n")
    print("| write | Spark's default | Lockgate | ratio |\n| --- | --- | --- | --- |")
    for each in found:
        how = "partitionBy" if each["partitioned"] else "plain"
        default, ours = (each["medians"][name] for name in COMMITTERS)
        print(f"| {how} | {default:.2f} s | {ours:.2f} s | {each['ratio']:.2f} |")
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()

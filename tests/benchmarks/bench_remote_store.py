"""Job commit on remote stores: requests per committed file, and time against what latency allows.

    python tests/benchmarks/bench_remote_store.py [--quick] [--json FILE] [--store abfs|gcs|s3] [--latency-ms 20]

What is measured: the commit of a job of 2,000 files in 20 tasks, in a policy that replaces nothing, over the lab's
emulator as a process of its own, which answers each request after 20 ms; for S3, over versitygw behind the lab's proxy,
which waits. No client can be faster than files x latency / requests in flight, so the time stands beside that limit.
Requests are counted by the emulator, from the call of `commit` to its return: manifests, commit record, directories,
summary and cleanup are all in it.

What the commit takes beside its renames is told in round trips as well (`in a row`): seconds without the stage of the
renames, over the latency. That counts them where the latency is long beside the CPU of both ends: `--latency-ms 300`.

Goals: one rename request a file, all else together under 0.1 a file, and at most 1.3 times the limit. Cloud Storage
moves files in batches of 100, so it needs less than one request a file; the emulator delays a batch as one request,
which the service may not, so its time is no promise. On S3 the completion of an upload stands in a rename's place, and
the goal is 1.2 times the limit at 16 in flight. Not a goal: writing the files, which is not timed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate import Job, JobOptions, Receipt
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers import VersityGateway


@dataclass(frozen=True)
class Shape:
    """The job, and the wait before each answer."""

    tasks: int = 20
    files: int = 100
    directories: int = 20
    latency_ms: float = 20.0
    rounds: int = 3


class Azure:
    """The Azure emulator, and a destination in it."""

    name = "abfs"
    stage = "rename_files"
    renames = ("RenamePath",)
    in_flight = (8, 16, 32, 64)

    def __init__(self) -> None:
        self.server = ServerProcess.of_module("lockgate_lab", "azure")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The emulator."""
        with self.server:
            yield

    def prepare(self) -> None:
        """Make the container."""
        endpoint = self.server.announcement["endpoint"]
        asked = urllib.request.Request(
            f"{endpoint}/data?restype=container", method="PUT", headers={"Authorization": "Bearer x"}
        )
        urllib.request.urlopen(asked, timeout=10).close()

    def url(self, name: str) -> str:
        """A destination's URL."""
        return f"abfss://data@devstoreaccount1.dfs.core.windows.net/{name}"

    def store(self) -> dict[str, str]:
        """The store's options."""
        return {"connection_string": str(self.server.announcement["connection_string"])}


class Gcs:
    """The Cloud Storage emulator, and a destination in it."""

    name = "gcs"
    stage = "rename_files"
    renames = ("objects.move", "batch")
    in_flight = (16, 64)

    def __init__(self) -> None:
        self.server = ServerProcess.of_module("lockgate_lab", "gcs")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The emulator."""
        with self.server:
            yield

    def prepare(self) -> None:
        """Make the bucket."""
        body = json.dumps({"name": "data"}).encode()
        asked = urllib.request.Request(f"{self.server.url}/storage/v1/b", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(asked, timeout=10).close()

    def url(self, name: str) -> str:
        """A destination's URL."""
        return f"gs://data/{name}"

    def store(self) -> dict[str, str]:
        """The store's options."""
        return {"endpoint_url": self.server.url}


class S3:
    """versitygw behind the lab's proxy, and a destination in it."""

    name = "s3"
    stage = "complete_uploads"
    renames = ("CompleteMultipartUpload",)
    in_flight = (16, 64)

    def __init__(self) -> None:
        self.gateway = VersityGateway()
        self.server: ServerProcess = None  # type: ignore[assignment]  # known once the gateway has a port

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Both servers."""
        with self.gateway:
            self.server = ServerProcess.of_module(
                "lockgate_lab", "proxy", "--dialect", "s3", "--upstream", self.gateway.url
            )
            with self.server:
                yield

    def prepare(self) -> None:
        """Make the bucket."""
        self.gateway.make_bucket("data")

    def url(self, name: str) -> str:
        """A destination's URL."""
        return f"s3://data/{name}"

    def store(self) -> dict[str, str]:
        """The store's options."""
        return {"endpoint_url": self.server.url, "key": self.gateway.access_key, "secret": self.gateway.secret_key}


def _write(job: Job, shape: Shape, task: int) -> Receipt:
    attempt = job.task_attempt(task)
    attempt.setup()
    for index in range(shape.files):
        with attempt.open(f"p={index % shape.directories:02d}/part-{task:03d}-{index:04d}.bin") as file:
            file.write(b"x" * 100)
    return attempt.commit()


def measure(remote: Azure | Gcs | S3, shape: Shape, in_flight: int, round_: int) -> dict[str, Any]:
    """One job; what its commit cost."""
    options = JobOptions(store=remote.store(), requests_in_flight=in_flight)
    lab = remote.server.lab
    lab.latency(0)
    job = Job(remote.url(f"{in_flight}/{round_}"), options)
    job.setup()
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        receipts = list(threads.map(lambda task: _write(job, shape, task), range(shape.tasks)))
    lab.reset()
    lab.latency(shape.latency_ms)
    began = time.perf_counter()
    cpu_began = time.process_time()
    summary = job.commit(receipts)
    seconds = time.perf_counter() - began
    cpu_seconds = time.process_time() - cpu_began
    lab.latency(0)
    counts = lab.counts()
    files = shape.tasks * shape.files
    assert summary.files == files
    operations = counts["operations"]
    renames = sum(operations.get(name, 0) for name in remote.renames)
    rename_seconds = summary.lockgate.stage_seconds.get(remote.stage, 0.0) if summary.lockgate else 0.0
    limit = files * shape.latency_ms / 1000 / in_flight
    return {
        "store": remote.name,
        "in_flight": in_flight,
        "files": files,
        "renames_per_file": renames / files,
        "others_per_file": (counts["total"] - renames) / files,
        "operations": operations,
        "in_flight_most": counts["in_flight_max"],
        "limit_s": limit,
        "rename_stage_s": rename_seconds,
        "commit_s": seconds,
        "rename_stage_over_limit": rename_seconds / limit,
        "commit_over_limit": seconds / limit,
        "round_trips_in_a_row": (seconds - rename_seconds) / (shape.latency_ms / 1000),
        "client_cpu_s": cpu_seconds,
        "server_cpu_s": counts["cpu_seconds"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the files, one round")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--store", choices=("abfs", "gcs", "s3"), help="only this one")
    parser.add_argument("--latency-ms", type=float, default=20.0)
    arguments = parser.parse_args()
    shape = Shape(latency_ms=arguments.latency_ms)
    if arguments.quick:
        shape = Shape(tasks=4, files=50, latency_ms=arguments.latency_ms, rounds=1)
    found: list[dict[str, Any]] = []
    print(f"{shape.tasks * shape.files} files, {shape.latency_ms:g} ms, load {os.getloadavg()[0]:.1f}")
    print(f"{'store':6}{'flight':>7}{'renames/file':>14}{'others/file':>13}{'limit s':>9}"
          f"{'renames s':>11}{'x limit':>9}{'commit s':>10}{'x limit':>9}"
          f"{'in a row':>10}{'cpu s':>7}{'server':>8}")  # fmt: skip
    for remote in (Azure(), Gcs(), S3()):
        if arguments.store not in (None, remote.name):
            continue
        with remote.running():
            remote.prepare()
            for in_flight in remote.in_flight:
                for round_ in range(shape.rounds):
                    row = measure(remote, shape, in_flight, round_)
                    found.append(row)
                    print(
                        f"{row['store']:6}{in_flight:7}{row['renames_per_file']:14.3f}{row['others_per_file']:13.3f}"
                        f"{row['limit_s']:9.2f}{row['rename_stage_s']:11.2f}{row['rename_stage_over_limit']:9.2f}"
                        f"{row['commit_s']:10.2f}{row['commit_over_limit']:9.2f}"
                        f"{row['round_trips_in_a_row']:10.1f}{row['client_cpu_s']:7.2f}{row['server_cpu_s']:8.2f}",
                        flush=True,
                    )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

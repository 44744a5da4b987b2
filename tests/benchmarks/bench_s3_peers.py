"""A job on S3 beside its peers: Lockgate, S3A's magic and staging committers, and Spark's classic way.

    python tests/benchmarks/bench_s3_peers.py [--quick] [--server minio] [--json FILE] [--latency-ms 20]

What is measured: a job of 2,000 files of 10 kB in 20 tasks, 16 of which write at once, from its setup to the end of
its commit; and its commit. One server for all, versitygw or MinIO behind the lab's proxy, which answers each request
after 20 ms, and counts. On versitygw each completion is looked at (`lockgate_s3.soundness`): one request more a file.
S3A is Hadoop 3.5.0's, in one warm JVM, with as many requests of a commit in flight as ours
(`fs.s3a.committer.threads`), and its defaults for the rest; its staging committer keeps what is there, as our `append`
does. Spark's classic way is `FileOutputCommitter` with algorithm 1: task commit and job commit each rename, which on S3
is a copy and a deletion.

Bytes copied are those of the objects that the server was asked to copy, each as long as a file of the job; what S3A
copies of markers of directories has none. A request that lists, or deletes, many is one request.

Not a goal: which language opens connections faster. A round of a tenth of the files goes before, unmeasured, so that
the JVM is warm.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lockgate import Job, JobOptions, Receipt
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers import MinioServer, VersityGateway

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hadoop"))

from s3a_jvm import COMMITTERS, Committer, S3aJvm

PEERS: tuple[tuple[str, Committer], ...] = (
    ("S3A magic", "magic"),
    ("S3A directory staging", "directory"),
    ("Spark's classic way", "v1"),
)
BUCKET = "data"
SERVERS: dict[str, type[MinioServer | VersityGateway]] = {"versitygw": VersityGateway, "minio": MinioServer}


@dataclass(frozen=True)
class Shape:
    """The job, the wait before each answer, and how much is under way at once."""

    tasks: int = 20
    files: int = 100
    directories: int = 20
    length: int = 10_000
    writers: int = 16
    in_flight: int = 16
    latency_ms: float = 20.0


def path_of(task: int, index: int, shape: Shape) -> str:
    """A file's path: the same whoever writes it."""
    return f"p={index % shape.directories:02d}/part-{task:03d}-{index:04d}.bin"


def lockgate(shape: Shape, url: str, store: dict[str, str]) -> Callable[[], float]:
    """Our job; commits it and returns the seconds of that."""
    job = Job(url, JobOptions(store=store, requests_in_flight=shape.in_flight))
    job.setup()

    def write(task: int) -> Receipt:
        attempt = job.task_attempt(task)
        attempt.setup()
        for index in range(shape.files):
            with attempt.open(path_of(task, index, shape)) as file:
                file.write(bytes(shape.length))
        return attempt.commit()

    with concurrent.futures.ThreadPoolExecutor(shape.writers) as threads:
        receipts = list(threads.map(write, range(shape.tasks)))

    def commit() -> float:
        began = time.perf_counter()
        job.commit(receipts)
        return time.perf_counter() - began

    return commit


def hadoop(jvm: S3aJvm, committer: Committer, shape: Shape, url: str) -> Callable[[], float]:
    """The same job by one of Hadoop's committers."""
    job_id = str(uuid.uuid4())
    jvm.setup_job(url.replace("s3://", "s3a://"), job_id, COMMITTERS[committer])
    jvm.write_uniform_tasks(
        job_id,
        shape.tasks,
        files=shape.files,
        directories=shape.directories,
        length=shape.length,
        threads=shape.writers,
    )
    jvm.commit_tasks(job_id, threads=shape.writers)
    return lambda: jvm.commit_job(job_id)


def measure(lab: Any, shape: Shape, name: str, write: Callable[[], Callable[[], float]]) -> dict[str, Any]:
    """One job, whole; what it cost."""
    lab.reset()
    lab.latency(shape.latency_ms)
    began = time.perf_counter()
    commit = write()
    written = lab.counts()
    commit_seconds = commit()
    seconds = time.perf_counter() - began
    counts = lab.counts()
    lab.latency(0)
    files = shape.tasks * shape.files
    data_copied = [each for each in lab.requests(operation="CopyObject") if each["target"].endswith(".bin")]
    return {
        "committer": name,
        "files": files,
        "job_commit_s": commit_seconds,
        "job_s": seconds,
        "job_commit_requests": counts["total"] - written["total"],
        "requests": counts["total"],
        "bytes_sent": counts["bytes_in"],
        "bytes_copied": len(data_copied) * shape.length,
        "operations": counts["operations"],
        "in_flight_most": counts["in_flight_max"],
    }


def show(row: dict[str, Any]) -> None:
    """Print a row for people."""
    print(
        f"{row['committer']:24}{row['job_commit_s']:13.2f}{row['job_s']:8.1f}{row['requests']:10}"
        f"{row['job_commit_requests']:15}{row['bytes_sent'] / 1e6:9.1f}{row['bytes_copied'] / 1e6:11.1f}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 files, and no round before")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--server", choices=SERVERS, default="versitygw", help="MinIO takes ten minutes to build once")
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--in-flight", type=int, default=16)
    arguments = parser.parse_args()
    shape = Shape(latency_ms=arguments.latency_ms, in_flight=arguments.in_flight)
    warm_up = Shape(files=10, latency_ms=0, in_flight=arguments.in_flight)
    if arguments.quick:
        shape = Shape(tasks=4, files=10, latency_ms=arguments.latency_ms, in_flight=arguments.in_flight)
    found: list[dict[str, Any]] = []
    print(f"{arguments.server}: {shape.tasks * shape.files} files of {shape.length} bytes, {shape.latency_ms:g} ms, "
          f"{shape.in_flight} in flight, load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
    print(f"{'committer':24}{'job commit s':>13}{'job s':>8}{'requests':>10}{'of the commit':>15}"
          f"{'sent MB':>9}{'copied MB':>11}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="s3a-") as work, SERVERS[arguments.server]() as gateway:
        gateway.make_bucket(BUCKET)
        proxy = ServerProcess.of_module("lockgate_lab", "proxy", "--dialect", "s3", "--upstream", gateway.url)
        with (
            proxy,
            S3aJvm(Path(work), proxy.url, gateway.access_key, gateway.secret_key, in_flight=shape.in_flight) as jvm,
        ):
            store = {"endpoint_url": proxy.url, "key": gateway.access_key, "secret": gateway.secret_key}
            for round_, of in enumerate((shape,) if arguments.quick else (warm_up, shape)):
                url = f"s3://{BUCKET}/{round_}"
                writers = {"Lockgate": partial(lockgate, of, f"{url}/lockgate", store)}
                writers |= {name: partial(hadoop, jvm, peer, of, f"{url}/{peer}") for name, peer in PEERS}
                for name, write in writers.items():
                    row = measure(proxy.lab, of, name, write)
                    if of is shape:
                        show(row)
                        found.append(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

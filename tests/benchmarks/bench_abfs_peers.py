"""A job on Azure beside its peers: Lockgate, and Hadoop's committers through Hadoop's own ABFS connector.

    python tests/benchmarks/bench_abfs_peers.py [--quick] [--json FILE] [--files 2000] [--latencies 20,60] [--rounds 3]
        [--without v1,bare]

What is measured: a job of 2,000 files in 200 tasks and 20 directories, stage by stage: its setup, the commit of its
tasks, four at once, and the job commit. Of each stage the requests that the server counted, the seconds, and the CPU
seconds of the client: `process_time` here, and `OperatingSystemMXBean` in the warm JVM, with its compiler and its
collector. All commit to one server, the lab's Azure emulator as a process of its own, which answers each request after
the latency; beside the CPU of each client stands the server's, since it may be the bound. The committers take turns in
every round; rows are medians. Before them a round goes unmeasured that warms all up.

Hadoop is 3.5.0, its manifest committer bound as hadoop-azure's page says, with as many threads as its default
(`mapreduce.manifest.committer.io.threads`); then without what recovers renames on Azure; and its v1, whose job commit
asks one after the other, with a tenth of the files in a tenth of the tasks. Lockgate has its defaults, and as many in
flight as Hadoop has threads.

Goals, in docs/speed.md: a task commit in a fifth of Hadoop's time; a job commit no slower at equal in flight, and 2.5
times as fast with each one's defaults at 60 ms; under 0.3 ms of CPU a request. Not a goal: writing the files, which is
not timed, and goes without latency.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lockgate import Job, JobOptions, Receipt
from lockgate_lab.azure import hadoop_configuration
from lockgate_lab.server_process import LabControl, ServerProcess

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hadoop"))

from abfs_jvm import MANIFEST, NOT_RESILIENT, V1, AbfsJvm

STAGES = ("setup", "task_commit", "job_commit")
THREADS = "mapreduce.manifest.committer.io.threads"
V1_SHARE = 10
TASKS_IN_FLIGHT = 16


@dataclass(frozen=True)
class Shape:
    """The job, and the wait before each answer."""

    tasks: int = 200
    files: int = 10
    directories: int = 20
    length: int = 100
    writers: int = 4
    latency_ms: float = 20.0

    @property
    def files_total(self) -> int:
        """Files of all tasks."""
        return self.tasks * self.files


class Committer(Protocol):
    """One who writes jobs, one after another; its methods are the stages of the latest."""

    name: str
    share: int
    """The part of the shape's tasks that it gets: one in so many."""
    container: str
    """Where it writes."""

    def cpu_seconds(self) -> float:
        """CPU seconds of its process until now."""

    def setup(self, place: str) -> None:
        """Set a job up at a path in its container."""

    def write(self, shape: Shape) -> None:
        """Write all tasks."""

    def commit_tasks(self, shape: Shape) -> list[float]:
        """Commit them, and return the seconds of each."""

    def commit_job(self) -> float:
        """Commit the job, and return its seconds."""


class Lockgate:
    """Ours, in this process."""

    share = 1

    def __init__(self, container: str, store: dict[str, str], in_flight: int | None) -> None:
        self.options = JobOptions(store=store)
        if in_flight:
            self.options = self.options.replace(requests_in_flight=in_flight)
        self.name = f"Lockgate, {in_flight} in flight" if in_flight else "Lockgate, defaults"
        self.container = container

    def cpu_seconds(self) -> float:
        """This process's."""
        return time.process_time()

    def setup(self, place: str) -> None:
        """Set a job up."""
        url = f"abfss://{self.container}@devstoreaccount1.dfs.core.windows.net/{place}"
        job_id, nonce = str(uuid.uuid4()), uuid.uuid4().hex
        self._job = Job(url, self.options, job_id=job_id, nonce=nonce)
        self._job.setup()
        # The tasks' connections are not the driver's, which would be another process: it is to find out by itself how
        # many requests in flight are of use.
        tasks = self.options.replace(requests_in_flight=TASKS_IN_FLIGHT)
        self._tasks = Job(url, tasks, job_id=job_id, nonce=nonce)

    def write(self, shape: Shape) -> None:
        """Write all tasks."""

        def write(task: int) -> Any:
            attempt = self._tasks.task_attempt(task)
            attempt.setup()
            for index in range(shape.files):
                directory = (task * shape.files + index) % shape.directories
                with attempt.open(f"p={directory:02d}/part-{task:03d}-{index:04d}.bin") as file:
                    file.write(bytes(shape.length))
            return attempt

        with concurrent.futures.ThreadPoolExecutor(shape.writers) as threads:
            self._attempts = list(threads.map(write, range(shape.tasks)))

    def commit_tasks(self, shape: Shape) -> list[float]:
        """Commit them."""

        def commit(attempt: Any) -> tuple[Receipt, float]:
            began = time.perf_counter()
            return attempt.commit(), time.perf_counter() - began

        with concurrent.futures.ThreadPoolExecutor(shape.writers) as threads:
            done = list(threads.map(commit, self._attempts))
        self._receipts = [receipt for receipt, _ in done]
        return [seconds for _, seconds in done]

    def commit_job(self) -> float:
        """Commit the job."""
        began = time.perf_counter()
        self._job.commit(self._receipts)
        return time.perf_counter() - began


class Hadoop:
    """One of Hadoop's committers, in the Java process."""

    def __init__(self, jvm: AbfsJvm, container: str, name: str, settings: Mapping[str, str], *, share: int = 1) -> None:
        self.name, self.share = name, share
        self._jvm, self.container, self._settings = jvm, container, settings
        self._job_id = ""

    def cpu_seconds(self) -> float:
        """The Java process's."""
        return self._jvm.cpu_seconds()

    def setup(self, place: str) -> None:
        """Set a job up."""
        self._job_id = str(uuid.uuid4())
        url = f"abfs://{self.container}@devstoreaccount1.dfs.core.windows.net/{place}"
        self._jvm.setup_job(url, self._job_id, self._settings)

    def write(self, shape: Shape) -> None:
        """Write all tasks."""
        self._jvm.write_uniform_tasks(
            self._job_id,
            shape.tasks,
            files=shape.files,
            directories=shape.directories,
            length=shape.length,
            threads=shape.writers,
        )

    def commit_tasks(self, shape: Shape) -> list[float]:
        """Commit them."""
        return self._jvm.commit_tasks(self._job_id, threads=shape.writers)

    def commit_job(self) -> float:
        """Commit the job."""
        return self._jvm.commit_job(self._job_id)


def measure(lab: LabControl, committer: Committer, shape: Shape, place: str) -> dict[str, Any]:
    """One job; what each of its stages cost."""
    shape = replace(shape, tasks=max(1, shape.tasks // committer.share))
    row: dict[str, Any] = {"committer": committer.name, "latency_ms": shape.latency_ms}
    row |= {"files": shape.files_total, "tasks": shape.tasks}

    def stage(name: str, work: Callable[[], Any]) -> Any:
        lab.reset()
        lab.latency(shape.latency_ms)
        began, cpu_began = time.perf_counter(), committer.cpu_seconds()
        found = work()
        cpu, seconds = committer.cpu_seconds() - cpu_began, time.perf_counter() - began
        counts = lab.counts()
        row[name] = {
            "requests": counts["total"],
            "s": seconds,
            "cpu_s": cpu,
            "server_cpu_s": counts["cpu_seconds"],
            "in_flight_most": counts["in_flight_max"],
            "operations": counts["operations"],
        }
        lab.latency(0)
        return found

    stage("setup", lambda: committer.setup(place))
    committer.write(shape)
    seconds = stage("task_commit", lambda: committer.commit_tasks(shape))
    row["task_commit"]["median_s"] = statistics.median(seconds)
    row["job_commit"]["s"] = stage("job_commit", committer.commit_job)
    return row


HEADER = (
    f"{'ms':>4} {'committer':34}{'files':>6} |{'setup':>6} |{'task commit':>12}{'ms':>7}{'cpu ms':>8} |"
    f"{'job commit':>11}{'a file':>7}{'s':>8}{'cpu s':>7}{'ms/req':>8}{'server':>8}{'most':>6}"
)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the medians of one committer's rounds for people."""

    def of(stage: str, figure: str) -> float:
        return statistics.median(row[stage][figure] for row in rows)

    first = rows[0]
    tasks, files = first["tasks"], first["files"]
    requests = of("job_commit", "requests")
    print(
        f"{first['latency_ms']:4g} {first['committer']:34}{files:6} |{of('setup', 'requests'):6g} |"
        f"{of('task_commit', 'requests') / tasks:12.1f}{1000 * of('task_commit', 'median_s'):7.0f}"
        f"{1000 * of('task_commit', 'cpu_s') / tasks:8.1f} |{requests:11g}{requests / files:7.2f}"
        f"{of('job_commit', 's'):8.2f}{of('job_commit', 'cpu_s'):7.2f}"
        f"{1000 * of('job_commit', 'cpu_s') / requests:8.2f}{of('job_commit', 'server_cpu_s'):8.2f}"
        f"{of('job_commit', 'in_flight_most'):6g}",
        flush=True,
    )


def machine() -> str:
    """What this ran on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return (
        f"{os.cpu_count()} cores ({model}), {platform.system()}, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}"
    )


CONTAINERS = ("ours", "equal", "manifest", "bare", "v1")
"""One for each committer: Hadoop keeps a connector, with its settings, by container."""


def make_container(endpoint: str, name: str) -> None:
    """Make a container in the emulator."""
    asked = urllib.request.Request(
        f"{endpoint}/{name}?restype=container", method="PUT", headers={"Authorization": "Bearer x"}
    )
    urllib.request.urlopen(asked, timeout=10).close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 files at 5 ms, once, and no round before")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--files", type=int, default=2000, help="of a job; ten of each task")
    parser.add_argument("--latencies", default="20,60", help="milliseconds, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--without", default="", help="committers to leave out, with commas, of: " + ", ".join(CONTAINERS)
    )
    parser.add_argument("--threads", type=int, default=32, help="Hadoop's, and ours where they are to be equal")
    arguments = parser.parse_args()
    latencies = [float(each) for each in arguments.latencies.split(",")]
    without = {each for each in arguments.without.split(",") if each}
    if unknown := sorted(without - set(CONTAINERS)):
        parser.error(f"--without names no committer: {', '.join(unknown)}; they are {', '.join(CONTAINERS)}")
    if arguments.quick:
        arguments.files, arguments.rounds, latencies = 40, 1, [5.0]
    shape = Shape(tasks=max(1, arguments.files // Shape.files))
    print(f"{shape.files_total} files in {shape.tasks} tasks; {machine()}", flush=True)
    found: list[dict[str, Any]] = []
    with ExitStack() as opened:
        work = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="abfs-")))
        server = opened.enter_context(ServerProcess.of_module("lockgate_lab", "azure"))
        jvm = opened.enter_context(AbfsJvm(work, hadoop_configuration(server.url)))
        store = {"connection_string": str(server.announcement["connection_string"])}
        threads = {THREADS: str(arguments.threads)}
        every: list[Committer] = [
            Lockgate("ours", store, None),
            Lockgate("equal", store, arguments.threads),
            Hadoop(jvm, "manifest", "Hadoop manifest", {**MANIFEST, **threads}),
            Hadoop(jvm, "bare", "Hadoop manifest, not resilient", {**NOT_RESILIENT, **threads}),
            Hadoop(jvm, "v1", "Hadoop v1", V1, share=V1_SHARE),
        ]
        committers = [each for each in every if each.container not in without]
        for each in committers:
            make_container(str(server.announcement["endpoint"]), each.container)
        if not arguments.quick:
            for committer in committers:
                measure(server.lab, committer, replace(shape, latency_ms=0), "warm")
        print(HEADER)
        for latency_ms in latencies:
            of = replace(shape, latency_ms=latency_ms)
            rows: list[list[dict[str, Any]]] = [[] for _ in committers]
            for round_ in range(arguments.rounds):
                in_turn = list(zip(committers, rows, strict=True))
                for committer, own in in_turn if round_ % 2 == 0 else reversed(in_turn):
                    own.append(measure(server.lab, committer, of, f"{latency_ms:g}/{round_}"))
            for own in rows:
                show(own)
                found += own
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

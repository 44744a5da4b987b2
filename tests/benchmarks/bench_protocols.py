"""Every protocol at one job: on the local disk, on Azure's emulator and on an S3 server, both far away.

    python tests/benchmarks/bench_protocols.py [--quick] [--json FILE] [--directory DIR] [--latency-ms 20] [--files N]

What is measured: a job of 2,000 files in 20 tasks and 20 directories, by each protocol that the store has what it needs
for. The files are written without latency, and are not timed where a protocol stages them; then, with the latency, one
task commit after another (requests and seconds of one), and the job commit (requests a file, seconds, 64 requests in
flight at most). `seen before` is what share of the files a reader who lists the destination sees before the job
commits: nothing, or all. On the local disk requests are none, and are left out. Requests are counted by the server, or
by the proxy before it.

Not a goal: that one of them wins. They promise different things, which `docs/protocols.md` says.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bench_remote_store import S3, Azure
from lockgate import Job, JobOptions, Receipt
from lockgate.errors import CapabilityMissing
from lockgate.plugins.registry import PluginRegistry, registry_for

TASKS = 20
DIRECTORIES = 20
IN_FLIGHT = 64


class Local:
    """A directory of the local disk."""

    name = "local"
    server = None

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to start."""
        yield
        shutil.rmtree(self._directory, ignore_errors=True)

    def prepare(self) -> None:
        """Nothing to make."""

    def url(self, name: str) -> str:
        """A destination's path."""
        return str(self._directory / name)

    def store(self) -> dict[str, str]:
        """No options."""
        return {}


def protocols() -> list[str]:
    """Those that set jobs up."""
    offered = PluginRegistry().protocols()
    return [name for name in sorted(offered) if not offered[name].commits_others_only]


def measure(place: Any, protocol: str, files: int, latency_ms: float) -> dict[str, Any] | None:
    """One job; None where the store lacks what the protocol needs."""
    options = JobOptions(
        store=place.store(), protocol=protocol, accept_unsafe=True, requests_in_flight=IN_FLIGHT, progress=False
    )
    lab = place.server.lab if place.server is not None else None
    try:
        job = Job(place.url(protocol), options)
        job.setup()
    except CapabilityMissing:
        return None

    def write(task: int) -> Any:
        attempt = job.task_attempt(task)
        attempt.setup()
        for index in range(files // TASKS):
            name = f"part-{task:03d}-{index:04d}-{attempt.tag}.bin"
            with attempt.open(f"p={index % DIRECTORIES:02d}/{name}") as file:
                file.write(b"x" * 100)
        return attempt

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        attempts = list(threads.map(write, range(TASKS)))
    if lab is not None:
        lab.reset()
        lab.latency(latency_ms)
    began = time.perf_counter()
    receipts: list[Receipt] = [attempt.commit() for attempt in attempts]
    task_seconds = (time.perf_counter() - began) / TASKS
    task_requests = lab.counts()["total"] / TASKS if lab is not None else 0
    if lab is not None:
        lab.latency(0)
    seen = files_seen(place, protocol)
    if lab is not None:
        lab.reset()
        lab.latency(latency_ms)
    began = time.perf_counter()
    summary = job.commit(receipts)
    seconds = time.perf_counter() - began
    counts = lab.counts() if lab is not None else {"total": 0}
    if lab is not None:
        lab.latency(0)
    assert summary.files == files
    assert files_seen(place, protocol) == files
    return {
        "store": place.name,
        "protocol": protocol,
        "files": files,
        "task_commit_ms": task_seconds * 1000,
        "task_requests": task_requests,
        "seen_before": seen / files,
        "job_commit_s": seconds,
        "requests_per_file": counts["total"] / files,
        "bytes_copied": counts.get("bytes_copied", 0),
    }


def files_seen(place: Any, name: str) -> int:
    """How many files a reader sees who lists the destination and passes by what begins with `_` or `.`, as Spark's."""
    store = registry_for((), ()).open_store(place.url(name), JobOptions(store=place.store()))
    below = (path.split("/") for path in listed(store))
    return sum(not any(part.startswith(("_", ".")) for part in parts) for parts in below)


def listed(store: Any) -> list[str]:
    """The paths of all files in a store's root."""

    async def work() -> list[str]:
        try:
            return [status.path async for page in store.list_tree("") for status in page]
        finally:
            await store.close()

    return asyncio.run(work())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--files", type=int)
    given = parser.parse_args()
    files = given.files or (200 if given.quick else 2000)
    found: list[dict[str, Any]] = []
    print(f"{files} files in {TASKS} tasks, {given.latency_ms:g} ms, load {os.getloadavg()[0]:.1f}\n")
    print("| store | protocol | task commit, ms | its requests | seen before | job commit, s | requests a file |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(dir=given.directory) as scratch:
        for place in (Local(Path(scratch) / "tables"), Azure(), S3()):
            with place.running():
                place.prepare()
                for protocol in protocols():
                    row = measure(place, protocol, files, given.latency_ms)
                    if row is None:
                        continue
                    found.append(row)
                    asked = "" if place.name == "local" else f"{row['task_requests']:.1f}"
                    each = "" if place.name == "local" else f"{row['requests_per_file']:.2f}"
                    print(
                        f"| {place.name} | {protocol} | {row['task_commit_ms']:.1f} | {asked} "
                        f"| {row['seen_before']:.0%} | {row['job_commit_s']:.2f} | {each} |",
                        flush=True,
                    )
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

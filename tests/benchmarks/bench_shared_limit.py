"""The pacer, live: processes that share one store account whose limit nobody tells them, and which changes.

    python tests/benchmarks/bench_shared_limit.py [--quick] [--json FILE] [--processes 4] [--latency-ms 20]

What is measured: processes that each have more to send than the account admits, over the lab's Azure emulator as a
process of its own. It refuses what exceeds its limit with 503 and says nothing of how much it would admit. The limit is
halved, and doubled again, while they run. Goal: together they use nine tenths of what the limit offers, with few
refusals, and no process starves. Not measured: the first seconds, in which they find the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_lab.server_process import ServerProcess

URL = "abfss://data@devstoreaccount1.dfs.core.windows.net/t"


@dataclass(frozen=True)
class Course:
    """What the limit does: requests per second, each for so many seconds, after so many of finding it."""

    limits: tuple[float, ...]
    seconds: float
    finding_seconds: float


COURSES = tuple(Course((rate, rate / 2, rate), 10.0, 4.0) for rate in (400.0, 800.0))
QUICK = (Course((200.0,), 1.0, 1.0),)


def send(connection: str, seconds: float, got: Any) -> None:
    """One process: looks for files that are not there, as fast as its pacer lets it; tells how many it got through."""

    async def run() -> int:
        store = registry_for((), ()).open_store(URL, JobOptions(store={"connection_string": connection}))
        ends = time.monotonic() + seconds
        answered = 0
        while time.monotonic() < ends:
            answered += len(await store.stat_files([f"x{number}" for number in range(100)]))
        await store.close()
        return answered

    got.put(asyncio.run(run()))


def _looked(lab: Any) -> int:
    """How many looks at a file have come; what a process first asks of its account is none."""
    return int(lab.counts()["operations"].get("GetPathStatus", 0))


def measure(server: ServerProcess, course: Course, count: int, latency_ms: float) -> dict[str, Any]:
    """Let the processes meet the limit's course; what they used of it, and what was refused."""
    lab = server.lab
    lab.latency(latency_ms)
    context = multiprocessing.get_context("spawn")
    got: Any = context.Queue()
    lasts = course.finding_seconds + course.seconds * len(course.limits)
    arguments = (server.announcement["connection_string"], lasts, got)
    processes = [context.Process(target=send, args=arguments) for _ in range(count)]
    lab.limit(course.limits[0])
    for process in processes:
        process.start()
    while not _looked(lab):
        time.sleep(0.01)
    time.sleep(course.finding_seconds)
    lab.reset()
    offered = 0.0
    for limit in course.limits:
        lab.limit(limit)
        began = time.monotonic()
        time.sleep(course.seconds)
        # Where the machine is so busy that not one request came, there is no figure yet.
        while not _looked(lab) and any(process.is_alive() for process in processes):
            time.sleep(0.1)
        offered += limit * (time.monotonic() - began)
    statuses = lab.counts()["statuses"]
    lab.limit(None)
    shares = sorted(got.get(timeout=600) for _ in processes)
    for process in processes:
        process.join()
    accepted, refused = statuses.get("404", 0), statuses.get("503", 0)
    return {
        "limits": course.limits,
        "processes": count,
        "used": accepted / offered,
        "refused": refused / (accepted + refused),
        "least_share": shares[0] / sum(shares),
        "most_share": shares[-1] / sum(shares),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a second of one limit")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    arguments = parser.parse_args()
    found = []
    with ServerProcess.of_module("lockgate_lab", "azure") as server:
        container = f"{server.announcement['endpoint']}/data?restype=container"
        asked = urllib.request.Request(container, method="PUT", headers={"Authorization": "Bearer x"})
        urllib.request.urlopen(asked, timeout=10).close()
        print(f"{arguments.processes} processes, {arguments.latency_ms:g} ms, load {os.getloadavg()[0]:.1f}")
        print(f"{'requests/s':24}{'used':>8}{'refused':>10}{'shares':>16}")
        for course in QUICK if arguments.quick else COURSES:
            row = measure(server, course, arguments.processes, arguments.latency_ms)
            found.append(row)
            told = ", ".join(f"{limit:g}" for limit in course.limits)
            shares = f"{row['least_share']:.2f} to {row['most_share']:.2f}"
            print(f"{told:24}{row['used']:8.3f}{row['refused']:10.3f}{shares:>16}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

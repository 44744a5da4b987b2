"""Markers: files written against time spent on them, direct and by a timeline server, on S3 at a latency and a limit.

    python tests/benchmarks/bench_markers.py [--quick] [--json FILE] [--files 1000,10000] [--clients 240]
        [--latency-ms 20] [--limit 0] [--types direct,timeline_server_based]

What is measured: task attempts, as many at once as there are clients, in a few processes, each of which has the marker
of one file after the other made, and writes no file. Direct: a request each to the store. By a timeline server: a
request each to the service in the driver, which writes at Hudi's defaults, every 50 ms and into 20 files. The store is
versitygw behind the lab's proxy, which waits before each answer and, with a limit, refuses with 503 what comes above so
many requests a second. Then the deletion of all the markers. Requests and files are counted by the proxy and by a
listing. Not a goal: the writing of files, which is the same in both.

Beside it stand the figures of Hudi's authors, of their blog of August 2021, "Improving Marker Mechanism in Apache
Hudi": Amazon EMR and S3, 100 GB in files of 1 MB, 240 at once; they time deletion and the whole write, not the making
of markers. `--files 165000` is their size: direct, at 20 ms and 240 at once, no client can do it in less than 14 s, and
at S3's documented 3,500 PUT requests a second and prefix in less than 47 s. The gateway keeps its files below TMPDIR: a
memory file system there takes the disk out of the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

from lockgate import Job, JobOptions
from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.hudi_markers import MarkerLayout
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers import VersityGateway

HUDIS = (
    ("direct", 1_000, 1_000, "5.4 s", "-"),
    ("direct", 165_000, 165_000, "15 min", "55 min"),
    ("timeline server", 165_000, 20, "about 3 s", "38 min"),
)
"""Marker type, data files written, files made for markers, marker deletion, bulk insert: as the blog has them."""

PROCESSES = 2
TYPES = ("direct", "timeline_server_based")


class Wait:
    """What the store makes its clients wait for."""

    def __init__(self, latency_ms: float, limit: float) -> None:
        self.latency_ms = latency_ms
        self.limit = limit


def mark(pickled: bytes, first: int, clients: int, files: int, got: Any) -> None:
    """One process: so many task attempts at once, each with so many files; tells how long each marker took."""
    job: Job = pickle.loads(pickled)

    async def attempt(run: JobRun, stem: str) -> list[float]:
        took = []
        for number in range(files):
            began = time.perf_counter()
            await run.protocol.announce_file(run, f"p={number % 10}/{number}-{stem}.parquet")
            took.append(time.perf_counter() - began)
        return took

    async def all_of_them() -> tuple[float, list[list[float]]]:
        attempts = [job.task_attempt(task) for task in range(first, first + clients)]
        runs = [job._run(each.task_attempt_id) for each in attempts]
        await asyncio.gather(*(run.protocol.set_up_task(run) for run in runs))
        began = time.perf_counter()
        took = await asyncio.gather(*(attempt(run, each.tag) for run, each in zip(runs, attempts, strict=True)))
        return time.perf_counter() - began, list(took)

    seconds, took = IO_LOOP.run(all_of_them())
    got.put((seconds, [each for attempt in took for each in attempt]))


def measure(
    server: ServerProcess, url: str, options: JobOptions, files: int, clients: int, wait: Wait
) -> dict[str, Any]:
    """One job; what its markers cost."""
    lab = server.lab
    lab.latency(0)
    job = Job(url, options)
    job.setup()
    clients = min(clients, files)
    each, share = files // clients, clients // PROCESSES
    lab.reset()
    lab.latency(wait.latency_ms)
    if wait.limit:
        lab.limit(wait.limit)
    context = multiprocessing.get_context("spawn")
    got: Any = context.Queue()
    pickled = pickle.dumps(job)
    workers = [
        context.Process(target=mark, args=(pickled, number * share, share, each, got)) for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    told = [got.get(timeout=3600) for _ in workers]
    for worker in workers:
        worker.join()
    requests, refused = lab.counts()["total"], lab.counts()["statuses"].get("503", 0)
    took = sorted(seconds for _, times in told for seconds in times)
    run = job._run()
    directory = MarkerLayout(job.job_id).directory

    async def count() -> int:
        made = [status async for page in run.store.list_tree(directory) for status in page]
        return len(made) or len(await list_all(run.store, directory))

    made = IO_LOOP.run(count())
    began = time.perf_counter()
    IO_LOOP.run(run.store.delete_directories([directory]))
    deleted = time.perf_counter() - began
    lab.limit(None)
    lab.latency(0)
    job.abort()
    return {
        "type": options.markers_type,
        "files": len(took),
        "clients": clients,
        "latency_ms": wait.latency_ms,
        "limit": wait.limit,
        "made_s": max(seconds for seconds, _ in told),
        "a_marker_ms": 1000 * statistics.median(took),
        "worst_ms": 1000 * took[-1],
        "files_of_markers": made,
        "store_requests": requests,
        "refused": refused,
        "deleted_s": deleted,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="200 files")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--files", default="1000,10000", help="how many files, several with commas between them")
    parser.add_argument("--clients", type=int, default=240)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=0.0, help="requests a second that the store takes; 0: any")
    parser.add_argument("--types", default=",".join(TYPES), help="which markers, several with commas between them")
    arguments = parser.parse_args()
    sizes = [200] if arguments.quick else [int(each) for each in arguments.files.split(",")]
    clients = 20 if arguments.quick else arguments.clients
    found: list[dict[str, Any]] = []
    with VersityGateway() as gateway:
        gateway.make_bucket("data")
        with ServerProcess.of_module("lockgate_lab", "proxy", "--dialect", "s3", "--upstream", gateway.url) as server:
            store = {"endpoint_url": server.url, "key": gateway.access_key, "secret": gateway.secret_key}
            print(
                f"{clients} clients, {arguments.latency_ms:g} ms, limit {arguments.limit or 'none'}, "
                f"load {os.getloadavg()[0]:.1f}"
            )
            print(f"{'markers':24}{'files':>8}{'made s':>9}{'a marker ms':>13}{'worst':>8}{'their files':>13}"
                  f"{'requests':>10}{'refused':>9}{'deleted s':>11}")  # fmt: skip
            for files in sizes:
                for markers_type in arguments.types.split(","):
                    options = JobOptions(
                        protocol="markers", accept_unsafe=True, store=store, markers_type=markers_type,
                        requests_in_flight=max(64, clients), alive_seconds=0,
                    )  # fmt: skip
                    wait = Wait(arguments.latency_ms, arguments.limit)
                    row = measure(server, f"s3://data/{markers_type}-{files}", options, files, clients, wait)
                    found.append(row)
                    print(
                        f"{row['type']:24}{row['files']:8}{row['made_s']:9.2f}{row['a_marker_ms']:13.1f}"
                        f"{row['worst_ms']:8.0f}{row['files_of_markers']:13}{row['store_requests']:10}"
                        f"{row['refused']:9}{row['deleted_s']:11.2f}",
                        flush=True,
                    )
    print("\nHudi's authors (August 2021, Amazon EMR and S3): data files, files of markers, deletion, bulk insert")
    for kind, data_files, made, deletion, whole in HUDIS:
        print(f"{kind:24}{data_files:8}{made:22}{deletion:>14}{whole:>10}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

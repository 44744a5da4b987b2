"""In flight follows latency and limit: what a process gets done where nobody tells it either.

    python tests/benchmarks/bench_in_flight.py [--quick] [--json FILE] [--seconds 4] [--latencies 5,20,60,150]
        [--limits 0,300,1000,2000] [--ceilings 64,512]

What is measured: one process with always more to send, over the lab's Azure emulator as a process of its own, which
answers after a latency and refuses with 503 what exceeds a limit (0: none). Each latency and limit is met with each
ceiling in turn: 64 was the constant that this replaced. Counted by the emulator: requests accepted a second, the share
that it refused, and the most at work at once; by the process: how many were in flight at the end, and its own CPU
seconds a request. Not measured: the first second, in which it finds out. Client and emulator share the machine:
without a limit one of them is the bound, and their CPU seconds say which.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import time
import urllib.request
from pathlib import Path
from typing import Any

from lockgate import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate.stores.http.transport import transport_of
from lockgate_lab.server_process import ServerProcess

URL = "abfss://data@devstoreaccount1.dfs.core.windows.net/t"
FINDING_SECONDS = 1.0


def send(connection: str, ceiling: int, seconds: float, got: Any, begun: Any) -> None:
    """Look for files that are not there, as fast as the store allows."""

    async def run() -> dict[str, float]:
        options = JobOptions(store={"connection_string": connection}, requests_in_flight=ceiling)
        store: Any = registry_for((), ()).open_store(URL, options)
        await store.stat_files(["x"])
        begun.set()
        ends = time.monotonic() + FINDING_SECONDS + seconds

        async def look() -> None:
            while time.monotonic() < ends:
                await store.stat_files(["x"])

        cpu_began, before = time.process_time(), store.client.requests["status"]
        await asyncio.gather(*(look() for _ in range(ceiling)))
        took, sent = time.process_time() - cpu_began, store.client.requests["status"] - before
        flight = transport_of(store.client, store.client.account, store.client.in_flight_max).slots.flight
        await store.close()
        return {"in_flight_at_end": flight.limit, "client_cpu_ms": 1000 * took / max(sent, 1)}

    got.put(asyncio.run(run()))


def measure(server: ServerProcess, ceiling: int, latency_ms: float, limit: float, seconds: float) -> dict[str, Any]:
    """One process against one latency and one limit."""
    lab = server.lab
    context = multiprocessing.get_context("spawn")
    got, begun = context.Queue(), context.Event()
    arguments = (server.announcement["connection_string"], ceiling, seconds, got, begun)
    process = context.Process(target=send, args=arguments)
    lab.latency(latency_ms)
    lab.limit(limit or None)
    process.start()
    begun.wait(60)
    time.sleep(FINDING_SECONDS)
    lab.reset()
    began = time.monotonic()
    time.sleep(seconds)
    counts = lab.counts()
    took = time.monotonic() - began
    told = got.get(timeout=600)
    process.join()
    lab.limit(None)
    accepted, refused = counts["statuses"].get("404", 0), counts["statuses"].get("503", 0)
    return {
        "latency_ms": latency_ms,
        "limit": limit,
        "ceiling": ceiling,
        "per_second": accepted / took,
        "refused": refused / max(1, accepted + refused),
        "in_flight_most": counts["in_flight_max"],
        "server_cpu_share": counts["cpu_seconds"] / took,
        **told,
    }


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one latency and one limit, a second each")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--latencies", type=_numbers, default=[5.0, 20.0, 60.0, 150.0])
    parser.add_argument("--limits", type=_numbers, default=[0.0, 300.0, 1000.0, 2000.0])
    parser.add_argument("--ceilings", type=_numbers, default=[64.0, 512.0])
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.latencies, arguments.limits = 1.0, [20.0], [0.0]
    found = []
    with ServerProcess.of_module("lockgate_lab", "azure") as server:
        container = f"{server.announcement['endpoint']}/data?restype=container"
        asked = urllib.request.Request(container, method="PUT", headers={"Authorization": "Bearer x"})
        urllib.request.urlopen(asked, timeout=10).close()
        print(f"{arguments.seconds:g} s each, load {os.getloadavg()[0]:.1f}")
        print(f"{'latency ms':>10}{'limit':>8}{'ceiling':>9}{'got/s':>9}{'refused':>9}{'most':>7}{'at end':>8}"
              f"{'client ms':>11}{'server cpu':>12}")  # fmt: skip
        for latency_ms in arguments.latencies:
            for limit in arguments.limits:
                for ceiling in arguments.ceilings:
                    row = measure(server, int(ceiling), latency_ms, limit, arguments.seconds)
                    found.append(row)
                    print(
                        f"{latency_ms:10g}{limit or '-':>8}{ceiling:9g}{row['per_second']:9.0f}{row['refused']:9.3f}"
                        f"{row['in_flight_most']:7}{row['in_flight_at_end']:8}{row['client_cpu_ms']:11.3f}"
                        f"{row['server_cpu_share']:12.2f}",
                        flush=True,
                    )
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

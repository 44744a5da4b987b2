"""Every protocol at one job beside the peers' own: on the local disk, on Azure's emulator and on an S3 server.

    python tests/benchmarks/bench_protocols.py [--quick] [--json FILE] [--directory DIR] [--places local,abfs,s3]
        [--latency-ms 20] [--files 2000] [--protocols manifest,v1] [--peers NAMES] [--rounds 3] [--seconds-most 300]

What is measured: a job of 2,000 files of 100 bytes in 20 tasks and 20 directories, by each protocol that the store has
what it needs for, and by Hadoop's, S3A's and Hudi's own implementations (`protocol_peers.py`), in turn, in the same
rounds, on the same server. Files are written without latency, and that is not timed; then, with the latency, one task
commit after another (requests and seconds of one), and the job commit (requests a file, seconds, 64 requests in flight
at most for each). `requests in all` are those of the whole job a file, with setup and writing: what a protocol asks for
before or while a file is written shows there. Seen is what share of the files a reader who lists the destination sees
once they are written, and once their tasks have committed. Requests, and the objects that a server was asked to copy,
are counted by the server, or by the proxy before it. On the local disk there are none, and they are left out. Rows are
medians.

Before more than 200 files each commits 20 twice and 100 once, unmeasured, which warms it up, and says what a file costs
it. Who is then predicted to take longer than --seconds-most for one job is left out, and said so at the end; who takes
over a minute has one round.

Not a goal: that one of them wins. They promise different things, which `docs/protocols.md` says.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bench_abfs_peers import machine
from bench_remote_store import S3, Azure
from given_directory import given_directory
from lockgate import JobOptions
from lockgate.errors import CapabilityMissing
from lockgate.plugins.registry import PluginRegistry, registry_for
from protocol_peers import IN_FLIGHT, LENGTH, PEERS, TASKS, Lockgate, Writer, peers_at

WARM_UP = (20, 20, 100)
SMALL = 200
"""Files of a job before which nobody is warmed up, and nothing is predicted."""

ONE_ROUND_FROM_S = 60.0


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


def ours_at(place: Any, wanted: frozenset[str]) -> list[Writer]:
    """Ours, by the wanted protocols; `markers` also by a timeline server."""
    found: list[Writer] = [Lockgate(name, place.store()) for name in protocols() if name in wanted]
    if "markers" in wanted:
        found.append(Lockgate("markers", place.store(), "timeline_server_based"))
    return found


def measure(place: Any, writer: Writer, url: str, files: int, latency_ms: float) -> dict[str, Any]:
    """One job; what it cost. Raises CapabilityMissing where the store lacks what the writer needs."""
    lab = place.server.lab if place.server is not None else None
    requests: dict[str, int] = {}

    @contextlib.contextmanager
    def stage(name: str, waits_ms: float) -> Iterator[None]:
        if lab is None:
            yield
            return
        lab.reset()
        lab.latency(waits_ms)
        try:
            yield
        finally:
            lab.latency(0)
        requests[name] = lab.counts()["total"]
        requests["copies"] = requests.get("copies", 0) + copies(lab)

    began = time.perf_counter()
    try:
        with stage("setup", 0):
            writer.setup(url)
        with stage("writing", 0):
            writer.write(files)
        written = files_seen(place, url)
        with stage("task commits", latency_ms):
            task_seconds = writer.commit_tasks()
        committed = files_seen(place, url)
        with stage("job commit", latency_ms):
            seconds = writer.commit_job()
    finally:
        writer.close()
    assert files_seen(place, url) == files, f"{writer.name} at {url}: {files_seen(place, url)} of {files} files"
    row = {
        "store": place.name,
        "protocol": writer.name,
        "peer": writer.name in PEERS,
        "files": files,
        "latency_ms": latency_ms if lab is not None else 0,
        "task_commit_ms": task_seconds * 1000,
        "seen_written": written / files,
        "seen_before": committed / files,
        "job_commit_s": seconds,
        "whole_s": time.perf_counter() - began,
    }
    if lab is not None:
        of_stages = [requests[name] for name in ("setup", "writing", "task commits", "job commit")]
        row |= {
            "task_requests": requests["task commits"] / TASKS,
            "requests_per_file": requests["job commit"] / files,
            "requests_in_all_per_file": sum(of_stages) / files,
            "bytes_copied": requests["copies"] * LENGTH,
        }
    return row


def copies(lab: Any) -> int:
    """How many data files the server was asked to copy since its last reset; a rename copies nothing."""
    found, after = 0, 0
    while lab.counts()["operations"].get("CopyObject", 0):
        page = lab.requests(operation="CopyObject", after=after)
        found += sum(each["target"].endswith(".bin") for each in page)
        if not page:
            break
        after = page[-1]["sequence"]
    return found


def predicted_s(few: dict[str, Any], many: dict[str, Any], files: int) -> float:
    """How long a job of so many files takes, by two smaller ones: what a file costs, and what any job does."""
    each = (many["whole_s"] - few["whole_s"]) / (many["files"] - few["files"])
    if each <= 0:
        each = many["whole_s"] / many["files"]
    return float(many["whole_s"] + each * (files - many["files"]))


class Run:
    """One run of the benchmark: what it found, and what it left out."""

    def __init__(self, files: int, latency_ms: float, rounds: int, seconds_most: float) -> None:
        self.files, self.latency_ms, self.rounds, self.seconds_most = files, latency_ms, rounds, seconds_most
        self.rows: list[dict[str, Any]] = []
        self.left_out: list[str] = []

    def at(self, place: Any, writers: list[Writer]) -> None:
        """All writers at one place, in turn; prints a row for each."""
        rounds = {writer.name: self._rounds(place, writer) for writer in writers}
        own: dict[str, list[dict[str, Any]]] = {writer.name: [] for writer in writers}
        for round_ in range(self.rounds):
            in_turn = [writer for writer in writers if rounds[writer.name] > round_]
            for writer in in_turn if round_ % 2 == 0 else reversed(in_turn):
                own[writer.name] += self._job(place, writer, str(round_), self.files)
        for rows in filter(None, own.values()):
            self.rows += rows
            print(line_of(rows), flush=True)

    def _job(self, place: Any, writer: Writer, where: str, files: int) -> list[dict[str, Any]]:
        """A job's row; none where the writer lacks something of the store, which is then left out."""
        try:
            url = place.url(f"{where}/{writer.name.replace(' ', '-').replace(',', '')}")
            return [measure(place, writer, url, files, self.latency_ms)]
        except CapabilityMissing as missing:
            # What each capability is stands in brackets.
            self.left_out.append(f"{place.name}, {writer.name}: {re.sub(r' [(][^)]*[)]', '', str(missing))}")
            return []

    def _rounds(self, place: Any, writer: Writer) -> int:
        """How many rounds a writer gets, once it is warm; none where it cannot work, or would take too long."""
        if self.files <= SMALL:
            return self.rounds
        found: list[dict[str, Any]] = []
        for number, files in enumerate(WARM_UP):
            row = self._job(place, writer, f"warm-{number}", files)
            if not row:
                return 0
            found += row
        seconds = predicted_s(found[-2], found[-1], self.files)
        if seconds <= self.seconds_most:
            return self.rounds if seconds < ONE_ROUND_FROM_S else 1
        self.left_out.append(
            f"{place.name}, {writer.name}: {self.files} files are predicted to take {seconds:,.0f} s, by "
            f"{WARM_UP[-1]} that took {found[-1]['whole_s']:.1f} s; --seconds-most is {self.seconds_most:g}"
        )
        return 0


HEADER = """\
| store | protocol | task commit, ms | its requests | seen: written, task committed | job commit, s | requests a file \
| requests in all, a file | bytes copied | rounds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def line_of(rows: list[dict[str, Any]]) -> str:
    """The medians of one writer's rounds, as a row of Markdown."""

    def of(figure: str, form: str) -> str:
        found = [row[figure] for row in rows if figure in row]
        return format(statistics.median(found), form) if found else ""

    seen = f"{of('seen_written', '.0%')}, {of('seen_before', '.0%')}"
    return (
        f"| {rows[0]['store']} | {rows[0]['protocol']} | {of('task_commit_ms', '.1f')} | {of('task_requests', '.1f')} "
        f"| {seen} | {of('job_commit_s', '.2f')} | {of('requests_per_file', '.2f')} "
        f"| {of('requests_in_all_per_file', '.2f')} | {of('bytes_copied', ',')} | {len(rows)} |"
    )


def files_seen(place: Any, url: str) -> int:
    """How many files a reader sees who lists the destination and passes by what begins with `_` or `.`, as Spark's."""
    store = registry_for((), ()).open_store(url, JobOptions(store=place.store()))
    below = (path.split("/") for path in listed(store) if path.endswith(".bin"))
    return sum(not any(part.startswith(("_", ".")) for part in parts) for parts in below)


def listed(store: Any) -> list[str]:
    """The paths of all files in a store's root."""

    async def work() -> list[str]:
        try:
            return [status.path async for page in store.list_tree("") for status in page]
        finally:
            await store.close()

    return asyncio.run(work())


def named(text: str, known: list[str]) -> frozenset[str]:
    """Names with commas between them; `all`, or `none`. Raises SystemExit for one that nobody has."""
    found = {"all": frozenset(known), "none": frozenset[str]()}.get(text)
    if found is None:
        found = frozenset(each.strip() for each in text.split(","))
    if unknown := found - frozenset(known):
        raise SystemExit(f"no such name: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the files, one round")
    parser.add_argument("--json", type=Path, help="write the figures of every round there")
    parser.add_argument("--directory", type=given_directory, help="where local tables and what Java needs are to lie")
    parser.add_argument("--places", default="all", help="local, abfs, s3, with commas between them")
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--files", type=int)
    parser.add_argument("--protocols", default="all", help="ours, with commas between them, or none")
    parser.add_argument("--peers", default="all", help=f"{', '.join(PEERS)}, with commas between them, or none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds-most", type=float, default=300.0, help="of one job; who takes longer is left out")
    given = parser.parse_args()
    files = given.files or (200 if given.quick else 2000)
    places = named(given.places, ["local", "abfs", "s3"])
    ours, peers = named(given.protocols, protocols()), named(given.peers, list(PEERS))
    run = Run(files // TASKS * TASKS, given.latency_ms, 1 if given.quick else given.rounds, given.seconds_most)
    print(f"{run.files} files in {TASKS} tasks; {given.latency_ms:g} ms on abfs and s3; {IN_FLIGHT} in flight; "
          f"{machine()}\n", flush=True)  # fmt: skip
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory(dir=given.directory) as scratch:
        for place in (Local(Path(scratch) / "tables"), Azure(), S3()):
            if place.name not in places:
                continue
            with place.running():
                place.prepare()
                with peers_at(place, Path(scratch) / f"java-{place.name}", peers) as theirs:
                    here = {each.name for each in theirs}
                    run.left_out += [
                        f"{place.name}, {name}: there is none for this store" for name in PEERS if name in peers - here
                    ]
                    run.at(place, [*ours_at(place, ours), *theirs])
    print("\nLeft out:" if run.left_out else "\nNothing was left out.")
    for each in run.left_out:
        print(f"- {each}")
    if given.json:
        given.json.write_text(json.dumps(run.rows, indent=2))


if __name__ == "__main__":
    main()

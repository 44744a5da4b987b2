"""Peak memory of a job commit as jobs grow.

    python tests/benchmarks/bench_memory.py [--quick] [--json FILE] [--directory DIR] [--files N ...]

Each job is committed in a process of its own, by `lockgate.commit`, from manifests that name small files; peak resident
memory is what the kernel counts (`VmHWM`), reset just before the commit. Names and identities are spooled past
`memory_bytes_max`. What still grows with the files is the hash of every target, kept to find duplicates
and sorted once as Python integers, and the compressed list of files before it is written: about 100 bytes a file.
Only on Linux.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILES = (10_000, 100_000, 300_000)
QUICK = (1_000, 3_000)
FILES_OF_A_TASK = 1_000
DIRECTORIES = 100


def stage(destination: Path, files: int) -> str:
    """A job whose tasks have committed `files` files in all; returns its id."""
    from lockgate import Job
    from lockgate.model.layout import JobLayout
    from lockgate.model.manifest import Entry, TaskManifest, encode_manifest
    from lockgate.model.urls import Below, parse_url
    from lockgate.stores.local import identity_of

    job = Job(str(destination))
    job.setup()
    layout = JobLayout(job.job_id)
    below = Below(parse_url(str(destination)))
    for task in range(0, files, FILES_OF_A_TASK):
        attempt = job.task_attempt(task // FILES_OF_A_TASK)
        attempt.setup()
        entries = []
        for number in range(task, min(files, task + FILES_OF_A_TASK)):
            target = f"directory={number % DIRECTORIES:05d}/part-{number:010d}-of-a-name-of-usual-length.snappy.parquet"
            staged = layout.staged(attempt.task_attempt_id, number - task, target, nonce="000000")
            file = destination / staged
            file.write_bytes(b"x" * 100)
            entries.append(Entry(staged, target, 100, identity_of(file.stat())))
        name = f"task_{task // FILES_OF_A_TASK:06d}"
        manifest = TaskManifest(job.job_id, 0, name, attempt.task_attempt_id, entries)
        (destination / layout.manifest(name)).write_bytes(encode_manifest(manifest, below))
    return job.job_id


def commit(destination: Path, job_id: str, memory_bytes_max: int) -> dict[str, Any]:
    """Commit it in this process; what that took."""
    import lockgate
    from lockgate import JobOptions

    options = JobOptions(memory_bytes_max=memory_bytes_max)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began = time.perf_counter()
    summary = lockgate.commit(str(destination), job_id, options=options, force=True)
    took = time.perf_counter() - began
    peak = _memory("VmHWM")
    return {
        "files": summary.files,
        "seconds": round(took, 3),
        "before_bytes": before,
        "peak_bytes": peak,
        "growth_bytes": peak - before,
        "growth_bytes_per_file": round((peak - before) / summary.files, 1),
    }


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def measure(directory: Path, files: int, memory_bytes_max: int) -> dict[str, Any]:
    """Stage a job in one process and commit it in another."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="bench-") as work:
        destination = Path(work) / "events"
        job_id = _child("stage", str(destination), str(files))
        return dict(_child("commit", str(destination), str(job_id), str(memory_bytes_max)))


def _child(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def print_table(figures: dict[str, Any]) -> None:
    """The figures, for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"peak memory of job commit; spooled to disk past {_mib(figures['memory_bytes_max'])} MiB")
    for heading in ("files", "seconds", "before, MiB", "peak, MiB", "growth, MiB", "growth a file, bytes"):
        table.add_column(heading, justify="right")
    for job in figures["jobs"]:
        table.add_row(
            f"{job['files']:,}",
            f"{job['seconds']:.2f}",
            _mib(job["before_bytes"]),
            _mib(job["peak_bytes"]),
            _mib(job["growth_bytes"]),
            f"{job['growth_bytes_per_file']:.0f}",
        )
    Console().print(table)


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f}"


def main(arguments: Sequence[str]) -> int:
    """The command line; `stage` and `commit` are for the child processes."""
    if arguments[:1] == ["stage"]:
        print(json.dumps(stage(Path(arguments[1]), int(arguments[2]))))
        return 0
    if arguments[:1] == ["commit"]:
        print(json.dumps(commit(Path(arguments[1]), arguments[2], int(arguments[3]))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="small jobs, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--directory", type=Path, help="where the destinations are made (default: the temporary one)")
    parser.add_argument("--files", type=int, nargs="+", help="how many files the jobs have")
    parser.add_argument("--memory-bytes-max", type=int, default=8 << 20, help="the option of that name")
    parser.add_argument("--rounds", type=int, help=argparse.SUPPRESS)  # of the other benchmarks, run by one command
    chosen = parser.parse_args(arguments)
    if not sys.platform.startswith("linux"):
        print("peak memory is read from /proc, which only Linux has", file=sys.stderr)
        return 0
    files = chosen.files or (QUICK if chosen.quick else FILES)
    figures = {
        "memory_bytes_max": chosen.memory_bytes_max,
        "jobs": [measure(chosen.directory, count, chosen.memory_bytes_max) for count in files],
    }
    print_table(figures)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Peak memory, and seconds a file, of everything that looks at all files of a job, as jobs grow.

    python tests/benchmarks/bench_memory.py [--quick] [--json FILE] [--directory DIR] [--files N ...] [--only NAME ...]

Each operation runs in a process of its own, on a job staged by others: job commit; the plan of a `replace` of a
destination that holds as many files as the job, that `replace` itself, `verify` and `gc` after it; and `recover`, both
ways, of one whose driver was killed when half of its files were renamed. Files are empty: only names count here. Peak
resident memory is what the kernel counts (`VmHWM`), above that of the interpreter that has imported nothing of Lockgate
yet: plugins and libraries are in it, about 45 MiB. Loading them is not in the time.

Names and identities are spooled to disk past `memory_bytes_max`. What still grows with the files is the hash of every
target, kept to find duplicates, and the lists that are written as a whole: of what is committed, compressed, and of
what is replaced. Only on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from given_directory import given_directory

FILES = (10_000, 100_000, 300_000)
QUICK = (1_000, 3_000)
FILES_OF_A_TASK = 1_000
DIRECTORIES = 100


def _name(number: int, kind: str) -> str:
    return f"directory={number % DIRECTORIES:05d}/part-{number:010d}-of-a-name-of-{kind}-length.snappy.parquet"


def stage(destination: Path, files: int, **options: Any) -> str:
    """A job whose tasks have committed `files` files in all; returns its id."""
    from lockgate import Job, JobOptions
    from lockgate.model.layout import JobLayout
    from lockgate.model.manifest import Entry, TaskManifest, encode_manifest
    from lockgate.model.urls import Below, parse_url
    from lockgate.stores.local_files import identity_of

    job = Job(str(destination), JobOptions(**options))
    job.setup()
    layout = JobLayout(job.job_id)
    below = Below(parse_url(str(destination)))
    for task in range(0, files, FILES_OF_A_TASK):
        attempt = job.task_attempt(task // FILES_OF_A_TASK)
        attempt.setup()
        entries = []
        for number in range(task, min(files, task + FILES_OF_A_TASK)):
            target = _name(number, "usual")
            staged = layout.staged(attempt.task_attempt_id, number - task, target, nonce="000000")
            file = destination / staged
            file.touch()
            entries.append(Entry(staged, target, 0, identity_of(file.stat())))
        name = f"task_{task // FILES_OF_A_TASK:06d}"
        manifest = TaskManifest(job.job_id, 0, name, attempt.task_attempt_id, entries)
        (destination / layout.manifest(name)).write_bytes(encode_manifest(manifest, below))
    return job.job_id


def fill(destination: Path, files: int) -> str:
    """A destination that holds `files` files already, and a staged job that replaces them; returns the job's id."""
    for directory in range(DIRECTORIES):
        (destination / f"directory={directory:05d}").mkdir(parents=True)
    for number in range(files):
        (destination / _name(number, "former")).touch()
    return stage(destination, files, conflict="replace", cleanup_skip=True)


def _commit(destination: str, job_id: str, memory_bytes_max: int) -> None:
    import lockgate

    options = lockgate.JobOptions(memory_bytes_max=memory_bytes_max)
    lockgate.commit(destination, job_id, options=options, force=True)


def _plan(destination: str, job_id: str, memory_bytes_max: int) -> None:
    import lockgate

    options = lockgate.JobOptions(memory_bytes_max=memory_bytes_max)
    plan = lockgate.plan(destination, job_id, options)
    assert plan.replaced == plan.files


def _verify(destination: str, job_id: str, memory_bytes_max: int) -> None:
    import lockgate

    found = lockgate.verify(destination, lockgate.JobOptions(memory_bytes_max=memory_bytes_max))
    assert not found.findings


def _recover(destination: str, job_id: str, memory_bytes_max: int, undo: bool) -> None:
    import lockgate

    options = lockgate.JobOptions(memory_bytes_max=memory_bytes_max)
    answer = lockgate.recover(destination, job_id, undo=undo, options=options, force=True)
    assert answer[job_id].outcome == ("undone" if undo else "finished"), answer


def _gc(destination: str, job_id: str, memory_bytes_max: int) -> None:
    import lockgate

    found = lockgate.collect_garbage(destination, options=lockgate.JobOptions(memory_bytes_max=memory_bytes_max))
    assert any(each.action == "deleted" for each in found), found


def _die_half_way(destination: str, job_id: str, memory_bytes_max: int, files: int) -> None:
    """Replace, and be killed when half of the job's own files are renamed."""
    from lockgate.stores.local import LocalStore

    honest = LocalStore.rename_files
    renamed = 0

    async def rename_files(self: Any, renames: Any, *rest: Any) -> Any:
        nonlocal renamed
        outcomes = await honest(self, renames, *rest)
        renamed += sum("/tasks/" in rename.source for rename in renames)
        if renamed >= files // 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes

    LocalStore.rename_files = rename_files  # type: ignore[method-assign]
    _commit(destination, job_id, memory_bytes_max)


OPERATIONS: dict[str, Callable[[str, str, int], None]] = {
    "job commit": _commit,
    "plan of a replace": _plan,
    "replace": _commit,
    "verify": _verify,
    "gc": _gc,
    "recover --finish": lambda *job: _recover(*job, False),
    "recover --undo": lambda *job: _recover(*job, True),
}


def run_one(name: str, destination: str, job_id: str, memory_bytes_max: int) -> dict[str, Any]:
    """Run one operation in this process; what that took."""
    before = _memory("VmRSS")
    import lockgate

    lockgate.jobs(destination)  # plugins are loaded once a process: in the memory, but not in the time
    Path("/proc/self/clear_refs").write_text("5")
    began, cpu = time.perf_counter(), time.process_time()
    OPERATIONS[name](destination, job_id, memory_bytes_max)
    return {
        "seconds": round(time.perf_counter() - began, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "before_bytes": before,
        "peak_bytes": _memory("VmHWM"),
    }


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def measure(directory: Path | None, files: int, memory_bytes_max: int, only: Sequence[str]) -> list[dict[str, Any]]:
    """Every operation on jobs of so many files."""
    series: dict[str, list[str]] = {
        "stage": ["job commit"],
        "fill": ["plan of a replace", "replace", "verify", "gc"],
        "die to finish": ["recover --finish"],
        "die to undo": ["recover --undo"],
    }
    found: list[dict[str, Any]] = []
    for begun, operations in series.items():
        wanted = [name for name in operations if name in only]
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(dir=directory, prefix="bench-") as work:
            destination = str(Path(work) / "events")
            job_id = _child("stage" if begun == "stage" else "fill", destination, str(files))
            if begun.startswith("die"):
                killed = subprocess.run(
                    [sys.executable, __file__, "die", destination, job_id, str(memory_bytes_max), str(files)]
                )
                assert killed.returncode == -signal.SIGKILL, killed
            for name in operations[: operations.index(wanted[-1]) + 1]:
                figures = _child("run", name, destination, job_id, str(memory_bytes_max))
                if name in wanted:
                    found.append(_with_ratios({"operation": name, "files": files} | figures))
    return found


def _with_ratios(figures: dict[str, Any]) -> dict[str, Any]:
    growth = figures["peak_bytes"] - figures["before_bytes"]
    return figures | {
        "growth_bytes": growth,
        "growth_bytes_per_file": round(growth / figures["files"], 1),
        "microseconds_per_file": round(figures["seconds"] / figures["files"] * 1e6, 1),
        "cpu_microseconds_per_file": round(figures["cpu_seconds"] / figures["files"] * 1e6, 1),
    }


def _child(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def print_table(figures: dict[str, Any]) -> None:
    """The figures, for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"peak memory; spooled to disk past {_mib(figures['memory_bytes_max'])} MiB")
    table.add_column("operation")
    for heading in ("files", "growth, MiB", "growth a file, bytes", "seconds", "µs a file", "CPU µs a file"):
        table.add_column(heading, justify="right")
    for row in figures["jobs"]:
        table.add_row(
            row["operation"],
            f"{row['files']:,}",
            _mib(row["growth_bytes"]),
            f"{row['growth_bytes_per_file']:.0f}",
            f"{row['seconds']:.2f}",
            f"{row['microseconds_per_file']:.0f}",
            f"{row['cpu_microseconds_per_file']:.0f}",
        )
    Console().print(table)


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f}"


def main(arguments: Sequence[str]) -> int:
    """The command line; `stage`, `fill`, `die` and `run` are for the child processes."""
    match list(arguments):
        case ["stage" | "fill" as kind, destination, files]:
            print(json.dumps((stage if kind == "stage" else fill)(Path(destination), int(files))))
            return 0
        case ["die", destination, job_id, memory_bytes_max, files]:
            _die_half_way(destination, job_id, int(memory_bytes_max), int(files))
            return 1
        case ["run", name, destination, job_id, memory_bytes_max]:
            print(json.dumps(run_one(name, destination, job_id, int(memory_bytes_max))))
            return 0
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="small jobs, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument(
        "--directory", type=given_directory, help="where destinations are made (default: the temporary one)"
    )
    parser.add_argument("--files", type=int, nargs="+", help="how many files the jobs have")
    parser.add_argument("--only", nargs="+", choices=OPERATIONS, default=list(OPERATIONS), help="these operations")
    parser.add_argument("--memory-bytes-max", type=int, default=8 << 20, help="the option of that name")
    parser.add_argument("--rounds", type=int, help=argparse.SUPPRESS)  # of the other benchmarks, run by one command
    chosen = parser.parse_args(arguments)
    if not sys.platform.startswith("linux"):
        print("peak memory is read from /proc, which only Linux has", file=sys.stderr)
        return 0
    files = chosen.files or (QUICK if chosen.quick else FILES)
    jobs = [row for count in files for row in measure(chosen.directory, count, chosen.memory_bytes_max, chosen.only)]
    figures = {"memory_bytes_max": chosen.memory_bytes_max, "jobs": jobs}
    print_table(figures)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

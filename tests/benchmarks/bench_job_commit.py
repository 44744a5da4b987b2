"""Task commit and job commit on local disk, beside Hadoop's committers in the same run.

    python tests/benchmarks/bench_job_commit.py [--quick] [--json FILE] [--directory DIR] [--rounds N]

What is compared: the same job (200 tasks of 50 files in 20 directories) committed by Lockgate, by Hadoop's
`ManifestCommitter` and by `FileOutputCommitter`, algorithm 1. Rounds are interleaved, each committer in turn and the
order turning too, every commit into a fresh destination, with all that was staged flushed to disk before the clock
starts; so what else the machine does falls on all alike. Hadoop's Java process is warmed up by whole commits first.
Ratios are of the same round. Hadoop runs as it is set up by default, where `file:` keeps a checksum file beside each
file, and on its raw local file system, which is faster. It flushes nothing to disk; Lockgate does (option `durable`),
so it runs both ways too. Beside them stand the bare rename calls of such a job, from one thread: nobody who renames
every file from one thread can be faster.

Goals: at least 3 times as many files a second as Hadoop's manifest committer; a task commit in at most a third of
its time; a manifest of three files in less than 1 kB. Not a goal: writing the files, which is not timed.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate import Job, Receipt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hadoop"))

import hadoop_jvm
from given_directory import given_directory
from hadoop_jvm import HadoopJvm

OURS = "lockgate"
PEER = "hadoop manifest"


@dataclass(frozen=True)
class Shape:
    """The job: `files` a task of `length` bytes each, spread over `directories` that all tasks share."""

    tasks: int = 200
    files: int = 50
    directories: int = 20
    length: int = 100
    rounds: int = 5
    warm_ups: int = 2

    @property
    def files_total(self) -> int:
        """The files of the whole job."""
        return self.tasks * self.files


QUICK = Shape(tasks=4, files=6, directories=3, rounds=2, warm_ups=1)


@dataclass(frozen=True)
class Measured:
    """One committer in one round, in seconds; `stages` where the committer tells them."""

    task_commits: Sequence[float]
    job_commit: float
    stages: dict[str, float] = dataclasses.field(default_factory=dict)


Contestant = Callable[[Path, Shape], Measured]


def lockgate(*, durable: bool) -> Contestant:
    """Lockgate in this process, through its public API."""

    def commit(destination: Path, shape: Shape) -> Measured:
        job = Job(str(destination), durable=durable)
        job.setup()
        receipts: list[Receipt] = []
        seconds: list[float] = []
        content = bytes(shape.length)
        for task in range(shape.tasks):
            attempt = job.task_attempt(task)
            attempt.setup()
            for number in range(shape.files):
                name = f"d={number % shape.directories}/part-{task:05d}-{number:05d}.bin"
                with attempt.open(name) as file:
                    file.write(content)
            began = time.perf_counter()
            receipts.append(attempt.commit())
            seconds.append(time.perf_counter() - began)
        os.sync()
        began = time.perf_counter()
        summary = job.commit(receipts)
        took = time.perf_counter() - began
        assert summary.lockgate is not None
        return Measured(seconds, took, dict(summary.lockgate.stage_seconds))

    return commit


def hadoop(jvm: HadoopJvm, committer: hadoop_jvm.Committer, *, raw: bool) -> Contestant:
    """One of Hadoop's committers in its Java process."""

    def commit(destination: Path, shape: Shape) -> Measured:
        job_id = str(uuid.uuid4())
        jvm.setup_job(destination, job_id, committer, raw_file_system=raw)
        seconds = [
            jvm.write_uniform_task(job_id, task, files=shape.files, directories=shape.directories, length=shape.length)
            for task in range(shape.tasks)
        ]
        os.sync()
        return Measured(seconds, jvm.commit_job(job_id))

    return commit


def hadoop_committers(jvm: HadoopJvm) -> dict[str, Contestant]:
    """Hadoop's committers by name."""
    return {
        PEER: hadoop(jvm, "manifest", raw=False),
        "hadoop manifest, raw": hadoop(jvm, "manifest", raw=True),
        "hadoop v1": hadoop(jvm, "v1", raw=False),
        "hadoop v1, raw": hadoop(jvm, "v1", raw=True),
    }


def seconds_of_bare_renames(directory: Path, shape: Shape) -> float:
    """The rename calls of such a job and nothing else."""
    with fresh(directory) as root:
        for number in range(shape.directories):
            (root / f"d={number}").mkdir(parents=True)
        renames = []
        for task in range(shape.tasks):
            (root / f"task-{task}").mkdir()
            for number in range(shape.files):
                source = root / f"task-{task}" / f"{number}.bin"
                source.write_bytes(bytes(shape.length))
                target = root / f"d={number % shape.directories}" / f"part-{task:05d}-{number:05d}.bin"
                renames.append((str(source), str(target)))
        os.sync()
        began = time.perf_counter()
        for pair in renames:
            os.rename(*pair)
        return time.perf_counter() - began


@contextlib.contextmanager
def fresh(directory: Path) -> Iterator[Path]:
    """A destination that is gone afterwards."""
    destination = directory / uuid.uuid4().hex[:8]
    try:
        yield destination
    finally:
        shutil.rmtree(destination, ignore_errors=True)


def measured_once(contestant: Contestant, directory: Path, shape: Shape) -> Measured:
    """One whole job, checked to be complete."""
    with fresh(directory) as destination:
        found = contestant(destination, shape)
        committed = sum(1 for _ in destination.glob("d=*/part-*.bin"))
        assert committed == shape.files_total, f"{committed} files of {shape.files_total}"
        return found


def measure(directory: Path, shape: Shape, tell: Callable[[str], None]) -> dict[str, Any]:
    """All rounds of everybody; returns the figures."""
    with tempfile.TemporaryDirectory(dir=directory) as work, HadoopJvm(Path(work)) as jvm:
        hadoops = hadoop_committers(jvm)
        for number in range(shape.warm_ups):
            tell(f"warm-up {number + 1} of {shape.warm_ups}")
            for contestant in hadoops.values():
                measured_once(contestant, directory, shape)
        everybody = {OURS: lockgate(durable=True), "lockgate, not durable": lockgate(durable=False)} | hadoops
        rounds: dict[str, list[Measured]] = {name: [] for name in everybody}
        names = list(everybody)
        bare: list[float] = []
        for number in range(shape.rounds):
            tell(f"round {number + 1} of {shape.rounds}")
            bare.append(shape.files_total / seconds_of_bare_renames(directory, shape))
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                rounds[name].append(measured_once(everybody[name], directory, shape))
        return report(shape, rounds, manifest_bytes(jvm, directory)) | {
            "bare_renames_per_second": _spread(bare),
            "native_library": jvm.has_native_library(),
        }


NAMES = {
    "short names": "year=2024/month={number}/part-00000 {number}.parquet",
    "Spark's names": "year=2024/month={number}/part-00000-0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11.c000.snappy.parquet",
}


def manifest_bytes(jvm: HadoopJvm, directory: Path) -> dict[str, dict[str, int]]:
    """The size of a manifest of three files: the names of the golden files, and as Spark makes them."""
    sizes: dict[str, dict[str, int]] = {}
    for which, form in NAMES.items():
        names = [form.format(number=number) for number in range(3)]
        with fresh(directory) as destination:
            job = Job(str(destination))
            job.setup()
            attempt = job.task_attempt(0)
            attempt.setup()
            for name in names:
                with attempt.open(name) as file:
                    file.write(b"x")
            attempt.commit({"rows_written": 1000})
            (ours,) = destination.glob("_lockgate/jobs/*/00/manifests/*-manifest.json")
            sizes[which] = {"destination": len(str(destination)), OURS: ours.stat().st_size}
        with fresh(directory) as destination:
            job_id = str(uuid.uuid4())
            jvm.setup_job(destination, job_id)
            jvm.write_task(job_id, 0, dict.fromkeys(names, b"x"))
            (theirs,) = destination.glob("_temporary/*/00/manifests/*-manifest.json")
            sizes[which][PEER] = theirs.stat().st_size
    return sizes


def report(shape: Shape, rounds: dict[str, list[Measured]], sizes: dict[str, dict[str, int]]) -> dict[str, Any]:
    """The figures, for programs: medians with the least and the most."""
    ours = rounds[OURS]
    peers = {
        name: {
            "job_commit_files_per_second": _spread([shape.files_total / each.job_commit for each in found]),
            "job_commit_seconds": _spread([each.job_commit for each in found]),
            "task_commit_milliseconds": _spread([1000 * statistics.median(each.task_commits) for each in found]),
            "lockgate_is_faster_by": {
                "job_commit": _spread([b.job_commit / a.job_commit for a, b in zip(ours, found, strict=True)]),
                "task_commit": _spread(
                    [
                        statistics.median(b.task_commits) / statistics.median(a.task_commits)
                        for a, b in zip(ours, found, strict=True)
                    ]
                ),
            },
        }
        for name, found in rounds.items()
    }
    stages: dict[str, list[float]] = {}
    for each in ours:
        for stage, seconds in each.stages.items():
            stages.setdefault(stage, []).append(seconds)
    return {
        "shape": dataclasses.asdict(shape),
        "hadoop": hadoop_jvm.hadoop_version(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "committers": peers,
        "lockgate_stage_seconds": {stage: _spread(found) for stage, found in stages.items()},
        "manifest_bytes_of_three_files": sizes,
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 6),
        "least": round(min(values), 6),
        "most": round(max(values), 6),
    }


def print_tables(figures: dict[str, Any]) -> None:
    """The figures, for people."""
    from rich.console import Console
    from rich.table import Table

    shape = Shape(**figures["shape"])
    console = Console()
    table = Table(
        title=f"{shape.tasks} tasks x {shape.files} files in {shape.directories} directories, {shape.rounds} rounds, "
        f"Hadoop {figures['hadoop']}: median (least to most)"
    )
    table.add_column("committer")
    for heading in ("job commit, files/s", "lockgate faster by", "task commit, ms", "lockgate faster by"):
        table.add_column(heading, justify="right")
    for name, found in figures["committers"].items():
        ratio = found["lockgate_is_faster_by"]
        table.add_row(
            name,
            _shown(found["job_commit_files_per_second"], ",.0f"),
            _shown(ratio["job_commit"], ".2f"),
            _shown(found["task_commit_milliseconds"], ".2f"),
            _shown(ratio["task_commit"], ".2f"),
        )
    console.print(table)
    console.print(f"bare rename calls in one thread: {_shown(figures['bare_renames_per_second'], ',.0f')} a second")
    stages = Table(title="where Lockgate's job commit spends its time")
    stages.add_column("stage")
    stages.add_column("ms", justify="right")
    for name, spread in figures["lockgate_stage_seconds"].items():
        stages.add_row(name, _shown({key: 1000 * value for key, value in spread.items()}, ".1f"))
    console.print(stages)
    for which, sizes in figures["manifest_bytes_of_three_files"].items():
        console.print(
            f"manifest of three files, {which}, destination of {sizes['destination']} characters: "
            f"{sizes[OURS]:,} bytes; Hadoop's {sizes[PEER]:,}"
        )
    if not figures["native_library"]:
        console.print("Hadoop runs without its native library, as PySpark ships it: it starts a chmod for each file.")
    console.print(f"load average at the end: {figures['load_average']:.1f} on {figures['processors']} processors")


def _shown(spread: dict[str, float], form: str) -> str:
    return f"{spread['median']:{form}} ({spread['least']:{form}} to {spread['most']:{form}})"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Exit status 2: something has to be installed first."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a small job, to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE (- for standard output)")
    parser.add_argument(
        "--directory", type=given_directory, help="where destinations are made (default: the temporary one)"
    )
    parser.add_argument("--rounds", type=int, help="how many rounds")
    chosen = parser.parse_args(arguments)
    missing = hadoop_jvm.missing()
    if missing:
        print(missing, file=sys.stderr)
        return 2
    shape = QUICK if chosen.quick else Shape()
    if chosen.rounds:
        shape = dataclasses.replace(shape, rounds=chosen.rounds)
    with tempfile.TemporaryDirectory(dir=chosen.directory, prefix="bench-") as work:
        figures = measure(Path(work), shape, _tell)
    text = json.dumps(figures, indent=1)
    if chosen.json is None:
        print_tables(figures)
    elif str(chosen.json) == "-":
        print(text)
    else:
        print_tables(figures)
        chosen.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

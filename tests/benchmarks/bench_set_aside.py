"""Setting replaced partitions aside: requests on Azure, and seconds on a local disk, by files and by directories.

    python tests/benchmarks/bench_set_aside.py [--quick] [--json FILE] [--directory DIR]

What is measured: the commit of a job that replaces 1,000 partitions of 100 files with one file each
(`replace-partitions`), once with `set_aside=files` and once with `directories`. On Azure's emulator, which the
benchmark fills by itself and which logs each request, requests are counted by what they are for: the renames that set
aside, the listings that look at it afterwards (of the place where all of it waits, 5,000 a page), and the cleanup of
what was set aside. On the local disk the stage is timed.

Goal: at most 1.1 requests a partition for the setting aside. Not goals: making the directories anew, and listing the
partitions to plan (one request each). Both are in the total, as is what the task wrote.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from given_directory import given_directory
from lockgate import Job, JobOptions
from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.azure.namespace import File

MODES = ("files", "directories")


def replace(url: str, options: JobOptions, partitions: int) -> tuple[Any, float]:
    """One job that replaces every partition: its summary, and the seconds of its commit."""
    job = Job(url, options)
    job.setup()
    attempt = job.task_attempt(task=0)
    attempt.setup()
    for number in range(partitions):
        with attempt.open(f"p={number:04d}/new.parquet") as file:
            file.write(b"n")
    receipt = attempt.commit()
    began = time.perf_counter()
    summary = job.commit([receipt])
    return summary, time.perf_counter() - began


def on_azure(partitions: int, files: int, mode: str) -> dict[str, Any]:
    """Requests by what they are for."""
    with AzureLab(AzureSettings()) as lab:

        def fill() -> None:
            lab.account.create("data")
            namespace = lab.account.containers["data"]
            for partition in range(partitions):
                for number in range(files):
                    parts = ("t", f"p={partition:04d}", f"old-{number:03d}.parquet")
                    namespace.put_file(parts, File(parts[-1], by_dfs=True))

        lab.on_loop(fill)
        options = JobOptions(
            conflict="replace-partitions", set_aside=mode, store={"connection_string": lab.connection_string}
        )
        before = lab.control.counts()["total"]
        summary, seconds = replace("abfss://data@devstoreaccount1.dfs.core.windows.net/t", options, partitions)
        asked = [each | {"path": unquote(each["path"])} for each in _all_requests(lab)]
        asked = [each for each in asked if "/replaced/" in each["target"] + each["path"]]
        total = lab.control.counts()["total"] - before
    assert summary.counters["files_set_aside"] == partitions * files
    return {
        "store": "abfs",
        "mode": mode,
        "partitions": partitions,
        "set_aside": sum(each["operation"] == "RenamePath" and "/_" in _below_nonce(each) for each in asked),
        "looked": sum(each["operation"] == "ListPaths" and "-whole" in each["path"] for each in asked),
        "deleted": sum(each["operation"] == "DeletePath" for each in asked),
        "total": total,
        "commit_s": seconds,
        "stage_s": summary.lockgate.stage_seconds["set_aside"],
    }


def _all_requests(lab: AzureLab) -> Iterator[dict[str, Any]]:
    """The log, a page at a time."""
    last = 0
    while page := lab.control.requests(after=last):
        yield from page
        last = page[-1]["sequence"]


def _below_nonce(asked: dict[str, Any]) -> str:
    """What of a request's target is below the directory of one list: empty for the lists themselves."""
    below = str(asked["target"]).partition("/replaced/")[2].split("/", 2)
    return f"/{below[2]}" if len(below) == 3 else ""


def on_disk(directory: Path, partitions: int, files: int, mode: str) -> dict[str, Any]:
    """The seconds of the stage."""
    table = directory / f"table-{mode}"
    for partition in range(partitions):
        place = table / f"p={partition:04d}"
        place.mkdir(parents=True)
        for number in range(files):
            (place / f"old-{number:03d}.parquet").write_bytes(b"o")
    options = JobOptions(conflict="replace-partitions", set_aside=mode)
    summary, seconds = replace(f"file://{table}", options, partitions)
    shutil.rmtree(table)
    stage = summary.lockgate.stage_seconds["set_aside"]
    return {"store": "local", "mode": mode, "partitions": partitions, "stage_s": stage, "commit_s": seconds}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 partitions of 5 files")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--directory", type=given_directory, help="where the local table is made")
    arguments = parser.parse_args()
    partitions, files = (40, 5) if arguments.quick else (1_000, 100)
    found = [on_azure(partitions, files, mode) for mode in MODES]
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        found += [on_disk(Path(directory), partitions, files, mode) for mode in MODES]
    print(f"{partitions} partitions of {files} files")
    for row in found:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

"""Jobs on remote stores: what the tests of every store that speaks HTTP have in common.

A `RemoteTable` is a destination behind a URL, with a look at what the server really holds that does not go through the
store under test.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from leftovers import LEFT_OVER
from lockgate import Job, JobOptions, LockgateError, Receipt, Summary, recover
from lockgate.api.task_attempt import TaskAttempt
from lockgate.model.errors import OutcomeUnknown

Files = Mapping[str, bytes]

AWKWARD = (
    "plain.bin",
    "a b+c&d=e.bin",
    "k=10%3A00%20x/part#1?.bin",
    "k=[x]{y}|z~'\"^`/p;a,r!t@$.bin",
    "größe=ß/日本語-🎈.bin",
    "e\u0301/combining-e\u0301.bin",
    "long/" + "x" * 200 + "/" + "y" * 200 + ".bin",
)
"""Names that a store must keep to the byte."""


@dataclass
class RemoteTable:
    """A destination, the store options that reach it, and `server_files`, which reads them all from the server."""

    url: str
    store: Mapping[str, str]
    server_files: Callable[[], dict[str, bytes]]
    options: dict[str, Any] = field(default_factory=dict)
    tagged: bool = False
    """Whether names have to hold the tags of their attempts: each gets it at its end, and `read` leaves it out."""

    def job_options(self, **options: Any) -> JobOptions:
        """Options of a job here."""
        return JobOptions(**{"store": self.store, "timeout_seconds": 10.0, **self.options, **options})

    def job(self, **options: Any) -> Job:
        """A job that is set up."""
        job = Job(self.url, self.job_options(**options))
        job.setup()
        return job

    def task(self, job: Job, files: Files, task: int = 0, attempt: int = 0) -> Receipt:
        """Write and commit one task attempt."""
        work = job.task_attempt(task, attempt)
        work.setup()
        for path, content in files.items():
            with work.open(self.named(work, path)) as file:
                file.write(content)
        return work.commit()

    def named(self, work: TaskAttempt, path: str) -> str:
        """The path that an attempt gives to its file."""
        return f"{path}.{work.tag}" if self.tagged else path

    def write(self, files: Files, **options: Any) -> Summary:
        """A whole job of one task, committed."""
        job = self.job(**options)
        return job.commit([self.task(job, files)])

    def read(self) -> dict[str, bytes]:
        """What a reader sees."""
        seen = {path: content for path, content in self.server_files().items() if not path.startswith(("_", "."))}
        return {_TAG.sub("", path): content for path, content in seen.items()} if self.tagged else seen

    def as_read(self, files: Files) -> dict[str, bytes]:
        """What `read` is to find of files that tasks have written under these names."""
        return dict(files)

    def left_over(self) -> list[str]:
        """What is of use only while a job is at work."""
        return sorted(path for path in self.server_files() if path.startswith(LEFT_OVER))

    def through(self, url: str, store: Mapping[str, str], **options: Any) -> RemoteTable:
        """The same destination by another way, such as a proxy's."""
        return replace(self, url=url, store=store, options={**self.options, **options})


_TAG = re.compile(r"\.[0-9a-f]{16}\Z")


@dataclass(frozen=True)
class FaultyRun:
    """What became of a job under faults."""

    committed: bool
    recovered: int
    error: str = ""
    stage_seconds: Mapping[str, float] = field(default_factory=dict)


def run_job_under_faults(
    table: RemoteTable,
    direct: RemoteTable,
    seed: int,
    *,
    tasks: int = 40,
    writers: int = 8,
    attempts: tuple[int, ...] = (0,),
    protocol: str = "auto",
) -> FaultyRun:
    """Ten files a task, through `table`; then judge by `direct`: complete and exclusive, or nothing visible.

    Every fourth task has a second attempt that writes and is never committed, every eighth one that commits and whose
    receipt the driver does not take. The job replaces what is there. A task that fails is tried again, as a scheduler
    would, as long as there are `attempts`.
    """
    random_of_job = random.Random(seed)
    old = {f"part={n}/old-{n}.bin": b"old %d" % n for n in range(5)}
    direct.write(old, conflict="replace")
    old = table.as_read(old)
    new = {task: _files_of(task, random_of_job) for task in range(tasks)}
    expected = table.as_read({path: content for files in new.values() for path, content in files.items()})
    try:
        job = table.job(conflict="replace", protocol=protocol)
    except LockgateError as error:
        assert direct.read() == old, f"seed {seed}: the setup failed and changed something"
        return FaultyRun(False, 0, str(error))
    job_id = job.job_id
    try:
        with concurrent.futures.ThreadPoolExecutor(writers) as threads:
            run = partial(_run_task, table, job, attempts)
            receipts = list(threads.map(run, new, new.values()))
        assert direct.read() == old, f"seed {seed}: tasks have changed what readers see"
        summary = job.commit(receipts)
    except LockgateError as error:
        return _judge_failure(direct, job_id, error, old, expected, seed)
    _same(direct.read(), expected, f"seed {seed}: committed")
    assert summary.lockgate is not None
    found = summary.lockgate
    return FaultyRun(True, found.renames_recovered, stage_seconds=found.stage_seconds)


def _judge_failure(
    direct: RemoteTable, job_id: str, error: LockgateError, old: Files, expected: Files, seed: int
) -> FaultyRun:
    if isinstance(error, OutcomeUnknown) or direct.read() not in (old, expected):
        # It said that it does not know, or that its rollback failed too: then recovery must know.
        assert "lockgate recover" in str(error), f"seed {seed}: {error}"
        recover(direct.url, job_id, force=True, options=direct.job_options())
    seen = direct.read()
    _same(seen, expected if seen.keys() & expected.keys() else old, f"seed {seed}: failed by {error}")
    return FaultyRun(False, 0, str(error))


def _same(seen: Files, wanted: Files, where: str) -> None:
    assert sorted(seen) == sorted(wanted), where
    assert seen == wanted, where


def _files_of(task: int, rng: random.Random) -> dict[str, bytes]:
    names = [f"part={rng.randrange(8)} %3A+#?ü/t{task:02d}-{n}.bin" for n in range(10)]
    return {name: rng.randbytes(rng.randrange(0, 200)) for name in names}


def _run_task(table: RemoteTable, job: Job, attempts: tuple[int, ...], task: int, files: Files) -> Receipt:
    if task % 4 == 3:
        zombie = job.task_attempt(task, 7)
        zombie.setup()
        with zombie.open(table.named(zombie, f"zombie-{task}.bin")) as file:
            file.write(b"never committed")
    if task % 8 == 1:
        table.task(job, {f"rival-{task}.bin": b"committed, not taken"}, task, 1)
    *first, last = attempts
    for attempt in first:
        with contextlib.suppress(LockgateError):
            return table.task(job, files, task, attempt)
    return table.task(job, files, task, last)


_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")


def without_ids(key: str) -> str:
    """A request's key without what differs from run to run, so that a seed means the same faults."""
    return _UUID.sub("ID", key)


def seeds_of_faults(usual: int) -> range:
    """Which seeds a fault run takes: `TEST_FAULT_SEEDS=7` or `0-49`, else the first `usual`."""
    text = os.environ.get("TEST_FAULT_SEEDS", "")
    if not text:
        return range(usual)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def run_seeds(seeds: range, run: Callable[[int], FaultyRun], *, at_once: int = 12) -> list[FaultyRun]:
    """Run each seed, some at once since faults mostly wait, and print what became of each."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as threads:
        futures = {seed: threads.submit(run, seed) for seed in seeds}
        for seed, future in futures.items():
            failed = future.exception()
            said = f"failed: {failed}" if failed else f"{future.result()}"
            print(f"seed {seed}: {said[:300]}", flush=True)
        return [future.result() for future in futures.values()]

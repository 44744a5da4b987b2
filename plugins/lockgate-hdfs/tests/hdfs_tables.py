"""Jobs on HDFS: a table behind a URL, and the judgement of a job that ran under faults."""

from __future__ import annotations

import concurrent.futures
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hdfs_places import USER, files_below, new_root
from lockgate import Job, JobOptions, LockgateError, Receipt, Summary, recover
from lockgate.model.errors import OutcomeUnknown

Files = Mapping[str, bytes]


@dataclass
class HdfsTable:
    """A destination by one way to an HDFS; what it holds is read by another, from the NameNode at `port`."""

    base: str
    port: int
    root: str = field(default_factory=new_root)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"{self.base}{self.root}"

    def through(self, base: str, **options: Any) -> HdfsTable:
        """The same destination by another way, such as a proxy's."""
        return HdfsTable(base, self.port, self.root, {**self.options, **options})

    def job_options(self, **options: Any) -> JobOptions:
        return JobOptions(**{"store": USER, "timeout_seconds": 20.0, **self.options, **options})

    def job(self, **options: Any) -> Job:
        job = Job(self.url, self.job_options(**options))
        job.setup()
        return job

    def task(self, job: Job, files: Files, task: int = 0, attempt: int = 0) -> Receipt:
        work = job.task_attempt(task, attempt)
        work.setup()
        for path, content in files.items():
            with work.open(path) as file:
                file.write(content)
        return work.commit()

    def write(self, files: Files, **options: Any) -> Summary:
        job = self.job(**options)
        return job.commit([self.task(job, files)])

    def everything(self) -> dict[str, bytes]:
        return files_below(self.port, self.root)

    def read(self) -> dict[str, bytes]:
        """What a reader sees."""
        return {path: content for path, content in self.everything().items() if not path.startswith(("_", "."))}

    def left_over(self) -> list[str]:
        return sorted(path for path in self.everything() if path.startswith("_temporary"))


@dataclass(frozen=True)
class FaultyRun:
    """What became of a job under faults."""

    committed: bool
    recovered: int
    error: str = ""


def run_job_under_faults(table: HdfsTable, direct: HdfsTable, seed: int, *, tasks: int, files: int) -> FaultyRun:
    """A job that replaces what is there, with attempts that are never committed; then complete and exclusive, or
    nothing visible."""
    rng = random.Random(seed)
    old = {f"part={n}/old-{n}.bin": b"old %d" % n for n in range(3)}
    direct.write(old, conflict="replace")
    new = {task: _files_of(task, files, rng) for task in range(tasks)}
    expected = {path: content for each in new.values() for path, content in each.items()}
    job_id = ""
    try:
        job = table.job(conflict="replace")
        job_id = job.job_id
        with concurrent.futures.ThreadPoolExecutor(24) as threads:
            receipts = list(threads.map(lambda task: _run_task(table, job, task, new[task]), range(tasks)))
        assert direct.read() == old, f"seed {seed}: tasks have changed what readers see"
        summary = job.commit(receipts)
    except LockgateError as error:
        return _judge_failure(direct, job_id, error, old, expected, seed)
    _same(direct.read(), expected, f"seed {seed}: committed")
    assert summary.lockgate is not None
    return FaultyRun(True, summary.lockgate.renames_recovered)


def _files_of(task: int, count: int, rng: random.Random) -> dict[str, bytes]:
    names = [f"part={rng.randrange(8)} %3A+#?ü/t{task:02d}-{number}.bin" for number in range(count)]
    return {name: rng.randbytes(rng.randrange(50)) for name in names}


def _run_task(table: HdfsTable, job: Job, task: int, files: Files) -> Receipt:
    if task % 8 == 1:
        table.task(job, {f"rival-{task}.bin": b"committed, not taken"}, task, 1)
    for attempt in (0, 2, 3):
        try:
            return table.task(job, files, task, attempt)
        except LockgateError as error:  # as a scheduler would: another attempt
            failure = error
    raise failure


def _judge_failure(
    direct: HdfsTable, job_id: str, error: LockgateError, old: Files, new: Files, seed: int
) -> FaultyRun:
    if job_id and (isinstance(error, OutcomeUnknown) or direct.read() not in (old, new)):
        # It said that it does not know, or that its rollback failed too: then recovery must know.
        assert "lockgate recover" in str(error), f"seed {seed}: {error}"
        recover(direct.url, job_id, force=True, options=direct.job_options())
    seen = direct.read()
    _same(seen, new if seen.keys() & new.keys() else old, f"seed {seed}: failed by {error}")
    return FaultyRun(False, 0, str(error))


def _same(seen: Files, wanted: Files, where: str) -> None:
    assert sorted(seen) == sorted(wanted), where
    assert seen == wanted, where

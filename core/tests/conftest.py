"""Jobs on the real local store, for every test of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import settings
from leftovers import LEFT_OVER
from lockgate import Job, JobOptions, Receipt

# How long an example takes depends on what else the machine does.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

Files = Mapping[str, bytes]


class Table:
    """A destination on local disk, and what a test asks of it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def job(self, job_id: str | None = None, **options: object) -> Job:
        """A job that is set up."""
        job = Job(str(self.root), JobOptions(**options), job_id=job_id)
        job.setup()
        return job

    def task(self, job: Job, files: Files, task: int = 0, attempt: int = 0, **counters: int) -> Receipt:
        """Write and commit one task attempt."""
        work = job.task_attempt(task, attempt)
        work.setup()
        for path, content in files.items():
            with work.open(path) as file:
                file.write(content)
        return work.commit(counters)

    def write(self, files: Files, **options: object) -> Job:
        """A whole job of one task, committed."""
        job = self.job(**options)
        job.commit([self.task(job, files)])
        return job

    def read(self) -> dict[str, bytes]:
        """What a reader sees: every file, those of committers left out."""
        return {path: content for path, content in self.everything().items() if not path.startswith(("_", "."))}

    def everything(self) -> dict[str, bytes]:
        """Every file below the destination."""
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def left_over(self) -> list[str]:
        """What is of use only while a job is at work."""
        return [path for path in self.everything() if path.startswith(LEFT_OVER)]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """An empty destination that does not exist yet."""
    return Table(tmp_path / "events")


@pytest.fixture
def tables(tmp_path: Path) -> Callable[[str], Table]:
    """Destinations by name, side by side."""
    return lambda name: Table(tmp_path / name)

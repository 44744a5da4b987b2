"""Abortable: a task that Spark has launched, and that begins when its job was aborted, adds nothing.

The settings of a session name the protocol, which the planner of Spark does not see: so tasks set the job up again. By
protocols whose files are seen before the job commits, what such a task wrote stayed, and nobody aborted the job again.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lockgate
import pyarrow as pa
import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions
from lockgate.engine.job.setup import setup_job
from lockgate.errors import FileMissing, JobNotFound
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.write_options import WriteOptions
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

SCHEMA = StructType([StructField("id", LongType())])
EARLY = ("v2", "direct", "stocator", "markers")


@pytest.fixture
def task_contexts() -> Iterator[None]:
    yield
    TaskContext._taskContext = None


def _task(writer: bytes, number: int, settings: dict[str, str]) -> Any:
    """A task of Spark's, on some executor."""
    context = object.__new__(TaskContext)
    context._partitionId = context._taskAttemptId = number
    context._localProperties = settings
    TaskContext._taskContext = context
    return pickle.loads(writer).write(iter([pa.RecordBatch.from_pydict({"id": [number]})]))


def _seen(root: Path) -> list[str]:
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return [path for path in found if path[0] not in "._"]


@pytest.mark.usefixtures("task_contexts")
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_a_task_that_begins_when_its_job_was_aborted_adds_nothing(
    tmp_path: Path, protocol: str, begun: bool
) -> None:
    settings = {"spark.lockgate.protocol": protocol, "spark.lockgate.accept_unsafe": "true"}
    writer = pickle.dumps(BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}, mode="append"), SCHEMA))
    messages = [_task(writer, 0, settings)] if begun else []
    pickle.loads(writer).abort(messages)
    with pytest.raises(JobNotFound):
        _task(writer, 1, settings)
    assert _seen(tmp_path / "t") == []
    assert lockgate.jobs(tmp_path / "t") == []


@pytest.mark.usefixtures("task_contexts")
@pytest.mark.parametrize("protocol", ["manifest", *EARLY])
def test_a_write_that_somebody_has_aborted_before_its_first_task_ends_with_an_error(
    tmp_path: Path, protocol: str
) -> None:
    settings = {"spark.lockgate.protocol": protocol, "spark.lockgate.accept_unsafe": "true"}
    writer = pickle.dumps(BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}, mode="append"), SCHEMA))
    (state,) = lockgate.jobs(tmp_path / "t")
    lockgate.abort(tmp_path / "t", state.job_id, force=True)
    with pytest.raises(JobNotFound):
        _task(writer, 0, settings)
    assert _seen(tmp_path / "t") == []


@pytest.mark.parametrize("by_driver", [True, False])
@pytest.mark.parametrize("moment", ["create_file", "read_files"])
@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_a_task_that_sets_its_job_up_while_that_is_aborted_adds_nothing(
    tmp_path: Path, protocol: str, moment: str, by_driver: bool
) -> None:
    """Where the driver could not set it up: the first task does."""
    options = JobOptions(protocol=protocol, accept_unsafe=True, alive_seconds=0)
    driver = Job(tmp_path, options, job_id="j", nonce="0123456789abcdef")
    late = pickle.loads(pickle.dumps(driver))
    driver.setup(by_task=True)
    done: list[str] = []

    def before(name: str, subject: object) -> None:
        if name == moment and not done:
            done.append(name)
            if by_driver:
                driver.abort(set_up_by_tasks=True)
            else:
                lockgate.abort(tmp_path, "j", options=options, force=True)

    make_faulty(late).before = before
    with pytest.raises((JobNotFound, FileMissing)):
        asyncio.run(setup_job(late._run(), by_task=True))
    assert done
    assert lockgate.jobs(tmp_path, options) == []
    with Job(tmp_path, options, job_id="j") as another:
        attempt = another.task_attempt(0)
        attempt.setup()
        with attempt.open(f"a-{attempt.tag}") as file:
            file.write(b"a")
        another.commit([attempt.commit()])
    assert len(_seen(tmp_path)) == 1
    (note,) = (tmp_path / "_lockgate/commits").glob("*.aborted")
    lockgate.collect_garbage(tmp_path, options=options.replace(remember_seconds=0))
    assert not note.exists()


@pytest.mark.parametrize("protocol", ["manifest", "v1"])
def test_a_drivers_abort_leaves_no_note_where_nothing_is_seen_before_the_commit(tmp_path: Path, protocol: str) -> None:
    job = Job(tmp_path, protocol=protocol)
    job.setup()
    job.abort(set_up_by_tasks=True)
    assert list(tmp_path.iterdir()) == []

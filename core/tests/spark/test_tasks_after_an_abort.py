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
from killed_at_a_request import Died
from lockgate import Job, JobOptions
from lockgate.engine.job.setup import setup_job
from lockgate.errors import FileMissing, JobNotFound, LockgateError
from lockgate.protocols.direct import DirectProtocol
from lockgate.protocols.v2 import V2Protocol
from lockgate.spark import stream_writer
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.stream_writer import StreamWriter
from lockgate.spark.write_options import WriteOptions
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

SCHEMA = StructType([StructField("id", LongType())])
EARLY = ("v2", "direct", "stocator", "markers")


def known_jobs(url, options=None):
    """The jobs there, without the empty directory of a job attempt that stays, which may be one of Hadoop's."""
    return [state for state in lockgate.jobs(url, options) if not state.job_id.startswith("unknown-")]


@pytest.fixture
def task_contexts() -> Iterator[None]:
    yield
    TaskContext._taskContext = None


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whose processes those of this test are: its last word."""
    words = ["one application"]
    monkeypatch.setattr(stream_writer, "driver_mark", lambda: words[-1])
    yield words


def _stream(root: Path, checkpoint: str = "/checkpoints/q", **more: str) -> bytes:
    """The writer of a stream, as the planner of Spark sends it to the tasks, and as the driver makes one to abort."""
    given = {"path": str(root / "t"), **({"checkpointLocation": checkpoint} if checkpoint else {}), **more}
    return pickle.dumps(StreamWriter(WriteOptions.parse(given, mode="stream"), SCHEMA))


def _of_stream(protocol: str, query: str = "q", batch: int = 0, run: str = "run1") -> dict[str, str]:
    return {
        "spark.lockgate.protocol": protocol,
        "spark.lockgate.accept_unsafe": "true",
        "sql.streaming.queryId": query,
        "streaming.sql.batchId": str(batch),
        "spark.jobGroup.id": run,
    }


def _task(writer: bytes, number: int, settings: dict[str, str]) -> Any:
    """A task of Spark's, on some executor."""
    context = object.__new__(TaskContext)
    context._partitionId = context._taskAttemptId = number
    context._localProperties = settings
    TaskContext._taskContext = context
    return pickle.loads(writer).write(iter([pa.RecordBatch.from_pydict({"id": [number]})]))


async def _dies(*arguments: Any, **named: Any) -> None:
    raise Died


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
    assert known_jobs(tmp_path / "t") == []


@pytest.mark.usefixtures("task_contexts")
@pytest.mark.parametrize("protocol", ["manifest", *EARLY])
def test_abortable_a_write_of_which_no_tasks_message_has_come_leaves_nothing(tmp_path: Path, protocol: str) -> None:
    """The session's settings name the protocol, which came with the messages: the job was deleted by another one, and
    its files stayed, which nobody knew for its own any more."""
    settings = {"spark.lockgate.protocol": protocol, "spark.lockgate.accept_unsafe": "true"}
    writer = pickle.dumps(BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}, mode="append"), SCHEMA))
    _task(writer, 0, settings)
    pickle.loads(writer).abort([])
    assert _seen(tmp_path / "t") == []
    assert known_jobs(tmp_path / "t") == []
    with pytest.raises(JobNotFound):
        _task(writer, 1, settings)
    assert _seen(tmp_path / "t") == []


@pytest.mark.usefixtures("task_contexts", "driver")
@pytest.mark.parametrize("messages", [[], [None]])
@pytest.mark.parametrize("protocol", ["manifest", *EARLY])
def test_abortable_a_streams_batch_of_which_no_tasks_message_has_come_leaves_nothing(
    tmp_path: Path, protocol: str, messages: list[None]
) -> None:
    """Spark aborts without one where the first task to end is one that has failed: query and run were not known, and
    the job stayed, with what its other tasks wrote."""
    writer = _stream(tmp_path)
    _task(writer, 0, _of_stream(protocol))
    pickle.loads(_stream(tmp_path)).abort(messages, 0)
    assert _seen(tmp_path / "t") == []
    assert known_jobs(tmp_path / "t") == []
    if protocol in EARLY:
        with pytest.raises(JobNotFound):
            _task(writer, 1, _of_stream(protocol))
        assert _seen(tmp_path / "t") == []
    message = _task(_stream(tmp_path), 0, _of_stream(protocol, run="run2"))
    pickle.loads(_stream(tmp_path)).commit([message], 0)
    assert len(_seen(tmp_path / "t")) == 1


@pytest.mark.usefixtures("task_contexts")
@pytest.mark.parametrize(
    ("checkpoint", "application", "batch"),
    [
        ("/checkpoints/other", "one application", 0),
        ("", "one application", 0),
        ("/checkpoints/q", "another application", 0),
        ("/checkpoints/q", "", 0),
        ("/checkpoints/q", "one application", 1),
    ],
)
def test_a_batch_of_which_no_tasks_message_has_come_aborts_no_job_of_another(
    tmp_path: Path, driver: list[str], checkpoint: str, application: str, batch: int
) -> None:
    """Another query's, another application's, another batch's."""
    message = _task(_stream(tmp_path), 0, _of_stream("v2"))
    driver.append(application)
    pickle.loads(_stream(tmp_path, checkpoint)).abort([], batch)
    assert len(known_jobs(tmp_path / "t")) == 1
    pickle.loads(_stream(tmp_path)).commit([message], 0)
    assert len(_seen(tmp_path / "t")) == 1


@pytest.mark.usefixtures("task_contexts")
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("protocol", ["v2", "direct"])
def test_a_batch_that_runs_again_is_told_who_has_its_names_and_ends_that_job_once_it_is_over(
    tmp_path: Path, driver: list[str], protocol: str, is_over: bool, begun: bool
) -> None:
    """A stream's names cannot be chosen: so the query was refused at every restart, and told to choose others."""
    more = {"alive_seconds": "0"} if is_over else {}
    dead = _task(_stream(tmp_path, **more), 0, _of_stream(protocol))
    driver.append("another application")
    writer = _stream(tmp_path, **more)
    messages = [_task(writer, 1, _of_stream(protocol, run="run2"))] if begun else []
    with pytest.raises(LockgateError, match=r"lockgate jobs \S+ shows that job, and lockgate abort \S+ JOB --force"):
        _task(writer, 0, _of_stream(protocol, run="run2"))
    pickle.loads(writer).abort(messages, 0)
    assert len(known_jobs(tmp_path / "t")) == (0 if is_over else 1)
    assert len(_seen(tmp_path / "t")) == (0 if is_over else 1)
    last = _task(_stream(tmp_path, **more), 0, _of_stream(protocol, run="run3")) if is_over else dead
    pickle.loads(_stream(tmp_path, **more)).commit([last], 0)
    assert len(_seen(tmp_path / "t")) == 1


@pytest.mark.usefixtures("task_contexts", "driver")
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("run", ["run0", "run2"])
@pytest.mark.parametrize("protocol", ["v2", "direct"])
def test_a_batch_that_fails_finishes_a_run_of_it_whose_driver_died_in_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, run: str, begun: bool
) -> None:
    """Which of them it took for its own was by the order of their names, and that one stayed as it was."""
    first = _stream(tmp_path)
    message = _task(first, 0, _of_stream(protocol, run="run1"))
    with monkeypatch.context() as patched:
        patched.setattr(V2Protocol if protocol == "v2" else DirectProtocol, "perform", _dies)
        with pytest.raises(Died):
            pickle.loads(first).commit([message], 0)
    writer = _stream(tmp_path)
    messages = [_task(writer, 1, _of_stream(protocol, run=run))] if begun else []
    with pytest.raises(LockgateError, match="started again, is done by that"):
        _task(writer, 0, _of_stream(protocol, run=run))
    pickle.loads(writer).abort(messages, 0)
    assert [(state.job_id, state.status) for state in known_jobs(tmp_path / "t")] == [("q-00000-run1", "committed")]
    again = _stream(tmp_path)
    pickle.loads(again).commit([_task(again, 0, _of_stream(protocol, run="run3"))], 0)
    assert len(_seen(tmp_path / "t")) == 1
    assert len(known_jobs(tmp_path / "t")) == 1


@pytest.mark.usefixtures("task_contexts", "driver")
def test_a_batch_that_fails_ends_what_the_same_application_has_left_of_it(tmp_path: Path) -> None:
    """A query that was stopped in a batch, and whose abort did not come."""
    writer = _stream(tmp_path)
    _task(writer, 0, _of_stream("v2"))
    message = _task(writer, 1, _of_stream("v2", run="run2"))
    pickle.loads(writer).abort([message], 0)
    assert known_jobs(tmp_path / "t") == []
    assert _seen(tmp_path / "t") == []


@pytest.mark.usefixtures("task_contexts", "driver")
def test_of_two_queries_with_one_checkpoint_no_job_is_aborted(tmp_path: Path) -> None:
    """Nobody can tell which of them has failed."""
    messages = [_task(_stream(tmp_path), 0, _of_stream("v2", query)) for query in ("q", "r")]
    pickle.loads(_stream(tmp_path)).abort([], 0)
    for message in messages:
        pickle.loads(_stream(tmp_path)).commit([message], 0)
    assert len(_seen(tmp_path / "t")) == 2


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
    assert known_jobs(tmp_path, options) == []
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

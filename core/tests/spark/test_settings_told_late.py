"""Which store a batch write's driver has set its job up in, where it went by what its application was started with; and
what a task leaves that fails before its first row."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lockgate import Job
from lockgate.spark import batch_writer, stream_writer
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.stream_writer import StreamWriter
from lockgate.spark.write_options import WriteOptions
from lockgate.spark.write_task import CommitMessage
from pyspark import TaskContext
from pyspark.sql.types import LongType, StructField, StructType

SCHEMA = StructType([StructField("id", LongType())])
SETTING = "spark.lockgate.store.key"


@pytest.fixture
def task_context() -> Iterator[Any]:
    context = object.__new__(TaskContext)
    context._partitionId = context._taskAttemptId = 0
    context._localProperties = {}
    TaskContext._taskContext = context
    yield context
    TaskContext._taskContext = None


@pytest.mark.parametrize(
    ("at_start", "now", "set_up"),
    [
        ({}, {}, "done"),
        ({}, {SETTING: "s3cret"}, "elsewhere"),
        ({SETTING: "s3cret"}, {SETTING: "s3cret"}, "done"),
        ({SETTING: "s3cret"}, {SETTING: "another"}, "elsewhere"),
        ({SETTING: "s3cret"}, {}, "elsewhere"),
        ({SETTING: "s3cret"}, {SETTING: "s3cret", "spark.lockgate.set_aside": "directories"}, "again"),
        ({"spark.lockgate.conflict": "no policy"}, {}, "done"),
    ],
)
def test_tasks_know_whether_the_driver_has_set_the_job_up_where_their_session_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_start: dict[str, str], now: dict[str, str], set_up: str
) -> None:
    monkeypatch.setattr(batch_writer, "started_with", lambda: at_start)
    sent = pickle.dumps(BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}), SCHEMA))
    assert b"s3cret" not in sent, "Spark may keep what it sends on a disk"
    assert pickle.loads(sent)._set_up_for(now) == set_up


def test_a_task_whose_first_rows_fail_aborts_its_attempt(tmp_path: Path, task_context: Any) -> None:
    """Rows are taken from the query: the function that makes them may fail at the first."""
    writer = pickle.dumps(BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}), SCHEMA))
    at_setup = sorted(tmp_path.rglob("*"))

    def rows() -> Iterator[pa.RecordBatch]:
        raise ValueError("bad row")
        yield

    with pytest.raises(ValueError, match="bad row"):
        pickle.loads(writer).write(rows())
    left = [path.name for path in tmp_path.rglob("attempt_*") if path not in at_setup]
    assert left == ["attempt_000000_0.aborted"], "the note that it may not commit"


SERVED = {"spark.lockgate.markers_type": "timeline_server_based"}
HUDIS = {"spark.hadoop.hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}


@pytest.mark.parametrize(
    ("given", "now", "told"),
    [
        ({"markers_type": "timeline_server_based"}, {}, "at setup"),
        ({"markers_type": "timeline_server_based"}, SERVED, "at setup"),
        ({}, SERVED, "at commit"),
        ({}, HUDIS, "at commit"),
        ({}, SERVED | {"spark.lockgate.markers_server": "localhost:1"}, ""),
        ({}, {}, ""),
    ],
)
def test_who_asks_for_a_timeline_server_is_told_once_that_there_is_none_and_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: dict[str, str], now: dict[str, str], told: str
) -> None:
    """By a setting of the session, which the process that sets the job up does not see, nothing was said."""
    markers = {"path": str(tmp_path / "t"), "protocol": "markers", "accept_unsafe": "true", **given}
    writer = BatchWriter(WriteOptions.parse(markers), SCHEMA)
    at_setup = caplog.text
    caplog.clear()
    writer.commit([CommitMessage(None, now)])
    for moment, said in (("at setup", at_setup), ("at commit", caplog.text)):
        line = "markers are direct, and not by a timeline server"
        assert (line in said, "Spark plans this write" in said) == (moment == told, moment == told)


def test_what_is_not_set_up_in_the_driver_tells_of_its_markers_at_its_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, task_context: Any
) -> None:
    """Of a stream, whose jobs their tasks set up: their log may be on another machine."""
    markers = {"path": str(tmp_path / "t"), "protocol": "markers", "accept_unsafe": "true"}
    writer = StreamWriter(WriteOptions.parse(markers | {"markers_type": "timeline_server_based"}), SCHEMA)
    task_context._localProperties = {stream_writer.QUERY_ID: "q", stream_writer.BATCH_ID: "0"}
    message = writer.write(iter([pa.RecordBatch.from_pydict({"id": [1]})]))
    caplog.clear()
    writer.commit([message], 0)
    assert "markers are direct, and not by a timeline server" in caplog.text


def test_on_hdfs_a_server_that_is_named_is_not_asked_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lockgate.stores.local.LocalStore.name", "hdfs")
    options = {"markers_type": "timeline_server_based", "markers_server": "localhost:1"}
    Job(tmp_path / "t", protocol="markers", accept_unsafe=True, **options).setup()
    assert "on hdfs they always are" in caplog.text

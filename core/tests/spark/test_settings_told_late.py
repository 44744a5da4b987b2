"""Which store a batch write's driver has set its job up in, where it went by what its application was started with; and
what a task leaves that fails before its first row."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lockgate.spark import batch_writer
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.write_options import WriteOptions
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

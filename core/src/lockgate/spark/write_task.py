"""What a Spark task does for either kind of write: make its attempt, write its rows, commit, return the receipt.

A job that is refused for what its options say is refused to every task alike, and Spark would try each of them again.
So a task of a batch write ends, before it has taken a row, with a message that holds the refusal, which the driver's
commit raises once. (Spark's planner, which could refuse the job before any task, is not told the session's settings:
`session_conf`.) A task of a stream raises it: Spark tells what a stream's tasks raise, and of its commit only that it
failed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lockgate.api.job import Job
from lockgate.api.task_attempt import TaskAttempt
from lockgate.model.capabilities import Capability
from lockgate.model.errors import DestinationConflict, JobNotFound, LockgateError, PluginError, UsageError
from lockgate.model.option_names import ENVIRONMENT_PREFIX
from lockgate.model.receipt import Receipt
from lockgate.spark.check_schema import arrow_schema_of, refuse_duplicates, with_spark_type
from lockgate.spark.error_answer import error_of
from lockgate.spark.session_conf import is_case_sensitive, task_properties
from lockgate.spark.split_partitions import named_columns
from lockgate.spark.task_write import TaskWrite
from lockgate.spark.write_options import WriteOptions


@dataclass
class CommitMessage(WriterCommitMessage):
    """What a task tells the driver: the receipt, and the part of the session's conf that is Lockgate's; or, instead of
    a receipt, why the job is refused (`error_answer.told_by`). A stream's also says which query's run it is, and what
    the nonces of the stream's jobs end with."""

    receipt: Receipt | None
    spark_conf: dict[str, str] = field(default_factory=dict, repr=False)
    query: str = ""
    run: str = ""
    stream: str = ""
    refusal: tuple[str, ...] = ()


def is_the_jobs(error: LockgateError) -> bool:
    """Whether an error that a task meets before its first row is a refusal of the job, which every other task, and
    another try of this one, would meet too. Not one that another host may not have: a plugin that is missing, or what
    this host's environment says of the job. (What the driver's says, Spark's planner has refused already.)"""
    if isinstance(error, JobNotFound | PluginError) or not isinstance(error, UsageError | DestinationConflict):
        return False
    return not any(name.upper().startswith(ENVIRONMENT_PREFIX) for name in os.environ)


def receipts_of(messages: Sequence[CommitMessage]) -> list[Receipt]:
    """The receipts of the tasks.

    Raises:
        LockgateError: a task says that the job is refused.
    """
    for message in messages:
        if message.refusal:
            raise error_of(message.refusal)
    return [message.receipt for message in messages if message.receipt is not None]


SetUp = Literal["done", "missing", "again", "elsewhere"]
"""Whether the driver has set the job up: it has; it has not, so that a task does; or it has, without settings of the
session that belong to the job, so that each task does it once more, with them; or without those that say which store
is meant, so that each task does it, there or for the first time."""


def begin_task(job: Job, schema: StructType, *, set_up: SetUp) -> TaskAttempt:
    """The attempt at the running Spark task, set up, and its job before it where the driver could not.

    The task is the partition; the attempt is Spark's task attempt id, which no other try of this application has,
    of whichever stage attempt.

    Raises:
        LockgateError: the job is refused, or its store cannot be reached; no row was taken.
    """
    context = TaskContext.get()
    assert context is not None, "a Spark task has a context"
    refuse_duplicates(schema, case_sensitive=is_case_sensitive(task_properties()))
    attempt = job.task_attempt(context.partitionId(), context.taskAttemptId())
    # Where directories are not real, an attempt's setup does not find out that its job is not set up.
    if set_up == "again":
        job.setup(by_task=True, again=True)
    elif set_up == "elsewhere" or (set_up == "missing" and Capability.REAL_DIRECTORIES not in job.capabilities):
        job.setup(by_task=True)
    try:
        attempt.setup()
    except JobNotFound:
        if set_up != "missing":
            raise
        job.setup(by_task=True)
        attempt.setup()
    return attempt


def write_task(
    job: Job,
    attempt: TaskAttempt,
    options: WriteOptions,
    schema: StructType,
    batches: Iterator[pa.RecordBatch],
    *,
    file_tag: str = "",
) -> Receipt:
    """Write the rows of the running Spark task as this attempt at it.

    Nothing becomes visible here: Spark may let another attempt win after this returns.
    """
    context = TaskContext.get()
    assert context is not None, "a Spark task has a context"
    properties = task_properties()
    write: TaskWrite | None = None
    try:
        options = options.with_session(properties)
        first = next(batches, None)  # the first rows may fail, as any may
        schema_given = _arrow_schema(schema, first, options, properties.get("spark.sql.session.timeZone", "UTC"))
        by = set(named_columns(schema.fieldNames(), options.partition_by))
        rest = [name for name in schema.fieldNames() if name not in by]
        spark_schema = StructType([schema[name] for name in rest]).json()
        stem = f"part-{context.partitionId():05d}-{file_tag or job.job_id}"
        if job.needs_tags or not (job.shows_committed_tasks or Capability.UNIQUE_IDENTITY in job.capabilities):
            # Where a store cannot tell files of the same content apart, no two runs give theirs the same names: what a
            # dead one still takes out must not be the other's. (Files that are seen early must have the same: they are
            # in the next run's way until the dead one is ended.)
            stem = f"{stem}-{attempt.tag}"
        format_options = replace(
            options.format_options(spark_schema), spark_version=pyspark.__version__, attempt=attempt.tag
        )
        write = TaskWrite(attempt, options, schema_given, format_options, stem)
        if first is not None:
            write.write(_chain(first, batches))
        write.close(at_least_one=context.partitionId() == 0)
        return attempt.commit({"rows_written": write.rows, "files_written": write.files}, scan=False)
    except BaseException:
        # Only a courtesy: a killed attempt never comes here, and what it leaves goes with the job's directory.
        with contextlib.suppress(LockgateError):
            if write is not None:
                write.discard()
            attempt.abort()
        raise


def _arrow_schema(schema: StructType, first: pa.RecordBatch | None, options: WriteOptions, zone: str) -> pa.Schema:
    """The schema of the task's batches. A partition column of timestamps is given the session's time zone, by which it
    is shown, since PySpark 4.0 and 4.1 mark all timestamps as UTC."""
    if first is None:
        made = arrow_schema_of(schema, zone)
    else:
        fields = zip(first.schema, schema, strict=True)
        made = pa.schema([with_spark_type(field, column.dataType) for field, column in fields])
    by = set(named_columns(made.names, options.partition_by))
    return pa.schema([_shown_in(field, zone) if field.name in by else field for field in made])


def _shown_in(field: pa.Field, zone: str) -> pa.Field:
    kind = field.type
    return field.with_type(pa.timestamp("us", zone)) if pa.types.is_timestamp(kind) and kind.tz is not None else field


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest

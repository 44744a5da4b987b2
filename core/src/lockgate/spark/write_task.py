"""What a Spark task does for either kind of write: make its attempt, write its rows, commit, return the receipt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lockgate.api.job import Job
from lockgate.model.capabilities import Capability
from lockgate.model.errors import JobNotFound, LockgateError
from lockgate.model.receipt import Receipt
from lockgate.spark.check_schema import arrow_schema_of, refuse_duplicates, with_spark_type
from lockgate.spark.session_conf import is_case_sensitive, task_properties
from lockgate.spark.split_partitions import named_columns
from lockgate.spark.task_write import TaskWrite
from lockgate.spark.write_options import WriteOptions


@dataclass
class CommitMessage(WriterCommitMessage):
    """What a task tells the driver: the receipt, and the part of the session's conf that is Lockgate's."""

    receipt: Receipt
    spark_conf: dict[str, str] = field(default_factory=dict, repr=False)
    query: str = ""
    run: str = ""


SetUp = Literal["done", "missing", "again"]
"""Whether the driver has set the job up: it has; it has not, so that a task does; or it has, without settings of the
session that belong to the job, so that each task does it once more, with them."""


def write_task(
    job: Job,
    options: WriteOptions,
    schema: StructType,
    batches: Iterator[pa.RecordBatch],
    *,
    set_up: SetUp,
    file_tag: str = "",
) -> Receipt:
    """Write the rows of the running Spark task as one attempt at it.

    The task is the partition; the attempt is Spark's task attempt id, which no other try of this application has,
    of whichever stage attempt. Nothing becomes visible here: Spark may let another attempt win after this returns.
    """
    context = TaskContext.get()
    assert context is not None, "a Spark task has a context"
    properties = task_properties()
    refuse_duplicates(schema, case_sensitive=is_case_sensitive(properties))
    attempt = job.task_attempt(context.partitionId(), context.taskAttemptId())
    # Where directories are not real, an attempt's setup does not find out that its job is not set up.
    if set_up == "again" or (set_up == "missing" and Capability.REAL_DIRECTORIES not in job.capabilities):
        job.setup()
    try:
        attempt.setup()
    except JobNotFound:
        if set_up == "done":
            raise
        job.setup()
        attempt.setup()
    options = options.with_session(properties)
    first = next(batches, None)
    schema_given = _arrow_schema(schema, first, options, properties.get("spark.sql.session.timeZone", "UTC"))
    by = set(named_columns(schema.fieldNames(), options.partition_by))
    rest = [name for name in schema.fieldNames() if name not in by]
    spark_schema = StructType([schema[name] for name in rest]).json()
    stem = f"part-{context.partitionId():05d}-{file_tag or job.job_id}"
    if job.needs_tags:
        stem = f"{stem}-{attempt.tag}"
    write: TaskWrite | None = None
    try:
        format_options = replace(options.format_options(spark_schema), spark_version=pyspark.__version__)
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

"""The streaming sink: each micro-batch is one job with one transaction id, its query's and its batch's.

A batch that Spark runs again after a restart is another job of the same transaction, so it takes effect once; and
the output is plain files, with no log that readers must know. The tasks learn query and batch from Spark's local
properties (`StreamExecution.QUERY_ID_KEY`, `MicroBatchExecution.BATCH_ID_KEY`), which neither the writer's
constructor nor its commit is given; the run, which changes with every start of the query, tells a restarted batch's
job from the one before. The first task of a batch sets its job up.

The driver learns query and run by a task's message alone, and Spark aborts a batch without one where the first task to
end is one that has failed. Then its jobs are found on the store. All jobs of a stream have nonces that end with what
planner, tasks and driver say alike of it: the driver's JVM, the destination, and the checkpoint that the write names.
Of one checkpoint an application runs one query, and of that one run, at a time (Spark's `StreamingQueryManager` refuses
or stops another), and Spark aborts a batch before the query ends: so the jobs of its number that end so are the failed
batch's own, or what earlier runs of it have left. Where only the session names the place of checkpoints, nothing tells
two queries of one destination apart, and a job is left to who restarts the query, or to `lockgate gc`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lockgate.api.destination import forget_transactions, refuse_other_tables, transaction_summary
from lockgate.api.job import Job
from lockgate.api.job_runs import registry_of
from lockgate.api.job_timeline import tell_if_direct
from lockgate.api.jobs import abort as end_from_outside
from lockgate.api.jobs import nonces, recover
from lockgate.api.telling import telling_warnings, telling_why_it_takes_long
from lockgate.engine.run.logs import get_log
from lockgate.model.commands import command
from lockgate.model.errors import (
    CapabilityMissing,
    CleanupFailed,
    CommitFenced,
    CommitRefused,
    LockgateError,
    OptionError,
    PluginError,
    StoreError,
    UsageError,
)
from lockgate.model.options import JobOptions, names_given
from lockgate.model.receipt import Receipt
from lockgate.model.record import digest_of
from lockgate.model.summary import Summary
from lockgate.spark.asked_movers import movers_for
from lockgate.spark.batch_writer import check_scheme
from lockgate.spark.check_schema import check_schema
from lockgate.spark.driver_process import driver_mark, driver_process
from lockgate.spark.left_out import is_forgotten, rows_of
from lockgate.spark.pyspark_versions import StreamArrowWriter
from lockgate.spark.session_conf import SETTINGS_OF_THE_SESSION, task_properties
from lockgate.spark.start_settings import started_with
from lockgate.spark.write_options import WriteOptions
from lockgate.spark.write_task import CommitMessage, begin_task, receipts_of, write_task

log = get_log()

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"

CONFLICTS = ("append", "fail-partitions", "replace", "replace-partitions")

BATCHES_REMEMBERED = 1000
"""Of so many batches at least the summaries are kept. Spark repeats the last one; its checkpoint keeps a hundred."""

FORGOTTEN_AT_ONCE = 100
"""Summaries of so many batches are forgotten at once, which leaves one file that says up to where."""


def _transaction(query: str, batch: int) -> str:
    return f"{query}/{batch}"


def _stream(options: WriteOptions) -> str:
    """What the nonces of a stream's jobs end with; empty where the stream cannot be told from others."""
    mark = driver_mark()
    if not mark or not options.checkpoint:
        return ""
    return digest_of("\n".join((mark, options.path, options.checkpoint)).encode())[:24]


def _is_of_batch(job_id: str, batch: int) -> bool:
    return job_id.rpartition("-")[0].endswith(f"-{batch:05d}")


class StreamWriter(StreamArrowWriter):
    """One `df.writeStream.format("lockgate").start(url)`."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        job_options = options.job_options({}, os.environ)
        if job_options.txn_id or options.job_id:
            raise UsageError(
                "a stream's jobs and transactions are named after its query and batches",
                next_step="leave the options jobId and txn_id out",
            )
        if job_options.conflict == "fail":
            raise UsageError(
                "with the policy fail a stream could write one batch only",
                next_step=f"conflict takes {', '.join(CONFLICTS)} for a stream",
            )
        check_scheme(options.path, job_options)
        if "protocol" in names_given(options.job):
            registry_of(job_options).check_own_job(job_options)
        check_schema(schema, options)
        # In a process of the driver's; the tasks are sent it.
        self._stream = _stream(options)
        self._refuse_other_tables(job_options)

    @telling_warnings()
    def _refuse_other_tables(self, job_options: JobOptions) -> None:
        """At once, as the first task of the first batch would. Where only the session's conf, which the driver's
        process does not see, holds what the store needs, it is left to that task."""
        try:
            refuse_other_tables(self._options.path, job_options)
        except (StoreError, OptionError, PluginError, CapabilityMissing) as error:
            log.info("the destination is looked at by the first task", url=self._options.path, error=str(error))

    @telling_why_it_takes_long()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows of one batch; called in a Python worker of an executor."""
        properties = task_properties()
        query, batch, run = (properties.get(name, "") for name in (QUERY_ID, BATCH_ID, RUN_ID))
        if not query or not batch:
            raise UsageError(
                "Spark does not tell which query and batch this task belongs to",
                where=f"{QUERY_ID}={query!r} {BATCH_ID}={batch!r}",
                next_step="use micro-batches, not continuous processing",
            )
        conf = self._options.conf_of(properties, os.environ)
        job = self._job(query, int(batch), run, conf, self._stream)
        tag = f"{query}-{int(batch):05d}"
        # The names are those of every run of the batch: where its files are in place already, none could be written.
        is_done = job.shows_committed_tasks and transaction_summary(self._options.path, job.options) is not None
        attempt = begin_task(job, self._schema, set_up="missing")
        if is_done:
            receipt = attempt.commit({"rows_written": sum(each.num_rows for each in iterator)}, scan=False)
            return CommitMessage(receipt, conf, query, run, self._stream)
        receipt = write_task(job, attempt, self._options, self._schema, iterator, file_tag=tag)
        return CommitMessage(receipt, conf, query, run, self._stream)

    @telling_warnings()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit one batch; a batch that was committed before changes nothing."""
        told = [message for message in messages if isinstance(message, CommitMessage)]
        if not told:
            return
        first = told[0]
        job = self._job(first.query, batchId, first.run, first.spark_conf, first.stream)
        receipts = receipts_of(told)
        # Its tasks have set the job up, whose log nobody may see.
        tell_if_direct(job._run(), stays=False)
        try:
            summary = job.commit(receipts, movers=movers_for(job))
        except CleanupFailed as error:
            log.warning("the batch is committed; its cleanup failed", batch=batchId, error=str(error))
        else:
            if summary.job_id != job.job_id:
                self._compare(first.query, batchId, summary, receipts)
        if batchId >= BATCHES_REMEMBERED and batchId % FORGOTTEN_AT_ONCE == 0:
            forget_transactions(self._options.path, first.query, batchId - BATCHES_REMEMBERED, job.options)

    def _compare(self, query: str, batch: int, summary: Summary, receipts: Sequence[Receipt]) -> None:
        """A batch that runs again holds the same rows, since its extent is in the checkpoint: unless that was restored,
        copied or changed. Spark itself repeats the last batch only, so one that is forgotten comes from such a one.

        Raises:
            CommitRefused: it holds another number of rows than what was committed, or what that was is forgotten: its
                rows would be lost.
        """
        # A stream's tasks count their rows, and a summary leaves out what is zero.
        committed, rows = summary.counters.get("rows_written", 0), rows_of(receipts)
        forgotten = is_forgotten(summary)
        lost = bool(rows) if forgotten else committed != rows
        if not lost or self._options.skips_changed_batches:
            return
        if forgotten:
            what = (
                f"batch {batch} of query {query} is one of those that were committed long ago, whose rows are not "
                f"remembered, and now has {rows}"
            )
        else:
            what = f"batch {batch} of query {query} was committed before, with {committed} rows, and now has {rows}"
        raise CommitRefused(
            what,
            where=self._options.path,
            next_step="nothing was written. Was the checkpoint restored, copied or changed? Then what follows the last "
            "batch of the table is not what it says: begin a new checkpoint where the table ends. If the query itself "
            "gives other rows each time, option changedBatch=skip keeps those that were committed",
        )

    @telling_warnings()
    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete what the batch's tasks left, and what is left of runs of it before this one, if they are surely over:
        by protocols whose tasks put files in place, those hold the names that the batch wants when it runs again."""
        told = [message for message in messages if isinstance(message, CommitMessage)]
        try:
            if told:
                first = told[0]
                jobs = [self._job(first.query, batchId, first.run, first.spark_conf, first.stream)]
            else:
                jobs = self._found(batchId)
        except LockgateError as error:
            next_step = f"{command('jobs', self._options.path)} shows what it has left. {SETTINGS_OF_THE_SESSION}"
            log.warning(
                "the batch could not be aborted: its job was not found",
                batch=batchId,
                error=str(error),
                next_step=next_step,
            )
            return
        for job in jobs:
            try:
                job.abort(set_up_by_tasks=True)
            except CommitFenced as error:
                log.info("the batch is not aborted: its commit has begun", batch=batchId, error=str(error))
                if not told:
                    # Then this run of it has not come to its commit: it is an earlier one's.
                    self._end_earlier_run(job.job_id, job.options, surely=True)
            except (CapabilityMissing, OptionError) as error:
                log.info("there is no batch to abort: its options are refused", batch=batchId, error=str(error))
            except LockgateError as error:
                log.warning("the batch could not be aborted", batch=batchId, error=str(error))
        if jobs:
            self._end_earlier_runs(jobs)

    def _end_earlier_runs(self, jobs: Sequence[Job]) -> None:
        """Those of this application are over, since this one has begun; of another's the signs of life decide, as they
        do for `lockgate abort`."""
        query_and_batch = jobs[0].job_id.rpartition("-")[0]
        path, options = self._options.path, jobs[0].options
        try:
            left = nonces(path, options, lambda each: each.rpartition("-")[0] == query_and_batch)
        except LockgateError as error:
            log.warning("whether a run of the batch before this one has left a job is not known", error=str(error))
            return
        for job_id in left.keys() - {job.job_id for job in jobs}:
            self._end_earlier_run(job_id, options, surely=self._is_of_this_stream(left[job_id]))

    def _end_earlier_run(self, job_id: str, options: JobOptions, *, surely: bool) -> None:
        """One whose driver died in its commit is recovered: mostly it is finished, and then the batch is done."""
        path = self._options.path
        try:
            try:
                end_from_outside(path, job_id, options, force=surely, told=())
            except CommitFenced:
                recover(path, job_id, force=surely, options=options, told=())
        except CommitFenced as error:
            log.warning("a run of the batch before this one has left a job, which stays", error=str(error))
        except LockgateError as error:
            log.warning("what a run of the batch before this one has left could not be ended", error=str(error))

    def _is_of_this_stream(self, nonce: str) -> bool:
        return bool(self._stream) and nonce.endswith(f"-{self._stream}")

    def _found(self, batch: int) -> list[Job]:
        """The jobs of a batch of which no task's message has come.

        Raises:
            LockgateError: the store does not answer, or the options are refused.
        """
        conf = self._options.conf_of_its_stores(started_with(), os.environ)
        options = self._options.job_options(conf, os.environ)
        if not self._stream:
            log.warning(
                "the batch is not aborted: no task's message has come, and nothing else tells its job from other "
                "queries'; `lockgate gc` deletes it. A write with the option checkpointLocation finds it, on Linux",
                batch=batch,
            )
            return []
        found = {
            job_id: nonce
            for job_id, nonce in nonces(self._options.path, options, lambda each: _is_of_batch(each, batch)).items()
            if self._is_of_this_stream(nonce)
        }
        if len({job_id.rpartition("-")[0] for job_id in found}) > 1:
            # Somebody has deleted the checkpoint, and begun another query with it.
            log.warning("of two queries with one checkpoint nothing is aborted", batch=batch, jobs=sorted(found))
            return []
        return [self._job_named(job_id, nonce, options) for job_id, nonce in found.items()]

    def _job(self, query: str, batch: int, run: str, conf: dict[str, str], stream: str) -> Job:
        options: JobOptions = self._options.job_options(conf, os.environ)
        nonce = digest_of(f"{query}/{batch}/{run}".encode())[:32]
        return self._job_named(
            f"{query}-{batch:05d}-{run[:8] or 'run'}",
            f"{nonce}-{stream}" if stream else nonce,
            options.replace(txn_id=_transaction(query, batch)),
        )

    def _job_named(self, job_id: str, nonce: str, options: JobOptions) -> Job:
        return Job(self._options.path, options, job_id=job_id, nonce=nonce, driver_process=driver_process())

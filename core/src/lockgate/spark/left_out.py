"""A write whose transaction id has committed before adds nothing: told where it seems to be another write."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.api.job import Job
from lockgate.engine.run.logs import get_log
from lockgate.model.receipt import Receipt
from lockgate.model.redaction import redact
from lockgate.model.summary import Summary

log = get_log()


def rows_of(receipts: Sequence[Receipt]) -> int:
    """Rows that these task attempts have written."""
    return sum(receipt.counters.get("rows_written", 0) for receipt in receipts)


def is_forgotten(summary: Summary) -> bool:
    """Whether a commit was answered that its transaction id is one of those that are done and forgotten: nothing tells
    any more by which job, and with how many rows."""
    return not summary.job_id


def tell_left_out(job: Job, summary: Summary, rows: int) -> None:
    """Warn where the job's rows, in all its places, are left out, since its transaction was committed by another, of
    another number of rows, or is forgotten. It is no error: a query may give other rows when it runs again. A summary
    leaves out what is zero; that of a job whose tasks have counted no rows is taken for one without any."""
    committed = summary.counters.get("rows_written", 0)
    if is_forgotten(summary) and rows:
        log.warning(
            "these rows are left out: their transaction id is one of those that were forgotten, as done long ago. "
            "Where they are no repetition, they need an id of their own",
            txn_id=job.options.txn_id,
            rows=rows,
        )
    elif summary.job_id != job.job_id and committed != rows:
        log.warning(
            "these rows are left out: another write of this transaction id has committed. Where they are no repetition "
            "of it, they need an id of their own",
            txn_id=job.options.txn_id,
            by=summary.job_id,
            rows=rows,
            rows_committed=committed,
        )


def tell_of_catalog(job: Job, summary: Summary, *, statically: bool) -> None:
    """Warn where a static overwrite of Spark's own is left out since its transaction has committed. Spark takes it for
    done, and drops from its catalog the partitions that it had looked up for it and that the tasks have not written
    (`InsertIntoHadoopFsRelationCommand.refreshUpdatedPartitions`); their files stay. No commit protocol is told
    whether there is a catalog."""
    if statically and summary.job_id != job.job_id:
        log.warning(
            "this overwrite is left out, since its transaction id has committed. Of a table with partitions, Spark "
            "drops from its catalog those that it has not written; their files stay. Next: MSCK REPAIR TABLE shows "
            "them again; spark.sql.sources.partitionOverwriteMode=dynamic drops none",
            txn_id=job.options.txn_id,
            url=redact(job.url),
        )

"""What can be asked of a destination without a job of one's own."""

from __future__ import annotations

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import job_run, open_destination
from lockgate.engine.conflicts import list_visible
from lockgate.engine.job_run import JobRun
from lockgate.engine.publish import read_summary
from lockgate.engine.transactions import forget_outcome
from lockgate.model.layout import SUCCESS, JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.summary import Summary

_NO_JOB = JobLayout("no-job")


def looking_run(url: str, options: JobOptions | None = None) -> JobRun:
    """A run that looks at a destination on behalf of no job."""
    chosen = options or JobOptions()
    return job_run(open_destination(url, chosen), chosen, _NO_JOB)


def holds_files(url: str, options: JobOptions | None = None) -> bool:
    """Whether a reader would find any file at the destination."""

    async def look() -> bool:
        return bool([page async for page in list_visible(looking_run(url, options), any_file=True)])

    return IO_LOOP.run(look())


def last_summary(url: str, options: JobOptions | None = None) -> Summary | None:
    """The summary of the last job that was committed there, None where there is none.

    Raises:
        LockgateError: what is there is not a summary.
    """
    return IO_LOOP.run(read_summary(looking_run(url, options), SUCCESS))


def forget_transaction(url: str, txn_id: str, options: JobOptions | None = None) -> None:
    """Let go of what is remembered of a transaction id. A commit of that id would take effect again."""
    IO_LOOP.run(forget_outcome(looking_run(url, options), txn_id))

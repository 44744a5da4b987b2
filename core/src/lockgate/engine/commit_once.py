"""The whole of a driver's `commit`: the job commit, once for each transaction id.

Without a transaction id this is `commit_job`. With one, committing it again, in this job or another, changes
nothing and returns the first summary, also when the first driver died after its commit point, and when several
commit at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.job_commit import commit_job
from lockgate.engine.record.ended_jobs import committed_summary
from lockgate.engine.record.summaries import published_summary
from lockgate.engine.record.transactions import known_outcome
from lockgate.engine.recovery.recover import admit
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import CommitFenced, JobNotFound, LockgateError
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary


async def commit_once(run: JobRun, receipts: Sequence[Receipt] | None, *, seen: Collection[str] = ()) -> Summary:
    """Commit the job unless its transaction id has been committed. `seen` as for `commit_job`.

    Raises:
        JobNotFound: the job is committed already, or was ended otherwise.
        CommitRefused, CommitFailed, OutcomeUnknown: as `commit_job`.
    """
    earlier = await known_outcome(run)
    if earlier is not None:
        run.log.info("the transaction id is committed already", by=earlier.job_id)
        if not is_of_this_run(run, earlier):
            await _let_go(run, earlier)
        return earlier
    try:
        return await commit_job(run, receipts, admit, seen=seen)
    except (CommitFenced, JobNotFound) as error:
        # Somebody with the same transaction id may have finished this very job while this driver stood still.
        outcome = await known_outcome(run)
        if outcome is not None:
            return outcome
        if await committed_summary(run) is None:
            raise
        shown = await published_summary(run) is not None
        raise JobNotFound(
            f"job {run.layout.job_id} is committed already",
            where=run.url(run.layout.summary if shown else run.layout.ended),
            next_step=command("show", run.store.url) if shown else "others have committed since; do not run it again",
        ) from error


def is_of_this_run(run: JobRun, summary: Summary) -> bool:
    """Whether a summary is of what this job's setup has begun, as far as anything tells; and not of another job, or of
    an earlier run of this one by the same id. Two drivers of one job have the nonce of one marker."""
    if summary.job_id != run.layout.job_id:
        return False
    own, told = run.marker or run.marker_to_tell, summary.lockgate.marker if summary.lockgate else ""
    return not own or not told or own == told


async def _let_go(run: JobRun, earlier: Summary) -> None:
    """Delete this job's own output. That it could not be done changes nothing of the transaction's being done.

    By the id of the job that has committed it this is an abort like any other: that one's record is the same file, so
    that nothing is deleted while it is there; and nothing of it is needed any more once it is not. Not where the files
    of tasks are seen at once, whose undoing may take the list of what the id has committed: there a setup by such an
    id is refused."""
    if earlier.job_id == run.layout.job_id and not run.protocol.attributes.committed_invisible:
        run.log.warning("the job's directory is left to gc", left=run.url(run.layout.job_directory))
        return
    try:
        await abort_job(run)
    except LockgateError as error:
        run.log.warning("the job's directory is left to gc", left=run.url(run.layout.job_directory), error=str(error))

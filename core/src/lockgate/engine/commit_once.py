"""The whole of a driver's `commit`: the job commit, once for each transaction id.

Without a transaction id this is `commit_job`. With one, committing it again, in this job or another, changes
nothing and returns the first summary, also when the first driver died after its commit point, and when several
commit at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.job_abort import abort_job
from lockgate.engine.job_commit import commit_job
from lockgate.engine.job_run import JobRun
from lockgate.engine.recover import admit
from lockgate.engine.transactions import known_outcome
from lockgate.model.errors import CommitFenced, JobNotFound
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary


async def commit_once(run: JobRun, receipts: Sequence[Receipt] | None) -> Summary:
    """Commit the job unless its transaction id has been committed.

    Raises:
        CommitRefused, CommitFailed, OutcomeUnknown: as `commit_job`.
    """
    earlier = await known_outcome(run)
    if earlier is not None:
        run.log.info("the transaction id is committed already", by=earlier.job_id)
        if earlier.job_id != run.layout.job_id:
            await abort_job(run)
        return earlier
    try:
        return await commit_job(run, receipts, admit)
    except (CommitFenced, JobNotFound):
        # Somebody with the same transaction id may have finished this very job while this driver stood still.
        outcome = await known_outcome(run)
        if outcome is None:
            raise
        return outcome

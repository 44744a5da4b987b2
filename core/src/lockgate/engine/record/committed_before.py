"""What a run learns of its transaction id where that was committed before."""

from __future__ import annotations

from lockgate.engine.record.transactions import seen_outcome
from lockgate.engine.run.job_run import JobRun
from lockgate.model.committed_before import CommittedBefore
from lockgate.model.plan import CommitPlan
from lockgate.model.summary import Summary


def is_of_this_run(run: JobRun, summary: Summary) -> bool:
    """Whether a summary is of what this job's setup has begun, as far as anything tells; and not of another job, or of
    an earlier run of this one by the same id. Two drivers of one job have the nonce of one marker."""
    if summary.job_id != run.layout.job_id:
        return False
    own, told = run.marker or run.marker_to_tell, summary.lockgate.marker if summary.lockgate else ""
    return not own or not told or own == told


def committed_before(run: JobRun, earlier: Summary) -> CommittedBefore:
    """That the transaction id of this run was committed, as this summary tells it."""
    by, is_own = f"by job {earlier.job_id}", is_of_this_run(run, earlier)
    if not earlier.job_id:
        by = "or forgotten: its series is done up to a later number"
    elif earlier.job_id == run.layout.job_id:
        by = "by this job itself" if is_own else f"by an earlier run of job {earlier.job_id}"
    return CommittedBefore(run.options.txn_id, earlier.job_id, by, is_own)


async def plan_of_nothing(run: JobRun) -> CommitPlan | None:
    """The plan where the transaction id has been committed; None: it has not."""
    earlier = await seen_outcome(run)
    if earlier is None:
        return None
    return CommitPlan([], policy=run.options.conflict, committed_before=committed_before(run, earlier))

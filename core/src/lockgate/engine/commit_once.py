"""The whole of a driver's `commit`: the job commit, once for each transaction id.

Without a transaction id this is `commit_job`. With one, committing it again, in this job or another, changes
nothing and returns the first summary, also when the first driver died after its commit point, and when several
commit at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.job_commit import commit_job, plan_job
from lockgate.engine.record.committed_before import committed_before, is_of_this_run, plan_of_nothing
from lockgate.engine.record.ended_jobs import committed_summary
from lockgate.engine.record.summaries import published_summary
from lockgate.engine.record.transactions import known_outcome
from lockgate.engine.recovery.recover import admit
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.committed_before import CommittedBefore
from lockgate.model.errors import CommitFenced, JobNotFound, LockgateError
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary


async def commit_once(run: JobRun, receipts: Sequence[Receipt] | None, *, seen: Collection[str] = ()) -> Summary:
    """Commit the job unless its transaction id has been committed. `seen` as for `commit_job`.

    Raises:
        JobNotFound: the job is committed already, or was ended otherwise.
        CommitRefused, CommitFailed, OutcomeUnknown: as `commit_job`.
    """
    return (await commit_once_and_tell(run, receipts, seen=seen))[0]


async def commit_once_and_tell(
    run: JobRun, receipts: Sequence[Receipt] | None, *, seen: Collection[str] = ()
) -> tuple[Summary, CommittedBefore | None]:
    """The same; and by whom the transaction id was committed before, so that nothing of this job was committed now.

    Raises:
        JobNotFound, CommitRefused, CommitFailed, OutcomeUnknown: as `commit_once`.
    """
    earlier = await known_outcome(run)
    if earlier is not None:
        run.log.info("the transaction id is committed already", by=earlier.job_id)
        before = committed_before(run, earlier)
        stays = _ends_by_recovery(run) if before.is_own else await _let_go(run, earlier)
        return earlier, dataclasses.replace(before, stays=stays)
    try:
        summary = await commit_job(run, receipts, admit, seen=seen)
    except (CommitFenced, JobNotFound) as error:
        # Somebody with the same transaction id may have finished this very job while this driver stood still.
        outcome = await known_outcome(run)
        if outcome is not None:
            return outcome, dataclasses.replace(committed_before(run, outcome), stays=_ends_by_recovery(run))
        if await committed_summary(run) is None:
            raise
        shown = await published_summary(run) is not None
        raise JobNotFound(
            f"job {run.layout.job_id} is committed already",
            where=run.url(run.layout.summary if shown else run.layout.ended),
            next_step=command("show", run.store.url) if shown else "others have committed since; do not run it again",
        ) from error
    is_own = not run.options.txn_id or is_of_this_run(run, summary)
    return summary, None if is_own else committed_before(run, summary)


async def plan_once(run: JobRun, receipts: Sequence[Receipt] | None) -> CommitPlan:
    """What `commit_once` would do, without touching anything.

    Raises:
        CommitRefused: it would be refused.
    """
    return await plan_of_nothing(run) or await plan_job(run, receipts)


def _ends_by_recovery(run: JobRun) -> str:
    """What stays where nothing was let go of."""
    recover = command("recover", run.store.url, run.layout.job_id)
    return f"what is left of this job, if anything is, {recover} cleans up"


async def _let_go(run: JobRun, earlier: Summary) -> str:
    """Delete this job's own output. That it could not be done changes nothing of the transaction's being done: the
    answer is then what stays, and what to do about it.

    By the id of the job that has committed it this is an abort like any other: that one's record is the same file, so
    that nothing is deleted while it is there; and nothing of it is needed any more once it is not. Not where the files
    of tasks are seen at once, whose undoing may take the list of what the id has committed: there a setup by such an
    id is refused."""
    left = run.url(run.layout.job_directory)
    if earlier.job_id == run.layout.job_id and not run.protocol.attributes.committed_invisible:
        run.log.warning("the job's directory is left to gc", left=left)
        return f"what this job's tasks have left stays in {left}"
    try:
        await abort_job(run)
    except LockgateError as error:
        run.log.warning("the job's directory is left to gc", left=left, error=str(error))
        return f"what this job's tasks have left was not all deleted: {error.what}; {error.next_step}"
    return ""

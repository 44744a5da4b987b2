"""The summary, and the commit point: one rename.

Seed: `_SUCCESS` by write and rename. The summary is first written to its temporary path; from then on its absence
there says that the job is committed, whatever another job's `_SUCCESS` says, and its deletion there makes the
commit impossible. Recovery and rollback rest on that.
"""

from __future__ import annotations

import asyncio

from lockgate.engine.record.summaries import published_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import WEAKENING
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, CommitFenced, OutcomeUnknown, StoreError
from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed
from lockgate.model.summary import Summary, encode_summary

PUBLISH_TRIES = 8
"""How often the commit point's rename is sent at most."""


async def wait_to_publish(run: JobRun, summary: Summary, nonce: str) -> FileStatus:
    """Write the summary to the temporary path of this nonce; what is there now. Not in fewer requests than it takes to
    be sure that no request of them comes true late: a summary that waits again, once it was published, would say that
    the job is not committed."""
    return await run.store.write_file(run.layout.summary_temporary(nonce), encode_summary(summary))


async def save_again(run: JobRun, summary: Summary, nonce: str, waiting: FileStatus) -> FileStatus | None:
    """Write the summary over the one that waits, if it still does; None where that is not known to be done. Never
    brings back what is gone, and never raises: what waits may be published as it is."""
    path = run.layout.summary_temporary(nonce)
    try:
        return await run.store.replace_file(path, encode_summary(summary), waiting.identity)
    except StoreError as error:
        run.log.info("the summary that waits could not be written again", error=str(error))
        return None


async def is_waiting(run: JobRun, nonce: str) -> bool:
    """Whether the summary still waits there."""
    (waiting,) = await run.store.stat_files([run.layout.summary_temporary(nonce)])
    return waiting is not None


async def publish(run: JobRun, nonce: str, waiting: FileStatus | None = None) -> bool:
    """Rename the summary to `_SUCCESS`: the commit point. Repeating it is no failure.

    `waiting` is the summary as `wait_to_publish` left it; without it, it is looked for.

    True: this call's rename took place. False: the summary waits no more, so the job is committed unless somebody
    has rolled it back and deleted every trace, which the commit record says.

    Raises:
        CommitFenced: a rollback came first.
        CommitFailed: the store refuses the rename.
        OutcomeUnknown: nobody can tell yet.
    """
    with run.stage("publish"):
        source = run.layout.summary_temporary(nonce)
        try:
            for _ in range(PUBLISH_TRIES):
                # The source alone decides: another job's `_SUCCESS` may have replaced ours already.
                if waiting is None:
                    (waiting,) = await run.store.stat_files([source])
                if waiting is None:
                    if await is_revoked(run, nonce):
                        raise _rolled_back(run, nonce)
                    return False
                rename = Rename(source, run.layout.summary, waiting.length, waiting.identity, replace=True)
                (outcome,) = await run.store.rename_files([rename])
                if isinstance(outcome, Renamed):
                    return True
                waiting = None
                await asyncio.sleep(0.1)
        except StoreError as error:
            raise _unknown(run, source, error) from error
        if isinstance(outcome, NotRenamed):
            # Surely not yet, and a rollback makes sure that it never is: it renames the same source away.
            raise CommitFailed(
                f"`_SUCCESS` cannot be put in place: {outcome}",
                where=run.url(run.layout.summary),
                next_step="mend what the store says of it; a directory of this name may be in the way",
            )
        raise _unknown(run, source, outcome)


async def is_revoked(run: JobRun, nonce: str) -> bool:
    """Whether somebody has made the commit point impossible, to roll the job back. The commit record may not say so
    yet, and never will if they have died."""
    (found,) = await run.store.stat_files([run.layout.summary_revoked(nonce)])
    return found is not None


def _rolled_back(run: JobRun, nonce: str) -> CommitFenced:
    return CommitFenced(
        f"job {run.layout.job_id} is being rolled back",
        where=run.url(run.layout.summary_revoked(nonce)),
        next_step=command("recover", run.store.url, run.layout.job_id, "--undo"),
    )


def _unknown(run: JobRun, source: str, why: object) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed: {why}",
        where=run.url(source),
        next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
    )


async def revoke(run: JobRun, nonce: str) -> bool:
    """Make the commit point impossible by renaming the waiting summary away; False: it has been passed.

    Two renames of one source: exactly one of this and `publish` takes place. Where a rename is two acts, both may have
    begun: once the source is gone, `_SUCCESS` itself says whether it was passed.
    """
    source, revoked = run.layout.summary_temporary(nonce), run.layout.summary_revoked(nonce)
    for _ in range(PUBLISH_TRIES):
        # Nobody else has this target, and a rename that may replace is one act wherever there is one.
        await run.store.rename_files([Rename(source, revoked, replace=True)])
        if not await is_waiting(run, nonce):
            # Asked after the source is gone: a rename that had no answer may be done while both are looked at.
            if not await is_revoked(run, nonce):
                return False
            if not WEAKENING & run.store.capabilities or not await _is_published(run):
                return True
            await run.store.delete_files([revoked])
            return False
        await asyncio.sleep(0.1)
    raise OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed",
        where=run.url(source),
        next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
    )


async def _is_published(run: JobRun) -> bool:
    return await published_summary(run) is not None

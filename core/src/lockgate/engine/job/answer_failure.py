"""What a job commit does when it fails, by phase.

Before anything moved, the record becomes `refused` and the cause may be mended. After, the destination is restored
(`on_failure=rollback`) or everything is kept for recovery (`leave`; and where somebody from outside commits the job,
who cannot run its tasks again, and undoing would delete what they have written). While an outcome is unknown nothing
is cleaned up. Past the commit point there is nothing to answer: the job is done.
"""

from __future__ import annotations

import asyncio

from lockgate.engine.job.cleanup import clean_up_if_possible
from lockgate.engine.job.reports import report_failure
from lockgate.engine.job.undo import recorded_plan, roll_back
from lockgate.engine.record.ended_jobs import is_known_committed
from lockgate.engine.record.record_log import RecordLog, fenced
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    CommitFailed,
    CommitFenced,
    JobNotFound,
    LockgateError,
    OutcomeUnknown,
    StoreError,
)
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord

Failure = (Exception, asyncio.CancelledError)
"""What a job commit answers with a rollback: errors, and being cancelled."""


async def answer_failure(run: JobRun, log: RecordLog, error: BaseException) -> None:
    """Do what the phase calls for when a job commit has failed, then save the report. Re-raises nothing that would
    hide `error`: where more went wrong, the more telling error is raised from it. A job past its commit point has not
    failed, whatever `error` says of what followed: it is reported already, as what it is.

    Raises:
        CommitFenced: somebody else has ended the job, or is at it, since `error` was met.
    """
    if log.is_past_commit_point:
        return
    stage = run.stage_now
    record = log.now
    told = error
    try:
        await _restore(run, log, error)
    except BaseException as raised:
        told = raised
        raise
    finally:
        run.stage_now = stage
        if not await _is_committed_after_all(run, error, told):
            await report_failure(run, record, error)
        if log.phase is Phase.ROLLED_BACK:
            await clean_up_if_possible(run)
        elif not isinstance(told, CommitFenced):
            await give_up(run, log)


async def _is_committed_after_all(run: JobRun, *met: BaseException) -> bool:
    """Whether somebody else holds the job by now, as one of the errors that were met says, and it is known to be
    committed: by them, or by this driver's own last request, whose answer it did not wait for. Whoever listens must not
    hear that it has failed."""
    if not any(isinstance(error, CommitFenced | JobNotFound) for error in met):
        return False
    try:
        return await is_known_committed(run)
    except Exception:  # whatever it is, it must not hide why the commit failed
        return False


async def give_up(run: JobRun, log: RecordLog) -> None:
    """Say in the record that who holds it does nothing more: its process may live on, as a notebook's does, and
    recovery need not wait until it is silent. What cannot be said now, as on a full disk, is left to say later."""

    async def say() -> None:
        await log.advance(log.phase or Phase.MOVING, given_up=True)

    if log.phase not in (Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK):
        return
    try:
        await say()
    except Exception as error:  # whatever it is, it must not hide why the commit failed
        if isinstance(error, StoreError):
            run.unsaid.append(say)
        run.log.info("the commit record could not say that it is given up", error=str(error))


async def _restore(run: JobRun, log: RecordLog, error: BaseException) -> None:
    record = log.now
    if record is None or record.phase in (Phase.COMMITTED, Phase.REFUSED):
        return
    if not await still_held(log, error):
        return
    if record.phase is Phase.CLAIMED:
        try:
            await log.advance(Phase.REFUSED, reason=str(error)[:2000])
            return
        except CommitFenced:
            # A version of this driver's own, whose request had gone out before it was cancelled, may say more.
            if log.phase is not Phase.MOVING:
                raise
        except StoreError as second:
            if isinstance(error, JobNotFound):
                # There is nothing that recovery could finish; who asks may yet hear that the job is committed.
                return
            # The job still holds its claim, and recovery would finish it.
            run.unsaid.append(lambda: log.advance(Phase.REFUSED, reason=str(error)[:2000]))
            raise CommitFailed(
                f"the job commit failed ({_first_line(error)}), and its record could not say so: {_first_line(second)}",
                where=run.url(run.layout.job_directory),
                next_step=f"nothing was moved; {_undo_first(run)}",
            ) from error
    to_recover = command("recover", run.store.url, run.layout.job_id)
    if isinstance(error, OutcomeUnknown):
        return
    if run.options.on_failure == "leave" or (run.leaves_before_losing and await _would_lose(run, record)):
        raise CommitFailed(
            f"the job commit failed and was left as it is: {_first_line(error)}",
            where="\n".join(filter(None, (run.url(run.layout.attempt_directory), getattr(error, "where", "")))),
            next_step=f"once the cause is mended, {to_recover} finishes it; with --undo it restores the destination, "
            "and what the job's tasks have written goes",
        ) from error
    try:
        undone = await log.while_renewing(roll_back(run, log, reason=str(error)))
    except CommitFenced:
        raise
    except Failure as second:
        if not await still_held(log, second):
            # What could not be undone is somebody else's by now, who may have committed it.
            raise fenced(run, None) from error
        raise CommitFailed(
            f"the job commit failed ({_first_line(error)}), and so did its rollback: {_first_line(second)}",
            where=run.url(run.layout.attempt_directory),
            next_step=_undo_first(run),
        ) from error
    if isinstance(error, asyncio.CancelledError) and not undone:
        return
    raise CommitFailed(
        f"the job commit failed and the destination was restored{undone}: {_first_line(error)}",
        where=error.where if isinstance(error, LockgateError) else run.url(""),
        next_step=". ".join(
            filter(
                None, [(isinstance(error, LockgateError) and error.next_step) or "run the job again", undone.may_stay]
            )
        ),
    ) from error


async def _would_lose(run: JobRun, record: CommitRecord) -> bool:
    """Whether an undoing would delete what the job's tasks have written, as far as that can be seen."""
    try:
        return not await run.protocol.gives_back(run, await recorded_plan(run, record))
    except LockgateError as error:
        run.log.info("what an undoing would delete cannot be seen", error=str(error))
        return True


async def still_held(log: RecordLog, error: BaseException) -> bool:
    """Whether this driver holds the job after `error`: of a job that somebody has taken over, and perhaps finished and
    cleaned up, a driver hears by many an error. Where the record cannot be read, the error says it."""
    try:
        return await log.is_held()
    except Exception:
        return not isinstance(error, (CommitFenced, JobNotFound))


def may_be_claimed(run: JobRun, error: AnswerLost) -> CommitFailed:
    """The error of a driver that does not know whether its claim is in the record: whoever recovers the job would
    finish it, beside what a program has committed that was run again."""
    return CommitFailed(
        f"the job commit failed, and nobody can tell whether the job is claimed: {_first_line(error)}",
        where=run.url(run.layout.job_directory),
        next_step=f"nothing was moved; {_undo_first(run)}",
    )


def _undo_first(run: JobRun) -> str:
    # With --force: this driver does nothing more, and may have had no room, or no way, to say so in the record.
    undo = f"{command('recover', run.store.url, run.layout.job_id)} --undo --force"
    again = "do not run it again before, since recovery without --undo may finish this one, too"
    return f"once the cause is mended, {undo} ends the job; {again}"


def _first_line(error: BaseException) -> str:
    if isinstance(error, LockgateError | asyncio.CancelledError):
        return (str(error) or type(error).__name__).splitlines()[0]
    # `KeyError` says no more than the key.
    return f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]

"""What a job commit does when it fails, by phase; and the rollback that keeps the commit record in step.

Before anything moved, the record becomes `refused` and the cause may be mended. After, the destination is restored
(`on_failure=rollback`) or everything is kept for recovery (`leave`). While an outcome is unknown nothing is cleaned
up. Past the commit point there is nothing to answer: the job is done.
"""

from __future__ import annotations

import asyncio

from lockgate.engine.cleanup import clean_up
from lockgate.engine.job_run import JobRun
from lockgate.engine.load_manifests import load_plan
from lockgate.engine.publish import revoke
from lockgate.engine.record_log import RecordLog
from lockgate.engine.reports import report_failure
from lockgate.engine.roll_back import delete_sources, undo_moves
from lockgate.model.errors import CommitFailed, CommitFenced, LockgateError, OutcomeUnknown, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord, decode_set_aside, digest_of

SET_ASIDE_LIST_BYTES_MAX = 1 << 40

Failure = (Exception, asyncio.CancelledError)
"""What a job commit answers with a rollback: errors, and being cancelled."""


async def answer_failure(run: JobRun, log: RecordLog, error: BaseException) -> None:
    """Do what the phase calls for when a job commit has failed, then save the report. Re-raises nothing that would
    hide `error`: where more went wrong, the more telling error is raised from it."""
    stage = run.stage_now
    record = log.now
    try:
        await _restore(run, log, error)
    finally:
        run.stage_now = stage
        await report_failure(run, record, error)
        if log.phase is Phase.ROLLED_BACK:
            await _clean_up(run)


async def _clean_up(run: JobRun) -> None:
    """Delete what is of no use after a rollback. That it could not be done must not hide why the job failed."""
    try:
        await clean_up(run)
    except StoreError as error:
        run.log.warning("the job's directory is left to gc", left=run.url(run.layout.job_directory), error=str(error))


async def _restore(run: JobRun, log: RecordLog, error: BaseException) -> None:
    record = log.now
    if record is None or log.is_past_commit_point or isinstance(error, CommitFenced):
        return
    if record.phase in (Phase.COMMITTED, Phase.REFUSED):
        return
    if record.phase is Phase.CLAIMED:
        await log.advance(Phase.REFUSED, reason=str(error)[:2000])
        return
    command = f"lockgate recover {run.store.url} {run.layout.job_id}"
    if isinstance(error, OutcomeUnknown):
        return
    if run.options.on_failure == "leave":
        raise CommitFailed(
            f"the job commit failed and was left as it is: {_first_line(error)}",
            where=run.url(run.layout.attempt_directory),
            next_step=f"{command} finishes it, with --undo it restores the destination",
        ) from error
    try:
        await roll_back(run, log, reason=str(error))
    except CommitFenced:
        raise
    except Failure as second:
        raise CommitFailed(
            f"the job commit failed ({_first_line(error)}), and so did its rollback: {_first_line(second)}",
            where=run.url(run.layout.attempt_directory),
            next_step=f"{command} --undo finishes the rollback",
        ) from error
    if isinstance(error, asyncio.CancelledError):
        return
    raise CommitFailed(
        f"the job commit failed and the destination was restored: {_first_line(error)}",
        where=error.where if isinstance(error, LockgateError) else run.url(""),
        next_step=(error.next_step if isinstance(error, LockgateError) else "") or "run the job again",
    ) from error


async def roll_back(run: JobRun, log: RecordLog, *, reason: str = "") -> CommitRecord:
    """Take the record to `rolled-back` by undoing what was done; from `claimed` that is deleting the sources."""
    if log.phase is Phase.PUBLISHING and await _is_past_commit_point(run, log):
        raise CommitFenced(
            f"job {run.layout.job_id} is committed and cannot be undone",
            where=run.url(run.layout.summary),
            next_step=f"lockgate recover {run.store.url} {run.layout.job_id} cleans up after it",
        )
    if log.phase is not Phase.ROLLING_BACK:
        await log.advance(Phase.ROLLING_BACK, reason=reason[:2000])
    record = log.now
    assert record is not None
    if record.files or record.replaced or record.made_directories:
        await undo_moves(run, await recorded_plan(run, record), record)
    else:
        await delete_sources(run, record)
    return await log.advance(Phase.ROLLED_BACK)


async def _is_past_commit_point(run: JobRun, log: RecordLog) -> bool:
    record = log.now
    if record is None or not record.marks_success or await revoke(run, record.summary_nonce):
        return False
    await log.advance(Phase.COMMITTED)
    return True


async def recorded_plan(run: JobRun, record: CommitRecord) -> CommitPlan:
    """The plan that a record in phase `moving` or later stands for: entries from the pinned manifests, what is set
    aside from the list."""
    plan = await load_plan(run, record.pins)
    if not record.set_aside_digest:
        return plan
    path = run.layout.set_aside_list(record.set_aside_digest)
    (content,) = await run.store.read_files([path], bytes_max=SET_ASIDE_LIST_BYTES_MAX)
    if content is None or digest_of(content) != record.set_aside_digest:
        raise OutcomeUnknown(
            "the list of replaced files is not the one that the commit record names",
            where=run.url(path),
            next_step="somebody changed the job's directory; nothing was touched",
        )
    asides = decode_set_aside(content, name=run.url(path))
    return plan.replacing([FileStatus(a.path, a.length, a.identity) for a in asides])


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]

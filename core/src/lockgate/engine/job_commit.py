"""Job commit: the protocol's list, top to bottom.

Seed: "Job Commit"; Hadoop `CommitJobStage`. What each phase means, and what may follow it, is the table in
`lockgate.model.phases`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

from lockgate.engine.cleanup import clean_up
from lockgate.engine.conflicts import meet_directories, old_summary, resolve
from lockgate.engine.job_run import JobRun
from lockgate.engine.load_manifests import find_pins, load_plan
from lockgate.engine.move_files import move_files
from lockgate.engine.publish import publish, revoke, write_summary
from lockgate.engine.record_log import RecordLog
from lockgate.engine.reports import report_failure, report_success
from lockgate.engine.roll_back import delete_sources, undo_moves
from lockgate.engine.setup import check_marker
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed, CommitFenced, LockgateError, ManifestInvalid, OutcomeUnknown
from lockgate.model.files import FileStatus, Rename
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt, pins_of
from lockgate.model.record import CommitRecord, decode_set_aside, digest_of, encode_set_aside
from lockgate.model.summary import Summary

Failure = (Exception, asyncio.CancelledError)
"""What a job commit answers with a rollback: errors, and being cancelled."""


async def commit_job(run: JobRun, receipts: Sequence[Receipt] | None) -> Summary:
    """Commit the job: exactly the attempts of `receipts`, or, without them, the manifests that are found.

    Raises:
        CommitRefused: before anything was moved; the destination is untouched.
        CommitFailed: after; the text says whether the destination was restored.
        OutcomeUnknown: the store could not say what happened; nothing was cleaned up.
    """
    log = RecordLog(run)
    try:
        plan = await _claim_and_plan(run, log, receipts)
        await _move(run, log, plan)
        summary = await _publish(run, log, plan)
    except Failure as error:
        await answer_failure(run, log, error)
        raise
    await report_success(run, summary)
    await clean_up(run)
    run.emit("job-committed", done=plan.files, total=plan.files, bytes=plan.bytes)
    run.log.info("job committed", files=plan.files, bytes=plan.bytes, replaced=len(plan.set_aside))
    return summary


async def plan_job(run: JobRun, receipts: Sequence[Receipt] | None) -> CommitPlan:
    """The plan of a commit, without touching anything: the first half of `commit_job`."""
    pins = await find_pins(run) if receipts is None else pins_of(receipts, run.layout.job_id)
    return await _meet(run, await load_plan(run, pins))


async def _claim_and_plan(run: JobRun, log: RecordLog, receipts: Sequence[Receipt] | None) -> CommitPlan:
    pins = await find_pins(run) if receipts is None else pins_of(receipts, run.layout.job_id)
    options = run.options
    with run.stage("claim"):
        await log.claim(
            Phase.CLAIMED,
            pins=pins,
            policy=options.conflict,
            on_failure=options.on_failure,
            txn_id=options.txn_id,
            marks_success=options.mark_success,
            options=_recorded_options(run),
        )
        await check_marker(run)
    with run.stage("load_manifests"):
        plan = await load_plan(run, pins)
    with run.stage("plan"):
        return await _meet(run, plan)


async def _meet(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan after it has met the destination: sources inspected, conflicts resolved, directories probed."""
    for batch in plan.batches():
        wrong = await run.store.preflight([Rename(e.source, e.target, e.length, e.identity) for e in batch])
        if wrong:
            raise ManifestInvalid(
                f"{len(wrong)} staged files are not as their manifests say",
                where="\n".join(wrong[:5]),
                next_step="nothing was moved; run the job again",
            )
    plan = await resolve(run, plan)
    plan = await meet_directories(run, plan)
    if plan.exclusive and run.options.mark_success:
        # A reader that looks for `_SUCCESS` must not find the old one over half-replaced data.
        before = await old_summary(run)
        if before is not None:
            plan = plan.replacing([before])
    return plan


async def _move(run: JobRun, log: RecordLog, plan: CommitPlan) -> None:
    """Write down what will be set aside, say so in the record, and only then move."""
    asides = encode_set_aside(plan.set_aside)
    digest = digest_of(asides) if plan.set_aside else ""
    if plan.set_aside:
        await run.store.write_file(run.layout.set_aside_list(digest), asides)
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.replaced], within=run.layout.attempt_directory)
    await log.advance(
        Phase.MOVING,
        pins=list(plan.pins),
        files=plan.files,
        bytes=plan.bytes,
        replaced=len(plan.set_aside),
        set_aside_digest=digest,
        made_directories=list(plan.missing_directories),
    )
    await move_files(run, plan)


async def _publish(run: JobRun, log: RecordLog, plan: CommitPlan) -> Summary:
    nonce = log.nonce
    summary = await write_summary(run, plan, nonce)
    await log.advance(Phase.PUBLISHING, summary_nonce=nonce)
    if run.options.mark_success:
        await publish(run, nonce)
    # Without `_SUCCESS`, this version of the record is the commit point.
    await log.advance(Phase.COMMITTED)
    return summary


async def meet_and_move(run: JobRun, log: RecordLog, record: CommitRecord) -> Summary:
    """Recovery: go on from phase `claimed`, with the attempts that the record pins."""
    plan = await _meet(run, await load_plan(run, record.pins))
    await _move(run, log, plan)
    return await _publish(run, log, plan)


async def finish_from(run: JobRun, log: RecordLog, plan: CommitPlan) -> Summary:
    """Recovery: go on from phase `moving`, over what was moved already, to the end."""
    await move_files(run, plan)
    return await _publish(run, log, plan)


def _recorded_options(run: JobRun) -> dict[str, str]:
    """What a recoverer must do as this driver would have."""
    kept = (
        "replace_order",
        "validate_output",
        "cleanup_skip",
        "file_list_inline_max",
        "delete_target_files",
        "protocol",
    )
    return {name: str(getattr(run.options, name)) for name in kept}


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


async def _restore(run: JobRun, log: RecordLog, error: BaseException) -> None:
    record = log.now
    if record is None or isinstance(error, CommitFenced) or record.phase in (Phase.COMMITTED, Phase.REFUSED):
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
    (content,) = await run.store.read_files([path], bytes_max=1 << 40)
    if content is None or digest_of(content) != record.set_aside_digest:
        raise OutcomeUnknown(
            "the list of replaced files is not the one that the commit record names",
            where=run.url(path),
            next_step="somebody changed the job's directory; nothing was touched",
        )
    asides = decode_set_aside(content, name=run.url(path))
    return plan.replacing([FileStatus(a.path, a.length, a.identity) for a in asides])


def with_missing_directories(plan: CommitPlan, record: CommitRecord) -> CommitPlan:
    """The plan with the directories that the record says were to be made."""
    return dataclasses.replace(plan, missing_directories=list(record.made_directories))


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]

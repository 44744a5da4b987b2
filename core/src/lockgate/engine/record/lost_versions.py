"""A commit record whose newest versions are lost: what is on the store says how far the job had come.

Lockgate deletes the newest version last, but people, and programs that tidy up, delete what they like. What is left may
say `claimed` of a job that has set files aside, renamed some or all of its own, or is committed. So recovery, before it
goes on from `claimed` or `moving`, looks for `_SUCCESS`, for lists of replaced files beside which something waits, and
for staged files that stand at their targets, and takes the record to the phase that these show. Before it goes on from
`moving` or `publishing`, it asks whether the job is known to have ended: another's `_SUCCESS` may stand there by now,
or none, and the job is committed all the same.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from lockgate.engine.record.ended_jobs import is_known_committed
from lockgate.engine.record.record_log import RecordLog
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.record.replaced_lists import kept_lists
from lockgate.engine.record.summaries import published_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import CommitRefused, OutcomeUnknown
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord


async def catch_up(run: JobRun, log: RecordLog, record: CommitRecord) -> CommitRecord:
    """The record, which `log` holds, in the phase that the store shows: its own, or a later one."""
    if record.phase not in (Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING):
        return record
    if record.phase is not Phase.PUBLISHING and run.commits_by_success and await published_summary(run) is not None:
        plan = await _readable_plan(run, record)
        # An id that was used before, against the rules, has its old `_SUCCESS`; then the files are still staged.
        if plan is None or not await run.protocol.has_pending(run, plan):
            return await reach_committed(log, record)
    if record.phase is Phase.CLAIMED:
        record = await _moving(run, log, record)
    if record.phase is not Phase.CLAIMED and await is_known_committed(run):
        # No driver comes so far whose job was over when it looked: so it is this commit that is known.
        return await reach_committed(log, record)
    return record


async def reach_committed(log: RecordLog, record: CommitRecord) -> CommitRecord:
    """Take a record that `log` holds, and whose job is known to have committed, to where it says so."""
    if record.phase is Phase.CLAIMED:
        await log.advance(Phase.MOVING)
    if record.phase is not Phase.PUBLISHING:
        await log.advance(Phase.PUBLISHING, summary_nonce=log.nonce)
    return await log.advance(Phase.COMMITTED)


async def _moving(run: JobRun, log: RecordLog, record: CommitRecord) -> CommitRecord:
    kept = await kept_lists(run, run.layout.job_id)
    plan = await _readable_plan(run, record)
    if not kept:
        if plan is None or not await run.protocol.has_performed(run, plan):
            return record
        # With `new-first` files are moved before those that they replace are set aside.
        kept = await kept_lists(run, run.layout.job_id, in_force=False)
    run.log.warning("the newest versions of the commit record are lost; the store shows that files were moved")
    found: dict[str, Any] = {} if plan is None else {"files": plan.files, "bytes": plan.bytes}
    if kept:
        last = kept[-1]
        found |= {
            "replaced": len(last.replaced.files),
            "set_aside_nonce": last.nonce,
            "set_aside_digest": last.digest,
            "made_directories": list(last.replaced.made_directories),
        }
    return await log.advance(Phase.MOVING, **found)


async def refuse_if_moved(run: JobRun, record: CommitRecord) -> None:
    """Make sure that a job which by its record was refused has moved nothing.

    Raises:
        OutcomeUnknown: files of it are in place. Which attempts they are of, only the lost versions knew.
    """
    if await moved_plan(run, record) is not None:
        job = run.layout.job_id
        raise OutcomeUnknown(
            f"the newest versions of the commit record of job {job} are lost: it says `{record.phase.value}`, and some "
            "of the job's files are in place",
            where=run.url(run.layout.job_directory),
            next_step=f"{command('recover', run.store.url, job, '--undo')} takes them out, and deletes what is staged",
        )


async def moved_plan(run: JobRun, record: CommitRecord) -> CommitPlan | None:
    """The plan of a job that was refused by its record, and of which some files are in place; None where none is, or
    where it has committed."""
    plan = await _readable_plan(run, record)
    if plan is None or not await run.protocol.has_performed(run, plan):
        return None
    as_owner = dataclasses.replace(run, options=as_recorded(run.options, record))
    return None if await is_known_committed(as_owner) else plan


async def _readable_plan(run: JobRun, record: CommitRecord) -> CommitPlan | None:
    """None where the job cannot have moved anything by this plan: a manifest is not acceptable, or its attempt was
    aborted before the claim, so that a staged file is gone for another reason. Whoever goes on from there tells."""
    try:
        plan = await run.protocol.load_plan(run, record.pins)
        await run.protocol.refuse_aborted(run, plan.pins)
        return plan
    except CommitRefused:
        return None

"""From the claim to the first rename: what a driver looks at, and writes down, of a job that it has claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.engine.job.set_aside_by_others import refuse_commit_beside
from lockgate.engine.job.taken_names import refuse_taken_names
from lockgate.engine.record.marker import check_marker
from lockgate.engine.record.neighbours import directories_of, ground_of, take_ground
from lockgate.engine.record.nested import (
    endings,
    refuse_jobs_above,
    refuse_jobs_that_replace_above,
    refuse_jobs_that_replace_inside,
    top_of_store,
)
from lockgate.engine.record.record_log import RecordLog
from lockgate.engine.record.replaced_lists import write_replaced
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import DestinationConflict
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Pin
from lockgate.model.record import Ground

SURVEYS_MAX = 5
"""How often the destination is listed because jobs beside have ended meanwhile."""


async def check_claimed(run: JobRun, pins: Sequence[Pin]) -> None:
    """Make sure, once the job is claimed, that it is still there, and that none of its attempts was aborted.

    Raises:
        JobNotFound: it is over.
        CommitRefused: an attempt was aborted.
    """
    # Tombstones are looked for once the claim is there, which whoever aborts an attempt looks for.
    await both(check_marker(run), run.protocol.refuse_aborted(run, pins))


@dataclass(frozen=True)
class Ahead:
    """What a driver has found out while it looked whether its claim counts: that nobody else is at work on the `ground`
    that the claim has announced; and the plan after it has `met` the destination, where that could be done ahead."""

    ground: Ground
    met: CommitPlan | None = None


async def meet_ahead(run: JobRun, plan: CommitPlan | None, ground: Ground) -> CommitPlan | None:
    """The plan after it has met the destination, beside the look for neighbours; None where it has to wait for that.

    It need not where nothing of the destination is surveyed, as by `append`: what a neighbour may change meanwhile,
    whose commit ends before it is looked for, is which directories are there. One that it has made is made again
    without harm, and no rollback removes one that is not empty; one that it has removed is made by the first rename
    into it. What is wrong is found again, and told, once it is known that nobody is at work there.
    """
    if plan is None or ground == Ground() or ground.exclusive:
        return None
    try:
        return await _meet(run, plan)
    except Exception:  # a policy may fail in any way at all
        return None


async def plan_claimed(
    run: JobRun, log: RecordLog, pins: Sequence[Pin], plan: CommitPlan | None, ahead: Ahead | None = None
) -> CommitPlan:
    """The plan of a claimed job, which has the ground that it touches for itself; `plan` if it was read already,
    `ahead` what was found out before.

    Raises:
        CommitRefused: it may not be performed; nothing was moved.
    """
    if plan is None:
        with run.stage("load_manifests"):
            plan = await run.protocol.load_plan(run, pins)
    # The destination is surveyed only once no other job can change what this one touches.
    await take_ground(run, log, plan, None if ahead is None else ahead.ground)
    ground = ground_of(run, plan)
    with run.stage("plan"):
        met = ahead.met if ahead is not None and ahead.ground == ground else None
        if met is None:
            met = await (_meet_undisturbed(run, plan, ground) if ground.exclusive else _meet(run, plan))
        plan = met
        await refuse_taken_names(run, plan)
        await refuse_commit_beside(run)
    return plan


async def _meet(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan of a job that brings files beside others, after it has met the destination, and no job that replaces in
    one above. Files that are in place already are looked at last."""
    if not run.store.above():
        return await _meet_in_place(run, plan)
    if run.protocol.attributes.committed_invisible:
        return (await both(run.protocol.meet(run, plan), refuse_jobs_that_replace_above(run)))[0]
    await refuse_jobs_that_replace_above(run)
    return await _meet_in_place(run, plan)


async def _meet_in_place(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan after it has met the destination; where files are in place already, no job inside replaces them."""
    if not run.protocol.attributes.committed_invisible:
        await refuse_jobs_that_replace_inside(run, directories_of(plan))
    return await run.protocol.meet(run, plan)


async def _meet_undisturbed(run: JobRun, plan: CommitPlan, ground: Ground) -> CommitPlan:
    """The plan of a job that replaces, after it has met the destination while no job of one above or inside has ended:
    of such a job's files it may have listed some, and not others. Most often none is there, and one look tells it;
    destinations inside are known once all is listed, and make it be listed once more.

    Raises:
        DestinationConflict: one is at work there; or time and again one has ended.
    """
    async with top_of_store(run) as top:
        above, inside = await endings(run, top)
        for _ in range(SURVEYS_MAX):
            met = await _meet_in_place(run, plan)
            await refuse_jobs_above(run, ground, top)
            now_above, now_inside = await endings(run, top)
            if now_above <= above and now_inside <= inside:
                return met
            new = (now_above - above) | (now_inside - inside)
            above, inside = now_above, now_inside
    raise DestinationConflict(
        "jobs of destinations above this one or inside it end again and again while this job lists what it replaces",
        where="\n".join(sorted({each.url for each in new})[:5]),
        next_step="nothing was moved: commit again when fewer write there",
    )


async def begin_moving(run: JobRun, log: RecordLog, plan: CommitPlan) -> str:
    """Write down what will be set aside, and say in the record that moving begins; the nonce of that list, empty where
    nothing is replaced. A part that replaces nothing leaves an empty list, and beside it, as all do, that of its new
    files: the main job can then be undone although somebody has deleted the part's record and manifests. The record
    does not name that list, since with the record nobody needs it."""
    nonce = log.nonce if plan.set_aside else ""
    digest = await write_replaced(run, plan, nonce) if plan.set_aside else ""
    if run.part_of and not plan.set_aside:
        await write_replaced(run, plan, log.nonce)
    await log.advance(
        Phase.MOVING,
        pins=list(plan.pins),
        files=plan.files,
        bytes=plan.bytes,
        replaced=len(plan.set_aside),
        set_aside_nonce=nonce,
        set_aside_digest=digest,
        made_directories=list(plan.missing_directories),
    )
    run.held_as = log.nonce
    return nonce

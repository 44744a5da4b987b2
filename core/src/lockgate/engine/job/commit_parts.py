"""The parts of a job in other locations, brought to where only the main job's commit point is missing, and beyond it.

See `lockgate.engine.job.locations` for the order, which is what makes several destinations end alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from lockgate.engine.job.cleanup import clean_up
from lockgate.engine.job.locations import PARTS_AT_ONCE, part_at
from lockgate.engine.job.plan_claimed import begin_moving, check_claimed, plan_claimed
from lockgate.engine.job.undo import delete_unpinned_parts, recorded_plan
from lockgate.engine.record.ended_jobs import why_over
from lockgate.engine.record.lost_versions import catch_up, reach_committed
from lockgate.engine.record.record_log import RecordLog, fenced, holders_of, read_record, was_alone
from lockgate.engine.record.recorded_options import options_for_record
from lockgate.engine.record.replaced_lists import lists_written
from lockgate.engine.run.concurrency import both, together
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import CommitFenced, CommitRefused, JobNotFound, LockgateError, OutcomeUnknown
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord, RecordedLocation
from lockgate.model.urls import StoreUrl

FINISH_TRIES = 3
"""How often the end of a part is tried while somebody else is at the same."""


@dataclass(frozen=True)
class ClaimedPart:
    """A part that this driver holds, with its plan."""

    run: JobRun
    log: RecordLog
    plan: CommitPlan


async def claim_parts(run: JobRun, stack: AsyncExitStack) -> list[ClaimedPart]:
    """Claim every part, or take its claim over, and make its plan. Nothing is moved. The stores are open as long as
    `stack` is. If one is refused, the claims of the others are given back.

    Raises:
        CommitRefused: one may not go on.
        CommitFenced: somebody else holds one.
    """
    claimed: list[ClaimedPart] = []
    logs: list[RecordLog] = []
    places: dict[StoreUrl, str] = {run.store.place: str(run.store.url)}

    async def claim(each: RecordedLocation) -> None:
        part = await stack.enter_async_context(part_at(run, each.url, each.policy))
        if (other := places.setdefault(part.store.place, each.url)) != each.url:
            raise _one_place(other, each.url)
        log = RecordLog(part)
        logs.append(log)
        try:
            claimed.append(ClaimedPart(part, log, await _claim(part, log, each, logs)))
        except CommitFenced:
            if _is_of(await read_record(part), logs, but=log):
                raise _one_place(each.url) from None
            raise

    try:
        await _each(run, claim)
    except BaseException as error:
        for log in logs:
            await _give_back(run, log, error)
        raise
    return claimed


def _one_place(*names: str) -> CommitRefused:
    return CommitRefused(
        "two of the places that a job writes to are one, by two names",
        where="\n".join(names),
        next_step="nothing was moved: give both the same name (ALTER TABLE … SET LOCATION), and run the job again",
    )


def _is_of(record: CommitRecord | None, logs: Sequence[RecordLog], *, but: RecordLog) -> bool:
    """Whether a part is held by this very driver, as another part: where no store could tell that two names are one
    place, as hosts may be that resolve to one."""
    return record is not None and record.holder.nonce in {log.nonce for log in logs if log is not but}


async def _claim(
    part: JobRun, log: RecordLog, location: RecordedLocation, logs: Sequence[RecordLog] = ()
) -> CommitPlan:
    """`logs`: those by which this driver holds the other parts."""
    record = await read_record(part)
    if _is_of(record, logs, but=log):
        raise _one_place(location.url)
    if record is not None and not record.part_of:
        raise fenced(part, record)
    if record is not None and record.phase is Phase.CLAIMED:
        await log.take_over(record)
    else:
        options = part.options
        await log.claim(
            Phase.CLAIMED,
            record,
            pins=location.pins,
            policy=options.conflict,
            on_failure=options.on_failure,
            marker=part.marker,
            marks_success=False,
            options=options_for_record(options),
            part_of=part.part_of,
        )
    _, refusal = await both(check_claimed(part, location.pins), why_over(part))
    if refusal is not None:
        raise refusal
    await _refuse_if_record_lost(part, log)
    return await plan_claimed(part, log, location.pins, None)


async def _refuse_if_record_lost(part: JobRun, log: RecordLog) -> None:
    """Make sure that no earlier commit of the whole has come so far here that its files may be in place, while somebody
    has deleted the record that said so: they would pass for old data. It has left a list that no holder of this record
    has written, though nothing waits beside it.

    Raises:
        CommitRefused: it has.
    """
    written = await lists_written(part)
    if not written:
        return
    assert log.now is not None
    if set(written) - await holders_of(part, log.now):
        raise _record_lost(part)


def _record_lost(part: JobRun) -> CommitRefused:
    return CommitRefused(
        f"the commit record of a part of job {part.layout.job_id} is lost, or was for a while: files of the job may be "
        "in place, or others beside what it replaces",
        where=part.url(part.layout.job_directory),
        next_step=f"{command('recover', part.part_of, part.layout.job_id, '--undo')} undoes the whole job, by the "
        "lists that are left; then run it again",
    )


async def _give_back(run: JobRun, log: RecordLog, error: BaseException) -> None:
    if log.phase is not Phase.CLAIMED:
        return
    try:
        await log.advance(Phase.REFUSED, reason=str(error)[:2000])
    except LockgateError as second:
        run.log.info("the claim of a part is left to the abort of the whole", error=str(second))


async def move_parts(parts: list[ClaimedPart]) -> None:
    """Move the files of every part; at the end each record says `publishing`. Called while the main job is `moving`."""
    for start in range(0, len(parts), PARTS_AT_ONCE):
        await together(_move(part.run, part.log, part.plan) for part in parts[start : start + PARTS_AT_ONCE])


async def _move(part: JobRun, log: RecordLog, plan: CommitPlan) -> None:
    nonce = await begin_moving(part, log, plan)
    await log.while_renewing(part.protocol.perform(part, plan, nonce))
    await log.advance(Phase.PUBLISHING)


async def refuse_unless_parts_are_here(parts: list[ClaimedPart]) -> None:
    """Make sure, before the commit point, that this driver still holds every part. One whose record somebody has
    deleted was in nobody's way: others may have put files where it replaces all.

    Raises:
        CommitFenced: it does not.
        LockgateError: a record cannot be read.
    """
    for start in range(0, len(parts), PARTS_AT_ONCE):
        await together(part.log.refuse_unless_here() for part in parts[start : start + PARTS_AT_ONCE])


async def go_on_with_parts(run: JobRun) -> None:
    """Recovery, before the commit point of a main job that was `moving`: bring every part to where it is `publishing`,
    from wherever its driver has left it.

    Raises:
        FileChanged: somebody has changed or deleted what a part has put in place, or staged.
        CommitFenced: a part was undone.
    """
    await _each(run, lambda each: _go_on(run, each))


async def _go_on(run: JobRun, location: RecordedLocation) -> None:
    async with part_at(run, location.url, location.policy) as part:
        log = RecordLog(part)
        record = await read_record(part)
        if record is not None and not record.part_of:
            raise fenced(part, record)
        if record is not None and record.phase is Phase.CLAIMED:
            held = await log.take_over(record)
            await _refuse_if_record_lost(part, log)
            record = await catch_up(part, log, held)
        if record is None or record.phase in (Phase.REFUSED, Phase.CLAIMED):
            log = RecordLog(part)
            await _move(part, log, await _claim(part, log, location))
        elif record.phase in (Phase.MOVING, Phase.PUBLISHING) and not await was_alone(part, record):
            raise _record_lost(part)
        elif record.phase is Phase.MOVING:
            plan = await recorded_plan(part, record)
            await part.protocol.may_go_on(part, plan, Phase.MOVING)
            await log.take_over(record)
            again = part.protocol.perform(part, plan, record.set_aside_nonce, again=True)
            await log.while_renewing(again)
            await log.advance(Phase.PUBLISHING)
        elif record.phase is Phase.PUBLISHING:
            plan = await part.protocol.load_plan(part, record.pins)
            await part.protocol.may_go_on(part, plan, Phase.PUBLISHING)
        else:
            raise fenced(part, record)


async def finish_parts(run: JobRun, record: CommitRecord) -> None:
    """Once the main job has committed, and before its record goes: say so in the record of every part, delete what it
    has set aside, and the part; and delete what is staged in locations of which nothing was committed.

    Raises:
        LockgateError: it could not be done, and may be tried again; the job is committed all the same.
    """
    await _each(run, lambda each: _finish(run, each))
    await delete_unpinned_parts(run, record)


async def _finish(run: JobRun, location: RecordedLocation) -> None:
    async with part_at(run, location.url, location.policy) as part:
        for left in reversed(range(FINISH_TRIES)):
            record = await read_record(part)
            if record is None and await read_record(run) is None:
                return  # somebody else has finished the whole
            if record is None or record.phase is Phase.COMMITTED:
                break  # else this part is finished, or somebody has deleted its record: its lists still tell of it
            # Behind `publishing` it is where somebody has deleted its newest versions.
            if record.phase not in (Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING) or not record.part_of:
                raise OutcomeUnknown(
                    f"job {run.layout.job_id} is committed, and its part in this location is {record.phase.value}",
                    where=part.url(part.layout.job_directory),
                    next_step="somebody has changed records; nothing was touched: look at "
                    f"{command('jobs', part.store.url)}",
                )
            log = RecordLog(part)
            try:
                await reach_committed(log, await log.take_over(record))
                break
            except (CommitFenced, JobNotFound):
                # Somebody else is at the same, or has ended it since the look: which, the next look shows.
                if not left:
                    raise
        await clean_up(part, committed=True)


async def _each(run: JobRun, work: Callable[[RecordedLocation], Awaitable[None]]) -> None:
    for start in range(0, len(run.locations), PARTS_AT_ONCE):
        await together(work(each) for each in run.locations[start : start + PARTS_AT_ONCE])

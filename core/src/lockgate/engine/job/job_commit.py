"""Job commit, from top to bottom.

Seed: "Job Commit"; Hadoop `CommitJobStage`. What each phase means, and what may follow it, is the table in
`lockgate.model.phases`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack

from lockgate.engine.job.answer_failure import Failure, answer_failure, may_be_claimed, still_held
from lockgate.engine.job.cleanup import clean_up, clean_up_if_possible
from lockgate.engine.job.commit_parts import (
    ClaimedPart,
    claim_parts,
    finish_parts,
    go_on_with_parts,
    move_parts,
    refuse_unless_parts_are_here,
)
from lockgate.engine.job.locations import refuse_if_in_parts
from lockgate.engine.job.plan_claimed import Ahead, begin_moving, check_claimed, meet_ahead, plan_claimed
from lockgate.engine.job.reports import report_success
from lockgate.engine.job.set_aside_by_others import refuse_commit_beside
from lockgate.engine.job.taken_names import refuse_taken_names
from lockgate.engine.job.undo import roll_back
from lockgate.engine.record.ended_jobs import (
    committed_summary,
    is_known_committed,
    is_record_lost,
    note_end,
    remember_last,
    why_over,
)
from lockgate.engine.record.marker import check_marker, is_anothers
from lockgate.engine.record.neighbours import ground_of, looks_alone
from lockgate.engine.record.record_log import (
    RecordLog,
    fenced,
    has_predecessor,
    look_at_job,
    read_record,
    refuse_superseded,
)
from lockgate.engine.record.recorded_options import options_for_record
from lockgate.engine.record.replaced_lists import delete_lists, forget_own_list, still_set_aside
from lockgate.engine.record.summaries import success_summary, write_file_list
from lockgate.engine.record.transactions import keep_outcome, save_for_outcome
from lockgate.engine.renames.emptied_directories import delete_emptied_directories
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import (
    AnswerLost,
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    JobNotFound,
    LockgateError,
    OutcomeUnknown,
    StoreError,
)
from lockgate.model.files import FileStatus
from lockgate.model.phases import Phase
from lockgate.model.plan import EXTRA_VALUES_MAX, CommitPlan
from lockgate.model.receipt import Pin, Receipt, pins_of
from lockgate.model.record import CommitRecord, Ground
from lockgate.model.summary import FileList, Summary

Admission = Callable[[JobRun], Awaitable[Summary | None]]
"""Asked once the job is claimed: a summary says that its transaction id was committed by another job."""


async def commit_job(
    run: JobRun, receipts: Sequence[Receipt] | None, admit: Admission, *, seen: Collection[str] = ()
) -> Summary:
    """Commit the job: exactly the attempts of `receipts`, or, without them, the manifests that are found. `seen` are
    the tasks that somebody from outside, who has no receipts, has found to have committed: all of them, or nothing.

    Where `admit` tells of an earlier commit of the same transaction id, this job's output is deleted and that
    commit's summary is returned; where somebody else has taken this job over and committed it, its own summary.

    Raises:
        CommitRefused: before anything was moved; the destination is untouched.
        CommitFailed: after; the text says whether the destination was restored.
        OutcomeUnknown: the store could not say what happened, or somebody else holds the job; nothing was cleaned up.
    """
    log = RecordLog(run)
    if receipts is None:
        await refuse_if_in_parts(run)
    try:
        try:
            pins, plan, ahead = await _claim(run, log, receipts, seen)
        except AnswerLost as error:
            if not log.is_in_doubt:
                raise
            raise may_be_claimed(run, error) from error
        return await log.while_renewing(commit_from_claim(run, log, pins, admit, plan, ahead))
    except Failure as error:
        lost = log.now is not None and not log.is_past_commit_point and not await still_held(log, error)
        if lost and isinstance(error, LockgateError):
            return await _taken_over(run, log.nonce, error)
        try:
            await answer_failure(run, log, error)
        except CommitFenced:
            # One that this driver has found to be past its commit point is not over yet: recovery concludes it.
            published = None if log.phase is Phase.COMMITTED else await committed_summary(run)
            if published is None:
                raise
            return published
        raise


async def _taken_over(run: JobRun, nonce: str, error: LockgateError) -> Summary:
    """The answer of a driver that held the job and finds that it does not any more: what the other has made of it.

    Raises:
        CommitFailed: the other has undone the job.
        OutcomeUnknown: the other is still at work, or has left nothing to tell by.
    """
    record = await read_record(run)
    if record is not None and is_anothers(run, record.marker):
        record = None  # another job has the id by now
    published = await committed_summary(run)
    if published is not None:
        run.log.info("committed by somebody else who took the job over")
        # By the list that the record names the other has gone on, and deletes it with what it names.
        if published.job_id == run.layout.job_id and (record is None or record.set_aside_nonce != nonce):
            await forget_own_list(run, nonce)
        return published
    undone = record is not None and record.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK)
    where = f"{run.url(run.layout.job_directory)}\n{error.where}"
    if undone:
        raise CommitFailed(
            f"job {run.layout.job_id} was taken over by somebody else and undone: {error.what}",
            where=where,
            next_step="run the job again",
        ) from error
    what = f"job {run.layout.job_id} was taken over by somebody else"
    next_step = f"{command('jobs', run.store.url)} shows how it stands"
    if record is None:
        # The note that a job has committed comes before its record goes.
        what += (
            ", and ended without any sign that it has committed; or somebody has deleted or moved its directory, or "
            "the destination"
        )
        next_step += ", or that URL to which the destination was moved"
    raise OutcomeUnknown(
        f"{what}: {error.what}",
        where=where,
        next_step=f"{next_step}; nothing was cleaned up by this driver",
    ) from error


async def commit_from_claim(
    run: JobRun,
    log: RecordLog,
    pins: Sequence[Pin],
    admit: Admission,
    plan: CommitPlan | None = None,
    ahead: Ahead | None = None,
) -> Summary:
    """Go on from phase `claimed`: a driver, which may have its plan already, and what was found out `ahead`, or the
    recoverer of a dead one."""
    earlier = await admit(run)
    if earlier is not None:
        run.log.info("the transaction id is committed already", by=earlier.job_id)
        await roll_back(run, log, reason=f"transaction committed by job {earlier.job_id}")
        await clean_up_if_possible(run)
        return earlier
    plan = await plan_claimed(run, log, pins, plan, ahead)
    async with AsyncExitStack() as stack:
        parts = await claim_parts(run, stack)
        return await _publish(run, log, plan, await _move(run, log, plan, parts))


async def plan_job(run: JobRun, receipts: Sequence[Receipt] | None) -> CommitPlan:
    """The plan of a commit, without touching anything: the first half of `commit_job`."""
    if receipts is None:
        pins: Sequence[Pin] = await run.protocol.find_pins(run)
    else:
        pins = pins_of(receipts, run.layout.job_id)
        await run.protocol.refuse_aborted(run, pins)
    plan = await run.protocol.meet(run, await run.protocol.load_plan(run, pins))
    await refuse_taken_names(run, plan)
    return plan


async def _claim(
    run: JobRun, log: RecordLog, receipts: Sequence[Receipt] | None, seen: Collection[str]
) -> tuple[Sequence[Pin], CommitPlan | None, Ahead | None]:
    """Make the job this driver's; its pins, its plan if the manifests could be read ahead of the claim, and what was
    found out with the claim, if nobody else is at work there."""
    with run.stage("load_manifests"):
        (pins, plan), ((earlier, newest_attempt), lost, set_up) = await both(_read_ahead(run, receipts), _look(run))
    options = run.options
    refuse_superseded(run, newest_attempt)
    if lost:
        # A record of this driver's would hide that the one that these files are set aside by is gone.
        raise still_set_aside(run)
    # Before the claim: who recovers a job whose driver dies right after it goes by its pins, and by nothing else.
    await _refuse_if_tasks_have_gone(run, earlier, set(seen) - {pin.task_id for pin in pins})
    with run.stage("claim"):
        record = await log.claim(
            Phase.CLAIMED,
            earlier,
            marker_seen=bool(set_up),
            pins=pins,
            policy=options.conflict,
            on_failure=options.on_failure,
            txn_id=options.txn_id,
            marker=run.marker,
            set_up=set_up,
            marks_success=options.mark_success,
            options=options_for_record(options),
            locations=run.locations,
            left_out=run.left_out[:EXTRA_VALUES_MAX],
            outputs_beside=run.outputs_beside[:EXTRA_VALUES_MAX],
            # A job that has yet to wait for another of its transaction id must not stand in that one's way.
            ground=Ground() if plan is None or options.txn_id else _ground_ahead(run, plan),
        )
        # All of it looks at what is there once the claim is.
        _, (is_alone, met) = await both(_refuse_if_over(run, pins), _look_around(run, record, plan))
        if receipts is None and not pins:
            await refuse_if_tasks_have_committed(run)
    return pins, plan, Ahead(record.ground, met) if is_alone else None


async def _refuse_if_over(run: JobRun, pins: Sequence[Pin]) -> None:
    """Make sure that the job is still there to be committed, and none of its attempts was aborted.

    Raises:
        JobNotFound, OutcomeUnknown, CommitRefused: it is not.
    """
    _, refusal = await both(check_claimed(run, pins), why_over(run))
    if refusal is not None:
        raise refusal


async def _look_around(run: JobRun, record: CommitRecord, plan: CommitPlan | None) -> tuple[bool, CommitPlan | None]:
    """Whether nobody else is at work there, and the plan after it has met the destination, where that need not wait for
    it."""
    return await both(looks_alone(run, record), meet_ahead(run, plan, record.ground))


async def refuse_if_tasks_have_committed(run: JobRun) -> None:
    """A driver without receipts that found no task looks again once the job is its own: the job may have been aborted
    since, and set up and run anew. So does who recovers one that has pinned none: its driver may have died before that
    look.

    Raises:
        CommitRefused: so it was, or tasks have only just committed.
    """
    if found := await run.protocol.find_pins(run):
        raise CommitRefused(
            f"tasks of job {run.layout.job_id} have committed since it was looked for them: {len(found)}",
            where=run.url(run.layout.manifests),
            next_step="nothing was touched: once its tasks are done, commit the job again",
        )


async def _refuse_if_tasks_have_gone(run: JobRun, earlier: CommitRecord | None, gone: Collection[str]) -> None:
    """Somebody may have ended the job since it was looked for its tasks; and of another program's job, that program
    may be at work after all, and delete or move what its tasks have committed: what is left is not the job.

    Raises:
        CommitFenced: somebody else has the job.
        JobNotFound: it has committed.
        CommitRefused: its tasks are gone.
    """
    if gone:
        if earlier is not None and earlier.phase is not Phase.REFUSED:
            raise fenced(run, earlier)
        if (over := await why_over(run)) is not None:
            raise over
        raise CommitRefused(
            f"{counted(len(gone), 'task')} of job {run.layout.job_id} had committed a moment ago, and cannot be found "
            f"any more: {', '.join(sorted(gone)[:5])}",
            where=run.url(run.layout.job_directory),
            next_step="nothing was moved: somebody else, such as the job's own driver, commits the job or aborts it",
        )


def _ground_ahead(run: JobRun, plan: CommitPlan) -> Ground:
    """What the plan touches. A policy that fails here is asked again, and fails again, once the job is claimed: then
    the record says that the commit was refused, where without a record the job would look as if it were at work."""
    try:
        return ground_of(run, plan)
    except Exception:  # a policy may fail in any way at all
        return Ground()


async def _look(run: JobRun) -> tuple[tuple[CommitRecord | None, int], bool, float]:
    """The job's record and newest attempt, whether another record of it is lost, and when it was set up, 0 where it is
    not known to be there at all."""
    (found, lost), set_up = await both(_look_at_records(run), _sees_marker(run))
    return found, lost, set_up


async def _look_at_records(run: JobRun) -> tuple[tuple[CommitRecord | None, int], bool]:
    return await both(look_at_job(run), is_record_lost(run))


async def _sees_marker(run: JobRun) -> float:
    """When the job that this driver has set up was, if it is there; what keeps it from being read is found again, and
    told, once the job is claimed."""
    try:
        return await check_marker(run)
    except LockgateError:
        return 0.0


async def _read_ahead(run: JobRun, receipts: Sequence[Receipt] | None) -> tuple[Sequence[Pin], CommitPlan | None]:
    """The pins and the plan, read while it is not known yet whether the job is this driver's to commit."""
    if receipts is None:
        pins: Sequence[Pin] = await run.protocol.find_pins(run)
        plan = await _readable_plan(run, pins)
    else:
        pins = pins_of(receipts, run.layout.job_id)
        plan = await _readable_plan(run, pins)
    return (pins, None) if plan is None else (plan.pins, plan)


async def _readable_plan(run: JobRun, pins: Sequence[Pin]) -> CommitPlan | None:
    """What is wrong with a manifest is found again, and told, once the job is claimed: a driver that is late finds
    none, and must hear why."""
    try:
        return await run.protocol.load_plan(run, pins)
    except LockgateError:
        return None


async def _move(
    run: JobRun, log: RecordLog, plan: CommitPlan, parts: list[ClaimedPart]
) -> tuple[FileList, FileStatus | None]:
    """Write down what will be set aside, say so in the record, and only then move: elsewhere first, then here."""
    nonce = await begin_moving(run, log, plan)
    await move_parts(parts)
    prepared = await _move_and_list(run, log, plan, nonce)
    await refuse_unless_parts_are_here(parts)
    return prepared


async def _move_and_list(
    run: JobRun, log: RecordLog, plan: CommitPlan, aside_nonce: str, *, again: bool = False
) -> tuple[FileList, FileStatus | None]:
    performing = run.protocol.perform(run, plan, aside_nonce, again=again)
    _, prepared = await both(performing, _prepare_to_publish(run, log, plan))
    await refuse_commit_beside(run, taken_out=True)
    return prepared


async def _prepare_to_publish(run: JobRun, log: RecordLog, plan: CommitPlan) -> tuple[FileList, FileStatus | None]:
    """The list of files, and, where that is safe, a summary that waits already: both beside the renames.

    That summary lacks only what the renames have yet to count. It was written while the job was this driver's, which
    is looked at afterwards; nobody writes it a second time once it is gone, and whoever ends the job deletes it. So if
    it can be renamed to `_SUCCESS`, the job's directory was never away, and the next version of the record needs no
    look of its own.

    Raises:
        CommitFenced: somebody else holds the job.
    """
    files = await write_file_list(run, plan)
    if not (run.commits_by_success and run.protocol.waits_early(run)):
        return files, None
    try:
        summary = await _summary(run, plan, files)
        waiting = await run.protocol.wait_to_publish(run, summary, log.nonce)
        await log.refuse_unless_here()
    except StoreError as error:
        run.log.info("the summary is written after the renames", error=str(error))
        return files, None
    return files, waiting


async def _summary(run: JobRun, plan: CommitPlan, files: FileList) -> Summary:
    stays = await run.protocol.left_out_stays(run) if run.left_out else ""
    return success_summary(run, plan, files, stays)


async def _publish(
    run: JobRun, log: RecordLog, plan: CommitPlan, prepared: tuple[FileList, FileStatus | None]
) -> Summary:
    nonce = log.nonce
    marks = run.options.mark_success
    files, early = prepared
    with run.stage("save_summary"):
        summary = await _summary(run, plan, files)
        waiting = await run.protocol.wait_to_publish(run, summary, nonce) if marks and early is None else None
    by_success = run.commits_by_success
    await save_for_outcome(run, summary, nonce)
    publishing = _say_publishing(run, log, look=early is None)
    if early is None:
        await publishing
    else:
        waiting, _ = await both(run.protocol.save_again(run, summary, nonce, early), publishing)
    # Without `_SUCCESS`, the version of the record that says `committed` is the commit point.
    surely = by_success and await run.protocol.publish(run, nonce, waiting)
    noted = False
    if surely:
        # The note has to follow the commit point, and nothing else: beside the record it takes no time of its own.
        _, noted = await both(record_commit(run, log, surely=True), _note_if_possible(run))
    else:
        await record_commit(run, log, surely=surely)
    assert log.now is not None
    await delete_emptied_directories(run, plan)
    return await wind_up(run, summary, log.now, replaced=bool(plan.set_aside), noted=noted)


async def _say_publishing(run: JobRun, log: RecordLog, *, look: bool) -> None:
    publishing = log.advance(Phase.PUBLISHING, look=look, summary_nonce=log.nonce)
    # Only a job that leaves a `_SUCCESS` takes another's place.
    await (both(publishing, remember_last(run)) if run.options.mark_success else publishing)


async def _note_if_possible(run: JobRun) -> bool:
    """Note that the job has committed, which cleanup does where this could not; whether it was done."""
    try:
        await note_end(run)
    except StoreError as error:
        run.log.info("that the job has ended is noted by cleanup", error=str(error))
        return False
    return True


async def record_commit(run: JobRun, log: RecordLog, *, surely: bool) -> None:
    """Say in the record that the commit point was passed. Where that fails, a job that is `surely` committed stays
    so, and is finished: recovery would find out by the summary. Otherwise the record and `_SUCCESS` are asked.

    Raises:
        CommitFenced, JobNotFound: somebody else has ended the job, in another way.
        StoreError: the record is the commit point, and was surely not written.
        OutcomeUnknown: nobody can tell yet.
    """
    try:
        # What is past its commit point is so whoever holds the record: there is nothing to look for then.
        await log.advance(Phase.COMMITTED, look=not surely)
    except (CommitFenced, JobNotFound, StoreError) as error:
        if not surely and not await _is_committed(run, error):
            raise
        run.log.warning("committed, but the record could not say so", error=str(error))
    log.is_past_commit_point = True


async def _is_committed(run: JobRun, error: LockgateError) -> bool:
    marks = run.commits_by_success
    try:
        record = await read_record(run)
        if record is not None and record.phase is Phase.COMMITTED and await has_predecessor(run, record):
            return True
        surely_not_written = isinstance(error, StoreError) and not isinstance(error, AnswerLost)
        if record is not None and (isinstance(error, CommitFenced) or (surely_not_written and not marks)):
            return False
        # The other who holds the job by now has ended it, and deleted the record.
        if await is_known_committed(run):
            return True
    except LockgateError:
        pass
    raise OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed: {error.what}",
        where=run.url(run.layout.attempt_directory),
        next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
    ) from error


async def wind_up(
    run: JobRun, summary: Summary, record: CommitRecord, *, replaced: bool = True, noted: bool = False
) -> Summary:
    """What follows the commit point, for driver and recoverer alike: reports, outcome, cleanup. None of it makes the
    job a failed one: that it is committed is told first. `replaced`: files may have been set aside; `noted`: that the
    job has ended is noted already.

    Raises:
        CleanupFailed: the job is committed, and its outcome could not be kept, or its directory not be deleted.
    """
    summary = await conclude(run, summary, record) or summary
    if replaced:
        await _delete_lists_if_possible(run, summary)
    run.emit("job-committed", done=summary.files, total=summary.files, bytes=summary.bytes)
    run.log.info("job committed", files=summary.files, bytes=summary.bytes, **_elsewhere(summary))
    await report_success(run, summary)
    try:
        await keep_outcome(run, summary)
    except StoreError as error:
        # The directory stays: what it holds is how a recoverer knows what to keep.
        raise CleanupFailed(
            f"job {run.layout.job_id} is committed, but that its transaction is done could not be kept: {error.what}",
            where=run.url(run.layout.job_directory),
            next_step=f"{command('recover', run.store.url, run.layout.job_id)}; do not run the job again",
        ) from error
    await end_parts(run, record)
    try:
        await clean_up(run, replaced=replaced, committed=True, noted=noted, summary=summary)
    except LockgateError as error:
        run.emit("cleanup-fails", error=type(error).__name__)
        raise CleanupFailed(
            f"job {run.layout.job_id} is committed, but what it left could not be deleted: {error.what}",
            where=run.url(run.layout.job_directory),
            next_step=f"{_to_clean_up(run, record)}; do not run the job again",
        ) from error
    return summary


def _elsewhere(summary: Summary) -> dict[str, int]:
    elsewhere = summary.files_everywhere - summary.files
    return {"files_at_other_locations": elsewhere} if elsewhere else {}


def _to_clean_up(run: JobRun, record: CommitRecord) -> str:
    if record.phase is Phase.COMMITTED:
        return command("gc", run.store.url)
    # The record could not say so, and this driver seems to be at work until it has been silent for long.
    forcing = command("recover", run.store.url, run.layout.job_id, "--force")
    return f"once the store takes changes again, {forcing} cleans up"


async def end_parts(run: JobRun, record: CommitRecord) -> None:
    """Finish the parts of a committed job in other locations, while its record is there to tell of them.

    Raises:
        CleanupFailed: the job is committed, its files are in place everywhere, and a part could not be ended.
    """
    try:
        await finish_parts(run, record)
    except LockgateError as error:
        run.emit("cleanup-fails", error=type(error).__name__)
        raise CleanupFailed(
            f"job {run.layout.job_id} is committed, but its part in another location could not be ended: {error.what}",
            where=f"{run.url(run.layout.job_directory)}\n{error.where}",
            next_step=f"{command('recover', run.store.url, run.layout.job_id)}; do not run the job again",
        ) from error


async def conclude(run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
    """Bring readers what the commit point has decided; the summary, with what there is to add to it.

    Raises:
        CleanupFailed: the job is committed, and that could not be done.
    """
    try:
        return await run.protocol.conclude(run, summary, record)
    except StoreError as error:
        # The directory stays, and with it the record: it is how a recoverer knows that the job is committed.
        raise CleanupFailed(
            f"job {run.layout.job_id} is committed, but not all of it can be seen as it is yet: {error.what}",
            where=f"{run.url(run.layout.job_directory)}\n{error.where}",
            next_step=f"{command('recover', run.store.url, run.layout.job_id)}; do not run the job again",
        ) from error


async def _delete_lists_if_possible(run: JobRun, summary: Summary) -> None:
    """Where there is no `_SUCCESS`, the lists and the record alone say that this job was at work: the note comes first,
    in case somebody deletes the record."""
    try:
        if not run.commits_by_success:
            await note_end(run, summary)
        await delete_lists(run)
    except StoreError as error:
        run.log.warning("the lists of replaced files are left to cleanup", error=str(error))


async def finish_from(run: JobRun, log: RecordLog, plan: CommitPlan) -> Summary:
    """Recovery: go on from phase `moving`, over what was moved already, to the end."""
    assert log.now is not None
    await go_on_with_parts(run)
    return await _publish(run, log, plan, await _move_and_list(run, log, plan, log.now.set_aside_nonce, again=True))

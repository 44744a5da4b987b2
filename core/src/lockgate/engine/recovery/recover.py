"""Recovery of a job whose driver died during job commit: finish it, or undo it, from any point, by anybody.

What can be done in which phase is the table in `lockgate.model.phases`. Recovery first takes the record over, so
that of several recoverers one goes on; it can itself be killed at any point and run again.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lockgate.engine.inspection.list_jobs import driver_may_be_alive, job_state
from lockgate.engine.job.answer_failure import Failure, answer_failure, give_up, still_held
from lockgate.engine.job.cleanup import clean_up
from lockgate.engine.job.commit_parts import go_on_with_parts
from lockgate.engine.job.job_abort import end_by_abort
from lockgate.engine.job.job_commit import (
    commit_from_claim,
    conclude,
    end_parts,
    finish_from,
    record_commit,
    refuse_if_tasks_have_committed,
    wind_up,
)
from lockgate.engine.job.locations import wants_undo_by_lists, wants_undo_of_part
from lockgate.engine.job.reports import tell_undone
from lockgate.engine.job.undo import LOST, lists_to_undo_by, recorded_plan, roll_back, undone_by_names, without_manifest
from lockgate.engine.record.ended_jobs import (
    NOTHING_ASIDE,
    committed_summary,
    has_committed_unrecorded,
    has_ended,
    remember_last,
    says_committed,
)
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.record.lost_versions import catch_up, moved_plan, refuse_if_moved
from lockgate.engine.record.marker import is_set_up, read_marker, readable_marker, seen_set_up
from lockgate.engine.record.neighbours import HAS_GONE_ON, stands_by_manifests
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.record_log import (
    RecordLog,
    fenced,
    has_predecessor,
    holders_of,
    look_at_job,
    read_record,
    record_in_force,
    renewed_at,
    was_alone,
)
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.record.replaced_lists import kept_lists, lists_in_force, still_set_aside
from lockgate.engine.record.signs_of_life import refuse_if_at_work
from lockgate.engine.record.summaries import published_summary, read_summary
from lockgate.engine.record.transactions import claim_transaction, saved_for_outcome
from lockgate.engine.recovery.end_without_record import end_without_record, restore
from lockgate.engine.renames.emptied_directories import delete_directories_emptied_before
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import (
    CommitFailed,
    CommitFenced,
    CommitRefused,
    FileChanged,
    LockgateError,
    ReceiptUnmatched,
    UsageError,
)
from lockgate.model.hive_output import is_found_by_place
from lockgate.model.layout import OURS, SUCCESS, JobLayout
from lockgate.model.phases import PHASES, Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone


@dataclass(frozen=True)
class Recovery:
    """What recovery did: `nothing` was to be done, the job was `finished` or `undone`, there is `no trace` of a job of
    that id (it has ended, or never was), its commit has `not begun` (`problem` says what can be done with it), or,
    among several jobs that were recovered at once, its driver may be `at work` at its commit, or its recovery `failed`,
    with this `problem`; of one that was finished it says what else somebody has to end.
    `phase` is where the job was before. `missing` are files that an undone job was to replace and
    that could not be restored, since somebody else has deleted them; `left` are paths where it had put a file that
    somebody has changed or replaced since: what is there was left. `given_back` is where all is that the tasks of an
    undone job have written, where the undoing has not deleted it, and `next_step` what to do with it; or with a job
    that nothing was done with, as the end of `problem` says, too. `may_stay` says in whole sentences what of an undone
    job may be in the destination all the same, and nobody can tell by itself."""

    outcome: Literal["nothing", "finished", "undone", "not begun", "at work", "no trace", "failed"]
    phase: Phase | None
    summary: Summary | None = None
    problem: str = ""
    missing: Sequence[str] = ()
    left: Sequence[str] = ()
    given_back: str = ""
    next_step: str = ""
    may_stay: str = ""


async def recover_job(run: JobRun, *, undo: bool | None = None, force: bool = False) -> Recovery:
    """Finish the job commit, or undo it; `undo` None: as the phase table says, or as another recoverer has begun.

    Raises:
        CommitFenced: its driver may be alive (and `force` was not given), or somebody else is recovering it.
        UsageError: it is past its commit point and cannot be undone.
        CommitFailed: its marker is gone, and nothing tells whether more is; whoever recovers it has to say `undo`.
        FileChanged: somebody has deleted files that it had put in place, or changed what is still staged.
    """
    if run.movers is not None:
        # A driver's own, for its own job: who recovers one renames its files himself.
        run = dataclasses.replace(run, movers=None)
    with run.stage("recover"):
        record = await record_in_force(run)
        if record is None:
            return await _without_record(await with_own_protocol(run, None), undo=undo, force=force)
        run = await with_own_protocol(run, record)
        layout = run.layout.at_attempt(record.job_attempt)
        run = dataclasses.replace(
            run,
            layout=layout,
            locations=record.locations,
            marker_for_parts=record.marker,
            marker_to_tell=record.marker or await _nonce_there(run, layout),
        )
        undo = await wants_undo_of_part(run, record, undo)
        if await is_remainder(run, record):
            return await _end_remainder(run, record, undo=undo)
        if record.phase is not Phase.COMMITTED and not force:
            renewed = await renewed_at(run, run.layout, record)
            if _may_be_alive(run, record, renewed):
                raise _may_be_at_work(run, record, renewed)
        if record.phase in NOTHING_ASIDE and (lost := await _lists_of_another_record(run, record)):
            recovery = await _from_lists(run, lost, undo=undo)
            # Then the record that was begun anew, as if it were the only one.
            await recover_job(run, undo=True if recovery.outcome == "undone" else None, force=force)
            return recovery
        wants_undo = _wants_undo(run, record, undo)
        if undo is None and not wants_undo:
            await _refuse_if_marker_lost(run, record)
        options, left_out, beside = as_recorded(run.options, record), record.left_out, record.outputs_beside
        run = dataclasses.replace(run, options=options, left_out=left_out, outputs_beside=beside)
        log = RecordLog(run)
        if record.phase is Phase.REFUSED:
            return await _recover_refused(run, log, record, undo=wants_undo)
        try:
            return await _go_on(run, log, record, undo=undo, wants_undo=wants_undo)
        except LockgateError as error:
            if log.is_past_commit_point or await still_held(log, error):
                raise
            ended = await _ended_by_another(run, record.phase)
            if ended is None:
                raise
            run.log.info("somebody else has ended the job meanwhile", error=str(error))
            return ended


async def _nonce_there(run: JobRun, layout: JobLayout) -> str:
    """The nonce in the marker of a job whose record names none, as where somebody else than its driver has begun to
    commit it; empty where that is gone, or damaged, or never was."""
    if layout.prefix != OURS:
        return ""
    marker = await readable_marker(run, layout)
    return "" if marker is None else marker.nonce


async def _go_on(run: JobRun, log: RecordLog, record: CommitRecord, *, undo: bool | None, wants_undo: bool) -> Recovery:
    """Take the job over, and finish it, or undo it. The phase that is told is the one that it was found in."""
    found_in = record.phase
    record = await catch_up(run, log, await log.take_over(record))
    if undo and not PHASES[record.phase].can_undo:
        raise too_late(run)
    if wants_undo or (undo is None and (await _is_being_undone(run, record) or await _met_others(run, record))):
        recovery = await log.while_renewing(_undo(run, log, record))
    else:
        recovery = await _finish(run, log, record)
    return dataclasses.replace(recovery, phase=found_in)


async def _ended_by_another(run: JobRun, phase: Phase) -> Recovery | None:
    """What a recoverer that was overtaken has to tell: how the other has ended the job. None: it has not, yet. What was
    refused to this one (manifests that are gone, a directory that is) says nothing of that. A job whose record is its
    commit point has not ended with that: what it replaces may be there yet."""
    found = await read_record(run)
    if found is not None and not await has_predecessor(run, found):
        found = None  # this one may have written it itself, after the job was over
    summary = await committed_summary(run)
    committed = found is not None and found.phase is Phase.COMMITTED and run.protocol.commits_by_success
    if summary is not None or committed:
        return Recovery("finished", phase, summary)
    if found is not None and found.phase is Phase.ROLLED_BACK:
        return await _undone(run, phase, Undone.recorded(found))
    return None


async def _undone(run: JobRun, phase: Phase, undone: Undone) -> Recovery:
    """The answer where a job is undone whose own directory is there yet."""
    where = await run.protocol.gave_back(run)
    if not where:
        return _of_undone(phase, undone)
    # What says where the directory was goes with the job, but for those that are found by their place.
    found = where.startswith(f"{run.store.url}/") and is_found_by_place(where.removeprefix(f"{run.store.url}/"))
    run = dataclasses.replace(run, options=run.options.replace(hive_directory="" if found else where))
    commit, abort = (found_command(run, name, run.layout, "--force") for name in ("commit", "abort"))
    next_step = f"{commit} commits it, {abort} deletes it; do not run the query again before one of them"
    return _of_undone(phase, undone, given_back=where, next_step=next_step)


def _of_undone(phase: Phase | None, undone: Undone, *, given_back: str = "", next_step: str = "") -> Recovery:
    return Recovery(
        "undone",
        phase,
        missing=undone.missing,
        left=undone.stays,
        given_back=given_back,
        next_step=next_step,
        may_stay=undone.may_stay,
    )


def _may_be_at_work(run: JobRun, record: CommitRecord, renewed: float) -> CommitFenced:
    return CommitFenced(
        f"job {run.layout.job_id} may be at work: {record.holder} renewed it "
        f"{max(0.0, run.runtime.wall() - renewed):.0f} s ago (phase {record.phase.value})",
        where=run.url(run.layout.attempt_directory),
        next_step="if that driver is surely dead, add --force to the command",
    )


def _wants_undo(run: JobRun, record: CommitRecord, undo: bool | None) -> bool:
    """Whether the job is to be undone: as was asked for, or else as its phase says.

    Raises:
        UsageError: what was asked for is not possible in this phase.
    """
    rule = PHASES[record.phase]
    wants_undo = rule.recovery == "undo" if undo is None else undo
    if wants_undo and not rule.can_undo:
        raise too_late(run)
    if not wants_undo and rule.recovery == "undo":
        raise UsageError(
            f"the job is {record.phase.value}: it can only be undone",
            where=run.url(run.layout.attempt_directory),
            next_step=command("recover", run.store.url, run.layout.job_id, "--undo"),
        )
    return wants_undo


async def _refuse_if_marker_lost(run: JobRun, record: CommitRecord) -> None:
    """Make sure that a job which has only been claimed has lost no work of its tasks that nobody would miss. Its driver
    looks for the marker right after the claim, and may have died before that look. Whoever has deleted the marker may
    have deleted more: where directories are not real, a task attempt that comes later saves a manifest without it, and
    that is what a driver has pinned.

    Raises:
        CommitFailed: the marker is gone, so that whoever recovers the job has to say how it ends.
    """
    if record.phase is not Phase.CLAIMED or not record.marker or record.part_of:
        return
    if is_set_up(await read_marker(run), record):
        return
    url, job, tasks = run.store.url, run.layout.job_id, counted(len(record.pins), "task")
    raise CommitFailed(
        f"somebody has deleted the marker of job {job}, and may have deleted work of its tasks with it; its commit has "
        "moved nothing yet",
        where=run.url(run.layout.job_marker),
        next_step=f"nothing was touched. If the job is to be run again: {command('recover', url, job, '--undo')}. If "
        f"its output is surely whole, of {tasks}: {command('recover', url, job, '--finish')}",
    )


async def _met_others(run: JobRun, record: CommitRecord) -> bool:
    """Whether others may have come, unseen, to what the job replaces, while somebody had deleted its record: so it does
    not know all that it replaces, and is undone, unless whoever recovers it says otherwise. Past its commit point it is
    too late for that."""
    if record.phase is Phase.PUBLISHING:
        return not await was_alone(run, record) and await _waits_for_commit(run, record)
    return record.phase is Phase.MOVING and not await was_alone(run, record)


async def _recover_refused(run: JobRun, log: RecordLog, record: CommitRecord, *, undo: bool) -> Recovery:
    """Nothing of a refused job is anywhere; unless the newest versions of its record, which said more, are lost."""
    has_lists = bool(await lists_in_force(run))
    if not undo:
        if has_lists:
            raise still_set_aside(run)
        await refuse_if_moved(run, record)
        return Recovery("nothing", record.phase)
    moved = await moved_plan(run, record)
    if moved is None and not has_lists:
        return Recovery("nothing", record.phase)
    files: dict[str, Any] = {"files": moved.files, "bytes": moved.bytes} if moved else {}
    record = await log.claim(Phase.ROLLING_BACK, record, reason="undone by recovery", **files)
    return await log.while_renewing(_undo(run, log, record))


async def _finish(run: JobRun, log: RecordLog, record: CommitRecord) -> Recovery:
    phase = record.phase
    if phase in (Phase.CLAIMED, Phase.MOVING):
        # What cannot be read leaves the job as it is: somewhere else, or later, it may be readable.
        is_claimed = phase is Phase.CLAIMED
        if is_claimed and not record.pins:
            await refuse_if_tasks_have_committed(run)
        plan = await (_plan_of_claimed(run, record) if is_claimed else _plan_to_finish(run, record))
        await run.protocol.may_go_on(run, plan, phase)
        try:
            if is_claimed:
                await run.protocol.refuse_aborted(run, plan.pins)
                # Whoever gives the command waits for nobody: a job that is in the way has crashed, or is at work.
                at_once = dataclasses.replace(run, options=run.options.replace(when_jobs_meet="fail"))
                work = commit_from_claim(at_once, log, record.pins, admit, plan)
            else:
                work = finish_from(run, log, plan)
            summary = await log.while_renewing(work)
        except Failure as error:
            # Whether a job that cannot be finished now is to be undone is for whoever gives the command.
            left = dataclasses.replace(run, options=run.options.replace(on_failure="leave"))
            await answer_failure(left, log, error)
            raise
        return Recovery("finished", phase, summary)
    if phase is Phase.PUBLISHING:
        if await _waits_for_commit(run, record):
            await _refuse_if_taken_away(run, record)
            await go_on_with_parts(run)
        if record.marks_success:
            await remember_last(run)
        await record_commit(
            run, log, surely=run.commits_by_success and await run.protocol.publish(run, record.summary_nonce)
        )
    found = await _own_summary(run, record)
    assert log.now is not None
    if found is None:
        await conclude(run, None, log.now)
        await end_parts(run, log.now)
        await delete_directories_emptied_before(run)
        await clean_up(run, committed=True)
        return Recovery("finished", phase)
    await delete_directories_emptied_before(run)
    return Recovery("finished", phase, await wind_up(run, found, log.now))


async def _plan_of_claimed(run: JobRun, record: CommitRecord) -> CommitPlan:
    try:
        return await run.protocol.load_plan(run, record.pins)
    except ReceiptUnmatched as error:
        undo = command("recover", run.store.url, run.layout.job_id, "--undo")
        raise ReceiptUnmatched(
            error.what,
            where=error.where,
            next_step="nothing was moved: the attempt was aborted, before or after it committed, or its manifest was "
            f"changed. {undo} deletes what the job's tasks have written; then run it again",
        ) from error


async def _plan_to_finish(run: JobRun, record: CommitRecord) -> CommitPlan:
    try:
        return await recorded_plan(run, record)
    except LOST as error:
        undoable = bool(await lists_to_undo_by(run, record)) or await undone_by_names(run, record)
        raise without_manifest(run, error, undoable=undoable) from error


async def _waits_for_commit(run: JobRun, record: CommitRecord) -> bool:
    """Whether the commit point surely has not been passed: after it, other jobs may replace what this one wrote."""
    return not run.commits_by_success or await run.protocol.is_waiting(run, record.summary_nonce)


async def _refuse_if_taken_away(run: JobRun, record: CommitRecord) -> None:
    try:
        plan = await run.protocol.load_plan(run, record.pins)
    except CommitRefused as error:
        run.log.warning("what is in place cannot be compared with the manifests", error=str(error))
        return
    try:
        await run.protocol.may_go_on(run, plan, record.phase)
    except FileChanged:
        # Its driver may live, and have passed the commit point since.
        if await _waits_for_commit(run, record):
            raise


async def _is_being_undone(run: JobRun, record: CommitRecord) -> bool:
    """Whether somebody who has died had begun to undo the job, before the record could say so."""
    return (
        record.phase is Phase.PUBLISHING
        and run.commits_by_success
        and await run.protocol.is_revoked(run, record.summary_nonce)
    )


async def _own_summary(run: JobRun, record: CommitRecord) -> Summary | None:
    """This job's summary: kept for its transaction id, or in `_SUCCESS` unless another job has replaced that."""
    if record.txn_id and (saved := await saved_for_outcome(run, record)) is not None:
        return saved
    if not record.marks_success:
        return None
    published = await published_summary(run)
    if published is not None or run.commits_by_success:
        return published
    return await read_summary(run, run.layout.summary_temporary(record.summary_nonce))


async def admit(run: JobRun) -> Summary | None:
    """The `Admission` of a job: by its transaction id, if it has one."""

    async def end(layout: JobLayout) -> Undone:
        # The claim names the attempt that made it; a later one may have committed the job again, and been refused too,
        # or have begun and died.
        record, newest = await look_at_job(run, layout)
        layout = layout if record is None else layout.at_attempt(record.job_attempt)
        unmarked = dataclasses.replace(run, marker="", marker_for_parts="", marker_to_tell="")
        other = dataclasses.replace(unmarked, layout=layout, counters={}, stage_seconds={})
        if record is not None and record.phase is Phase.REFUSED:
            is_superseded = newest > record.job_attempt
            other = dataclasses.replace(other, layout=layout.at_attempt(newest)) if is_superseded else other
            set_up = await seen_set_up(other)
            if is_superseded:
                await refuse_if_at_work(other, 0.0, 0.0, harm="what its tasks have written would be deleted")
            return await end_by_abort(other, set_up)
        try:
            recovery = await recover_job(other, force=True)
        except CommitFailed as error:
            # This very job repeats its write, so it need not wait for somebody who mends what keeps it from its end.
            run.log.warning("a job of this transaction cannot be finished", other=layout.job_id, error=str(error))
            recovery = await recover_job(other, undo=True, force=True)
        return Undone(recovery.missing, recovery.left, may_stay=recovery.may_stay)

    return await claim_transaction(run, end)


async def _undo(run: JobRun, log: RecordLog, record: CommitRecord) -> Recovery:
    undone = Undone.recorded(record)
    if record.phase is not Phase.ROLLED_BACK:
        if record.phase in (Phase.MOVING, Phase.PUBLISHING):
            # Of one whose manifest is lost, the lists decide.
            with contextlib.suppress(*LOST):
                await run.protocol.may_be_undone(run, await recorded_plan(run, record))
        try:
            undone = await roll_back(run, log, reason="undone by recovery")
        except LockgateError as error:
            if not isinstance(error, CommitFenced):
                await give_up(run, log)
            raise
    # What an older version of the record, the newest ones being lost, does not know of.
    more = await restore(run, await kept_lists(run, run.layout.job_id))
    if more:
        undone += more
        await log.advance(Phase.ROLLED_BACK, missing=list(undone.missing), left=undone.stays)
    tell_undone(run, undone)
    recovery = await _undone(run, record.phase, undone)
    await clean_up(run, over=log.now)
    return recovery


async def _without_record(run: JobRun, *, undo: bool | None, force: bool) -> Recovery:
    """A job that has not begun its commit, or is over; or whose record another program has deleted."""
    has_committed = await has_committed_unrecorded(run)
    if not await kept_lists(run, run.layout.job_id):
        return await _end_unrecorded(run, undo=undo) if has_committed else Recovery("nothing", None)
    # A list comes after the record, and goes before it. The job may have begun since its record was looked for, and may
    # have ended since: lost is a record that is not there while a list is, before it and after it.
    if await record_in_force(run) is not None:
        return await recover_job(run, undo=undo, force=force)
    kept = await kept_lists(run, run.layout.job_id)
    if not kept:
        return Recovery("nothing", None)
    undo = await wants_undo_by_lists(run, kept, undo)
    if undo is not None and not force and await read_marker(run) is not None:
        state = await job_state(run, run.layout)
        harm = "it may move more files once the job is ended without its record"
        await refuse_if_at_work(run, state.last_seen, state.tasks_seen, harm=harm)
    run = dataclasses.replace(run, marker_to_tell=await _nonce_there(run, run.layout))
    if undo and not await has_ended(run):
        # What its driver, should it live, could still rename.
        await delete_trees(run, [run.layout.job_directory])
    return await _from_lists(run, kept, undo=undo)


async def _end_unrecorded(run: JobRun, *, undo: bool | None) -> Recovery:
    """Delete what is left of a job that has committed, and has nothing set aside."""
    if not await list_all(run.store, run.layout.job_directory):
        return Recovery("nothing", None)
    if undo:
        raise too_late(run)
    marker = await readable_marker(run, run.layout)
    if marker is not None:
        options = run.options.replace(txn_id=marker.options.get("txn_id", ""))
        run = dataclasses.replace(run, options=options, marker_for_parts=marker.nonce)
    summary = await committed_summary(run)
    await clean_up(run, committed=True)
    return Recovery("finished", None, summary)


async def _from_lists(run: JobRun, kept: list[KeptList], *, undo: bool | None) -> Recovery:
    undone = await end_without_record(run, kept, undo=undo)
    if undone is None:
        return Recovery("finished", None, await published_summary(run))
    tell_undone(run, undone)
    return _of_undone(None, undone)


async def _lists_of_another_record(run: JobRun, record: CommitRecord) -> list[KeptList]:
    """What is set aside by a commit of this job whose record is gone, and this one was begun anew since: by lists that
    none of its holders has written. (A list of a holder's own means that newer versions of this record are lost.)

    Raises:
        CommitFenced: somebody has taken the job over since `record` was read, and may have written them.
    """
    kept = await kept_lists(run, run.layout.job_id)
    holders = await holders_of(run, record) if kept else set()
    if not kept or any(each.nonce in holders for each in kept):
        return []
    # Whoever takes a job over creates a version of its record before any list: so it is looked at after the lists.
    now = await record_in_force(run)
    if now is not None and (now.sequence, now.holder.nonce) != (record.sequence, record.holder.nonce):
        raise fenced(run, now)
    return kept


_WITH_WORK = frozenset({Phase.CLAIMED, Phase.REFUSED, *HAS_GONE_ON})
"""The phases of a job whose staged files are wanted, or are to be undone."""


async def is_remainder(run: JobRun, record: CommitRecord) -> bool:
    """Whether the job is over, and the record is what a cleanup that was cut short has left, or what a delayed request
    or a driver that slept has created after it. Cleanup deletes the job's marker, and older versions of the record,
    before the newest; a claim on a job that is over must not be finished, as a job without output, nor one by a driver
    that came after the commit and had not noticed yet. Nor is a job that has ended undone by an older version, or by an
    abort of what its late tasks have left."""
    moved = record.files or record.replaced or record.made_directories
    nothing_aside = record.phase in NOTHING_ASIDE or (record.phase is Phase.ROLLING_BACK and not moved)
    if nothing_aside and not record.txn_id and await has_ended(run):
        return True
    if record.marker and is_set_up(await read_marker(run), record):
        if record.phase is Phase.REFUSED:
            return False  # whoever has refused it: nothing was moved, and to abort it tells what is in place
        # A late driver's, that has woken where its job was undone and set up again, has manifests that are gone; of
        # tasks without output they are like those of the new ones.
        return not await has_predecessor(run, record) and not (record.files and await _has_manifests(run, record))
    if record.marker and record.pins and record.phase in _WITH_WORK and await _has_manifests(run, record):
        # Its marker alone is gone, which a program that tidies up takes first, as the oldest file. Of a job that is
        # over no manifest is left that a late driver has pinned, though a late attempt may save another.
        return False
    if not await has_predecessor(run, record):
        return not await stands_by_manifests(run, run.layout.at_attempt(record.job_attempt), record)
    # Of a job without output there are no manifests.
    return bool(record.marker) and not (record.phase in HAS_GONE_ON and not record.pins)


async def _has_manifests(run: JobRun, record: CommitRecord) -> bool:
    """Whether the manifests are there that a record pins, by their digests. One that is there and cannot be accepted is
    none that is gone: without the marker nothing says by which name of the destination it was written, and whoever
    calls that by another cannot read it. Who goes on from there is told so."""
    try:
        await run.protocol.load_plan(run, record.pins)
    except ReceiptUnmatched:
        return False
    except CommitRefused:
        return True
    return True


async def _end_remainder(run: JobRun, record: CommitRecord, *, undo: bool | None) -> Recovery:
    committed = await says_committed(run, record)
    if committed and undo:
        raise too_late(run)
    # Our own cleanup deletes the marker after what was set aside, another committer what it finds.
    kept = [] if committed else await kept_lists(run, run.layout.job_id)
    recovery = await _from_lists(run, kept, undo=undo) if kept else _ended_already(run, record, committed=committed)
    if committed:
        await delete_directories_emptied_before(run)
    await clean_up(run, committed=committed)
    return recovery


def _ended_already(run: JobRun, record: CommitRecord, *, committed: bool) -> Recovery:
    """Who has undone the job may have died before anybody was told of what could not be made as it was. The phase
    `committed` is told only of a job that is."""
    undone = Undone.recorded(record)
    tell_undone(run, undone)
    if not undone:
        return Recovery("nothing", record.phase if committed or record.phase is not Phase.COMMITTED else None)
    return _of_undone(record.phase, undone)


def _may_be_alive(run: JobRun, record: CommitRecord, renewed: float) -> bool:
    return driver_may_be_alive(run, record, renewed) and record.phase not in (Phase.ROLLED_BACK, Phase.REFUSED)


def too_late(run: JobRun) -> UsageError:
    """The error of who would undo a job that has committed."""
    return UsageError(
        f"job {run.layout.job_id} is committed and cannot be undone",
        where=run.url(SUCCESS),
        next_step=f"{command('recover', run.store.url, run.layout.job_id)} cleans up after it",
    )

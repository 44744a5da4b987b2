"""Job abort: before job commit, all that the job left is deleted and nothing of it was ever visible.

Abort takes the commit record first, so that it and a job commit cannot both happen.
"""

from __future__ import annotations

from lockgate.engine.job.answer_failure import give_up
from lockgate.engine.job.cleanup import clean_up
from lockgate.engine.job.locations import refuse_part
from lockgate.engine.job.reports import report_abort, tell_undone
from lockgate.engine.job.set_aside_by_others import refuse_if_set_aside_by_others
from lockgate.engine.job.undo import undo_parts
from lockgate.engine.manifests.found_in_place import found_in_place
from lockgate.engine.record.aborted_jobs import note_abort
from lockgate.engine.record.ended_jobs import has_committed_since, has_committed_unrecorded, is_known_committed
from lockgate.engine.record.lost_versions import refuse_if_moved
from lockgate.engine.record.marker import SetUp, is_anothers, readable_marker, seen_set_up
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.record_log import (
    RecordLog,
    fenced,
    is_begun_anew,
    is_of_earlier_setup,
    look_at_job,
    refuse_superseded,
)
from lockgate.engine.record.replaced_lists import lists_in_force, still_set_aside
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import CommitFenced, JobNotFound, LockgateError, OutcomeUnknown
from lockgate.model.layout import OURS
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, Ground
from lockgate.model.undone import Undone


async def abort_job(run: JobRun, *, set_up_by_tasks: bool = False) -> Undone:
    """Abort the job. Aborting one that was aborted already is no failure. The answer: what could not be made as it was.
    `set_up_by_tasks`: its tasks may set it up, too, and one that comes late is to find that it is over.

    Raises:
        CommitFenced: its job commit is under way, or was left for recovery, or it has committed, or another attempt at
            it has begun; the error names the command.
        OutcomeUnknown: its commit record is lost, or its newest versions, and what it replaces is still set aside, or
            some of its files are in place, and nobody can tell whether it has committed, or, its marker being lost too,
            by which protocol it was written; or another program's job commit has put files of it in place; or another
            job's, which is not over, has set files of it aside.
    """
    set_up = await seen_set_up(run)  # an abort deletes what says it
    undone = await end_by_abort(run, set_up, set_up_by_tasks=set_up_by_tasks)
    if not undone and await has_committed_meanwhile(run, set_up):
        # By another attempt at it, or while this looked at it: whoever hears "aborted" writes its rows again.
        raise _has_committed(run)
    if undone.by_another:
        raise _put_by_another(run, undone)
    if undone.doubt:
        raise _may_have_committed(run, undone)
    return undone


async def end_by_abort(run: JobRun, set_up: SetUp | None, *, set_up_by_tasks: bool = False) -> Undone:
    """The same; what was found of another program's commit, or of the job's own, is in the answer. `set_up` is what
    the marker showed before (`seen_set_up`): a job that was set up since is not the one that was meant.

    Raises:
        CommitFenced, OutcomeUnknown: as `abort_job`, where nothing was deleted.
    """
    undone = Undone()
    with run.stage("abort_job"):
        newest, newest_attempt = await look_at_job(run)
        record = None if newest is None or await is_of_earlier_setup(run, newest) else newest
        if record is not None and record.phase is Phase.COMMITTED:
            raise fenced(run, record)
        refuse_superseded(run, newest_attempt)
        if await _is_of_another_driver(run, record):
            run.log.info("the job is not aborted: it is over, and another of its id is at work")
            return undone
        if not run.marker:
            # Somebody else than its own driver.
            await refuse_part(run, record)
        run = await with_own_protocol(run, record, set_up_by_tasks=set_up_by_tasks)
        if set_up_by_tasks:
            await note_abort(run)
        if (record is None or record.phase is Phase.REFUSED) and await lists_in_force(run):
            raise still_set_aside(run)
        if record is None or record.phase is Phase.REFUSED:
            await _refuse_if_committed(run)
        unsure = await _refuse_if_in_place(run) if record is None else []
        if record is not None and record.phase is Phase.REFUSED:
            await refuse_if_moved(run, record)
        if record is None and not await _is_there(run):
            await _refuse_if_run_again(run)
            await _delete_in_temporary(run)
            return undone
        log = RecordLog(run)
        if record is None or record.phase is Phase.REFUSED:
            await refuse_if_set_aside_by_others(run)
            if not run.marker:
                await _refuse_if_set_up_since(run, set_up)
            try:
                # It is in no other job's way any more: one that waits for it to yield would take it for one that has
                # gone on, and of several that meet none would.
                may_stay = await run.protocol.left_by_dead_attempts(run)
                # By which protocol, too: whoever goes on may find nothing else that says it.
                options = {"protocol": run.options.protocol} if record is None else record.options
                claimed = await log.claim(
                    Phase.ROLLING_BACK, newest, reason="aborted", ground=Ground(), may_stay=may_stay, options=options
                )
            except JobNotFound:
                await _refuse_if_run_again(run)
                await _delete_in_temporary(run)
                return undone
            try:
                undone = await run.protocol.discard(run, claimed) + await undo_parts(run, claimed)
                undone += Undone(left=unsure, may_stay=may_stay)
                if undone.left and not undone.doubt and await has_committed_meanwhile(run, set_up):
                    undone = Undone()  # while this looked at it: what is left is what it has committed
                await refuse_if_set_aside_by_others(run, taken_out=True)
                await log.advance(Phase.ROLLED_BACK, missing=list(undone.missing), left=undone.stays)
            except LockgateError as error:
                if not isinstance(error, CommitFenced):
                    await give_up(run, log)
                raise
            tell_undone(run, undone)
        elif record.phase is not Phase.ROLLED_BACK:
            raise fenced(run, record)
        else:
            undone = Undone.recorded(record)
            tell_undone(run, undone)
        await clean_up(run, over=log.now or record)
    await report_abort(run, "job_stage_abort")
    run.emit("job-aborted")
    run.log.info("job aborted")
    return undone


def _may_have_committed(run: JobRun, undone: Undone) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"job {run.layout.job_id} had begun its commit, and somebody has deleted its commit record. Files of the job "
        f"are in place, and {undone.doubt}, so that it may have committed: {len(undone.left)} were left",
        where="\n".join(run.url(path) for path in undone.left),  # what else says which they are is deleted
        next_step="what else the job had left is deleted; if its output is not wanted, delete these files by hand",
    )


def _put_by_another(run: JobRun, undone: Undone) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"job {run.layout.job_id} is aborted, but {len(undone.by_another)} of its files are in place: another "
        "program's job commit has put them there with its own",
        where="\n".join(run.url(path) for path in undone.by_another),  # as above
        next_step="what else the job had left is deleted. If that commit was to be this job's, too, its output is "
        "there; else delete these files by hand before the job is run again, which would write them once more",
    )


async def has_committed_meanwhile(run: JobRun, set_up: SetUp | None) -> bool:
    """Whether the job is known to have committed, for who has just aborted it, and had looked before how it was set up.
    A driver that found no marker goes by its own transaction: where that of another has committed its id, it was
    refused at its setup."""
    if set_up is None and run.marker:
        return await is_known_committed(run)
    return await has_committed_since(run, set_up)


async def _refuse_if_committed(run: JobRun) -> None:
    """Make sure that a job of which something is there has not committed, though no record of it says so.

    Raises:
        CommitFenced: it has.
    """
    if await has_committed_unrecorded(run) and await list_all(run.store, run.layout.job_directory):
        raise _has_committed(run)


def _has_committed(run: JobRun) -> CommitFenced:
    recover = command("recover", run.store.url, run.layout.job_id)
    return CommitFenced(
        f"job {run.layout.job_id} has committed",
        where=run.url(run.layout.job_directory),
        next_step="what it has committed was not touched. If its driver has died before the end of its cleanup, "
        f"{recover} deletes what is left there",
    )


async def _refuse_if_in_place(run: JobRun) -> list[str]:
    """Make sure that no file of a job is in place that has no record, and of which none ought to be: by a protocol that
    shows nothing before the commit; and where nobody knows the protocol, since the marker is gone, too. The manifests
    alone name these files, and an abort deletes them. (By v1 another program may have put them there, and the abort
    tells of them.) The answer: where files stand that may be the job's, on a store where equal files have one identity.

    Raises:
        OutcomeUnknown: some are.
        CommitFenced: the job has committed.
    """
    if run.is_own or not run.protocol.attributes.committed_invisible or run.protocol.works_in_temporary:
        return []  # the job's own driver knows how far it has come
    there = await found_in_place(run)
    if not there:
        return []
    if await has_committed_unrecorded(run):
        raise _has_committed(run)  # while this looked at it
    if Capability.UNIQUE_IDENTITY not in run.store.capabilities:
        return there
    job, store = run.layout.job_id, run.store.url
    by_hand = f"delete them by hand before the job is aborted; {command('files', store)} tells which are in no list"
    what = "nothing says how far its commit had come: somebody has deleted its commit record"
    next_step = f"if they are not wanted, {by_hand}"
    if run.layout.prefix != OURS:
        next_step = (
            f"they and what waits in {run.url(run.layout.job_directory)} are the job's rows: if these are wanted, "
            f"bring them together by hand; else {by_hand}"
        )
    elif await readable_marker(run, run.layout) is None:
        what = (
            "nothing says by which protocol it was written, or how far its commit had come: somebody has deleted its "
            "marker"
        )
        early = sorted(name for name, each in run.hooks.protocols().items() if not each.attributes.committed_invisible)
        by_name = command("abort", store, job, "--protocol", "NAME", "--force")
        next_step = (
            f"{by_name} with the name of that protocol takes them out, if it is one of {', '.join(early)}; if it is "
            f"none, and they are not wanted, {by_hand}"
        )
    raise OutcomeUnknown(
        f"{counted(len(there), 'file')} of job {job} are in place, and {what}",
        where="\n".join(run.url(path) for path in there),
        next_step=f"nothing was touched: {next_step}",
    )


async def _refuse_if_run_again(run: JobRun) -> None:
    """Make sure that the job is gone, and not only the attempt at it that was found: another may have begun since.

    Raises:
        CommitFenced: one has.
        OutcomeUnknown: one has, its record is lost since, and what it replaces is still set aside.
    """
    record, newest_attempt = await look_at_job(run)
    refuse_superseded(run, newest_attempt)
    if is_begun_anew(record):
        raise fenced(run, record)
    if record is None and await lists_in_force(run):
        raise still_set_aside(run)


async def _refuse_if_set_up_since(run: JobRun, set_up: SetUp | None) -> None:
    """Make sure that what is about to be ended is what was looked at: somebody else than the job's driver has found it
    dead, and its id may have been set up anew since then.

    Raises:
        CommitFenced: it has.
    """
    _, newest_attempt = await look_at_job(run)
    refuse_superseded(run, newest_attempt)
    now = await seen_set_up(run)
    if now is not None and now != set_up:
        raise CommitFenced(
            f"job {run.layout.job_id} was set up again while this looked at what an earlier one had left",
            where=run.url(run.layout.job_marker),
            next_step=f"nothing was touched; {command('jobs', run.store.url)} shows who is at work",
        )


async def _delete_in_temporary(run: JobRun) -> None:
    """Delete what a job of this driver's has left in `_temporary`, though somebody has deleted its own directory: the
    next job of Hadoop's would commit it."""
    if run.is_own and run.protocol.works_in_temporary:
        await run.protocol.release(run)


async def _is_of_another_driver(run: JobRun, record: CommitRecord | None) -> bool:
    """Whether what is there is not the job that this driver has set up: that one was ended by somebody else, and
    another has been set up by its id since."""
    if not run.is_own:
        return False
    marker = await readable_marker(run, run.layout)
    if marker is not None:
        return is_anothers(run, marker.nonce)
    return record is not None and is_anothers(run, record.marker)


async def _is_there(run: JobRun) -> bool:
    """Whether anything of the job is there: a record must not be what makes its directory, as it could where
    directories are not real."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return True
    async for page in run.store.list_tree(run.layout.attempt_directory):
        if page:
            return True
    return False

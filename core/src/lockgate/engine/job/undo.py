"""The undoing of a job commit, which keeps the commit record in step: of the job itself, and of its parts elsewhere."""

from __future__ import annotations

import dataclasses

from lockgate.engine.job.cleanup import clean_up_if_possible
from lockgate.engine.job.locations import PARTS_AT_ONCE, declared_locations, one_name_each, part_at
from lockgate.engine.job.set_aside_by_others import refuse_if_set_aside_by_others
from lockgate.engine.manifests.saved_manifests import names_tell
from lockgate.engine.record.ended_jobs import refuse_if_committed_by_any_sign
from lockgate.engine.record.lost_versions import catch_up
from lockgate.engine.record.marker import read_marker_of
from lockgate.engine.record.nested import refuse_undoing_beside
from lockgate.engine.record.record_log import RecordLog, has_predecessor, holders_of, read_record
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.record.replaced_lists import kept_lists, read_replaced
from lockgate.engine.record.transactions import seen_outcome
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import (
    CommitFenced,
    CommitRefused,
    JobNotFound,
    ManifestInvalid,
    OutcomeUnknown,
    ReceiptUnmatched,
)
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.undone import Undone


async def roll_back(run: JobRun, log: RecordLog, *, reason: str = "") -> Undone:
    """Take the record to `rolled-back` by undoing what was done; from `claimed` that is deleting the sources. The job's
    parts are undone once its record says that it is being rolled back, and before it says that it was."""
    if log.phase is Phase.PUBLISHING and await _is_past_commit_point(run, log):
        raise CommitFenced(
            f"job {run.layout.job_id} is committed and cannot be undone",
            where=run.url(run.layout.summary),
            next_step=f"{command('recover', run.store.url, run.layout.job_id)} cleans up after it",
        )
    record = log.now
    assert record is not None
    # What cannot be read, and is no manifest that lists can stand for, leaves the phase as it is: a mended store, or
    # another host, may still finish the job.
    await refuse_if_set_aside_by_others(run)
    moved = record.files or record.replaced or record.made_directories
    if moved and run.protocol.attributes.committed_invisible and not record.ground.exclusive:
        await refuse_undoing_beside(run, record.ground.directories)
    plan, lists = await _plan_or_lists(run, record) if moved else (None, [])
    if log.phase is not Phase.ROLLING_BACK:
        may_stay = await run.protocol.left_by_dead_attempts(run)
        record = await log.advance(Phase.ROLLING_BACK, reason=reason[:2000], may_stay=may_stay)
    if plan is not None:
        undone = await run.protocol.undo(run, plan, record)
    else:
        undone = await run.protocol.discard(run, record) + await run.protocol.restore(run, lists)
    undone += await undo_parts(run, record) + Undone(may_stay=record.may_stay)
    await refuse_if_set_aside_by_others(run, taken_out=True)
    await log.advance(Phase.ROLLED_BACK, missing=list(undone.missing), left=undone.stays)
    return undone


async def _is_past_commit_point(run: JobRun, log: RecordLog) -> bool:
    record = log.now
    if record is None or not run.commits_by_success or await run.protocol.revoke(run, record.summary_nonce):
        return False
    await log.advance(Phase.COMMITTED)
    return True


async def recorded_plan(run: JobRun, record: CommitRecord) -> CommitPlan:
    """The plan that a record in phase `moving` or later stands for: entries from the pinned manifests, what is set
    aside from the list."""
    plan = await run.protocol.load_plan(run, record.pins)
    if not record.set_aside_digest:
        return plan
    replaced = await read_replaced(run, record.set_aside_nonce, record.set_aside_digest)
    return dataclasses.replace(plan, set_aside=replaced.files, aside_directories=replaced.directories)


async def _plan_or_lists(run: JobRun, record: CommitRecord) -> tuple[CommitPlan | None, list[KeptList]]:
    """The plan of a job that is to be undone; or, where a manifest that it follows from is gone or damaged, the lists
    by which all is restored, too; or none, where names tell which files are the job's.

    Raises:
        CommitRefused: so it is, there are no such lists, and names do not tell.
        OutcomeUnknown: it has committed, though its record does not say so.
    """
    try:
        return await recorded_plan(run, record), []
    except LOST as error:
        if await undone_by_names(run, record):
            await refuse_if_committed_by_any_sign(run)
            run.log.warning("a manifest is lost: the job's files are taken out by their names", error=str(error))
            return None, []
        lists = await lists_to_undo_by(run, record)
        if not lists:
            raise without_manifest(run, error, undoable=False) from error
        run.log.warning("a manifest is lost: what the job did is undone by its lists", error=str(error))
        return None, lists


LOST = (ReceiptUnmatched, ManifestInvalid)
"""What is raised where a manifest that a record pins is gone, or is another by now, or cannot be read."""


def without_manifest(run: JobRun, error: CommitRefused, *, undoable: bool) -> CommitRefused:
    """The error of who would finish a job that has moved files, or undo it, and has lost a manifest of it."""
    job = run.layout.job_id
    by_lists = (
        f"{command('recover', run.store.url, job, '--undo')} restores the destination; or bring the manifest back from "
        "a backup, if the store keeps any, and give the command again"
    )
    by_nothing = (
        "some files of this job may be in place, and without this manifest nobody knows which: bring it back from a "
        "backup, if the store keeps any, and give the command again; do not run the job again before, since its rows "
        "would be there twice"
    )
    # One that is there is the one that was pinned, since another digest would have told.
    as_it_is = (
        "if the manifest names this destination otherwise than the command does, give the command by that name; if it "
        "is too long, raise manifest_bytes_max. Else "
        if isinstance(error, ManifestInvalid)
        else ""
    )
    return type(error)(error.what, where=error.where, next_step=as_it_is + (by_lists if undoable else by_nothing))


async def undone_by_names(run: JobRun, record: CommitRecord) -> bool:
    """Whether the job can be undone without its manifests, since its files are known by their names."""
    attempts = {pin.job_attempt for pin in record.pins}
    return all([await names_tell(run, run.layout.at_attempt(attempt)) for attempt in sorted(attempts)])


async def lists_to_undo_by(run: JobRun, record: CommitRecord) -> list[KeptList]:
    """What its drivers have written of what they set aside, and of its new files: only what replaces data has such
    lists, and a part. None where the job's record is the commit point: its newest version may be lost with the
    manifest. (A part ends as the whole does.)"""
    if not (run.commits_by_success or run.part_of):
        return []
    # They count, whatever waits: perhaps nothing was set aside yet, and that of a part that replaces nothing is empty.
    kept = await kept_lists(run, run.layout.job_id, in_force=False)
    # And that of a record before this one, by which this one was brought to where it is.
    own = {record.set_aside_nonce[:16], *(await holders_of(run, record))} if kept else set()
    return [each for each in kept if each.nonce in own]


async def undo_parts(run: JobRun, record: CommitRecord) -> Undone:
    """Undo, and delete, every part of a job, those that were only declared included. Called while the job's record says
    `rolling-back`. Repeating it is no failure. What could not be made as it was is told by URL."""
    known = sorted(each.url for each in record.locations)
    return await _undo_at(run, await one_name_each(run, [*known, *await declared_locations(run)]))


async def delete_unpinned_parts(run: JobRun, record: CommitRecord) -> None:
    """Once the job has committed: delete what is staged in locations of which nothing was committed."""
    known = [each.url for each in record.locations]
    await _undo_at(run, await one_name_each(run, await declared_locations(run), beside=known))


async def _undo_at(run: JobRun, urls: list[str]) -> Undone:
    undone = Undone()
    again: list[str] = []

    async def undo(url: str) -> Undone:
        try:
            return await _undo_part(run, url)
        except CommitFenced:
            # By somebody else; or by this very job, where two names of one place could not be told to be that.
            again.append(url)
            return Undone()

    for start in range(0, len(urls), PARTS_AT_ONCE):
        for each in await together(undo(url) for url in urls[start : start + PARTS_AT_ONCE]):
            undone += each
    for url in again:
        undone += await _undo_part(run, url)
    return undone


async def _undo_part(run: JobRun, url: str) -> Undone:
    async with part_at(run, url) as part:
        record = await read_record(part)
        if record is None:
            marker = await read_marker_of(part, part.layout)
            is_part = marker is None or bool(marker.part_of)
        else:
            is_part = bool(record.part_of)
        if not is_part:
            # Another name of the main job's own destination.
            return Undone()
        if record is not None and await _is_of_what_has_committed(run, record):
            run.log.warning("a part of an earlier run, which has committed, is left to recovery", part=part.url(""))
            return Undone()
        if record is None or await has_predecessor(part, record):
            try:
                undone = await _undo_with_record(part, record)
            except JobNotFound:  # nothing of it is there, but for what somebody has left who deleted its directory
                undone = await _restore(part)
        else:
            # What a driver has created that woke up when its part was over, and then no list of it is left; or when
            # somebody had deleted its directory.
            undone = await _restore(part)
        await clean_up_if_possible(part)
        return Undone([part.url(path) for path in undone.missing], [part.url(path) for path in undone.stays])


async def _is_of_what_has_committed(run: JobRun, record: CommitRecord) -> bool:
    """Whether a part's record is not of the job that is undone, but of an earlier run by its id, which has committed
    the transaction id, and whose own record somebody has deleted before its parts were ended."""
    own = run.marker or run.marker_for_parts or run.marker_to_tell
    if not own or record.marker in ("", own):
        return False
    earlier = await seen_outcome(run)
    return earlier is not None and earlier.lockgate is not None and earlier.lockgate.marker == record.marker


async def _undo_with_record(part: JobRun, record: CommitRecord | None) -> Undone:
    log = RecordLog(part)
    if record is None or record.phase is Phase.REFUSED:
        claimed = await log.claim(Phase.ROLLING_BACK, record, reason="the whole is undone", part_of=part.part_of)
        undone = await part.protocol.discard(part, claimed) + await _restore(part)
        await log.advance(Phase.ROLLED_BACK, missing=list(undone.missing), left=undone.stays)
        return undone
    if record.phase is Phase.ROLLED_BACK:
        return Undone.recorded(record)
    as_owner = dataclasses.replace(part, options=as_recorded(part.options, record))
    held = await log.take_over(record)
    lost = Undone()
    if record.phase is Phase.CLAIMED:
        # Somebody who would have finished the whole has begun this record anew, where another was deleted.
        lost = await log.while_renewing(_restore(part, begun_anew=record))
    record = await catch_up(as_owner, log, held)
    if record.phase is Phase.COMMITTED:
        raise OutcomeUnknown(
            f"a part of job {part.layout.job_id} is committed, and the whole is being undone",
            where=part.url(part.layout.job_directory),
            next_step="this cannot be: somebody has changed records; look at the files of both before you delete any",
        )
    return lost + await log.while_renewing(roll_back(as_owner, log, reason="the whole is undone"))


async def _restore(part: JobRun, *, begun_anew: CommitRecord | None = None) -> Undone:
    """Of a part whose record somebody has deleted: bring back what its lists name, and take out what took its place, by
    these alone. A list of nothing is of a part that replaces nothing, and counts, whatever waits: what it did is to be
    undone with the whole, whoever wrote it, and only files are touched that have the identities of its own. A record
    that was `begun_anew` since is left the lists of its own holders."""
    undone = Undone()
    written = await kept_lists(part, part.layout.job_id, in_force=False)
    if written and begun_anew is not None:
        holders = await holders_of(part, begun_anew)
        written = [kept for kept in written if kept.nonce not in holders]
    in_force = {kept.nonce for kept in await kept_lists(part, part.layout.job_id)} if written else set()
    for kept in reversed(written):
        if kept.nonce in in_force or not (kept.replaced.files or kept.replaced.directories):
            undone += await part.protocol.restore(part, [kept])
    return undone

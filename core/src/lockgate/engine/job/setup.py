"""Job setup.

Seed: "Job Setup", "Task Setup". Beyond it, job setup leaves a marker with a nonce: two jobs that were given one id
(SPARK-33402) are told apart, and a driver that was asleep while its job was aborted learns it from the marker's
absence.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from lockgate.engine.job.conflicts import refuse_early
from lockgate.engine.job.reports import refuse_reports_among_data
from lockgate.engine.job.tables_with_logs import why_not_a_plain_table
from lockgate.engine.record.aborted_jobs import why_aborted
from lockgate.engine.record.ended_jobs import remember_last, why_over
from lockgate.engine.record.marker import JobMarker, is_marker_of, read_marker, readable_marker
from lockgate.engine.record.nested import refuse_jobs_that_take_directories_above
from lockgate.engine.record.own_protocol import why_another_protocol
from lockgate.engine.record.record_log import fenced, has_predecessor, is_under_way, read_record
from lockgate.engine.record.recorded_options import options_for_marker
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.record.transactions import has_begun, known_outcome
from lockgate.engine.record.used_ids import another_has_the_id
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    CommitFenced,
    DestinationConflict,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    OptionError,
    StoreError,
    UsageError,
)
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename
from lockgate.model.layout import BOOKKEEPING, JOBS, SUCCESS
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.receipt import Pin
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.spooled import windows


async def setup_job(run: JobRun, *, by_task: bool = False) -> None:
    """Make the job attempt's directories, leave the marker, and delete an old `_SUCCESS` where the options say so.
    Repeating it for the same job is no failure.

    The record of a job of this id is looked for before the marker is made. Should somebody have deleted the marker of a
    job that died in its commit, this one's would be taken for it, by whoever ends that job, and would stay if this
    process died before it could take it back.

    Whether the job has ended, and whether the destination is a table of another format, is asked at the same time, but
    with protocols whose tasks' files are seen at once: it is the claim of the job that must not be fooled
    (`lockgate.engine.record.ended_jobs`), and a commit that replaces data looks again. A setup that is refused leaves
    nothing behind. `by_task`: a task attempt sets the job up, which may come late.

    Raises:
        UsageError: another job has this id, or an earlier attempt at this one another protocol.
        JobNotFound: the job has committed already; or it was aborted, and a task of it sets it up again.
        CommitFenced: a commit of the job has begun, and has not ended: by an earlier attempt, which has begun to move
            files; or by this very attempt, of an earlier run of it; or its record alone says that it has committed.
        OutcomeUnknown: files are set aside by a commit of this job whose record is lost.
        DestinationConflict: the policy `fail` and the destination holds data; or it is a table of another format.
        OptionError: reports of the job would be among the data.
    """
    with run.stage("setup_job"):
        tell_options_without_effect(run)
        await refuse_reports_among_data(run)
        try:
            await refuse_early(run)
        except DestinationConflict:
            # What is there may be what this very transaction has written, which its commit finds out; or what a task of
            # this very job has, which has set it up by the same options.
            if not await has_begun(run) and not await _is_set_up_so(run):
                raise
        seen_at_once = not run.protocol.attributes.committed_invisible
        if by_task or not seen_at_once:
            # One that a task would set up is mostly over already where it comes late: nobody is to find a marker of it.
            held, over = await both(_why_held(run), _refusal(run))
            refusal = held or over or (await why_aborted(run) if by_task and seen_at_once else None)
        else:
            refusal = await _why_held(run)
        if refusal is not None:
            raise refusal
        created, error = await _mark(run, by_task)
        if seen_at_once:
            # What its tasks write is seen at once, and of a job that has committed nobody takes it out. So it is asked
            # once the marker is there: a commit that comes later deletes that, and the tasks find their job over.
            refusal = await _refusal(run) or await _in_a_directory_that_goes(run)
        if by_task and refusal is None:
            # Once the marker is there: an abort that comes later deletes that.
            refusal = await why_aborted(run)
        if error is None and refusal is None and run.options.delete_success_at_setup:
            try:
                refusal = await _delete_success(run)
            except StoreError as failure:
                refusal = failure
        if refusal is not None:
            if created:
                await _unmark(run)
            raise refusal
        if error is not None:
            raise error


def tell_options_without_effect(run: JobRun, told: Collection[str] | None = None) -> None:
    """Not refused: a session's settings are for jobs of all protocols. `told`: the names that were expressly given, of
    which alone it is said; None: of all."""
    usual = JobOptions()
    others = frozenset[str]().union(*(each.own_options for each in run.hooks.protocols().values()))
    for name in sorted(others - run.protocol.own_options):
        if getattr(run.options, name) != getattr(usual, name) and (told is None or name in told):
            run.log.warning(
                "an option has no effect with this protocol",
                option=name,
                protocol=run.protocol.name,
                protocols=sorted(e.name for e in run.hooks.protocols().values() if name in e.own_options),
            )


async def _refusal(run: JobRun) -> LockgateError | None:
    over, table = await both(why_over(run), why_not_a_plain_table(run))
    return over or await why_another_protocol(run) or table


async def _in_a_directory_that_goes(run: JobRun) -> DestinationConflict | None:
    try:
        await refuse_jobs_that_take_directories_above(run)
    except DestinationConflict as conflict:
        return conflict
    return None


async def _mark(run: JobRun, by_task: bool) -> tuple[bool, LockgateError | None]:
    """Make the directories and the marker: whether this call surely created the marker, and what went wrong, for which
    the job's having ended is the better reason."""
    try:
        if (refusal := refused_policy(run)) is not None:
            return False, refusal
        await run.protocol.set_up_job(run)
        marker = JobMarker(
            run.layout.job_id,
            run.marker,
            run.runtime.wall(),
            run.runtime.host,
            run.runtime.process,
            run.runtime.user,
            run.store.url.uri,
            options_for_marker(run.options),
            run.part_of,
            by_task,
        )
        if await _created(run, marker):
            return True, None
        found = await read_marker(run)
        if found is not None and found.nonce == run.marker:
            if bool(found.part_of) != bool(run.part_of):
                return False, _one_place(run, found)
            await _correct(run, found)
            return False, None
    except FileMissing as error:  # the job's directory went meanwhile: it is over
        return False, error
    return False, await another_has_the_id(run)


_SAVE_MODES = {"append": "append", "fail": "errorifexists"}
"""By which save mode a Spark write has a policy that keeps what is there. One that overwrites has named none, and a
policy beside that mode would contradict it."""


def refused_policy(run: JobRun) -> OptionError | None:
    """Why the job's policy is none that the protocol declares to keep; None: it is one."""
    options, kept, why = run.options, run.protocol.policies, run.protocol.policies_why
    if kept is None or (options.conflict in kept and not options.delete_target_files):
        return None
    named, instead = f"the conflict policy {options.conflict!r}", f"choose {' or '.join(kept)}"
    if options.conflict in kept:
        named, instead = "delete_target_files", "leave it out"
    elif options.conflict.startswith("replace") and (
        modes := [_SAVE_MODES[each] for each in kept if each in _SAVE_MODES]
    ):
        instead += f"; a Spark write by its save mode, {' or '.join(modes)}, not overwrite"
    elif not options.conflict.startswith("replace"):
        why = "it says what may be there when the job commits, and by then its files are in place"
    return OptionError(
        f"{named} cannot be kept by the protocol {run.protocol.name}: {why}",
        where=run.url(""),
        next_step=f"{instead}; or choose another protocol",
    )


def _one_place(run: JobRun, found: JobMarker) -> UsageError:
    return UsageError(
        f"a location that job {run.layout.job_id} writes to is its own destination, by another name",
        where=f"{run.part_of or found.part_of}\n{run.url('')}",
        next_step="give the location the destination's name (ALTER TABLE … SET LOCATION), and run the job again",
    )


async def _created(run: JobRun, marker: JobMarker) -> bool:
    """Create the marker: whether it surely was this call that did."""
    try:
        await run.store.create_file(run.layout.job_marker, msgspec.json.encode(marker))
    except (FileExists, AnswerLost):
        return False
    return True


async def _is_set_up_so(run: JobRun) -> bool:
    """Whether this job is set up already, by these very options: then its policy has been asked."""
    found = await read_marker(run)
    return found is not None and found.nonce == run.marker and dict(found.options) == options_for_marker(run.options)


async def _correct(run: JobRun, found: JobMarker) -> None:
    """Let the marker hold the options of who sets the job up again: who did it first may not have known them all, as
    Spark's planner, which does not see the session's settings, while the tasks do."""
    options = options_for_marker(run.options)
    if dict(found.options) != options:
        corrected = msgspec.structs.replace(found, options=options)
        await run.store.write_file(run.layout.job_marker, msgspec.json.encode(corrected))


async def _unmark(run: JobRun) -> None:
    """Delete what a setup has made that is refused. What it cannot delete is left to gc."""
    try:
        await delete_trees(run, [run.layout.attempt_directory])
        await run.store.delete_empty_directories([run.layout.job_directory, JOBS, BOOKKEEPING])
    except StoreError as error:
        run.log.info("a refused setup leaves its directory to gc", error=str(error))


async def _delete_success(run: JobRun) -> LockgateError | None:
    """Hadoop's way (`SetupJobStage`): a reader that looks for `_SUCCESS` takes the table for unfinished from here on,
    and, if this job is aborted, until another is committed. A setup that is repeated deletes it too, since the first
    may have died before; but not once the job commit has begun. The marker is there by now, so that a job that is over
    is known by its note, its `_SUCCESS` or its transaction's outcome; then nothing is deleted: the answer is why."""
    (before,) = await run.store.stat_files([SUCCESS])
    if before is None or await known_outcome(run) is not None or await read_record(run) is not None:
        return None
    refusal = await why_over(run)
    if refusal is not None:
        return refusal
    if await _is_own(run, SUCCESS):
        return None
    await remember_last(run)
    return await _move_away(run, before)


async def _move_away(run: JobRun, before: FileStatus) -> LockgateError | None:
    """Rename the `_SUCCESS` that was seen into the job's directory: a task that sets its job up again, and sleeps until
    that has committed, finds another version, or the directory gone. A deletion would take the job's own. Where a store
    cannot be told which version is meant, what was moved is looked at, and the job's own goes back. Where files cannot
    be renamed, but be deleted only if they are what was seen, that does it."""
    if Capability.CONDITIONAL_WRITE in run.store.capabilities:
        await run.store.delete_if_same([before])
        return None
    away = Rename(SUCCESS, run.layout.summary_before, before.length, before.identity, replace=True)
    (outcome,) = await run.store.rename_files([away])
    if isinstance(outcome, NotRenamed):
        if outcome.reason in (Refusal.SOURCE_MISSING, Refusal.SOURCE_CHANGED):
            return None
        if outcome.reason is Refusal.PARENT_MISSING:
            return _over(run)
        return StoreError(
            f"the old {SUCCESS} could not be deleted: {outcome}",
            where=run.url(SUCCESS),
            next_step="mend what the store says of it, or leave delete_success_at_setup out",
        )
    if Capability.PINNED_SOURCE not in run.store.capabilities and await _is_own(run, run.layout.summary_before):
        await run.store.rename_files([Rename(run.layout.summary_before, SUCCESS)])
        return _over(run)
    return None


async def _is_own(run: JobRun, path: str) -> bool:
    try:
        found = await read_summary(run, path)
    except StoreError:
        raise
    except LockgateError:  # the empty `_SUCCESS` of another committer
        return False
    return found is not None and found.job_id == run.layout.job_id


def _over(run: JobRun) -> JobNotFound:
    return JobNotFound(
        f"job {run.layout.job_id} is over",
        where=run.url(run.layout.attempt_directory),
        next_step=command("show", run.store.url),
    )


async def _why_held(run: JobRun) -> LockgateError | None:
    """Why the record of a job of this id forbids to set it up. A job has one fence, whichever attempt at it commits:
    where an earlier attempt has begun to move files, or the job is over, another has nothing to do. A record that moves
    nothing says neither: a second driver, which came when the job had committed, leaves one."""
    record = await read_record(run)
    if record is None:
        return None
    if await _is_not_ended(run, record):
        return fenced(run, record)
    if run.layout.job_attempt > 0 and record.phase not in (Phase.CLAIMED, Phase.REFUSED):
        return fenced(run, record)
    if (over := await why_over(run)) is not None:
        return over
    if await _is_not_concluded(run, record):
        return fenced(run, record)
    return await _why_marker_lost(run, record)


async def _is_not_ended(run: JobRun, record: CommitRecord) -> bool:
    """Whether a job commit of this id has begun and has not ended, so that tasks of this attempt would write over what
    it has pinned. One that is claimed only counts if it is of this very job, which is run again; one that has changed
    the destination, whatever has become of its marker."""
    attempts = {record.job_attempt, *(pin.job_attempt for pin in record.pins)}
    if run.layout.job_attempt not in attempts or record.phase in (Phase.REFUSED, Phase.COMMITTED):
        return False
    marker = await readable_marker(run, run.layout)
    is_its_marker = marker is not None and is_marker_of(marker, record)
    if record.phase is Phase.CLAIMED:
        return record.marker == run.marker != "" and (is_its_marker or await _any_saved(run, record.pins))
    # A version that follows nothing that is there is of a driver that slept while its job was ended, unless somebody
    # has deleted the one before.
    return await has_predecessor(run, record) or (is_its_marker and is_under_way(run, record))


async def _is_not_concluded(run: JobRun, record: CommitRecord) -> bool:
    """Whether the job has committed by its record, and its driver died before anything else said so: tasks would write
    over the manifests by which its cleanup knows what did not count. By a transaction id it may be set up again, since
    its commit returns the first summary."""
    return not run.options.txn_id and record.phase is Phase.COMMITTED and await has_predecessor(run, record)


async def _why_marker_lost(run: JobRun, record: CommitRecord) -> CommitFenced | None:
    """Why the id cannot be set up again where a job of it has been claimed, or refused, and somebody has deleted its
    marker: its tasks' manifests are there, and tasks of this one would take them for their own. Of a job that is over,
    whose driver has slept, the manifests are gone."""
    if record.phase not in (Phase.CLAIMED, Phase.REFUSED) or record.marker in ("", run.marker) or not record.pins:
        return None
    marker = await readable_marker(run, run.layout.at_attempt(record.job_attempt))
    if marker is not None and marker.nonce == record.marker:
        return None
    if not await _any_saved(run, record.pins):
        return None
    url, job = run.store.url, run.layout.job_id
    return CommitFenced(
        f"job {job} was not ended: its commit is {record.phase.value}, and somebody has deleted its marker",
        where=run.url(run.layout.job_directory),
        next_step=f"nothing was touched: {command('recover', url, job, '--undo')}, or where it was refused "
        f"{command('abort', url, job)} --force, deletes what its tasks have written; then the id can be used again",
    )


async def _any_saved(run: JobRun, pins: Sequence[Pin]) -> bool:
    """Whether the manifest of a pin is there."""
    for some in windows(pins, run.options.files_read_at_once):
        paths = [run.layout.at_attempt(pin.job_attempt).manifest(pin.task_id) for pin in some]
        contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
        digests = {pin.digest for pin in some}
        if any(content is not None and digest_of(content) in digests for content in contents):
            return True
    return False

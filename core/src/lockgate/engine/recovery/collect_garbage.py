"""Garbage: what jobs that are over, or never came to an end, left below a destination.

A job that may be alive is never touched, and one that died in its job commit is left to recovery, since deleting
it would leave the destination half way. A job that is deleted without having been committed is aborted first: its
record is claimed, so a driver that wakes up later is fenced. What was found is looked at again, file by file, before
it is deleted: a task attempt may be writing a large file while its directory shows no change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from lockgate.engine.inspection.how_to_end import commands_to_end, how_many_committed, if_surely_over, why_interrupted
from lockgate.engine.inspection.list_jobs import NEEDS_SOMEBODY, JobState, JobStatus, list_jobs
from lockgate.engine.inspection.other_committers import is_unknown
from lockgate.engine.job.cleanup import clean_up
from lockgate.engine.job.job_abort import end_by_abort, has_committed_meanwhile
from lockgate.engine.job.locations import refuse_part, wants_undo_by_lists
from lockgate.engine.record.found_commands import found_command, told_of_options, with_first_options
from lockgate.engine.record.marker import read_marker_of, seen_set_up
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files, kept_lists, let_go_of_replaced
from lockgate.engine.record.signs_of_life import is_recent, why_at_work
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.recovery.empty_in_temporary import collect_empty_in_temporary
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.late_markers import delete_needless, late_markers
from lockgate.engine.recovery.orphan_uploads import judge_uploads, uploads_if_listed, why_kept
from lockgate.engine.recovery.recover import is_remainder, recover_job
from lockgate.engine.recovery.unfinished_files import collect_unfinished
from lockgate.engine.recovery.winner_lists import needless_lists
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import CommitFenced, LockgateError, OptionError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import TABLE, TEMP
from lockgate.model.layout import (
    ABORTED_JOB_SUFFIX,
    BOOKKEEPING,
    ENDED_SUFFIX,
    FILE_LISTS,
    JOBS,
    OURS,
    REPLACED,
    SUCCESS,
    TEMPORARY,
    TRANSACTIONS,
    WINNERS,
    JobLayout,
    is_aside,
)
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone

_ENDS = {ENDED_SUFFIX: "committed", ABORTED_JOB_SUFFIX: "was aborted"}
"""What the notes of jobs say, by how their names end."""


async def collect_garbage(run: JobRun, *, dry_run: bool = False) -> list[Garbage]:
    """Delete what is surely nobody's any more; say of everything else why it is kept."""
    with run.stage("collect_garbage"):
        every = await list_jobs(run)
        found = [await _job(run, layout_state, dry_run=dry_run) for layout_state in _unended(every)]
        found += await _file_lists(run, dry_run=dry_run)
        found += await _winners(run, dry_run=dry_run)
        found += await _replaced(run, dry_run=dry_run)
        found += await _notes(run, dry_run=dry_run)
        found += await _asides(run, dry_run=dry_run)
        found += await _markers(run, dry_run=dry_run)
        found += await collect_unfinished(run, dry_run=dry_run)
        found += await _uploads(run, dry_run=dry_run)
        shown = {state.directory for state in every if is_unknown(state.job_id)}
        found += await collect_empty_in_temporary(run, shown, dry_run=dry_run)
        if not dry_run:
            await _delete_empty(run)
        return found


async def _asides(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """What a store wrote aside, or was deleting, or a probe left, when its process was killed."""
    found: list[FileStatus] = []
    for directory in (TEMPORARY, BOOKKEEPING, FILE_LISTS, TRANSACTIONS, WINNERS, TEMP):
        async for page in run.store.list_directory(directory):
            found += [status for status in page if is_aside(status.path) and not is_recent(run, status.modified)]
    found = [status for status in found if not status.is_directory or await _is_there(run, status.path)]
    if not dry_run:
        await run.store.delete_files([status.path for status in found if not status.is_directory])
        await run.store.delete_directories([status.path for status in found if status.is_directory])
    action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
    why = "left over from a process that was killed, or could not delete it"
    return [Garbage(status.path, action, why) for status in found]


async def _uploads(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """Uploads that no job will complete, as those of task attempts that died before they could save which they are."""
    pending, now = await uploads_if_listed(run), run.runtime.wall()
    if pending is None:
        why = (
            "uploads that wait may not be listed with these credentials: what is sent and nobody will complete stays, "
            "and is paid for, until somebody who may list it runs gc, or a rule of the bucket gives it up"
        )
        return [Garbage("", "kept", why)]
    oldest_kept = now - run.options.upload_alive_seconds
    waiting = [each for each in pending if each.begun <= oldest_kept]
    orphans = [each.upload for each in await judge_uploads(run, waiting) if not each.keep]
    if orphans and not dry_run:
        await run.store.abort_uploads(orphans)
    action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
    found = [Garbage(each.path, action, "an upload that no job here can still complete") for each in orphans]
    young = [each for each in pending if each.begun > oldest_kept]
    for each, keep in zip(young, await why_kept(run, [(each.path, each.begun) for each in young]), strict=True):
        if not keep:  # else its job is told
            why = (
                f"an upload that no job here is known to complete, begun {now - each.begun:.0f} s ago: it is given up "
                f"once it is {run.options.upload_alive_seconds:.0f} s old"
            )
            found.append(Garbage(each.path, "kept", why))
    return found


async def _delete_empty(run: JobRun) -> None:
    """The directories of jobs that a cleanup, cut short, has left empty, and those above, if they are empty."""
    jobs = [status.path for status in await list_all(run.store, JOBS) if status.is_directory]
    await run.store.delete_empty_directories([*jobs, JOBS, REPLACED, WINNERS, BOOKKEEPING])
    if [status.path for status in await list_all(run.store, TABLE)] == [TEMP]:
        await run.store.delete_empty_directories([TEMP, TABLE])


async def _states(run: JobRun) -> list[JobState]:
    return _unended(await list_jobs(run))


def _unended(every: Sequence[JobState]) -> list[JobState]:
    """Without those that are no job that anybody knows, of which there is but an empty directory."""
    found = [state for state in every if state.status is not JobStatus.COMMITTED]
    return [state for state in found if state.status is not JobStatus.OTHER_COMMITTER or not is_unknown(state.job_id)]


async def _job(run: JobRun, state: JobState, *, dry_run: bool) -> Garbage:
    path = state.layout.replaced if state.status is JobStatus.RECORD_LOST else state.layout.job_directory
    path = state.elsewhere or path
    if state.status is JobStatus.OTHER_COMMITTER:
        # Below `_temporary`, where nothing is ours to delete but directories that are empty.
        return Garbage(state.directory, "kept", "another committer's: its own driver ends it")
    if state.came_late:
        return Garbage(path, "kept", state.problem, needs_somebody=True)
    may_go_on = state.status in (JobStatus.RUNNING, JobStatus.REFUSED)
    why_not = await why_interrupted(run, state) if may_go_on else None
    keep = {
        JobStatus.RUNNING: f"{how_many_committed(state)}: {if_surely_over(run, state, why_not)}",
        JobStatus.COMMITTING: "its driver may be alive",
        JobStatus.CRASHED: f"it died in job commit: {command('recover', run.store.url, state.job_id)}",
        JobStatus.RECORD_LOST: f"its commit record is lost: {command('recover', run.store.url, state.job_id)} with "
        "--undo or --finish",
        JobStatus.UNREADABLE: state.problem,
    }.get(state.status)
    if state.status is JobStatus.REFUSED and why_at_work(run, await read_marker_of(run, state.layout), state.last_seen):
        keep = f"its driver may commit it again; if it is surely dead: {commands_to_end(run, state, why_not)}"
    try:
        if state.status is JobStatus.CRASHED and await _is_over(run, state):
            keep = None
    except OptionError as error:  # its protocol is not here: nobody can say
        keep = str(error)
    except LockgateError as error:
        return Garbage(path, "failed", str(error))
    needs_somebody = state.status in NEEDS_SOMEBODY
    if state.record is not None and (undone := Undone(state.record.missing, state.record.left)):
        needs_somebody = True
        keep = f"it was undone{undone}: {command('recover', run.store.url, state.job_id)} tells which, and ends it"
    try:
        if state.status in (JobStatus.ABANDONED, JobStatus.REFUSED, JobStatus.CRASHED):
            await refuse_part(dataclasses.replace(run, layout=state.layout), state.record)
    except CommitFenced as error:
        keep = error.what
    except LockgateError as error:
        return Garbage(path, "failed", str(error))
    try:
        if keep is None and await _wrote_lately(run, state):
            keep = "somebody wrote there a short while ago"
        if keep is None and await _is_anothers(run, state):
            keep = _what_to_do_with_anothers(run, state)
    except LockgateError as error:
        return Garbage(path, "failed", str(error))
    if keep is not None:
        return Garbage(path, "kept", keep, needs_somebody)
    # What was told to be left behind, or not to be missed, when the job ended is what gc is called for.
    options = run.options.replace(cleanup_skip=False, cleanup_ignore_failures=False)
    job = dataclasses.replace(run, options=options, layout=state.layout, marker="", counters={}, stage_seconds={})
    undone, overtaken = Undone(), False
    try:
        # What its protocol has left outside its directory goes by that alone: this must be known before it is deleted.
        own = await with_own_protocol(job, state.record)
        if dry_run:
            return Garbage(path, "would delete", _why_deleted(state, await _may_stay(own, state)))
        if state.status in (JobStatus.LEFT_BEHIND, JobStatus.CRASHED):
            ended = await recover_job(job, force=True)
            undone = Undone(left=ended.left, may_stay=ended.may_stay)
        else:
            set_up = await seen_set_up(job)  # an abort deletes what says it
            undone = await end_by_abort(job, set_up)
            overtaken = not undone and await has_committed_meanwhile(job, set_up)
        if (left := await read_record(own)) is not None and left.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
            await clean_up(own, over=left)  # the job's own options had its directory kept
        elif left is None and await read_marker_of(own, own.layout) is None and await _is_left(own):
            await clean_up(own)
    except LockgateError as error:
        return Garbage(path, "failed", str(error))
    if overtaken:
        return Garbage(path, "deleted", f"{JobStatus.LEFT_BEHIND.value}: it has committed meanwhile")
    if undone.stays:
        return Garbage(path, "deleted", f"{state.status.value}, but {_what_stays(undone)}", needs_somebody=True)
    return Garbage(path, "deleted", _why_deleted(state, undone.may_stay), needs_somebody=bool(undone.may_stay))


_ENDED = {Phase.COMMITTED: "it is committed", Phase.ROLLED_BACK: "it was undone"}
"""What became of a job that is over, for who has to know whether to run it again."""


def _why_deleted(state: JobState, may_stay: str) -> str:
    ended = _ENDED.get(state.phase) if state.phase and state.status is JobStatus.LEFT_BEHIND else None
    why = f"{state.status.value}: {ended}" if ended else state.status.value
    return f"{why}. {may_stay}" if may_stay else why


async def _may_stay(run: JobRun, state: JobState) -> str:
    """What whoever ends the job will be told that may stay."""
    if state.status in (JobStatus.ABANDONED, JobStatus.REFUSED):
        return await run.protocol.left_by_dead_attempts(run)
    return state.record.may_stay if state.record is not None else ""


def _what_stays(undone: Undone) -> str:
    """With all of them by name: nothing else says any more which they are."""
    why = "which somebody may have changed since"
    if undone.by_another:
        why = "which another program's job commit has put there: if that was to be this job's, too, its output is there"
    if undone.doubt:
        why = f"and {undone.doubt}, so that it may have committed"
    return f"{counted(len(undone.stays), 'file')} of it stay, {why}: {', '.join(undone.stays)}" + (
        f". {undone.may_stay}" if undone.may_stay else ""
    )


async def _is_over(run: JobRun, state: JobState) -> bool:
    """Whether a record that stands still is of a job that is over: what a driver left that woke up after its end, or an
    abort of a job that had moved nothing. To end either is to delete it."""
    if _is_cut_short_abort(state.record):
        return True
    job = dataclasses.replace(run, layout=state.layout)
    return state.record is not None and await is_remainder(await with_own_protocol(job, state.record), state.record)


def _is_cut_short_abort(record: CommitRecord | None) -> bool:
    """Whether what stands still is the abort of a job that had moved nothing: to end it is to delete it."""
    if record is None or record.phase is not Phase.ROLLING_BACK:
        return False
    return not (record.files or record.replaced or record.made_directories)


async def _is_anothers(run: JobRun, state: JobState) -> bool:
    """Whether what another program's tasks have committed is where they have left it, and would go with the job: nobody
    has begun to commit it here, or the commit was refused. It may be the only place of their rows, and that program
    shows no sign of life but what it writes."""
    if state.layout.prefix == OURS or state.status not in (JobStatus.ABANDONED, JobStatus.REFUSED):
        return False
    protocol = run.hooks.protocols().get(state.layout.found_protocol)
    if protocol is None or not protocol.leaves_found:
        return True
    return state.record is None and not await list_all(run.store, state.layout.job_directory)


def _what_to_do_with_anothers(run: JobRun, state: JobState) -> str:
    """`commit` is refused where no task has committed, as after those of Hadoop's second algorithm."""
    run = with_first_options(run, state.layout, state.record)
    committing, aborting = (found_command(run, each, state.layout) for each in ("commit", "abort"))
    if state.tasks_committed:
        ending = f"{committing} ({told_of_options(run, state.layout, state.record)}), or {aborting}, which deletes it"
    else:
        ending = f"and of which no task's output waits to be committed: {aborting} deletes what is there"
    return f"another program's, of which nothing was moved: {ending}; while it may be at work, add --force"


async def _is_left(run: JobRun) -> bool:
    """Whether anything of the job's directory is there."""
    return any([page async for page in run.store.list_directory(run.layout.job_directory)])


async def _wrote_lately(run: JobRun, state: JobState) -> bool:
    if state.status in (JobStatus.LEFT_BEHIND, JobStatus.CRASHED):
        return False
    async for page in run.store.list_tree(state.layout.attempt_directory):
        if any(is_recent(run, status.modified) for status in page):
            return True
    return False


def _may_list(state: JobState) -> bool:
    return state.phase is not None or bool(state.problem) or state.status is JobStatus.RECORD_LOST


async def _replaced(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """What committed jobs had replaced, where their cleanup was cut short after it had deleted the list of it; and
    lists of drivers that woke up when their job was over."""
    found: list[Garbage] = []
    kept = await jobs_with_replaced_files(run)
    # Looked for after these, since a job has its record before it sets anything aside. Those that other programs have
    # set up have theirs elsewhere than ours.
    held = {state.job_id for state in await list_jobs(run) if state.record or state.problem} if kept else set()
    for job_id in kept:
        layout = JobLayout(job_id)
        try:
            if job_id in held or await kept_lists(run, job_id) or await read_record(run, layout) is not None:
                continue
            if await _driver_may_wake(run, job_id) or not await _is_there(run, layout.replaced):
                continue
            lists = await kept_lists(run, job_id, in_force=False)
        except StoreError:
            raise
        except LockgateError as error:
            found.append(Garbage(layout.replaced, "kept", str(error), needs_somebody=True))
            continue
        of_job = dataclasses.replace(run, layout=layout)
        try:
            # The list of a part is all that the undoing of its job goes by, where somebody has deleted its record.
            await wants_undo_by_lists(of_job, lists, None)
        except LockgateError as error:
            found.append(Garbage(layout.replaced, "kept", error.what))
            continue
        if not dry_run:
            try:
                unseen = await let_go_of_replaced(of_job, committed=True)
            except LockgateError as error:
                found.append(Garbage(layout.replaced, "failed", str(error)))
                continue
            if unseen:
                why = (
                    "made in a directory that its job had set aside and committed without, or such a directory in "
                    "which not all can be listed: move it away, or delete it"
                )
                found += [Garbage(path, "kept", why, needs_somebody=True) for path in unseen]
                continue
        action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
        found.append(Garbage(layout.replaced, action, "replaced by a job that has committed"))
    return found


async def _is_there(run: JobRun, directory: str) -> bool:
    """Whether a directory that is listed exists. Where directories are not real, some services (versitygw, where it
    keeps versions) list the names of those in which all has been deleted."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return True
    return any([bool(page) async for page in run.store.list_tree(directory)])


async def _driver_may_wake(run: JobRun, job_id: str) -> bool:
    """Whether a list, beside which nothing waits, may be of a driver that is asleep, and that nothing keeps from
    setting files aside when it wakes: see `let_go_of_replaced`."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return False
    oldest = run.runtime.wall() - run.options.remember_seconds
    return any(kept.replaced.created > oldest for kept in await kept_lists(run, job_id, in_force=False))


async def _notes(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """Notes of jobs that committed, or were aborted, so long ago that nobody is left who could begin them again."""
    wall, age = run.runtime.wall(), run.options.remember_seconds
    notes = await list_all(run.store, FILE_LISTS)
    old = sorted(each.path for each in notes if each.path.endswith(tuple(_ENDS)) and wall - each.modified >= age)
    if not dry_run:
        await run.store.delete_files(old)
    action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
    return [
        Garbage(path, action, f"its job {how} longer ago than remember_seconds")
        for path in old
        for suffix, how in _ENDS.items()
        if path.endswith(suffix)
    ]


async def _markers(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """Markers of jobs that are over. A file that one names is never deleted by it."""
    found: list[Garbage] = []
    try:
        all_late = await late_markers(run)
    except StoreError as error:
        return [Garbage(TEMP, "failed", str(error))]
    for late in all_late:
        if late.problem:
            found.append(Garbage(late.directory, "kept", late.problem, needs_somebody=True))
        if late.files:
            why = (
                f"its job is not there, and these files are: {', '.join(late.files[:3])}"
                f"{f' and {len(late.files) - 3} more' if len(late.files) > 3 else ''}; they came too late, or somebody "
                "has deleted the job's directory: find out whether they count; then delete these markers, and the "
                "files if they do not"
            )
            found.append(Garbage(late.directory, "kept", why, needs_somebody=True))
        if late.needless and not dry_run:
            await delete_needless(run, late)
        action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
        found += [
            Garbage(path, action, "a marker of a job that is over, whose file is not there") for path in late.needless
        ]
    return found


async def _winners(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """Lists of winners whose files are all gone."""

    async def at_rest() -> bool:
        return not any(_may_list(state) for state in await _states(run))

    try:
        paths = await needless_lists(run, at_rest)
    except StoreError as error:
        return [Garbage(WINNERS, "failed", str(error))]
    if not dry_run:
        await run.store.delete_files(paths)
    action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
    return [Garbage(path, action, "none of the files that it lists is there any more") for path in paths]


async def _file_lists(run: JobRun, *, dry_run: bool) -> list[Garbage]:
    """Lists that `_SUCCESS` does not name: of commits since replaced.

    None goes while any job is in its commit, or died there: it may yet publish its own list, or bring back the
    `_SUCCESS` that it has set aside. So the lists are looked for first, then the jobs, then `_SUCCESS`: a job that ends
    meanwhile has published by then, or has deleted its list; and where there is no `_SUCCESS`, one that has begun
    meanwhile may have set it aside.
    """
    lists = await list_all(run.store, FILE_LISTS)
    lists = [status for status in lists if not is_aside(status.path) and not status.path.endswith(tuple(_ENDS))]
    if not lists or any(_may_list(state) for state in await _states(run)):
        return []
    try:
        summary = await read_summary(run, SUCCESS)
        if summary is None:
            return []
        kept = summary.lockgate.files.companion if summary.lockgate else ""
    except StoreError:
        return []
    except LockgateError:  # the empty `_SUCCESS` of another committer
        kept = ""
    found: list[Garbage] = []
    for status in lists:
        if status.path == kept or is_recent(run, status.modified):
            continue
        if not dry_run:
            await run.store.delete_files([status.path])
        found.append(Garbage(status.path, "would delete" if dry_run else "deleted", "no _SUCCESS names it"))
    return found

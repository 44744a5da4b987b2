"""The job commit's first act: the directory goes into the job's own, by one rename; Hive's begins with one, too.

From then on no attempt that still runs can add to it, and the commit goes on as `manifest` does, file by file, in a way
that can be taken back. Repeated, it does nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lockgate.engine.renames.roll_back import is_ours, undo_moves
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import CommitFailed, FileChanged, OutcomeUnknown
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.hive_output import (
    STAGING,
    adopted,
    at_work_beside,
    given_back,
    left_alone,
    taken_at_work,
    was_taken,
)
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone
from lockgate.model.urls import parent_of
from lockgate.protocols.hive.look import look
from lockgate.protocols.hive.place import Place, is_adopted, needed_place, place_of, read_note, write_note

TRIES = 3
TO_DELETE = "to-delete"
"""Stands in the note of an abort where a commit's names its choice."""


async def adopt(run: JobRun, *, if_there: bool = False) -> None:
    """Take the directory, unless that is done. `if_there`: that somebody else has taken it, and it is gone with what it
    held, is no failure.

    Raises:
        JobNotFound: it is nowhere.
        OptionError: it is outside of the destination, and `hive_directory` does not name it.
        CommitFailed: the store refuses the rename.
        OutcomeUnknown: nobody can tell yet what the rename did.
    """
    end = adopted(run.layout)
    with run.stage("adopt_directory"):
        for left in reversed(range(TRIES)):
            if await is_adopted(run):
                return
            async with place_of(run) as found:
                place = await needed_place(found, run)
                rename = Rename(place.path, place.at_destination(end))
                (outcome,) = await place.store.rename_directories([rename])
                url = str(place.url)
            if isinstance(outcome, Renamed):
                return
            if if_there and isinstance(outcome, NotRenamed) and outcome.reason is Refusal.SOURCE_MISSING:
                return
            if not left and not await is_adopted(run):
                if isinstance(outcome, NotRenamed):
                    raise CommitFailed(
                        f"the directory that Hive has left could not be renamed: {outcome}",
                        where=f"{url}\n{run.url(end)}",
                        next_step="mend what the store says of it, and give the command again",
                    )
                raise OutcomeUnknown(
                    f"cannot tell whether the directory that Hive has left was renamed: {outcome}",
                    where=f"{url}\n{run.url(end)}",
                    next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)} goes on",
                )


async def _give_back(run: JobRun) -> None:
    """Put the directory back where Hive has left it, and an empty one in its place, as above. Where a task has made it
    again, each file is put back into it by itself; one whose name is there again was written anew, and goes with the
    job."""
    end = adopted(run.layout)
    files = await _files_in(run, end)
    if not files:
        return
    async with place_of(run) as found:
        place = await needed_place(found, run)
        if await _put_back(run, place, end, place.path, files):
            await run.store.make_directories([end], within=run.layout.tasks)


async def give_back_at_work(run: JobRun) -> None:
    """Where Hive has its directory, or has got it back, it gets that beside it, too, which an abort that was killed had
    taken: the unfinished files in there say which attempts were cut short.

    Raises:
        OptionError: it is outside of the destination, and `hive_directory` does not name it.
    """
    taken = taken_at_work(run.layout)
    files = await _files_in(run, taken)
    if not files:
        return
    async with place_of(run) as place:
        if place is None:
            return
        (hives,) = await place.store.stat_files([place.path])
        beside = _beside(place.path)
        if hives is not None and beside is not None:
            await _put_back(run, place, taken, beside, files)


async def _files_in(run: JobRun, directory: str) -> list[FileStatus]:
    return [each async for page in run.store.list_tree(directory) for each in page if not each.is_directory]


async def _put_back(run: JobRun, place: Place, taken: str, back: str, files: Sequence[FileStatus]) -> bool:
    """Rename what was taken, with these files, back to a path at the place, whole where nothing is there; whether it
    went whole."""
    (outcome,) = await place.store.rename_directories([Rename(place.at_destination(taken), back)])
    (left,) = await run.store.stat_files([taken])
    if isinstance(outcome, Renamed) or left is None:
        return True
    ends = {each.path: f"{back}/{each.path[len(taken) + 1 :]}" for each in files}
    await place.store.make_directories(sorted({parent_of(path) for path in ends.values()}))
    await place.store.rename_files(
        [Rename(place.at_destination(each.path), ends[each.path], each.length, each.identity) for each in files]
    )
    return False


def _beside(directory: str) -> str | None:
    """Where tasks are at work, beside a directory of output; None: nowhere else."""
    above, _, name = directory.rpartition("/")
    beside = at_work_beside(name)
    return f"{above}/{beside}" if above and beside is not None else beside


async def take_to_delete(run: JobRun) -> None:
    """Take the directory, and the one beside it where tasks are at work, to where they go with the job's own. The
    staging directory above goes, if it is below the destination, and nothing else is in it.

    Raises:
        as `adopt`.
    """
    async with place_of(run) as found:
        place = await needed_place(found, run)
        beside = _beside(place.path)
        if beside is not None:
            if place.destination:
                # From here on nobody ends the job who does not know where to: what is in there may have to go back.
                await write_note(run, place, TO_DELETE, "", ())
            end = place.at_destination(taken_at_work(run.layout))
            await place.store.rename_directories([Rename(beside, end)])
        await adopt(run, if_there=True)
        if not place.destination:
            await _delete_if_empty(run, parent_of(place.path))


async def refuse_if_changed(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what was adopted is what was chosen: an attempt that still runs may have written on between the
    look at it and its rename. What was added then would be deleted with the rest. (Whether a file was changed, stores
    whose renames refuse a changed source find out by themselves; of one that is not there the rename tells.)

    Raises:
        FileChanged: it is not.
    """
    note = await read_note(run)
    left = await look(run, Place(run.store, adopted(run.layout), called="" if note is None else _name(note.directory)))
    known = Capability.PINNED_SOURCE not in run.store.capabilities
    there = {file.status.path: file.status for file in left.files()}
    wrong: list[str] = []
    for batch in plan.batches():
        pairs = [(entry, there.pop(entry.source, None)) for entry in batch]
        if known:
            wrong += [e.source for e, status in pairs if status is not None and not _is_as_chosen(run, e, status)]
    attempts = {pin.task_attempt_id for pin in plan.pins}
    tasks = {pin.task_id for pin in plan.pins}
    wrong += [
        file.status.path
        for task, found in left.tasks.items()
        for attempt, files in found.items()
        if task.task_id not in tasks or task.attempt_id(attempt) in attempts
        for file in files
        if file.status.path in there
    ]
    if wrong:
        raise FileChanged(
            f"{counted(len(wrong), 'file of the Hive job was', 'files of the Hive job were')} changed, or added, since "
            "the choice was made",
            where="\n".join(run.url(path) for path in sorted(wrong)[:5]),
            next_step="a task attempt has written on: see to it that the Hive job is over, and give the command again",
        )


def _name(directory: str) -> str:
    return directory.rstrip("/").rpartition("/")[2]


def _is_as_chosen(run: JobRun, entry: Entry, status: FileStatus) -> bool:
    known = bool(entry.identity and status.identity)
    return entry.length == status.length and (not known or run.store.same_identity(entry.identity, status.identity))


async def undo(run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
    """Undo what a driver did. Where it died before it took the directory, that stays Hive's, as it is: an empty one in
    its place keeps a driver that still lives from taking it, and until it is taken nothing else is touched. Where it
    has taken it, and moved nothing out of it, as where it has found it changed, Hive gets it back; else it goes with
    the job. Which of them it is, is written down before anything is done: afterwards the directory is missing in each.

    Raises:
        OptionError: the directory is to be given back, is outside of the destination, and `hive_directory` does not
            name it.
    """
    layout = run.layout
    marks = left_alone(layout), given_back(layout), was_taken(layout)
    said = [mark for mark, found in zip(marks, await run.store.stat_files(marks), strict=True) if found is not None]
    if not said:
        await run.store.make_directories([layout.tasks], within=layout.attempt_directory)
        (made,) = await run.store.make_directories([adopted(layout)], within=layout.tasks)
        never, back, taken = marks
        said = [never if made.state == "created" else back if await nothing_moved(run, plan) else taken]
        await run.store.write_file(said[0], b"")
    if said[0] == given_back(layout):
        await _give_back(run)
    if said[0] != was_taken(layout):
        await give_back_at_work(run)
    untouched = dataclasses.replace(plan, entries=[], pins=(), files=0, bytes=0)
    return await undo_moves(run, untouched if said[0] == left_alone(layout) else plan, record)


async def leave_alone(run: JobRun) -> None:
    """Of a job that is undone before its commit could take the directory: that stays Hive's, with the one beside it.

    Raises:
        OptionError: as `give_back_at_work`.
    """
    await give_back_at_work(run)
    await run.store.write_file(left_alone(run.layout), b"")


async def gave_back(run: JobRun) -> str:
    """The URL of the directory of a job that was undone, if Hive has all of it; else nothing."""
    has_it = await run.store.stat_files([left_alone(run.layout), given_back(run.layout)])
    note = await read_note(run) if any(has_it) else None
    if note is None:
        return ""
    return note.directory if "://" in note.directory else run.url(note.directory)


async def nothing_moved(run: JobRun, plan: CommitPlan) -> bool:
    """Whether none of the job's files stands where it is to be."""
    for batch in plan.batches(1_000):
        found = await run.store.stat_files([entry.target for entry in batch])
        if any(is_ours(run, entry, status) for entry, status in zip(batch, found, strict=True)):
            return False
    return True


async def release(run: JobRun) -> None:
    """After a commit: where tasks were at work goes, and the staging directory above if nothing else is in it; both
    only below the destination.

    Raises:
        StoreError: it cannot be deleted.
    """
    hives = await run.store.stat_files([left_alone(run.layout), given_back(run.layout)])
    note = await read_note(run)
    if any(hives) or note is None or "://" in note.directory or not await is_adopted(run):
        return
    if (beside := _beside(note.directory)) is not None:
        await delete_trees(run, [beside])
    await _delete_if_empty(run, parent_of(note.directory))


async def _delete_if_empty(run: JobRun, above: str) -> None:
    if _name(above).startswith(STAGING) and not await list_all(run.store, above):
        await run.store.delete_empty_directories([above])

"""The job commit's first act: the directory goes into the job's own, by one rename; Hive's begins with one, too.

From then on no attempt that still runs can add to it, and the commit goes on as `manifest` does, file by file, in a way
that can be taken back. Repeated, it does nothing.
"""

from __future__ import annotations

import dataclasses

from lockgate.engine.renames.roll_back import undo_moves
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, FileChanged, OutcomeUnknown
from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed
from lockgate.model.hive_output import STAGING, adopted, at_work_beside, left_alone
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.undone import Undone
from lockgate.protocols.hive.place import is_adopted, needed_place, place_of, read_note

TRIES = 3


async def adopt(run: JobRun) -> None:
    """Take the directory, unless that is done.

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


async def take_to_delete(run: JobRun) -> None:
    """Take the directory, and the one beside it where tasks are at work, to where they go with the job's own.

    Raises:
        as `adopt`.
    """
    async with place_of(run) as found:
        place = await needed_place(found, run)
        above, _, name = place.path.rpartition("/")
        beside = at_work_beside(name)
        if beside is not None:
            at_work = f"{above}/{beside}" if above else beside
            end = place.at_destination(run.layout.task_directory("at-work"))
            await place.store.rename_directories([Rename(at_work, end)])
    await adopt(run)


async def refuse_if_changed(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what was adopted is what was chosen: an attempt that still runs may have written on between the
    look at it and its rename. Stores whose renames refuse a changed source find out by themselves.

    Raises:
        FileChanged: it is not.
    """
    if Capability.PINNED_SOURCE in run.store.capabilities:
        return
    found: dict[str, FileStatus] = {}
    async for page in run.store.list_tree(adopted(run.layout)):
        found |= {status.path: status for status in page}
    for batch in plan.batches():
        wrong = [
            entry.source
            for entry in batch
            if (status := found.get(entry.source)) is not None
            and (entry.length != status.length or (status.identity and entry.identity not in ("", status.identity)))
        ]
        if wrong:
            raise FileChanged(
                f"{len(wrong)} files of the Hive job, or more, are not those that were chosen",
                where="\n".join(run.url(path) for path in wrong[:5]),
                next_step="a task attempt has written on: run the Hive job again",
            )


async def undo(run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
    """Undo what a driver did. Where it died before it took the directory, that stays Hive's, as it is: an empty one in
    its place keeps a driver that still lives from taking it, and until it is taken nothing else is touched."""
    layout = run.layout
    (alone,) = await run.store.stat_files([left_alone(layout)])
    if alone is None:
        await run.store.make_directories([layout.tasks], within=layout.attempt_directory)
        (made,) = await run.store.make_directories([adopted(layout)], within=layout.tasks)
        if made.state == "created":
            await run.store.write_file(left_alone(layout), b"")
            alone = FileStatus(left_alone(layout))
    untouched = dataclasses.replace(plan, entries=[], pins=(), files=0, bytes=0)
    return await undo_moves(run, plan if alone is None else untouched, record)


async def release(run: JobRun) -> None:
    """After a commit: where tasks were at work goes, and the staging directory above if nothing else is in it; both
    only below the destination.

    Raises:
        StoreError: it cannot be deleted.
    """
    (alone,) = await run.store.stat_files([left_alone(run.layout)])
    note = await read_note(run)
    if alone is not None or note is None or "://" in note.directory or not await is_adopted(run):
        return
    above, _, name = note.directory.rpartition("/")
    beside = at_work_beside(name)
    if beside is not None:
        await delete_trees(run, [f"{above}/{beside}" if above else beside])
    if above.rpartition("/")[2].startswith(STAGING) and not await list_all(run.store, above):
        await run.store.delete_empty_directories([above])

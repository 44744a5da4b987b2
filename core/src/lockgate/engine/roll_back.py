"""Rollback: the destination becomes what it was before the job commit.

The order is what makes it safe against a driver that still lives, or sleeps:
1. The record says `rolling-back`: a driver that looks stops.
2. The staged files and the waiting summary are deleted: a driver that does not look finds nothing to rename.
3. New files are taken out, each recognised by its identity, and moved, not deleted.
4. What was set aside comes back, `_SUCCESS` last, until `replaced/` is empty and deleted: from then on a driver that
   still sets files aside is refused, since the directory is gone. Where directories are not real, every file on the
   list is set aside first, so that all that come back have another version than the one that such a driver pins.
Every step can be repeated, by anybody, after a crash at any point.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lockgate.engine.job_run import JobRun
from lockgate.engine.rename_files import RETRY_SECONDS, TRIES, rename_all
from lockgate.engine.store import no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed
from lockgate.model.files import FileStatus, Rename, Renamed
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord, SetAside
from lockgate.model.urls import ancestors_of

ROUNDS = 16
"""How often `replaced/` is emptied against somebody who fills it."""


async def undo_moves(run: JobRun, plan: CommitPlan, record: CommitRecord) -> None:
    """Undo what `move_files` did. The record is in phase `rolling-back`.

    Raises:
        CommitFailed: a set-aside file cannot come back, since another writer has taken its place; it is kept.
    """
    with run.stage("roll_back"):
        await delete_sources(run, record)
        await _take_out(run, plan)
        # A directory that was made may stand where a file that was set aside must come back.
        made = sorted(record.made_directories, key=lambda path: (-path.count("/"), path))
        await run.store.delete_empty_directories(made)
        if Capability.REAL_DIRECTORIES not in run.store.capabilities:
            # `_SUCCESS` by itself and first, as when it was set aside.
            await _renew_versions(run, [aside for aside in plan.set_aside if aside.path == SUCCESS])
            await _renew_versions(run, [aside for aside in plan.set_aside if aside.path != SUCCESS])
        await _bring_back(run)
        # Only now nobody can set anything aside any more that it lists.
        await _bring_back_summary(run)
        await run.store.delete_files([run.layout.file_list])


async def delete_sources(run: JobRun, record: CommitRecord) -> None:
    """Delete everything that a driver of this job could still rename into the destination."""
    if record.summary_nonce:
        await run.store.delete_files([run.layout.summary_temporary(record.summary_nonce)])
    await run.store.delete_directories([run.layout.tasks])


async def _take_out(run: JobRun, plan: CommitPlan) -> None:
    """Move the job's files out of the destination, into the job's own directory.

    Not deleted by name: a recoverer that slept through the end of its job, between its look and its deletion, would
    delete what another job has put there since. A rename is refused, since the directory is gone or the source has
    another version; and where neither is so, another job's file is found out and brought back.
    """
    if not plan.files:
        return
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([run.layout.withdrawn], within=run.layout.attempt_directory)
    progress = run.progress(plan.files)
    start = 0
    for batch in plan.batches(1_000):
        await _withdraw(run, start, batch)
        await _return_what_is_not_ours(run, start, batch)
        progress(len(batch))
        start += len(batch)


async def _withdraw(run: JobRun, start: int, batch: Sequence[Entry]) -> None:
    for attempt in range(TRIES):
        found = await run.store.stat_files([entry.target for entry in batch])
        ours = [
            Rename(entry.target, run.layout.withdrawn_file(start + index), status.length, status.identity)
            for index, (entry, status) in enumerate(zip(batch, found, strict=True))
            if status is not None and _is_ours(run, entry, status)
        ]
        if not ours:
            return
        if attempt:
            await asyncio.sleep(RETRY_SECONDS * 2**attempt * (0.5 + run.runtime.random.random()))
        outcomes = await run.store.rename_files(ours)
        run.count("files_taken_out", sum(isinstance(outcome, Renamed) for outcome in outcomes))
    raise CommitFailed(f"a file could not be taken out: {outcomes[0]}", where=run.url(ours[0].source))


async def _return_what_is_not_ours(run: JobRun, start: int, batch: Sequence[Entry]) -> None:
    found = await run.store.stat_files([run.layout.withdrawn_file(start + index) for index in range(len(batch))])
    others = [
        Rename(status.path, entry.target, status.length, status.identity)
        for entry, status in zip(batch, found, strict=True)
        if status is not None and not _is_ours(run, entry, status)
    ]
    if others:
        await rename_all(run, others, no_progress)


def _is_ours(run: JobRun, entry: Entry, status: FileStatus) -> bool:
    if entry.identity:
        return run.store.same_identity(entry.identity, status.identity)
    # A manifest of Hadoop's on a store without etags says no more than the length.
    return not status.is_directory and entry.length == status.length


async def _renew_versions(run: JobRun, waiting: Sequence[SetAside]) -> None:
    for _ in range(TRIES):
        if not waiting:
            return
        renames = [Rename(a.path, run.layout.set_aside(a.path), a.length, a.identity) for a in waiting]
        await run.store.rename_files(renames)
        found = await run.store.stat_files([aside.path for aside in waiting])
        waiting = [
            aside
            for aside, status in zip(waiting, found, strict=True)
            if status is not None and status.identity == aside.identity
        ]
    if waiting:
        raise CommitFailed("a file that was to be replaced cannot be renamed", where=run.url(waiting[0].path))


async def _bring_back(run: JobRun) -> None:
    replaced = run.layout.replaced
    for _ in range(ROUNDS):
        waiting: list[FileStatus] = []
        async for page in run.store.list_tree(replaced):
            waiting += page
        renames = [
            Rename(status.path, status.path[len(replaced) + 1 :], status.length, status.identity)
            for status in sorted(waiting, key=lambda status: status.path)
            if status.path != run.layout.set_aside(SUCCESS)
        ]
        if renames:
            parents = sorted({rename.target.rpartition("/")[0] for rename in renames} - {""})
            await run.store.make_directories(parents)
            await rename_all(run, renames, no_progress)
            run.count("files_brought_back", len(renames))
        if len(renames) < len(waiting):
            await run.store.rename_files([Rename(run.layout.set_aside(SUCCESS), run.layout.summary_returning)])
        if await _remove_empty(run, [rename.source for rename in renames]):
            return
    raise CommitFailed(
        "the replaced files keep being set aside by somebody else",
        where=run.url(replaced),
        next_step=f"stop the driver that is still at work, then lockgate recover {run.store.url} {run.layout.job_id}",
    )


async def _bring_back_summary(run: JobRun) -> None:
    """Bring the old `_SUCCESS` back, after the data that it lists; if a job on other partitions has published its
    own by now, the old one is what that job has replaced."""
    aside = run.layout.summary_returning
    for _ in range(TRIES):
        waiting, published = await run.store.stat_files([aside, SUCCESS])
        if waiting is None:
            return
        if published is not None:
            await run.store.delete_files([aside])
            return
        await run.store.rename_files([Rename(aside, SUCCESS)])
        await asyncio.sleep(RETRY_SECONDS)
    raise CommitFailed(f"the old {SUCCESS} does not come back", where=run.url(aside))


async def _remove_empty(run: JobRun, sources: list[str]) -> bool:
    """Delete `replaced/` if nothing is in it; a directory is only ever deleted while empty, as one act."""
    replaced = run.layout.replaced
    directories = {replaced}
    for source in sources:
        directories.update(path for path in ancestors_of(source) if path.startswith(replaced + "/"))
    pending = [replaced]
    while pending:
        path = pending.pop()
        async for page in run.store.list_directory(path):
            for status in page:
                if not status.is_directory:
                    return False
                directories.add(status.path)
                pending.append(status.path)
    deepest_first = sorted(directories, key=lambda path: (-path.count("/"), path))
    return all(await run.store.delete_empty_directories(deepest_first))

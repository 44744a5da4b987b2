"""The stages between the plan and the summary: what is replaced goes aside, directories are made, files move.

Every one of them can be repeated from the start after a crash: a rename that has taken place is found out by
identity, a directory that exists is no failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lockgate.engine.job_run import JobRun
from lockgate.engine.rename_files import RETRY_SECONDS, TRIES, rename_all
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed, FileChanged
from lockgate.model.files import FileStatus, Rename, Renamed
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.record import SetAside
from lockgate.model.urls import parent_of


async def move_files(run: JobRun, plan: CommitPlan) -> None:
    """Bring the destination to its new state, all but `_SUCCESS`, in the order that the options ask for.

    An old `_SUCCESS` is set aside before anything else, and files that stand where a directory must be next, in
    either order.
    """
    for aside in plan.set_aside:
        if aside.path == SUCCESS:
            await _set_aside_summary(run, aside)
    blocking, replaced = _split(plan)
    await _set_aside(run, blocking)
    if run.options.replace_order == "old-first":
        await _set_aside(run, replaced)
        await _make_directories(run, plan)
        await _rename_files(run, plan)
    else:
        # A target of the same name can only be one file: what it replaces has to go before it comes.
        same = plan.writes_any_of(aside.path for aside in replaced)
        await _set_aside(run, [aside for aside in replaced if aside.path in same])
        await _make_directories(run, plan)
        await _rename_files(run, plan)
        await _set_aside(run, [aside for aside in replaced if aside.path not in same])
    if run.options.validate_output:
        await _validate(run, plan)


def _split(plan: CommitPlan) -> tuple[list[SetAside], list[SetAside]]:
    needed = set(plan.directories)
    data = [aside for aside in plan.set_aside if aside.path != SUCCESS]
    blocking = [aside for aside in data if aside.path in needed]
    return blocking, [aside for aside in data if aside.path not in needed]


async def _set_aside_summary(run: JobRun, aside: SetAside) -> None:
    """Set the old `_SUCCESS` aside, if it is still the one that was there when the plan was made.

    It goes first and by itself: a reader that looks for it must never find it over half-replaced data. Where it is
    another by now, or none, a job on other partitions has published its own, or has set this one aside: neither
    lists anything that this job replaces.
    """
    with run.stage("set_aside"):
        layout = run.layout
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([layout.replaced], within=layout.replaced)
        rename = Rename(SUCCESS, layout.set_aside(SUCCESS), aside.length, aside.identity)
        for attempt in range(TRIES):
            (found,) = await run.store.stat_files([SUCCESS])
            if found is None or not run.store.same_identity(aside.identity, found.identity):
                return
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt * (0.5 + run.runtime.random.random()))
            (outcome,) = await run.store.rename_files([rename])
            if isinstance(outcome, Renamed):
                return
        raise CommitFailed(
            f"the old {SUCCESS} could not be set aside: {outcome}",
            where=run.url(SUCCESS),
            next_step="another job may have moved it meanwhile; run the job again",
        )


async def _set_aside(run: JobRun, files: Sequence[SetAside]) -> None:
    if not files:
        return
    with run.stage("set_aside"):
        layout = run.layout
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            parents = sorted({parent_of(layout.set_aside(aside.path)) for aside in files})
            # `replaced/` itself was made before the first move and is deleted, empty, by a rollback: a driver that
            # slept through the rollback of its job must not bring it back.
            await run.store.make_directories(parents, within=layout.replaced)
        renames = [Rename(a.path, layout.set_aside(a.path), a.length, a.identity) for a in files]
        progress = run.progress(len(renames))
        for start in range(0, len(renames), 10_000):
            await rename_all(run, renames[start : start + 10_000], progress)
        run.count("files_set_aside", len(files))


async def _make_directories(run: JobRun, plan: CommitPlan) -> None:
    if not plan.missing_directories:
        return
    with run.stage("create_directories"):
        missing = set(plan.missing_directories)
        # Making a leaf makes what is above it: each is asked for once, and no parent by itself.
        above = {parent_of(path) for path in missing}
        leaves = [path for path in plan.missing_directories if path not in above]
        for path, outcome in zip(leaves, await run.store.make_directories(leaves), strict=True):
            if outcome.state == "blocked":
                raise CommitFailed(
                    "a file stands where a directory must be, and came after the commit was planned",
                    where=run.url(outcome.blocked or path),
                    next_step="another writer is at work on this destination; remove its file, or recover the job",
                )
        run.count("op_mkdirs", len(leaves))


async def _rename_files(run: JobRun, plan: CommitPlan) -> None:
    with run.stage("rename_files"):
        progress = run.progress(plan.files)
        for batch in plan.batches():
            await rename_all(run, [Rename(e.source, e.target, e.length, e.identity) for e in batch], progress)
        run.count("committer_files_committed", plan.files)
        run.count("committer_bytes_committed", plan.bytes)


async def _validate(run: JobRun, plan: CommitPlan) -> None:
    """Hadoop's optional validation, but before the commit point: a mismatch is still undone."""
    with run.stage("validate_output"):
        progress = run.progress(plan.files)
        for batch in plan.batches(1_000):
            found = await run.store.stat_files([entry.target for entry in batch])
            for entry, status in zip(batch, found, strict=True):
                mismatch = run.hooks.validate_file(run.store, _expected(entry), status)
                if mismatch is not None:
                    raise FileChanged(
                        "a committed file is not what its task wrote",
                        where=f"{run.url(mismatch.path)}\nexpected  {mismatch.expected}\nfound     {mismatch.found}",
                        next_step="another writer is at work on this destination",
                    )
            progress(len(batch))


def _expected(entry: Entry) -> FileStatus:
    return FileStatus(entry.target, entry.length, entry.identity)

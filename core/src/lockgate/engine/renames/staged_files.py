"""Whether every staged file is there, asked before the record says that they are being moved.

Where two files can have one identity (on Cloud Storage it is the content; in Hadoop's manifests on a store without
etags the length), a staged file that is gone counts as renamed if its target has that identity. That is true only if it
was there when the moving began: one that an abort, or another program, had deleted by then would make an older file of
the same content this job's, for a rollback to take out. Where identities are unique nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import PathError, StoreError
from lockgate.model.hashes import PathHashes, may_hold
from lockgate.model.layout import working_directory_of
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan


def is_unique(run: JobRun, entry: Entry) -> bool:
    """Whether no other file that is there can have this one's identity."""
    return bool(entry.identity) and Capability.UNIQUE_IDENTITY in run.store.capabilities


async def missing_sources(run: JobRun, entries: Sequence[Entry]) -> set[str]:
    """The staged files that are not there. A request a page of a task attempt's working directory, not one a file.

    Raises:
        StoreError: the store cannot say.
    """
    by_directory: dict[str, set[str]] = {}
    for entry in entries:
        by_directory.setdefault(working_directory_of(entry.source), set()).add(entry.source)
    directories = sorted(by_directory)
    at_once = run.options.files_read_at_once
    for start in range(0, len(directories), at_once):
        some = directories[start : start + at_once]
        await together(_strike_out_listed(run, directory, by_directory[directory]) for directory in some)
    unseen = [source for sources in by_directory.values() for source in sorted(sources)]
    # What a listing does not show is asked for by its name, and so is a file that is alone.
    found = await run.store.stat_files(unseen) if unseen else []
    return {source for source, status in zip(unseen, found, strict=True) if status is None or status.is_directory}


async def _strike_out_listed(run: JobRun, directory: str, sources: set[str]) -> None:
    if len(sources) == 1:
        return
    async for page in run.store.list_tree(directory):
        sources.difference_update(status.path for status in page)
        if not sources:
            return


async def any_staged(run: JobRun, plan: CommitPlan) -> bool:
    """Whether some of the plan's files surely have not been renamed yet."""
    for batch in plan.batches(1_000):
        if any(await run.store.stat_files([entry.source for entry in batch])):
            return True
    return False


async def any_still_listed(run: JobRun, plan: CommitPlan) -> bool:
    """The same, once they should all have been renamed: a listing of what is staged tells, which is then short. Eight
    bytes are held of each file that it shows."""
    shown = PathHashes()
    try:
        for job_attempt in sorted({pin.job_attempt for pin in plan.pins}):
            async for page in run.store.list_tree(run.layout.at_attempt(job_attempt).tasks):
                for status in page:
                    shown.add(status.path)
    except (PathError, StoreError):  # such as one that changes too fast, where an attempt is late and writes on
        return await any_staged(run, plan)
    hashes = shown.in_order()
    if not hashes:
        return False
    for batch in plan.batches():
        suspects = [entry.source for entry in batch if may_hold(hashes, entry.source)]
        if suspects and any(await run.store.stat_files(suspects)):
            return True
    return False


async def count_listed(run: JobRun, plan: CommitPlan) -> int:
    """How many files a listing shows where the plan's are staged, others among them.

    Raises:
        StoreError, PathError: they cannot be listed.
    """
    count = 0
    for job_attempt in sorted({pin.job_attempt for pin in plan.pins}):
        async for page in run.store.list_tree(run.layout.at_attempt(job_attempt).tasks):
            count += sum(not status.is_directory for status in page)
    return count


async def any_moved(run: JobRun, plan: CommitPlan) -> bool:
    """Whether some of them surely have. Only files that no other can be taken for show it: where identities are not
    unique, a staged file may be gone for another reason, and what stands at its target be another's, to be left
    alone."""
    for batch in plan.batches(1_000):
        missing = await missing_sources(run, [entry for entry in batch if is_unique(run, entry)])
        gone = [entry for entry in batch if entry.source in missing]
        targets = await run.store.stat_files([entry.target for entry in gone])
        if any(
            target is not None and run.store.same_identity(entry.identity, target.identity)
            for entry, target in zip(gone, targets, strict=True)
        ):
            return True
    return False

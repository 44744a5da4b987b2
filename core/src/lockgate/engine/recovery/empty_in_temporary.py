"""Empty directories below `_temporary`, which jobs by `v1` and `v2` leave there, and other programs' jobs make first.

A job of Hadoop's is set up by making `_temporary/N`. Until its first task has begun, and for ever where its tasks
write nothing, that is empty, and the job fails where somebody deletes it. So it is deleted only once it has stood still
for as long as a job of which nothing is known must be silent. What that cannot tell: making a directory that is there
changes nothing, so a job of Hadoop's that is set up in an old one shows nothing either.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from lockgate.engine.record.signs_of_life import SILENCE, why_at_work
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.layout import TEMPORARY


async def collect_empty_in_temporary(run: JobRun, shown: Container[str], *, dry_run: bool) -> list[Garbage]:
    """Delete those that have stood still, and `_temporary` if it has, too, and is empty then. Of others those are told
    that are `shown` as a job that nobody knows.

    Raises:
        StoreError: the store cannot be asked, or does not delete one.
    """
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return []
    (above,) = await run.store.stat_files([TEMPORARY])
    if above is None or not above.is_directory:
        return []
    found: list[Garbage] = []
    action: Literal["deleted", "would delete"] = "would delete" if dry_run else "deleted"
    entries = await list_all(run.store, TEMPORARY)
    for status in entries:
        trees = await _if_empty(run, status) if status.is_directory else None
        if trees is None:
            continue
        if not all(_stands_still(run, each) for each in trees):
            if status.path in shown:
                why = (
                    "empty, and nothing says which job made it; one of Hadoop's that has been set up needs it: "
                    f"deleted once it has stood still for {SILENCE * run.options.alive_seconds:.0f} s"
                )
                found.append(Garbage(status.path, "kept", why))
            continue
        if dry_run or all(await run.store.delete_empty_directories([each.path for each in trees])):
            found.append(Garbage(status.path, action, "empty, and has stood still: no job is at work there"))
    if not dry_run and len(found) == len(entries) and _stands_still(run, above):
        await run.store.delete_empty_directories([TEMPORARY])
    return found


async def _if_empty(run: JobRun, directory: FileStatus) -> list[FileStatus] | None:
    """The directory, after the one in it in which task attempts work, if there is nothing else in either."""
    inside = await list_all(run.store, directory.path)
    if not inside:
        return [directory]
    (first, *others) = inside
    if others or not first.is_directory or first.path != f"{directory.path}/{TEMPORARY}":
        return None
    return None if await list_all(run.store, first.path) else [first, directory]


def _stands_still(run: JobRun, directory: FileStatus) -> bool:
    return directory.modified > 0 and not why_at_work(run, None, directory.modified)

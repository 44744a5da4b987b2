"""Files beside those of the table that a store was writing, to rename them into place, when its process was killed.

A protocol whose task attempts write where files stay (`direct`, `stocator`, `markers`) leaves such a one in the table,
on a store that writes files beside their places. Its name says that Lockgate made it, and nothing more. So it is
nobody's by the two things that make an upload so: it is old, and no job is known, here or at a destination above or
below, that is not over and may have begun it. A task attempt whose job is over cannot finish it: where it is deleted
under a late one, that one's rename fails, and what it would have added counts for nobody.
"""

from __future__ import annotations

from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.record.signs_of_life import is_recent
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.orphan_uploads import why_kept
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import AccessDenied
from lockgate.model.files import FileStatus
from lockgate.model.layout import is_unfinished

WHY = "never finished: the process that wrote it was killed, and no job that is not over can have been its"


async def collect_unfinished(run: JobRun, *, dry_run: bool = False) -> list[Garbage]:
    """Delete those that are older than `alive_seconds` and nobody's; say of each other one why it is kept. By a listing
    of the destination, where the store may leave such files.

    Raises:
        StoreError: the destination cannot be listed.
    """
    if not run.store.writes_beside:
        return []
    found: list[FileStatus] = []
    try:
        async for page in list_visible(run, hidden=True):
            found += [each for each in page if is_unfinished(each.path) and not is_recent(run, each.modified)]
    except AccessDenied as error:
        return [Garbage("", "failed", f"files that were never finished cannot be looked for: {error}")]
    # What was listed before: a job that begins meanwhile has written none of these.
    keeps = await why_kept(run, [(each.path, each.modified) for each in found])
    garbage = [each.path for each, keep in zip(found, keeps, strict=True) if not keep]
    if garbage and not dry_run:
        await run.store.delete_files(garbage)
    return [
        Garbage(each.path, "kept", keep) if keep else Garbage(each.path, "would delete" if dry_run else "deleted", WHY)
        for each, keep in zip(found, keeps, strict=True)
    ]

"""Uploads that wait to be completed, for people: seen, and given up."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lockgate.api.destination import looking_run, refuse_file
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.location import Location
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.recovery.orphan_uploads import PendingUpload, judge_uploads, pending_uploads
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import CapabilityMissing, UsageError
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload


def uploads(url: Location, options: JobOptions | None = None) -> list[BegunUpload]:
    """Every upload below a destination that waits to be completed, anybody's, the oldest first.

    Raises:
        CapabilityMissing: on this store no upload waits, or those that do cannot be listed.
    """

    async def work() -> list[BegunUpload]:
        return await pending_uploads(await _run(url, options))

    return IO_LOOP.run(work())


def abort_uploads(
    url: Location,
    paths: Sequence[str] = (),
    *,
    older_than: float | None = None,
    force: bool = False,
    dry_run: bool = False,
    options: JobOptions | None = None,
) -> list[PendingUpload]:
    """Give uploads up, so that nobody can complete them: those of these paths below the destination, or all, if they
    were begun `older_than` so many seconds ago. What a job may still complete is kept, and `keep` says why; `force`
    gives up that as well, but for what is too young.

    Raises:
        CapabilityMissing: on this store no upload waits, or those that do cannot be listed.
        UsageError: neither paths nor an age are given; or there is no upload of such a path.
    """
    if not paths and older_than is None:
        raise UsageError(
            "neither paths nor an age are given",
            where=str(url),
            next_step="give paths, as lockgate uploads list shows them, or an age, such as --older-than 7d",
        )

    async def work() -> list[PendingUpload]:
        run = await _run(url, options)
        waiting = await pending_uploads(run)
        if older_than is not None:
            run = await by_the_stores_clock(run)
        if unknown := sorted(set(paths) - {each.path for each in waiting}):
            raise UsageError(
                f"there is no upload of {unknown[0]!r} that waits",
                where=run.url(unknown[0]),
                next_step="lockgate uploads list shows those that there are, by their paths below the destination",
            )
        age = older_than or 0.0
        chosen = [each for each in waiting if not paths or each.path in paths]
        chosen = [each for each in chosen if run.runtime.wall() - each.begun >= age]
        judged = [PendingUpload(each) for each in chosen] if force else await judge_uploads(run, chosen)
        if not dry_run:
            await run.store.abort_uploads([each.upload for each in judged if not each.keep])
        return judged

    return IO_LOOP.run(work())


async def _run(url: Location, options: JobOptions | None) -> JobRun:
    run = looking_run(url, JobOptions.resolve(environment=os.environ) if options is None else options)
    await refuse_file(run)
    if Capability.DEFERRED_UPLOAD not in run.store.capabilities:
        raise CapabilityMissing(
            "no upload waits on this store: each file is there as soon as it is written",
            where=str(run.store.url),
            next_step="nothing is to be done; lockgate gc deletes what jobs have left",
        )
    if Capability.LISTED_UPLOADS not in run.store.capabilities:
        expire = run.store.uploads_expire_seconds
        rest = f"; what nobody completes, the store ends {expire / 86400:g} days after it was begun" if expire else ""
        raise CapabilityMissing(
            "uploads that wait cannot be listed on this store, and so none is given up by its path or its age",
            where=str(run.store.url),
            next_step=f"{command('jobs', run.store.url)} shows jobs that are not over: to abort or recover one, or "
            f"{command('gc', run.store.url)}, gives up the uploads that it has noted{rest}",
        )
    return run

"""Files that a job has set aside, without the list that says where they belong.

A committed job deletes the list first, and then the files: what a cleanup that was cut short has left is garbage. But
somebody may have deleted the list of a job that has not committed, and a driver whose record was lost may wake up after
its job was ended. So they are garbage only where it is known that the job has committed.
"""

from __future__ import annotations

import dataclasses

from lockgate.engine.record.ended_jobs import has_ended
from lockgate.engine.record.replaced_lists import kept_lists
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.layout import TRANSACTIONS, JobLayout, is_outcome, ordinal_in
from lockgate.model.summary import decode_summary

UNLISTED = (
    "a job has set these files aside, the list that says where they belong is gone, and nobody knows that the job has "
    "committed: look at them, put them back or delete them"
)
"""Why they are kept."""


async def waits_unlisted(run: JobRun, layout: JobLayout) -> bool:
    """Whether a job, of which no list is in force, has files set aside."""
    async for page in run.store.list_tree(layout.replaced):
        if any(ordinal_in(status.path) is not None for status in page):
            return True
    return False


async def is_known_to_have_committed(run: JobRun, layout: JobLayout) -> bool:
    """Whether a job without a record is known to have committed: by its note, by `_SUCCESS`, or by the outcome of a
    transaction, of whose id nothing else is left."""
    if await has_ended(dataclasses.replace(run, layout=layout)):
        return True
    async for page in run.store.list_directory(TRANSACTIONS):
        paths = [status.path for status in page if is_outcome(status.path)]
        for start in range(0, len(paths), run.options.requests_in_flight):
            some = paths[start : start + run.options.requests_in_flight]
            for path, content in zip(some, await run.store.read_files(some, bytes_max=SUMMARY_BYTES_MAX), strict=True):
                if content is not None and decode_summary(content, name=run.url(path)).job_id == layout.job_id:
                    return True
    return False


async def driver_may_wake(run: JobRun, job_id: str) -> bool:
    """Whether a list, beside which nothing waits, may be of a driver that is asleep, and that nothing keeps from
    setting files aside when it wakes: see `let_go_of_replaced`."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return False
    oldest = run.runtime.wall() - run.options.remember_seconds
    return any(kept.replaced.created > oldest for kept in await kept_lists(run, job_id, in_force=False))

"""Lists of winners that no visible file needs: those of jobs of `stocator` whose files are all gone.

A file of `stocator` counts for readers if a list names it. So a list goes only if none of its files is there, and none
can come back: no job may be in its commit, or have died there, nor may anything be set aside, be it by a job of a
destination above this one, or inside it. Files and jobs are each
looked at twice, in turns: files that one job has set aside at the first look, and another at the second, are found out
by the look at the jobs after that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lockgate.engine.record.nested import nested_with_replaced
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files
from lockgate.engine.record.signs_of_life import is_recent
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import LockgateError, StoreError
from lockgate.model.layout import WINNERS, is_aside
from lockgate.model.spooled import windows
from lockgate.model.summary import decode_lines

AT_ONCE = 100
"""So many files of a list are asked for by one call: most lists are needed, which the first call tells."""


async def needless_lists(run: JobRun, jobs_are_at_rest: Callable[[], Awaitable[bool]]) -> list[str]:
    """The paths of the lists that may go. `jobs_are_at_rest` says whether no job is in its commit, or died there.

    Raises:
        StoreError: the store does not answer.
    """
    found = [each for each in await list_all(run.store, WINNERS) if not each.is_directory and not is_aside(each.path)]
    paths = sorted(each.path for each in found if not is_recent(run, each.modified))
    for _ in range(2):
        needless = {path: names for path in paths if (names := await _names_if_needless(run, path)) is not None}
        paths = list(needless)
        if not paths or await jobs_with_replaced_files(run) or not await jobs_are_at_rest():
            return []
        async with nested_with_replaced(run, [each for names in needless.values() for each in names]) as others:
            if others:
                return []
    return paths


async def _names_if_needless(run: JobRun, path: str) -> list[str] | None:
    """What this list names, if none of that is there; None: some is, or the list cannot be read, so that nobody
    knows."""
    (content,) = await run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX)
    if content is None:
        return None
    try:
        listed = [file.path for file in decode_lines(content, name=run.url(path))]
    except StoreError:
        raise
    except LockgateError:
        return None
    for some in windows(listed, AT_ONCE):
        if any(status is not None for status in await run.store.stat_files(some)):
            return None
    return listed

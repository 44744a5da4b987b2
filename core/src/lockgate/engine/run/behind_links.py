"""Paths that other programs name, or that an attempt was refused at: one of them may be behind a symbolic link, which a
store with real directories refuses to look behind."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import AccessDenied
from lockgate.model.files import FileStatus


async def look_in_front_of_links(run: JobRun, paths: Sequence[str]) -> list[FileStatus]:
    """What is there of these paths, those behind a symbolic link left out: nothing of a job is behind one.

    Raises:
        StoreError: the store does not answer.
    """
    try:
        found = await run.store.stat_files(paths)
    except AccessDenied:
        found = await run.store.stat_files(await _not_behind_links(run, paths))
    return [status for status in found if status is not None]


async def _not_behind_links(run: JobRun, paths: Sequence[str]) -> list[str]:
    above = sorted({parent for path in paths for parent in _directories_above(path)}, key=lambda path: path.count("/"))
    links: set[str] = set()
    for directory in above:
        if links.isdisjoint(_directories_above(directory)):
            (there,) = await run.store.stat_files([directory])
            links |= {directory} if there is not None and there.is_link else set()
    return [path for path in paths if links.isdisjoint(_directories_above(path))]


def _directories_above(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names))]

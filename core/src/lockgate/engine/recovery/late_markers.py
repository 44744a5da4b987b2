"""Markers of Hudi's whose job is over: what a task attempt of `markers` made that came too late, where directories are
not real; or what is left of a job whose directory somebody has deleted.

Nobody can tell the two apart, since what tells which files are the job's is gone with its directory. In the second case
a file that a marker names may be a committed one. So a file is never deleted by such a marker: it is named, for
somebody to decide. A marker whose file is not there says nothing more, and goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.engine.record.signs_of_life import is_recent
from lockgate.engine.run.behind_links import look_in_front_of_links
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import NUMBERED_BYTES_MAX, TABLE, TEMP, MarkerLayout, parse_marker, parse_markers
from lockgate.model.layout import JobLayout, is_aside
from lockgate.model.spooled import windows
from lockgate.model.urls import parent_of

PROPERTIES = f"{TABLE}/hoodie.properties"
"""What makes a Hudi table: its markers are Hudi's own."""


@dataclass(frozen=True)
class LateMarkers:
    """The markers of one job that is over: the paths of those `needless`, whose files are not there, and the `files`
    that the others name. `problem`: what cannot be read as a marker, and keeps all of it."""

    directory: str
    needless: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    problem: str = ""


async def late_markers(run: JobRun) -> list[LateMarkers]:
    """Those of every job that is not there, but for what was made a short while ago.

    Raises:
        StoreError: the store does not answer.
    """
    directories = [each.path for each in await list_all(run.store, TEMP) if each.is_directory]
    directories = [path for path in directories if not is_aside(path)]
    if not directories or (await run.store.stat_files([PROPERTIES]))[0] is not None:
        return []
    found = [await _of_job(run, MarkerLayout(path.rpartition("/")[2])) for path in sorted(directories)]
    return [each for each in found if each is not None]


async def delete_needless(run: JobRun, late: LateMarkers) -> None:
    """Delete the markers that say nothing more, and the directories above that are empty then."""
    await run.store.delete_files(late.needless)
    above = {late.directory}
    for path in late.needless:
        while (path := parent_of(path)) != late.directory:
            above.add(path)
    await run.store.delete_empty_directories(sorted(above, key=lambda each: (-each.count("/"), each)))


async def _of_job(run: JobRun, layout: MarkerLayout) -> LateMarkers | None:
    # The markers first: a job that has any then has its directory already.
    seen = [each async for page in run.store.list_tree(layout.directory) for each in page if not each.is_directory]
    if await list_all(run.store, JobLayout(layout.job_id).job_directory):
        return None
    seen = [each for each in seen if not is_recent(run, each.modified)]
    try:
        named = await _named(run, layout, [each.path for each in seen])
    except StoreError:
        raise
    except LockgateError as error:
        return LateMarkers(layout.directory, problem=error.what)
    there: dict[str, FileStatus] = {}
    for some in windows(sorted(set[str]().union(*named.values())), 1_000):
        there |= {status.path: status for status in await look_in_front_of_links(run, some)}
    needless = {path for path, files in named.items() if there.keys().isdisjoint(files)}
    if any(layout.number_of(path) is not None for path in named.keys() - needless):
        needless.discard(layout.type_file)  # by it Hudi reads the others
    return LateMarkers(layout.directory, tuple(sorted(needless)), tuple(sorted(there))) if named else None


async def _named(run: JobRun, layout: MarkerLayout, paths: Sequence[str]) -> dict[str, set[str]]:
    """What each of these files names: a direct marker one file, a timeline server's many, that of their type none.

    Raises:
        ManifestInvalid: one is no marker.
        StoreError: the store does not answer.
    """
    many = [path for path in paths if layout.number_of(path) is not None]
    named: dict[str, set[str]] = {}
    for some in windows(many, run.options.files_read_at_once):
        contents = await run.store.read_files(some, bytes_max=NUMBERED_BYTES_MAX)
        for path, content in zip(some, contents, strict=True):
            named[path] = {marker.path for marker in parse_markers(content or b"", where=run.url(path))}
    for path in paths:
        if path == layout.type_file:
            named[path] = set()
        elif path not in named:
            named[path] = {parse_marker(layout.name_in(path), where=run.url(path), is_file=True).path}
    return named

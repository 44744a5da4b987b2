"""The markers of a job, found, and believed or refused, before anything is done by them.

Direct markers and files of many are read alike, whichever the job was to make: a job whose timeline server could not be
started has direct ones, and Hudi's clients may have made others beside. Directories are listed side by side.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.record.marker import read_marker_of, refuse_if_set_up_again
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.model.errors import LockgateError, ManifestInvalid, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import has_checksum_name
from lockgate.model.hudi_markers import (
    NUMBERED_BYTES_MAX,
    TABLE,
    Marker,
    MarkerLayout,
    Operation,
    completed,
    cut_line,
    cut_short,
    parse_marker,
    parse_markers,
    tagged_by,
)
from lockgate.model.layout import is_unfinished
from lockgate.model.spooled import windows

NAMED_MAX = 20
"""So many lines an error names that somebody has to write."""

LOOKED_AT_ONCE = 1_000

DIRECTORIES_AT_ONCE = 32
"""So many directories of direct markers are listed side by side (Hudi: `hoodie.markers.delete.parallelism`, 100)."""


def is_beside(path: str) -> bool:
    """Whether this is no marker, but what stands beside markers: what a store has not finished, and the checksums that
    Hadoop's local filesystem keeps (`ChecksumFileSystem`: `.NAME.crc`)."""
    return is_unfinished(path) or has_checksum_name(path)


async def files_of_markers(run: JobRun, layout: MarkerLayout) -> tuple[list[str], list[str]]:
    """What is in the directory of a job's markers, by its top: the paths of files that hold many, and those of
    everything else, directories with a slash behind them. Without what a store has not finished.

    Raises:
        ManifestInvalid: a directory has the name of a file of many.
    """
    many: list[str] = []
    others: list[FileStatus] = []
    async for page in run.store.list_directory(layout.directory):
        for status in page:
            if layout.number_of(status.path) is not None:
                if status.is_directory:
                    raise ManifestInvalid(
                        "what has the name of a file of markers is a directory",
                        where=run.url(status.path),
                        next_step="nothing was deleted: find out who made it, and move it away",
                    )
                many.append(status.path)
            elif status.is_directory or not (status.path == layout.type_file or is_beside(status.path)):
                others.append(status)
    return many, [status.path + ("/" if status.is_directory else "") for status in others]


def _missing(layout: MarkerLayout, many: Sequence[str]) -> str:
    """The path of a file of many markers that is not there, while one of a higher number is: the server begins them in
    turn. Empty: there is none."""
    numbers = {layout.number_of(path) for path in many}
    return next((layout.numbered(n) for n in range(len(numbers)) if n not in numbers), "")


async def each_numbered(run: JobRun, paths: Sequence[str]) -> AsyncIterator[tuple[str, list[Marker]]]:
    """The markers in files of many: each path, and what is in it. So many files are held at once as of manifests.

    Raises:
        ManifestInvalid: one cannot be read as that.
    """
    for some in windows(paths, run.options.files_read_at_once):
        contents = await run.store.read_files(some, bytes_max=NUMBERED_BYTES_MAX)
        for path, content in zip(some, contents, strict=True):
            if content is None:
                continue
            if len(content) > NUMBERED_BYTES_MAX:
                raise ManifestInvalid(
                    f"a file of markers is longer than {NUMBERED_BYTES_MAX} bytes",
                    where=run.url(path),
                    next_step="nothing was deleted: find out who wrote it",
                )
            begun = cut_line(content)
            if begun is not None and path.startswith(f"{MarkerLayout(run.layout.job_id).directory}/"):
                raise cut_short(begun, run.url(path), await _how_to_complete(run, begun))
            yield path, parse_markers(content, where=run.url(path))


async def _how_to_complete(run: JobRun, begun: str) -> str:
    """How to mend a line that was cut short, in words. A marker for a file of this job's does no harm, whether a task
    has committed it or not: so whoever names each that may be meant deletes nothing that counts, and loses none that
    does not."""
    nonces = await nonces_of(run)
    operation = Operation[run.options.markers_operation.upper()]
    lines: list[str] = []
    async for page in list_visible(run, hidden=True):
        paths = sorted(status.path for status in page if tagged_by(status.path, nonces))
        lines += [line for path in paths if (line := completed(begun, path, operation)) is not None]
    if lines:
        more = f", and the same for {len(lines) - NAMED_MAX} more that begin so" if len(lines) > NAMED_MAX else ""
        named = ", ".join(f"`{line}`" for line in lines[:NAMED_MAX])
        behind = "it" if len(lines) == 1 else "each"
        return f"in the place of this line put {named}{more}, with a line end behind {behind}"
    if not nonces:
        return "complete this line, to the file that it begins to name"
    return "no file of the job is there whose name begins so: delete this line"


async def read_numbered(run: JobRun, paths: Sequence[str]) -> list[Marker]:
    """All of them.

    Raises:
        ManifestInvalid: one cannot be read as that.
    """
    return [marker async for _, markers in each_numbered(run, paths) for marker in markers]


class Marked:
    """Paths, each once, in order; iterated as often as needed. `gone`: the path of a file of many markers that
    somebody has deleted, or emptied, so that there may be files which none of these names; empty: that shows of none.
    """

    def __init__(self, found: Sorter[FileStatus], *, gone: str = "") -> None:
        self._found = found
        self._nonces: frozenset[str] | None = None
        self.gone = gone

    def tagged(self, nonces: frozenset[str]) -> Marked:
        """Those of them whose names hold a tag of a job with one of these nonces."""
        tagged = Marked(self._found, gone=self.gone)
        tagged._nonces = nonces
        return tagged

    def __iter__(self) -> Iterator[str]:
        last = ""
        for status in self._found.in_order():
            if status.path != last and (self._nonces is None or tagged_by(status.path, self._nonces)):
                yield status.path
            last = status.path


async def all_markers(run: JobRun, layout: MarkerLayout) -> Marked:
    """The files that the markers of a job name, however many there are.

    Raises:
        ManifestInvalid: one is no marker, or names no place for data; nothing was done by any.
    """
    found = Sorter[FileStatus](run.spool, FileStatus, lambda status: status.path)
    many, others = await files_of_markers(run, layout)
    gone = _missing(layout, many)
    async for path, markers in each_numbered(run, many):
        found.add([FileStatus(marker.path) for marker in markers])
        gone = gone if markers else path  # no server writes an empty one
    files = [path for path in others if not path.endswith("/")]
    found.add([FileStatus(_direct(run, layout, path).path) for path in files])
    directories = [path.rstrip("/") for path in others if path.endswith("/")]

    async def listed(directory: str) -> None:
        async for page in run.store.list_tree(directory):
            done = (status.path for status in page if not is_beside(status.path))
            found.add([FileStatus(_direct(run, layout, path).path) for path in done])

    for start in range(0, len(directories), DIRECTORIES_AT_ONCE):
        await together(listed(directory) for directory in directories[start : start + DIRECTORIES_AT_ONCE])
    return Marked(found, gone=gone)


async def all_tagged(run: JobRun) -> Marked:
    """The files in the destination whose names say that the job has written them. One listing of all of it."""
    found = Sorter[FileStatus](run.spool, FileStatus, lambda status: status.path)
    nonces = await nonces_of(run)
    async for page in list_visible(run, hidden=True):
        paths = (status.path for status in page if not status.path.startswith(f"{TABLE}/"))
        found.add([FileStatus(path) for path in paths if tagged_by(path, nonces)])
    return Marked(found)


def _direct(run: JobRun, layout: MarkerLayout, path: str) -> Marker:
    return parse_marker(layout.name_in(path), where=run.url(path), is_file=True)


async def nonces_of(run: JobRun) -> frozenset[str]:
    """The nonces of every attempt at the job, by which its files are known.

    Raises:
        JobNotFound: the job is over, and its id was set up again.
    """
    found = {run.marker}
    for layout in await every_attempt(run):
        try:
            marker = await read_marker_of(run, layout)
        except StoreError:
            raise
        except LockgateError:  # damaged: what its attempts wrote cannot be told
            marker = None
        if marker is not None:
            refuse_if_set_up_again(run, layout, marker.nonce)
            found.add(marker.nonce)
    record = await read_record(run)
    found.add(record.marker if record is not None else "")
    return frozenset(found - {""})


async def _refuse_liars(run: JobRun, found: Marked, nonces: frozenset[str]) -> None:
    """Make sure that every file that a marker names, and that is there, is the job's by its name. (An attempt of an
    earlier job of this id that comes late may leave a marker where directories are not real, and takes its file out.)

    Raises:
        ManifestInvalid: one is not; nothing was deleted.
    """
    for some in windows((path for path in found if not tagged_by(path, nonces)), LOOKED_AT_ONCE):
        for status in await run.store.stat_files(some):
            if status is not None and not status.is_directory:
                raise _liar(run, status.path, known=bool(nonces))


def _liar(run: JobRun, path: str, *, known: bool) -> ManifestInvalid:
    return ManifestInvalid(
        f"a marker of job {run.layout.job_id} names a file that no task attempt of the job has written, or whose job "
        "cannot be told any more"
        if known
        else f"nobody can tell which files are those of job {run.layout.job_id}: its marker, job.json, is gone",
        where=f"{run.url(path)}\nnamed in {run.url(MarkerLayout(run.layout.job_id).directory)}",
        next_step="nothing was deleted: delete the marker, a file of its name or a line in one of MARKERS0 and so on, "
        "if it is wrong. Delete the file that it names, too, if that is the job's, and the job is to be aborted or "
        "undone: of a job that is to be committed a task may have committed it",
    )


async def paths_marked(run: JobRun) -> Marked:
    """The files that the job's markers name, all of them the job's own.

    Raises:
        ManifestInvalid: a marker cannot be read, or lies; nothing was deleted.
    """
    found = await all_markers(run, MarkerLayout(run.layout.job_id))
    nonces = await nonces_of(run)
    await _refuse_liars(run, found, nonces)
    return found.tagged(nonces)

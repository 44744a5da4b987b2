"""Files of a task attempt that wait on a local disk until its commit uploads them.

Chosen by the option `staging_directory`. An attempt that fails before its commit has uploaded nothing, and programs
that write plain files have a working directory; the local disk has to hold what the attempt writes. Seed:
`zero-rename-committer.tex`, "The Staging Committer".

    STAGING_DIRECTORY/lockgate-JOB/ATTEMPT AT THE JOB/TASK ATTEMPT/
        opened/MARK     a file that was opened by its path in the destination
        work/           what other programs write, below its path in the destination
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import DuplicateTarget, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import is_reserved
from lockgate.model.uploads import Upload
from lockgate.model.urls import check_relative
from lockgate.protocols.deferred.uploads import entry_of, mark_of, upload_of

PREFIX = "lockgate-"
OPENED = "opened"
WORK = "work"
FILES_AT_ONCE = 4
"""Files of one task attempt that are uploaded at once, each in parts of which several are under way."""
CHUNK_BYTES = 1 << 20


def job_directory(run: JobRun) -> Path:
    """Where the task attempts of the run's job keep their files, on each machine that runs one."""
    return Path(run.options.staging_directory) / f"{PREFIX}{run.layout.job_id}"


def attempt_directory(run: JobRun) -> Path:
    """Where the run's task attempt keeps its files."""
    return job_directory(run) / f"{run.layout.job_attempt:02d}" / run.task_attempt_id


def working_directory(run: JobRun) -> str:
    """Where other programs write the attempt's files, as a local path."""
    return str(attempt_directory(run) / WORK)


def make_directories(run: JobRun) -> None:
    """Make the attempt's directories, which nobody but this user may look into.

    Raises:
        StoreError: they cannot be made.
    """
    for name in (OPENED, WORK):
        directory = attempt_directory(run) / name
        with _told(directory):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_staged(run: JobRun, path: str, mark: str) -> OutputFile:
    """Open a file that will be at `path` of the destination.

    Raises:
        StoreError: it cannot be written.
    """
    make_directories(run)
    return StagedFile(attempt_directory(run) / OPENED / mark, path, mark)


class StagedFile(OutputFile):
    """One file on the local disk. Its status has its mark, and no upload yet."""

    def __init__(self, local: Path, path: str, mark: str) -> None:
        self._local = local
        self._path = path
        self._mark = mark
        self._status: FileStatus | None = None
        with _told(local):
            self._file = local.open("xb", buffering=CHUNK_BYTES)

    @property
    def stream(self) -> BinaryIO:
        """The file."""
        return self._file

    def close(self) -> FileStatus:
        """Close it; nothing is at the store. See `OutputFile.close`."""
        if self._status is None:
            with _told(self._local):
                length = self._file.tell()
                self._file.close()
            self._status = FileStatus(self._path, length, proof=self._mark)
        return self._status

    def discard(self) -> None:
        """Delete it."""
        if self._status is None:
            with contextlib.suppress(OSError, ValueError):
                self._file.close()
            with contextlib.suppress(OSError):
                self._local.unlink()


async def send(run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str) -> dict[str, FileStatus]:
    """Upload what waits, and what is in the working directory with `scan`; then nothing of it is on the local disk any
    more. Where that fails, nothing is at the store, and all that waited still does.

    Raises:
        DuplicateTarget: a file that was found has the path that another was opened for.
        PathError: a file that was found is no plain file, or has a name that cannot be committed.
        StoreError: a file could not be read, or sent.
    """
    waiting = {
        path: (attempt_directory(run) / OPENED / status.proof, status.proof)
        for path, status in written.items()
        if not status.upload
    }
    if scan:
        for ordinal, (path, local) in enumerate(sorted(_found(run).items())):
            if path in written:
                raise DuplicateTarget(
                    "two files of one task attempt would be written to one path",
                    where=f"{path}\nopened by its path, and\n{local}",
                    next_step="give one of them another name",
                )
            waiting[path] = (local, mark_of(run, ordinal, f"{nonce}w"))
    sent: dict[str, FileStatus] = {}
    slots = asyncio.Semaphore(FILES_AT_ONCE)

    async def send_one(path: str, local: Path, mark: str) -> None:
        async with slots:
            upload = asyncio.ensure_future(asyncio.to_thread(_upload, run, path, local, mark))
            try:
                sent[path] = await asyncio.shield(upload)
            except asyncio.CancelledError:
                # A thread cannot be stopped: what it has begun is known once it is done.
                with contextlib.suppress(Exception):
                    sent[path] = await upload
                raise

    try:
        await together(send_one(path, local, mark) for path, (local, mark) in waiting.items())
    except BaseException:
        with contextlib.suppress(StoreError):
            await run.store.abort_uploads([_pending(path, status) for path, status in sent.items()])
        raise
    run.count("staged_files_uploaded", len(sent))
    run.count("staged_bytes_uploaded", sum(status.length for status in sent.values()))
    clear(run)
    return {**written, **sent}


def clear(run: JobRun) -> None:
    """Delete what the attempt has on the local disk, and the directories above that are empty then."""
    directory = attempt_directory(run)
    shutil.rmtree(directory, ignore_errors=True)
    for above in (directory.parent, directory.parent.parent):
        with contextlib.suppress(OSError):
            above.rmdir()


def clear_job(run: JobRun) -> None:
    """Delete what attempts of the job that were killed have left on this machine: the job is over."""
    shutil.rmtree(job_directory(run), ignore_errors=True)


def clear_forgotten(run: JobRun) -> None:
    """Delete what attempts at any job have left that were killed on this machine long ago: directories in which nothing
    was made for `upload_alive_seconds`, by which no job is at work any more."""
    oldest = run.runtime.wall() - run.options.upload_alive_seconds
    with contextlib.suppress(OSError):
        for directory in Path(run.options.staging_directory).glob(f"{PREFIX}*"):
            made = [each.lstat().st_mtime for each in (directory, *directory.rglob("*"))]
            if max(made) < oldest:
                shutil.rmtree(directory, ignore_errors=True)


def _found(run: JobRun) -> dict[str, Path]:
    work = attempt_directory(run) / WORK
    found: dict[str, Path] = {}
    with _told(work):
        for directory, _, names in os.walk(work, onerror=_raised):
            for name in names:
                local = Path(directory) / name
                path = local.relative_to(work).as_posix()
                if not stat.S_ISREG(local.lstat().st_mode) or is_reserved(check_relative(path)):
                    raise PathError(
                        "this cannot be committed: it is no plain file, or its name is one that Lockgate keeps",
                        where=str(local),
                        next_step="delete it, or write it elsewhere, and commit the attempt again",
                    )
                found[path] = local
    return found


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _upload(run: JobRun, path: str, local: Path, mark: str) -> FileStatus:
    with _told(local):
        source = local.open("rb")
    with source:
        output = run.store.open_deferred(path, mark)
        try:
            while chunk := _read(source, local):
                output.stream.write(chunk)
            return output.close()
        except BaseException:
            output.discard()
            raise


def _read(source: BinaryIO, local: Path) -> bytes:
    with _told(local):
        return source.read(CHUNK_BYTES)


def _pending(path: str, status: FileStatus) -> Upload:
    return upload_of(entry_of(path, status))


@contextlib.contextmanager
def _told(local: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"a file that waits for its upload cannot be written or read: {error.strerror or error}",
            where=str(local),
            next_step="make room on that disk, or give another staging_directory; nothing of this attempt is committed",
        ) from error

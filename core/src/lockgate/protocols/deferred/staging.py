"""Files of a task attempt that wait on a local disk until its commit uploads them.

Chosen by the option `staging_directory`. An attempt that fails before its commit has uploaded nothing, and programs
that write plain files have a working directory; the local disk has to hold what the attempt writes. Seed:
`zero-rename-committer.tex`, "The Staging Committer".

    STAGING_DIRECTORY/lockgate-JOB-DESTINATION/ATTEMPT AT THE JOB/TASK ATTEMPT/
        opened/MARK     a file that was opened by its path in the destination
        work/           what other programs write, below its path in the destination
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import BinaryIO

from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.staging_disk import StagingDisk
from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import CommitFailed, DuplicateTarget, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import lost_files
from lockgate.model.layout import is_no_output
from lockgate.model.record import digest_of
from lockgate.model.urls import check_relative
from lockgate.protocols.deferred.uploads import entry_of, give_up_unseen, keep_of, mark_of, refuse_shared, upload_of

PREFIX = "lockgate-"
AGAIN = "r"
"""In the number at the end of a mark: what follows says how often the file was sent again."""
FILES_AT_ONCE = 4
"""Files of one task attempt that are uploaded at once, each in parts of which several are under way."""
CHUNK_BYTES = 1 << 20


def is_staging(run: JobRun) -> bool:
    """Whether files of the run's job wait on local disks."""
    return bool(run.options.staging_directory)


def working_directory(run: JobRun) -> str:
    """Where other programs write the attempt's files, as a local path."""
    return _disk(run).local_path(_work(run))


def make_directories(run: JobRun) -> None:
    """Make the attempt's directories, empty: a process that was killed at this very attempt may have left half of a
    file. Delete what other jobs' attempts that were killed have left here: that in which nothing was made for
    `upload_alive_seconds`, by which no job is at work any more.

    Raises:
        StoreError: they cannot be made.
    """
    disk = _disk(run)
    disk.delete_forgotten(PREFIX, run.runtime.wall() - run.options.upload_alive_seconds)
    disk.delete(_of_attempt(run))
    disk.make_directory(_opened(run))
    disk.make_directory(_work(run))


def open_staged(run: JobRun, path: str, mark: str) -> OutputFile:
    """Open a file that will be at `path` of the destination.

    Raises:
        StoreError: it cannot be written.
    """
    disk = _disk(run)
    disk.make_directory(_opened(run))
    return StagedFile(disk, f"{_opened(run)}/{mark}", path, mark)


class StagedFile(OutputFile):
    """One file on the local disk. Its status has its mark, and no upload yet."""

    def __init__(self, disk: StagingDisk, staged: str, path: str, mark: str) -> None:
        self._disk = disk
        self._staged = staged
        self._path = path
        self._mark = mark
        self._status: FileStatus | None = None
        self._file = disk.create(staged)

    @property
    def stream(self) -> BinaryIO:
        """The file."""
        return self._file

    def close(self) -> FileStatus:
        """Close it; nothing is at the store. See `OutputFile.close`."""
        if self._status is None:
            length = self._file.tell()
            self._file.close()
            self._status = FileStatus(self._path, length, proof=self._mark)
        return self._status

    def discard(self) -> None:
        """Delete it."""
        if self._status is None:
            with contextlib.suppress(StoreError, ValueError):
                self._file.close()
            self._disk.delete(self._staged)


async def send(run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str) -> dict[str, FileStatus]:
    """Upload what waits, and what is in the working directory with `scan`. Where that fails, nothing of this call is at
    the store. All of it stays on the local disk until the attempt is known to have committed (`clear`): the uploads may
    have to be given up, and made anew. What an earlier call has found is not found again.

    Raises:
        DuplicateTarget: a file that was found has the path that another was opened for.
        PathError: a file that was found is no plain file, or has a name that cannot be committed.
        CommitFailed: a file that others have written is gone, and its checksum is there.
        StoreError: a file could not be read, or sent.
    """
    waiting = {
        path: (_staged(run, path, status.proof, nonce), status.proof)
        for path, status in written.items()
        if not status.upload
    }
    if scan:
        for ordinal, path in enumerate(_found_anew(run, written, nonce), len(written)):
            refuse_shared(run, path, nonce)
            waiting[path] = (f"{_work(run)}/{path}", mark_of(run, ordinal, f"{nonce}w"))
    sent: dict[str, FileStatus] = {}
    slots = asyncio.Semaphore(FILES_AT_ONCE)

    async def send_one(path: str, staged: str, mark: str) -> None:
        async with slots:
            upload = asyncio.ensure_future(asyncio.to_thread(_upload, run, path, staged, mark))
            try:
                sent[path] = await asyncio.shield(upload)
            except asyncio.CancelledError:
                # A thread cannot be stopped: what it has begun is known once it is done.
                with contextlib.suppress(Exception):
                    sent[path] = await upload
                raise

    try:
        await together(send_one(path, staged, mark) for path, (staged, mark) in waiting.items())
    except BaseException:
        # No manifest names them: nobody completes them.
        with contextlib.suppress(StoreError):
            await give_up_unseen(run, [upload_of(entry_of(path, status)) for path, status in sent.items()])
        raise
    run.count("staged_files_uploaded", len(sent))
    run.count("staged_bytes_uploaded", sum(status.length for status in sent.values()))
    return {**written, **sent}


def to_send_again(written: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
    """The files of an attempt whose uploads were given up, as ones that wait. What they are uploaded to next has a mark
    of its own: a delayed request of the first time is about the first."""
    return {
        path: FileStatus(path, status.length, proof=_next_mark(status.proof)) if status.upload else status
        for path, status in written.items()
    }


def clear(run: JobRun) -> None:
    """Delete what the attempt has on the local disk."""
    disk = _disk(run)
    disk.delete(_of_attempt(run))
    disk.delete_if_empty(f"{_of_job(run)}/{run.layout.job_attempt:02d}")
    disk.delete_if_empty(_of_job(run))


def clear_job(run: JobRun) -> None:
    """Delete what attempts of the job that were killed have left on this machine: the job is over."""
    _disk(run).delete(_of_job(run))


def _disk(run: JobRun) -> StagingDisk:
    return run.runtime.staging_disk(run.options.staging_directory)


def _of_job(run: JobRun) -> str:
    # Jobs of one id may be at work on several destinations, and on one machine.
    return f"{PREFIX}{run.layout.job_id}-{digest_of(run.store.url.uri.encode())[:8]}"


def _of_attempt(run: JobRun) -> str:
    return f"{_of_job(run)}/{run.layout.job_attempt:02d}/{run.task_attempt_id}"


def _opened(run: JobRun) -> str:
    return f"{_of_attempt(run)}/opened"


def _work(run: JobRun) -> str:
    return f"{_of_attempt(run)}/work"


def _staged(run: JobRun, path: str, mark: str, nonce: str) -> str:
    """Where the file waits that has this mark: one that was opened under the first mark that it had."""
    if _is_of_found(mark, nonce):
        return f"{_work(run)}/{path}"
    rest, _, number = mark.rpartition("-")
    return f"{_opened(run)}/{rest}-{number.partition(AGAIN)[0]}"


def _is_of_found(mark: str, nonce: str) -> bool:
    """Whether a mark is one that `send` gives to what is in the working directory."""
    return mark.rpartition("-")[0].endswith(f"-{nonce}w")


def _next_mark(mark: str) -> str:
    rest, _, number = mark.rpartition("-")
    first, _, times = number.partition(AGAIN)
    return f"{rest}-{first}{AGAIN}{int(times or 0) + 1}"


def _found_anew(run: JobRun, written: Mapping[str, FileStatus], nonce: str) -> list[str]:
    try:
        return _found(run, written, nonce)
    except StoreError as error:
        if not any(status.upload for status in written.values()):
            raise
        raise StoreError(
            error.what,
            where=error.where,
            next_step="an earlier commit() of this attempt has sent its files, and whether it has committed is not "
            "known: abort the attempt, and let the task be tried again",
        ) from error


def _found(run: JobRun, written: Mapping[str, FileStatus], nonce: str) -> list[str]:
    known = {path for path, status in written.items() if _is_of_found(status.proof, nonce)}
    disk = _disk(run)
    found = sorted(disk.list_tree(_work(run)), key=lambda each: each.path)
    if lost := lost_files(each.path for each in found):
        raise CommitFailed(
            "a file of the working directory is gone, and its checksum is there (.NAME.crc)",
            where="\n".join(disk.local_path(f"{_work(run)}/{path}") for path in lost[:5]),
            next_step="let the task be tried again; or bring the file back, or delete the checksum of one that is not "
            "to count, and commit the attempt again",
        )
    for each in found:
        local = disk.local_path(f"{_work(run)}/{each.path}")
        if not each.is_plain or is_no_output(check_relative(each.path)):
            raise PathError(
                "this cannot be committed: it is no plain file, or its name is one that Lockgate keeps",
                where=local,
                next_step="delete it, or write it elsewhere, and commit the attempt again",
            )
        if each.path in written and each.path not in known:
            raise DuplicateTarget(
                "two files of one task attempt would be written to one path",
                where=f"{each.path}\nopened by its path, and\n{local}",
                next_step="give one of them another name",
            )
    return [each.path for each in found if each.path not in known]


def _upload(run: JobRun, path: str, staged: str, mark: str) -> FileStatus:
    with _disk(run).open(staged) as source:
        output = run.store.open_deferred(path, mark, keep_of(run, run.task_attempt_id))
        try:
            while chunk := source.read(CHUNK_BYTES):
                output.stream.write(chunk)
            return output.close()
        except BaseException:
            output.discard()
            raise

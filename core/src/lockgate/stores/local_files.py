"""Single calls on files of a local disk: how they are opened, read, written and synced, and what their errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.urls import StoreUrl

PAGE = 1000


def identity_of(status: os.stat_result) -> str:
    """Inode, length and modification time (nanoseconds), hexadecimal."""
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


def status_of(path: str, status: os.stat_result) -> FileStatus:
    """What a store says of a file or a directory."""
    if stat.S_ISDIR(status.st_mode):
        return FileStatus(path, is_directory=True, modified=status.st_mtime)
    is_plain = stat.S_ISREG(status.st_mode)
    return FileStatus(path, status.st_size, identity_of(status), modified=status.st_mtime, is_link=not is_plain)


def pages(statuses: Iterable[FileStatus]) -> Iterator[list[FileStatus]]:
    """The same, `PAGE` at a time."""
    page: list[FileStatus] = []
    for status in statuses:
        page.append(status)
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def open_to_read(path: str, flags: int) -> int:
    """Open a regular file; a link, or anything else, is refused (`opener` of `open`)."""
    # A named pipe would keep the driver waiting for a writer.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def read_at_most(descriptor: int, length: int) -> bytes:
    """Read so many bytes, or to the end."""
    size = min(length, os.fstat(descriptor).st_size + 1)
    parts = []
    while size > 0 and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it, in as many calls as that takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(directory: str) -> None:
    """Wait until what was renamed, made or deleted in it is on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget_checksum(path: str) -> None:
    """Delete what Hadoop's local file system keeps beside a file that was replaced: it would refuse the new one, whose
    checksum is another (`LocalFileSystem`, `.NAME.crc`)."""
    directory, _, name = path.rpartition("/")
    with contextlib.suppress(OSError):
        os.unlink(f"{directory}/.{name}.crc")


@contextlib.contextmanager
def told(verb: str, root: StoreUrl, path: str) -> Iterator[None]:
    """Turn an `OSError` into the `StoreError` of its kind. `root` and `path` say where it was met."""
    try:
        yield
    except OSError as error:
        where = str(root.child(path))
        reason = f"cannot {verb}: {error.strerror or error}"
        if isinstance(error, FileExistsError):
            raise FileExists(reason, where=where) from error
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise FileMissing(reason, where=where) from error
        if error.errno == errno.ELOOP:
            raise AccessDenied(
                f"cannot {verb}: a symbolic link is followed nowhere",
                where=where,
                next_step="nothing behind it is read, moved or deleted; put a file or a directory in its place, or "
                "take it away",
            ) from error
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            raise AccessDenied(reason, where=where, next_step="check the rights on this path") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(reason, where=where, next_step="make room, then run or recover the job") from error
        raise StoreError(reason, where=where) from error

"""A rename that never replaces, on local disks and what is mounted as one.

Linux has `renameat2` with RENAME_NOREPLACE, macOS `renamex_np` with RENAME_EXCL: one atomic act. Many filesystems do
not know the flag (NFS, 9p, older ZFS, most of FUSE: EINVAL, says renameat2(2)). There a hard link and an unlink do it:
never over an existing file, but as two acts. Between them a second process can rename the same source elsewhere, or
bring it back, and the unlink then takes what it did not link. So it is done only while a lock keeps every other
process of this machine from renaming (`turn_at`), and never declared as atomic.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from enum import StrEnum

_NOREPLACE = 1
_EXCL = 4
_AT_FDCWD = -100

_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})

_SYSCALL_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
"""For a C library that lacks it. Source: Linux, syscall_64.tbl of x86 and include/uapi/asm-generic/unistd.h."""

_KNOWN_ATOMIC = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0xF2F52010})
"""`f_type` of ext4, XFS, Btrfs, tmpfs, overlayfs and F2FS (statfs(2)): they know the flag (renameat2(2), "NOTES"), and
nothing needs to be tried there."""

LOCK_TRIES = 3000
LOCK_SECONDS = 0.01


class RenameKind(StrEnum):
    """How a directory's filesystem renames without replacing."""

    ATOMIC = "one act"
    LINK = "a link and an unlink"
    NONE = "not at all"


def _native() -> Callable[[bytes, bytes], int] | None:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            renamex = libc.renamex_np
            renamex.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint]
            return lambda source, target: int(renamex(source, target, _EXCL))
        if not hasattr(libc, "renameat2"):
            number = _SYSCALL_RENAMEAT2[platform.machine()]
            return lambda source, target: int(
                libc.syscall(ctypes.c_long(number), _AT_FDCWD, source, _AT_FDCWD, target, _NOREPLACE)
            )
        renameat2 = libc.renameat2
        renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    except (OSError, AttributeError, KeyError):
        return None
    # No conversion of what it returns: this is called once for every file.
    return lambda source, target: renameat2(_AT_FDCWD, source, _AT_FDCWD, target, _NOREPLACE)


_rename = _native()


def rename_without_replacing(source: str, target: str) -> None:
    """Rename as one act, unless something is at the target.

    Raises:
        FileExistsError: something is.
        OSError: as `os.rename` raises it; EINVAL where the filesystem has no such act.
    """
    if _rename is None:
        raise OSError(errno.EINVAL, "this system has no rename that refuses to replace", source, None, target)
    if _rename(os.fsencode(source), os.fsencode(target)) != 0:
        number = ctypes.get_errno()
        text = "this filesystem has no rename that refuses to replace" if number in _UNSUPPORTED else ""
        raise OSError(number, text or os.strerror(number), source, None, target)


def link_and_unlink(source: str, target: str) -> None:
    """The same by a hard link: finishes what an earlier call, cut off between link and unlink, began. Two acts: for a
    source that nobody else knows of, or in one's turn.

    Raises:
        FileExistsError: another file is at the target.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(os.lstat(source), os.lstat(target)):
            raise
    # Whoever undoes a job deletes its staged files without waiting for a turn; the target has the file all the same.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(source)


def rename_kind(directory: str) -> RenameKind:
    """What the filesystem of a directory, or of the nearest that exists above it, has for a rename without replacing.

    Found out by trying, with a file that is gone afterwards, except on filesystems that are known. Where nothing can be
    written nothing is tried, and `ATOMIC` is answered: nothing can be renamed there either.
    """
    existing = directory
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    if _filesystem_type(existing) in _KNOWN_ATOMIC and _rename is not None:
        return RenameKind.ATOMIC
    one, other = (f"{existing}/.lockgate-{uuid.uuid4().hex}.tmp" for _ in range(2))
    try:
        os.close(os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return RenameKind.ATOMIC
    try:
        return _tried(existing, one, other)
    finally:
        for path in (one, other):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _tried(directory: str, one: str, other: str) -> RenameKind:
    try:
        rename_without_replacing(one, other)
        return RenameKind.ATOMIC
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    try:
        os.link(one, other)
        if not os.path.samestat(os.lstat(one), os.lstat(other)):
            return RenameKind.NONE  # a link that is a copy, or has an inode number of its own
        with contextlib.suppress(BlockingIOError), _locked(directory):
            pass
    except OSError:
        return RenameKind.NONE
    return RenameKind.LINK


def _filesystem_type(directory: str) -> int:
    """`f_type` of statfs(2), 0 where it cannot be had."""
    if sys.platform != "linux" or platform.machine() not in _SYSCALL_RENAMEAT2:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    answer = ctypes.create_string_buffer(512)
    if libc.statfs(os.fsencode(directory), answer) != 0:
        return 0
    return int.from_bytes(answer.raw[:8], sys.byteorder)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextlib.asynccontextmanager
async def turn_at(root: str) -> AsyncIterator[None]:
    """Keep every other process and thread of this machine from renaming below a root meanwhile. The kernel gives the
    turn back when a process dies; one that stands still keeps it, and the others wait.

    Raises:
        BlockingIOError: somebody else kept the turn for too long.
    """
    with contextlib.ExitStack() as held:
        for attempt in range(LOCK_TRIES):
            try:
                held.enter_context(_locked(root))
                break
            except FileNotFoundError:
                break  # nothing is there to be renamed, and every rename says so
            except BlockingIOError:
                if attempt == LOCK_TRIES - 1:
                    raise
            await asyncio.sleep(LOCK_SECONDS)
        yield

"""A rename that never replaces, on local disks.

Linux has `renameat2` with RENAME_NOREPLACE, macOS `renamex_np` with RENAME_EXCL: one atomic act. Where neither is
there, or the filesystem does not know the flag, a hard link and an unlink do it: never over an existing file, and
after a crash between the two both names are the same inode, which the next try finishes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable

_NOREPLACE = 1
_EXCL = 4
_AT_FDCWD = -100

_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


def _native() -> Callable[[bytes, bytes], int] | None:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            renamex = libc.renamex_np
            renamex.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint]
            return lambda source, target: int(renamex(source, target, _EXCL))
        renameat2 = libc.renameat2
        renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    except (OSError, AttributeError):
        return None
    return lambda source, target: int(renameat2(_AT_FDCWD, source, _AT_FDCWD, target, _NOREPLACE))


_rename = _native()


def rename_without_replacing(source: str, target: str) -> None:
    """Rename, unless something is at the target.

    Raises:
        FileExistsError: something is.
        OSError: as `os.rename` raises it.
    """
    if _rename is not None:
        if _rename(os.fsencode(source), os.fsencode(target)) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), source, None, target)
    link_and_unlink(source, target)


def link_and_unlink(source: str, target: str) -> None:
    """The same by a hard link: finishes what an earlier call, cut off between link and unlink, began."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        if not os.path.samestat(os.lstat(source), os.lstat(target)):
            raise
    os.unlink(source)

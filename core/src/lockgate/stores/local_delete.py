"""Trees of a local disk are deleted."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat

from lockgate.model.files import Deleted

REMOVE_TRIES = 100
"""How often a tree is deleted again at once, in which somebody else deletes or writes."""


NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)


def delete_tree(full: str, aside: str) -> Deleted:
    """Delete what is at `full`; a directory by way of `aside`, where nobody who writes by its path can hold it up."""
    try:
        if not stat.S_ISDIR(os.lstat(full).st_mode):
            os.unlink(full)
            return Deleted.DELETED
        os.rename(full, aside)
    except FileNotFoundError:
        return Deleted.MISSING
    except OSError:
        # Not to be renamed, such as a mount point: emptied where it is.
        return _remove(full)
    try:
        _remove(aside)
    except OSError as error:
        # Where a network filesystem keeps files that are still open, a directory is left, and nobody's: gc takes it.
        if error.errno not in NOT_EMPTY:
            raise
    return Deleted.DELETED


def _remove(full: str) -> Deleted:
    # `rmtree` lists a directory as a whole before it deletes anything, and what a job replaces may be a million files
    # in one. Whatever goes wrong here goes wrong there again, and is told.
    with contextlib.suppress(OSError):
        _unlink_files(full, None)
    for left in reversed(range(REMOVE_TRIES)):
        try:
            shutil.rmtree(full)
        except FileNotFoundError:
            # Somebody else deletes in the same tree; what is left is ours to delete.
            if not os.path.lexists(full):
                return Deleted.MISSING
        except OSError as error:
            if error.errno not in NOT_EMPTY or not left:
                raise
        else:
            break
    return Deleted.DELETED


def _unlink_files(name: str, parent: int | None) -> None:
    """Delete the files of a tree as they are listed; links in it are not followed."""
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        directories: list[str] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                else:
                    os.unlink(entry.name, dir_fd=descriptor)
        for each in directories:
            _unlink_files(each, descriptor)
    finally:
        os.close(descriptor)

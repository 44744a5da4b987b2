"""`StagingDisk` on the file system of this machine."""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lockgate.engine.run.staging_disk import FoundOnDisk, StagingDisk
from lockgate.model.errors import StoreError

BUFFER_BYTES = 1 << 20


class LocalStagingDisk(StagingDisk):
    """Below the directory `root`, which is made where it is not there."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def make_directory(self, path: str) -> None:
        """See `StagingDisk`."""
        directory = self._root / path
        with _told(directory):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, path: str) -> BinaryIO:
        """See `StagingDisk`."""
        local = self._root / path
        with _told(local):
            return io.BufferedWriter(_ToldFile(local, "xb"), BUFFER_BYTES)

    def open(self, path: str) -> BinaryIO:
        """See `StagingDisk`."""
        local = self._root / path
        with _told(local):
            return io.BufferedReader(_ToldFile(local, "rb"), BUFFER_BYTES)

    def list_tree(self, path: str) -> Iterator[FoundOnDisk]:
        """See `StagingDisk`."""
        top = self._root / path
        with _told(top):
            top.lstat()
            for directory, _, names in os.walk(top, onerror=_raised):
                for name in names:
                    local = Path(directory, name)
                    yield FoundOnDisk(local.relative_to(top).as_posix(), stat.S_ISREG(local.lstat().st_mode))

    def delete(self, path: str) -> None:
        """See `StagingDisk`."""
        local = self._root / path
        shutil.rmtree(local, ignore_errors=True)
        with contextlib.suppress(OSError):
            local.unlink()

    def delete_if_empty(self, path: str) -> None:
        """See `StagingDisk`."""
        with contextlib.suppress(OSError):
            (self._root / path).rmdir()

    def delete_forgotten(self, prefix: str, before: float) -> None:
        """See `StagingDisk`."""
        with contextlib.suppress(OSError):
            for directory in self._root.iterdir():
                if directory.name.startswith(prefix) and _nothing_made_since(directory, before):
                    shutil.rmtree(directory, ignore_errors=True)

    def local_path(self, path: str) -> str:
        """See `StagingDisk`."""
        return str(self._root / path)


class _ToldFile(io.FileIO):
    """A file whose errors say which it is, and what to do."""

    def __init__(self, local: Path, mode: str) -> None:
        self._local = local
        super().__init__(local, mode)

    def write(self, content: object, /) -> int:
        with _told(self._local):
            return super().write(content)  # type: ignore[arg-type]  # any buffer

    def readinto(self, buffer: object, /) -> int:
        with _told(self._local):
            return super().readinto(buffer)  # type: ignore[arg-type]  # any buffer


def _nothing_made_since(directory: Path, before: float) -> bool:
    return all(each.lstat().st_mtime < before for each in itertools.chain([directory], directory.rglob("*")))


def _raised(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


@contextlib.contextmanager
def _told(local: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"a file that waits for its upload cannot be written or read: {error.strerror or error}",
            where=str(local),
            next_step="nothing of this attempt is committed: "
            + ("make room on that disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check that directory")
            + ", or give another staging_directory",
        ) from error

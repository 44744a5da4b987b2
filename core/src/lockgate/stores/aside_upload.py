"""A task attempt's file on its way to a store with real directories: written aside, renamed into place at its end.

So nothing of it is at its path before it is whole, an attempt that was given up leaves nothing there, and a file that
is there already is refused.
"""

from __future__ import annotations

import contextlib
import typing
from abc import ABC, abstractmethod

from lockgate.model.errors import StoreError
from lockgate.model.files import FileStatus
from lockgate.model.urls import StoreUrl
from lockgate.stores.http.upload import UploadSteps


class PartWriter(ABC):
    """A file that is being written part by part. Errors are `StoreError`s."""

    @abstractmethod
    async def write(self, index: int, content: bytes) -> None:
        """Part number `index`, from 0, once for each. Where a store has more than one part in flight, the first call
        may still be under way when the next is made."""

    @abstractmethod
    async def close(self) -> FileStatus:
        """Finish it; the status with the identity."""

    @abstractmethod
    async def give_up(self) -> None:
        """Stop, and take away what is elsewhere than at the path; may raise."""


class AsidePlaces(typing.Protocol):
    """What an upload asks of its store, all by paths relative to `url`."""

    url: StoreUrl

    def aside_of(self, path: str) -> str:
        """The path beside `path` that nobody else knows."""

    async def open_parts(self, path: str) -> PartWriter:
        """Begin a file there."""

    async def put_in_place(self, path: str, content: bytes, *, replace: bool) -> FileStatus:
        """Write a small file aside, and rename it into place."""

    async def rename_into_place(self, aside: str, path: str, written: FileStatus, *, replace: bool) -> None:
        """Rename what was written aside."""

    async def drop(self, aside: str) -> None:
        """Delete what was written aside, if it can be, without raising."""


class AsideUpload(UploadSteps):
    """The steps of one file."""

    def __init__(self, store: AsidePlaces, path: str) -> None:
        self._store = store
        self._path = path
        self._aside = store.aside_of(path)
        self._writer: PartWriter | None = None
        self._parts = 0
        self._bytes = 0

    async def whole(self, content: bytes) -> FileStatus:
        """One small file."""
        return await self._store.put_in_place(self._path, content, replace=False)

    async def part(self, index: int, content: bytes) -> None:
        """The first part begins the file."""
        # Counted before it is sent: several may be under way, and end in any order.
        self._parts = max(self._parts, index + 1)
        self._bytes += len(content)
        if self._writer is None:
            self._writer = await self._store.open_parts(self._aside)
        await self._writer.write(index, content)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part, and the file's name."""
        assert self._writer is not None
        if rest:
            await self._writer.write(self._parts, rest)
        written = await self._writer.close()
        if written.length != self._bytes + len(rest):
            raise StoreError(
                f"{written.length} of {self._bytes + len(rest)} bytes were written",
                where=str(self._store.url.child(self._path)),
            )
        await self._store.rename_into_place(self._aside, self._path, written, replace=False)
        return FileStatus(self._path, written.length, written.identity, modified=written.modified)

    async def give_up(self) -> None:
        """Leave nothing."""
        if self._writer is not None:
            with contextlib.suppress(StoreError):
                await self._writer.give_up()
        await self._store.drop(self._aside)

"""A task attempt's file on its way to a store: written by plain code, sent in parts while it is written.

Memory is bounded: at most `parts_in_flight` parts are on their way, and one is being filled; a writer that is faster
than the store waits. A file that fits in one part is one request.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import io
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, cast

from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import StoreError
from lockgate.model.files import FileStatus
from lockgate.stores.http.upload_loop import UPLOAD_LOOP


class UploadSteps(ABC):
    """How one store takes one file. Called on the upload loop; either `whole`, or `part` in order and then `finish`."""

    @abstractmethod
    async def whole(self, content: bytes) -> FileStatus:
        """The whole file in one request. Raises `FileExists` where something is there already."""

    @abstractmethod
    async def part(self, index: int, content: bytes) -> None:
        """One part, of the agreed length. Several may be under way where `parts_in_flight` allows it."""

    @abstractmethod
    async def finish(self, rest: bytes) -> FileStatus:
        """The last part, shorter and perhaps empty, and publication. Raises `FileExists` as `whole` does."""

    @abstractmethod
    async def give_up(self) -> None:
        """Free what the store keeps of an upload that is not finished, as far as it can be freed."""


class StreamedOutput(OutputFile, io.BufferedIOBase):
    """The file object of an upload; its own `stream`. `part_bytes` is the length of a part, or tells that of each, by
    its number."""

    def __init__(
        self, path: str, steps: UploadSteps, *, part_bytes: int | Callable[[int], int], parts_in_flight: int
    ) -> None:
        super().__init__()
        self._path = path
        self._steps = steps
        self._length_of = part_bytes if callable(part_bytes) else lambda index: part_bytes
        self._part_bytes = self._length_of(0)
        self._parts_in_flight = parts_in_flight
        self._pending = bytearray()
        self._parts = 0
        self._position = 0
        self._under_way: deque[concurrent.futures.Future[None]] = deque()
        self._status: FileStatus | None = None
        self._given_up = False

    @property
    def stream(self) -> BinaryIO:
        """This object."""
        return cast(BinaryIO, self)

    def writable(self) -> bool:
        """Until it is closed."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._position

    def write(self, content: Any, /) -> int:
        """Append bytes; waits while too many parts are under way.

        Raises:
            StoreError: an earlier part could not be sent.
        """
        if self._given_up or self._status is not None:
            raise ValueError("write to a closed file")
        view = memoryview(content).cast("B")
        self._position += len(view)
        taken = 0
        while taken < len(view):
            # A part is only sent once more is known to follow, so that a file of just one part is one request.
            if len(self._pending) == self._part_bytes:
                self._send_part()
            room = self._part_bytes - len(self._pending)
            self._pending += view[taken : taken + room]
            taken += room
        return len(view)

    def _send_part(self) -> None:
        while len(self._under_way) >= self._parts_in_flight:
            self._wait_for_oldest()
        content, self._pending = bytes(self._pending), bytearray()
        self._under_way.append(UPLOAD_LOOP.start(self._steps.part(self._parts, content)))
        self._parts += 1
        self._part_bytes = self._length_of(self._parts)

    def _wait_for_oldest(self) -> None:
        try:
            self._under_way.popleft().result()
        except BaseException:
            self.discard()
            raise

    def flush(self) -> None:
        """Nothing is promised before `close`."""

    def close(self) -> FileStatus:  # type: ignore[override]  # a file object's close that also tells what it closed
        """Send the rest and publish the file. See `OutputFile.close`."""
        if self._status is not None:
            return self._status
        if self._given_up:
            raise StoreError("the file was given up before it was finished", where=self._path)
        rest, self._pending = bytes(self._pending), bytearray()
        try:
            if self._parts == 0:
                self._status = UPLOAD_LOOP.run(self._steps.whole(rest))
            else:
                while self._under_way:
                    self._wait_for_oldest()
                self._status = UPLOAD_LOOP.run(self._steps.finish(rest))
        except BaseException:
            self.discard()
            raise
        return self._status

    def discard(self) -> None:
        """See `OutputFile.discard`."""
        if self._given_up or self._status is not None:
            return
        self._given_up = True
        self._pending = bytearray()
        for future in self._under_way:
            future.cancel()
        with contextlib.suppress(Exception):
            concurrent.futures.wait(self._under_way)
        self._under_way.clear()
        if self._parts:
            with contextlib.suppress(Exception):
                UPLOAD_LOOP.run(self._steps.give_up())

    def drop(self) -> None:
        """As `discard`, without waiting for anything: a finalizer runs wherever memory is freed, on the upload loop's
        own thread as well, which would wait for itself."""
        if self._given_up or self._status is not None:
            return
        self._given_up = True
        self._pending = bytearray()
        under_way = list(self._under_way)
        self._under_way.clear()
        if self._parts:
            with contextlib.suppress(Exception):
                UPLOAD_LOOP.start(_give_up(self._steps, under_way))

    @property
    def closed(self) -> bool:
        """Whether it was closed or given up."""
        return self._given_up or self._status is not None

    def __del__(self) -> None:
        # Dropped unclosed is not finished; io.IOBase would close it.
        self.drop()


async def _give_up(steps: UploadSteps, under_way: Sequence[concurrent.futures.Future[None]]) -> None:
    for future in under_way:
        future.cancel()
    await asyncio.gather(*(asyncio.wrap_future(future) for future in under_way), return_exceptions=True)
    with contextlib.suppress(Exception):
        await steps.give_up()

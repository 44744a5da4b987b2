"""What completes a deferred upload here and must not be in a manifest: the session, which is a secret, and the last
bytes, which travel with the request that ends it. Kept in a task attempt's own directory, many uploads to a file.

A `Keeper` holds them until they are worth a file, or the attempt commits. Nothing of an upload is sent to its session
before a file that names the session is there, so whoever ends the job can give the session up.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

import msgspec
from lockgate.model.errors import StoreError
from lockgate.model.layout import is_kept_uploads, kept_uploads
from lockgate.model.urls import check_relative, parent_of
from lockgate.stores.http.bulk import for_each

BATCH_BYTES = 16 << 20
"""So much of short files waits in memory, of one task attempt, for a file that keeps their sessions."""

FILE_BYTES_MAX = 64 << 20
SENT_AT_ONCE = 4


class KeptUpload(msgspec.Struct, frozen=True, array_like=True):
    """One upload. `total` is its length, and -1 as long as it is being written."""

    path: str
    mark: str
    session: str
    total: int = -1
    tail: bytes = b""

    def __repr__(self) -> str:
        return f"KeptUpload({self.path!r}, {self.mark!r})"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[KeptUpload | None]).decode


def decode_kept(content: bytes, where: str) -> list[KeptUpload | None]:
    """What a file holds; None where an upload was given up before the file was written.

    Raises:
        StoreError: it is no such file.
    """
    try:
        return _decode(content)
    except msgspec.DecodeError:  # whose text may show a part of it
        raise StoreError(
            "a file that keeps uploads cannot be read",
            where=where,
            next_step="it was changed, or cut short: abort the job, and run it again",
        ) from None


def token_of(file: str, index: int) -> str:
    """The token of an upload: which one of which file."""
    return f"{index} {file}"


def place_of(token: str) -> tuple[str, int]:
    """The file and the index of a token.

    Raises:
        StoreError: it is none of this store's.
        PathError: it names a file outside the destination.
    """
    index, _, file = token.partition(" ")
    if not index.isdecimal() or not is_kept_uploads(check_relative(file)):
        raise StoreError("what should complete an upload cannot be read", where=token[:100])
    return file, int(index)


class Batch:
    """The uploads of one file, and, by index, what of them is sent once the file is there."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.uploads: list[KeptUpload | None] = []
        self.unsent: dict[int, bytes] = {}
        self.bytes = 0
        self.is_written = False


Write = Callable[[str, bytes], Awaitable[object]]
Send = Callable[[KeptUpload, bytes], Awaitable[object]]


class Keeper:
    """The uploads of one task attempt that are not kept in a file yet, or not sent. Its calls do not overlap, but for
    those of files that are open at once, on one loop."""

    def __init__(self, keep: str, write: Write, send: Send) -> None:
        self._keep = keep
        self._write = write
        self._send = send
        self._nonce = uuid.uuid4().hex[:6]
        self._files = 0
        self._waiting: list[Batch] = []
        self._open: Batch | None = None

    async def add(self, upload: KeptUpload, unsent: bytes = b"", *, at_once: bool = False) -> str:
        """Keep an upload, whose bytes before its tail are still to be sent; its token. `at_once`: it is kept when this
        returns.

        Raises:
            StoreError: what was due could not be saved; nothing is kept of this upload.
        """
        if self._open is None:
            self._open = Batch(kept_uploads(self._keep, self._files, self._nonce))
            self._files += 1
            self._waiting.append(self._open)
        batch, index = self._open, len(self._open.uploads)
        batch.uploads.append(upload)
        if unsent:
            batch.unsent[index] = unsent
        batch.bytes += len(unsent) + len(upload.tail) + len(upload.path) + len(upload.session)
        if at_once or batch.bytes >= BATCH_BYTES:
            self._open = None
            try:
                await self._save(batch)
            except BaseException:
                self._drop(batch, index)
                raise
        return token_of(batch.file, index)

    async def save(self) -> None:
        """Save, and send, all that waits. Again, where it has failed.

        Raises:
            StoreError: something was not.
        """
        self._open = None
        for batch in list(self._waiting):
            await self._save(batch)

    async def _save(self, batch: Batch) -> None:
        if not batch.is_written:
            await self._write(batch.file, _encode(batch.uploads))
            batch.is_written = True

        async def send(index: int) -> None:
            upload = batch.uploads[index]
            if upload is not None and index in batch.unsent:
                await self._send(upload, batch.unsent[index])
            batch.unsent.pop(index, None)

        await for_each(list(batch.unsent), send, at_once=SENT_AT_ONCE, done=lambda done: None)
        if batch in self._waiting:
            self._waiting.remove(batch)

    def take(self, token: str) -> KeptUpload | None:
        """An upload that waits here, which is not kept any longer; None where it does not wait."""
        file, index = place_of(token)
        for batch in self._waiting:
            if batch.file == file and index < len(batch.uploads):
                upload = batch.uploads[index]
                self._drop(batch, index)
                return upload
        return None

    def _drop(self, batch: Batch, index: int) -> None:
        batch.uploads[index] = None
        batch.unsent.pop(index, None)
        if not any(batch.uploads) and batch in self._waiting:
            self._waiting.remove(batch)
            self._open = None if self._open is batch else self._open

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting


def keep_of(token: str) -> str:
    """The directory in which the file of a token is."""
    return parent_of(place_of(token)[0])

"""How a task attempt's file gets to Cloud Storage at once: one insert, or a resumable upload, part after part.

Both are sent if nothing is there. What a lost answer was is asked: an insert by checksum and length of what is there,
a resumable upload by its state.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import google_crc32c
from lockgate.model.errors import AnswerLost, FileExists, StoreError
from lockgate.model.files import FileStatus
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer
from lockgate.stores.http.upload import UploadSteps

from lockgate_gcs.answers import error_of, json_of
from lockgate_gcs.calls import Calls
from lockgate_gcs.identity import content_of, identity_of, status_of
from lockgate_gcs.session import RETRY_SECONDS, TRIES, Session


class Checked:
    """The checksum of what was written, as an identity."""

    def __init__(self) -> None:
        self._checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]
        self.length = 0

    def add(self, content: bytes) -> None:
        """More bytes."""
        self._checksum.update(content)
        self.length += len(content)

    @property
    def identity(self) -> str:
        """The identity of an object that holds them, but for its generation."""
        return identity_of(base64.b64encode(self._checksum.digest()).decode(), self.length, "")


class ObjectUpload(UploadSteps):
    """The upload of one object at a path."""

    def __init__(self, client: StoreClient, calls: Calls, path: str) -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self._session = Session(client, calls, path)
        self._written = Checked()

    async def whole(self, content: bytes) -> FileStatus:
        """One insert."""
        self._written.add(content)
        call = self._calls.insert(self._path, content, absent=True)
        doubtful = False
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            try:
                answer = await self._client.ask(call)
            except AnswerLost as error:
                doubtful, lost = True, error
                continue
            if answer.status in (200, 201):
                return self._checked(answer)
            if answer.status == 412:
                found = await self._ours() if doubtful or answer.doubtful else None
                if found is not None:
                    return found
                raise FileExists("an object is there already", where=call.where)
            raise error_of(call, answer)
        raise lost

    async def part(self, index: int, content: bytes) -> None:
        """The next part of a resumable upload."""
        if not self._session.uri:
            await self._session.begin()
        await self._send(content, last=False)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part; the object appears."""
        return self._checked(await self._send(rest, last=True))

    async def give_up(self) -> None:
        """Cancel the upload, which would be kept for a week."""
        await self._session.give_up()

    async def _send(self, content: bytes, *, last: bool) -> Answer:
        first = self._written.length
        self._written.add(content)
        answer = await self._session.send(content, first, self._written.length if last else None)
        if answer.status == 412:
            raise FileExists("an object is there already", where=str(self._calls.root.child(self._path)))
        if answer.status not in (200, 201, 308):
            raise error_of(self._calls.upload_state("", self._path), answer)
        return answer

    def _checked(self, answer: Answer) -> FileStatus:
        status = status_of(self._path, json_of(answer))
        if status.identity and content_of(status.identity) != content_of(self._written.identity):
            raise StoreError(
                "the store holds other bytes than were sent: the checksums differ", where=str(self._calls.root)
            )
        return status

    async def _ours(self) -> FileStatus | None:
        answer = await self._client.ask(self._calls.status(self._path))
        if answer.status != 200:
            return None
        status = status_of(self._path, json_of(answer))
        return status if content_of(status.identity) == content_of(self._written.identity) else None

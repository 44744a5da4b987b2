"""How a task attempt's file gets to Cloud Storage: one insert, or a resumable upload, part after part.

Both are sent if nothing is there. What a lost answer was is asked: an insert by checksum and length of what is there,
a resumable upload by its state. The session's URI lets whoever has it write the object, so it is never shown.
"""

from __future__ import annotations

import asyncio
import base64
import re
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

TRIES = 8
RETRY_SECONDS = 0.2

_STORED = re.compile(r"bytes=0-(\d+)")


class ObjectUpload(UploadSteps):
    """The upload of one object at a path."""

    def __init__(self, client: StoreClient, calls: Calls, path: str) -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self._session = ""
        self._sent = 0
        self._checksum: Any = google_crc32c.Checksum()  # type: ignore[no-untyped-call]

    async def whole(self, content: bytes) -> FileStatus:
        """One insert."""
        self._checksum.update(content)
        self._sent = len(content)
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
        if not self._session:
            call = self._calls.begin_upload(self._path)
            answer = await self._client.ask(call)
            self._session = answer.headers.get("location", "")
            if answer.status not in (200, 201) or not self._session:
                raise error_of(call, answer)
        await self._send(content, last=False)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part; the object appears."""
        answer = await self._send(rest, last=True)
        assert answer is not None
        return self._checked(answer)

    async def give_up(self) -> None:
        """Cancel the upload, which would be kept for a week."""
        if self._session:
            await self._client.ask(self._calls.cancel_upload(self._session, self._path))

    async def _send(self, content: bytes, *, last: bool) -> Answer | None:
        self._checksum.update(content)
        begin = self._sent
        end = begin + len(content)
        total = end if last else None
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            call = self._calls.upload_part(self._session, self._path, content[self._sent - begin :], self._sent, total)
            try:
                answer = await self._client.ask(call)
            except AnswerLost:
                answer = await self._client.ask(self._calls.upload_state(self._session, self._path))
            if answer.status in (200, 201):
                self._sent = end
                return answer
            if answer.status == 308:
                match = _STORED.fullmatch(answer.headers.get("range", ""))
                self._sent = int(match.group(1)) + 1 if match else 0
                if self._sent < begin:
                    raise StoreError("the store has lost a part of the upload", where=call.where)
                if self._sent == end and not last:
                    return None
                continue
            if answer.status == 412:
                raise FileExists("an object is there already", where=call.where)
            raise error_of(call, answer)
        raise AnswerLost("an upload makes no progress", where=call.where)

    def _checked(self, answer: Answer) -> FileStatus:
        status = status_of(self._path, json_of(answer))
        if status.identity and content_of(status.identity) != content_of(self._expected()):
            raise StoreError(
                "the store holds other bytes than were sent: the checksums differ", where=str(self._calls.root)
            )
        return status

    def _expected(self) -> str:
        checksum = base64.b64encode(self._checksum.digest()).decode()
        return identity_of(checksum, self._sent, "0")

    async def _ours(self) -> FileStatus | None:
        answer = await self._client.ask(self._calls.status(self._path))
        if answer.status != 200:
            return None
        status = status_of(self._path, json_of(answer))
        return status if content_of(status.identity) == content_of(self._expected()) else None

"""A resumable upload: begun, sent in parts, asked about, given up.

The session's URI lets whoever has it write the object, so it is never shown. What was given when it began, the
condition that nothing is there among it, is judged when it ends.

Source: the pages "Resumable uploads" and "Perform resumable uploads" of the Cloud Storage documentation.
"""

from __future__ import annotations

import asyncio
import re

from lockgate.model.errors import AnswerLost, StoreError, StoreUnavailable
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer

from lockgate_gcs.answers import error_of
from lockgate_gcs.calls import Calls

TRIES = 8
RETRY_SECONDS = 0.2

ENDED = frozenset({404, 410, 499})
"""Answers of a session that is none any more: expired or never there, broken, given up."""

_STORED = re.compile(r"bytes=0-(\d+)")


class Session:
    """One upload; `uri` is empty until it has begun."""

    def __init__(self, client: StoreClient, calls: Calls, path: str, uri: str = "") -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self.uri = uri

    def __repr__(self) -> str:
        return f"Session({self._path!r})"

    async def begin(self, mark: str = "") -> None:
        """Begin it; the object will carry `mark`.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: it has not begun.
        """
        call = self._calls.begin_upload(self._path, mark)
        answer = await self._client.ask(call)
        uri = answer.headers.get("location", "")
        if answer.status not in (200, 201) or not uri:
            raise error_of(call, answer)
        self.uri = uri

    async def send(self, content: bytes, first: int, total: int | None = None) -> Answer:
        """Send bytes from `first` on, again from where the store says as long as it has not all of them; with `total`,
        the last ones, which end the upload. The answer: 308 where all of them are stored, 200 or 201 with the object,
        or a refusal. Bytes that are stored already are sent again to no effect.

        Raises:
            AnswerLost: the upload may have ended.
            StoreUnavailable: no answer came.
            StoreError: the store has lost what it had.
        """
        end = first + len(content)
        stored, lost = first, False
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            call = self._calls.upload_part(self.uri, self._path, content[stored - first :], stored, total)
            try:
                answer = await self._client.ask(call)
            except AnswerLost:
                lost = True
                answer = await self._state()
            except StoreUnavailable as error:
                if lost:
                    raise AnswerLost(error.what, where=call.where) from error
                raise
            if answer.status != 308:
                return answer
            match = _STORED.fullmatch(answer.headers.get("range", ""))
            stored = int(match.group(1)) + 1 if match else 0
            if stored < first:
                raise StoreError("the store has lost a part of the upload", where=call.where)
            if stored == end and total is None:
                return answer
        raise AnswerLost("an upload makes no progress", where=call.where)

    async def _state(self) -> Answer:
        call = self._calls.upload_state(self.uri, self._path)
        try:
            return await self._client.ask(call)
        except AnswerLost:
            raise
        except StoreUnavailable as error:
            raise AnswerLost(error.what, where=call.where) from error

    async def give_up(self) -> Answer | None:
        """Give it up; None where it has not begun."""
        return await self._client.ask(self._calls.cancel_upload(self.uri, self._path)) if self.uri else None

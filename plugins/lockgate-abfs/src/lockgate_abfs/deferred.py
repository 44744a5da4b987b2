"""Deferred uploads on Azure: blocks that wait for a name, and the list that makes a file of them.

Nobody sees a block before a Put Block List names it. The list is sent with `If-None-Match: *`, and the mark goes with
it as metadata. Azure knows no upload ids: all blocks that wait for one name are one pool, and whoever commits anything
of that name ends the others' uploads. So names must hold what no other attempt's do (`Store.uploads_share_names`).

A block without content is refused (Azurite#329, adlfs#154), and a list that names no block cannot be taken away from
who may still send it. So a file without content is a block of one byte, `TICKET`, and is completed in two steps: first
that block becomes a blob, which only the one can do whose upload was not given up; then it is emptied, if it is still
that very blob.

Source: the REST pages "Put Block", "Put Block List"; "Specifying conditional headers for Blob service operations".
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from lockgate.engine.run.store import Progress, no_progress
from lockgate.model.errors import AccessDenied, AnswerLost, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, Unknown
from lockgate.model.uploads import (
    BegunUpload,
    Completed,
    CompletionOutcome,
    GivenUp,
    NotCompleted,
    Upload,
    UploadRefusal,
)
from lockgate.model.urls import check_relative
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer
from lockgate.stores.http.upload import UploadSteps

from lockgate_abfs.answers import bare_etag, code_of, says_exists
from lockgate_abfs.blob_look import look_at
from lockgate_abfs.blocks import block_id, blocks_of, new_nonce, token_of
from lockgate_abfs.calls import Calls
from lockgate_abfs.give_up import GiveUp
from lockgate_abfs.marks import EMPTYING, FOLDER, GIVEN_UP, MARK, is_folder, metadata_of
from lockgate_abfs.upload import send_block

EXPIRE_SECONDS = 7 * 86400.0
"""Blocks that nobody commits are kept for a week after the last of them ("Put Block", remarks)."""

TICKET = b"\n"
"""The block of a file without content: what a reader of lines takes for none, should one look between the steps."""

TRIES = 6
RETRY_SECONDS = 0.1


class DeferredUpload(UploadSteps):
    """The steps of one upload that waits to be completed."""

    def __init__(self, client: StoreClient, calls: Calls, path: str, mark: str) -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self._mark = mark
        self._nonce = new_nonce()
        self._count = 0
        self._length = 0

    async def whole(self, content: bytes) -> FileStatus:
        """One block."""
        return await self.finish(content)

    async def part(self, index: int, content: bytes) -> None:
        """One block, which can be sent again."""
        self._count = max(self._count, index + 1)
        self._length += len(content)
        await send_block(self._client, self._calls, self._path, self._nonce, index, content)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last block."""
        if rest:
            await self.part(self._count, rest)
        is_empty = not self._length
        if is_empty:
            await self.part(0, TICKET)
            self._length = 0
        token = token_of(self._nonce, self._count, is_empty=is_empty)
        return FileStatus(self._path, self._length, proof=self._mark, upload=token)

    async def give_up(self) -> None:
        """Nothing: nobody can complete what was not finished, and its blocks go by themselves."""


class DeferredUploads:
    """The deferred uploads of one store object. `folders`: names are no directories there, so that a blob can say that
    it stands for one."""

    def __init__(self, client: StoreClient, calls: Calls, *, folders: bool) -> None:
        self._client = client
        self._calls = calls
        self._folder: Mapping[str, str] = {FOLDER: "true"} if folders else {}
        self._give_up = GiveUp(client, calls, self._folder)

    def steps(self, path: str, mark: str) -> UploadSteps:
        """The steps of a new one."""
        return DeferredUpload(self._client, self._calls, check_relative(path), mark)

    async def abort(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """See `Store.abort_uploads`."""

        async def abort(upload: Upload | BegunUpload) -> GivenUp:
            nonce = blocks_of(upload.token)[0] if upload.token else ""
            return await self._give_up(check_relative(upload.path), nonce)

        return await for_each(uploads, abort, at_once=self._client.in_flight_max, done=no_progress)

    async def complete(self, uploads: Sequence[Upload], progress: Progress) -> list[CompletionOutcome]:
        """See `Store.complete_uploads`."""
        return await for_each(uploads, self._complete, at_once=self._client.in_flight_max, done=progress)

    async def _complete(self, upload: Upload) -> CompletionOutcome:
        nonce, blocks = blocks_of(upload.token)
        answer: Answer | None = None
        doubtful = False
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            try:
                answer = await self._commit(upload, nonce, blocks)
                if answer.status == 201:
                    return await self._emptied(upload, answer) if not blocks else Completed(_etag(answer))
                doubtful = doubtful or answer.doubtful
                found = await self._found(upload, emptying=nonce if not blocks else "")
            except AnswerLost as error:
                return await self._known_or(upload, Unknown(error.what))
            except StoreError as error:
                if doubtful:
                    return Unknown(error.what)
                denied = isinstance(error, AccessDenied)
                return NotCompleted(UploadRefusal.NOT_ALLOWED if denied else UploadRefusal.FAILED, error.what)
            if found is not None:
                return found
            if not says_exists(answer):
                break
            # Something was there, and is not any more: somebody gives this upload up, or another of this name.
        assert answer is not None
        if says_exists(answer):
            return NotCompleted(UploadRefusal.TARGET_EXISTS, "something that is no file")
        if code_of(answer) == "InvalidBlockList":
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        if doubtful:
            return Unknown(f"{answer.status} after a try that may have succeeded")
        return _refused(answer)

    async def _commit(self, upload: Upload, nonce: str, blocks: Sequence[str]) -> Answer:
        path = check_relative(upload.path)
        if blocks:
            return await self._client.ask(self._calls.put_block_list(path, blocks, metadata={MARK: upload.mark}))
        between = {EMPTYING: nonce, **self._folder}
        return await self._client.ask(self._calls.put_block_list(path, [block_id(nonce, 0)], metadata=between))

    async def _emptied(self, upload: Upload, ticket: Answer) -> CompletionOutcome:
        """The second step of a file without content: what the first has made, which nobody has changed, is emptied."""
        call = self._calls.put_block_list(upload.path, [], metadata={MARK: upload.mark}, identity=_etag(ticket))
        answer = await self._client.ask(call)
        if answer.status == 201:
            return Completed(_etag(answer))
        if (found := await self._found(upload)) is not None:
            return found
        if answer.status in (404, 412):
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        return _refused(answer)

    async def _found(self, upload: Upload, *, emptying: str = "") -> CompletionOutcome | None:
        """What stands at the upload's path says: completed, also by the step that was still to do; another's file; or
        nothing that counts."""
        answer = await look_at(self._client, self._calls, upload.path)
        if answer is None:
            return None
        metadata = metadata_of(answer)
        if emptying and metadata.get(EMPTYING) == emptying:
            return await self._emptied(upload, answer)
        if GIVEN_UP in metadata:  # which has dropped all that waited for the name
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        if EMPTYING in metadata:
            return None
        if is_folder(metadata):
            return NotCompleted(UploadRefusal.TARGET_EXISTS, "a directory")
        length = int(answer.headers.get("content-length", "0"))
        if metadata.get(MARK) == upload.mark and upload.length in (-1, length):
            return Completed(_etag(answer))
        return NotCompleted(UploadRefusal.TARGET_EXISTS)

    async def _known_or(self, upload: Upload, otherwise: Unknown) -> CompletionOutcome:
        try:
            found = await self._found(upload)
        except StoreUnavailable:
            return otherwise
        return found if isinstance(found, Completed) else otherwise


def _etag(answer: Answer) -> str:
    return bare_etag(answer.headers.get("etag", ""))


def _refused(answer: Answer) -> NotCompleted:
    reason = UploadRefusal.NOT_ALLOWED if answer.status in (401, 403) else UploadRefusal.FAILED
    return NotCompleted(reason, f"{answer.status} {code_of(answer)}".rstrip())

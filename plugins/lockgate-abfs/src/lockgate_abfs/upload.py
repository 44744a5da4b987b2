"""How a task attempt's file gets to Azure: one Put Blob, or blocks and a block list; never Data Lake appends beside
them, since the service refuses to mix the two on one file.

Whole and list are sent if nothing is there, and the answer of a second try is checked: a file that this upload made
is told by its MD5, or by its blocks' ids, which hold a nonce.

A pending upload belongs to the file's name alone (Azure knows no upload ids), and staged names hold the task attempt.
One that is given up is dropped by the service after a week.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib

from lockgate.model.errors import AnswerLost, FileExists, PathError
from lockgate.model.files import FileStatus
from lockgate.stores.doubt import Doubt
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer, Call
from lockgate.stores.http.upload import UploadSteps

from lockgate_abfs.answers import bare_etag, error_of, says_exists, status_of
from lockgate_abfs.blocks import block_id, new_nonce, refuse_too_many
from lockgate_abfs.calls import Calls

BLOCKS_IN_FLIGHT = 4
"""Of one file: with the block that is being filled, the memory that its upload takes."""

TRIES = 6
RETRY_SECONDS = 0.2


def refuse_dots(path: str, where: str) -> None:
    """Make sure that a path is kept as it is given.

    Raises:
        PathError: an element of it ends in a dot.
    """
    if any(element.endswith(".") for element in path.split("/")):
        raise PathError(
            "an element of an Azure path may not end in a dot",
            where=where,
            next_step="give the file, or the value that it is partitioned by, another name",
        )


async def send_block(client: StoreClient, calls: Calls, path: str, nonce: str, index: int, content: bytes) -> None:
    """Send one block of a file, which can be sent again.

    Raises:
        StoreError: there are too many, or the service refuses it.
    """
    refuse_too_many(index, str(calls.root.child(path)))
    call = calls.put_block(path, block_id(nonce, index), content)
    answer = await client.ask(call)
    if answer.status != 201:
        raise error_of(call, answer)


class BlobUpload(UploadSteps):
    """The upload of one file at a path."""

    def __init__(self, client: StoreClient, calls: Calls, path: str) -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self._nonce = new_nonce()
        self._blocks = 0
        self._length = 0

    async def whole(self, content: bytes) -> FileStatus:
        """Put Blob."""
        self._length = len(content)
        return await self._publish(self._calls.put_blob(self._path, content, absent=True), content)

    async def part(self, index: int, content: bytes) -> None:
        """Put Block, which can be repeated."""
        self._blocks = max(self._blocks, index + 1)
        self._length += len(content)
        await send_block(self._client, self._calls, self._path, self._nonce, index, content)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last block, and Put Block List."""
        if rest:
            await self.part(self._blocks, rest)
        return await self._publish(self._calls.put_block_list(self._path, self._ids()), None)

    def _ids(self) -> list[str]:
        return [block_id(self._nonce, index) for index in range(self._blocks)]

    async def give_up(self) -> None:
        """Nothing can be freed: there is no call for it, and the blocks of a name that never was go by themselves."""

    async def _publish(self, call: Call, content: bytes | None) -> FileStatus:
        lost = AnswerLost("not tried", where=call.where)
        with Doubt(call.where) as doubt:
            for attempt in range(TRIES):
                if attempt:
                    await asyncio.sleep(RETRY_SECONDS * 2**attempt)
                try:
                    answer = await self._client.ask(call)
                except AnswerLost as error:
                    doubt.is_open, lost = True, error
                    found = await self._ours(content)
                    if found is not None:
                        return found
                    continue
                if answer.status == 201:
                    return FileStatus(self._path, self._length, bare_etag(answer.headers.get("etag", "")))
                doubt.is_open = doubt.is_open or answer.doubtful
                # After a published block list its blocks are gone, so that a second try is told they are invalid.
                if doubt.is_open:
                    found = await self._ours(content)
                    if found is not None:
                        return found
                if says_exists(answer):
                    raise FileExists("a file is there already", where=call.where)
                raise error_of(call, answer)
            raise lost

    async def _ours(self, content: bytes | None) -> FileStatus | None:
        """The file's status if it is there and this upload has made it."""
        answer = await self._client.ask(self._calls.blob_status(self._path))
        if answer.status != 200:
            return None
        status = status_of(self._path, answer)
        if status.length != self._length or status.is_directory:
            return None
        made = self._is_content(answer, content) if content is not None else await self._is_of_blocks()
        return status if made else None

    @staticmethod
    def _is_content(answer: Answer, content: bytes) -> bool:
        digest = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        return answer.headers.get("content-md5", "") == digest

    async def _is_of_blocks(self) -> bool:
        answer = await self._client.ask(self._calls.block_list(self._path))
        return answer.status == 200 and all(f"<Name>{block}</Name>".encode() in answer.body for block in self._ids())

"""Giving up what waits for a name: Azure has no call for it.

Whatever is committed under a name drops the blocks that wait for it. So an empty blob is put there, if nothing is, and
deleted at once: whoever later sends the list of the blocks that were there is told that it is invalid. For the time
between the two requests the blob can be seen; `marks` says by whom. Nothing is put where nothing of the upload waits:
a list names finished blocks only, so what is not there any more is not committed any more.

Who dies between the two requests leaves the blob, which says what it is. Whoever gives the upload up again, as recovery
does, deletes it, and `Store.list_uploads` shows it, so that gc does.

Where a file stands that another has written, and blocks wait for its name, they can be dropped by nothing but a change
of that file. They are left: a list of them is refused as long as the file is there, and they go with it, or by
themselves after a week.

Source: the REST pages "Put Block" ("if Put Blob is called on the blob, any uncommitted blocks will be garbage
collected"), "Put Block List" (blocks that a list does not name are dropped; an empty list makes an empty blob,
azure-storage-cpp#335), "Get Block List". By Put Block List, since Azurite drops no blocks at a Put Blob, and takes a
name with waiting blocks for a blob that exists. Not by Delete Blob: whether that drops blocks where there is no blob is
told in two ways, 404 or not (azure-storage-node#350), and no condition keeps it from a file that was completed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from xml.etree import ElementTree

from lockgate.model.errors import AnswerLost, StoreUnavailable
from lockgate.model.uploads import GivenUp
from lockgate.stores.http.client import StoreClient

from lockgate_abfs.answers import CONTAINER_MISSING, bare_etag, code_of, error_of, says_exists
from lockgate_abfs.blob_look import look_at
from lockgate_abfs.blocks import is_of
from lockgate_abfs.calls import Calls
from lockgate_abfs.marks import EMPTYING, GIVEN_UP, metadata_of

TRIES = 8
RETRY_SECONDS = 0.05

TICKET_BYTES_MAX = 1
"""A blob that is longer is neither the one that is put here nor one that is about to become a file without content."""


class GiveUp:
    """Gives uploads up; `folder` is the metadata by which a blob stands for a directory, where one can."""

    def __init__(self, client: StoreClient, calls: Calls, folder: Mapping[str, str]) -> None:
        self._client = client
        self._calls = calls
        self._metadata = {GIVEN_UP: "true", **folder}

    async def __call__(self, path: str, nonce: str) -> GivenUp:
        """Give up the upload whose blocks have this nonce; without one, all that waits for the name. It has `ENDED`
        where its blocks waited, and no blob stood there.

        Raises:
            StoreUnavailable: it may still be completed.
            StoreError: the service refuses.
        """
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            waiting, length = await self._waiting(path, nonce)
            if not waiting:
                if length is None or length > TICKET_BYTES_MAX or await self._is_clear(path, nonce):
                    return GivenUp.NOT_FOUND
            elif await self._drop(path):
                return GivenUp.ENDED
            elif attempt and await self._is_taken(path):
                return GivenUp.NOT_FOUND
        raise StoreUnavailable("what waits for a name is not given up", where=str(self._calls.root.child(path)))

    async def _waiting(self, path: str, nonce: str) -> tuple[bool, int | None]:
        """Whether blocks of the upload wait, and how long the blob is that stands there, if one does."""
        call = self._calls.block_list(path, waiting=True)
        answer = await self._client.ask(call)
        if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
            return False, None
        # On a hierarchical account a directory has no blocks, and is no blob.
        if answer.status == 409:
            return False, None
        if answer.status != 200:
            raise error_of(call, answer)
        root = ElementTree.fromstring(answer.body.decode("utf-8-sig"))  # noqa: S314  # the service's own answer
        names = [name.text or "" for name in root.iterfind("UncommittedBlocks/Block/Name")]
        waiting = any(is_of(nonce, name) for name in names) if nonce else bool(names)
        return waiting, int(answer.headers.get("x-ms-blob-content-length") or 0)

    async def _drop(self, path: str) -> bool:
        """Put the blob and delete it; false where something is there, or no answer came."""
        call = self._calls.put_block_list(path, [], metadata=self._metadata)
        try:
            answer = await self._client.ask(call)
        except AnswerLost:
            return False
        if says_exists(answer):
            return False
        if answer.status != 201:
            raise error_of(call, answer)
        return await self._delete(path, bare_etag(answer.headers.get("etag", "")))

    async def _is_clear(self, path: str, nonce: str) -> bool:
        """Nothing waits: delete what somebody who died has left there, and say whether nothing is left of that."""
        answer = await look_at(self._client, self._calls, path)
        if answer is None:
            return True
        metadata = metadata_of(answer)
        emptying = metadata.get(EMPTYING)
        if GIVEN_UP in metadata or (emptying is not None and nonce in ("", emptying)):
            return await self._delete(path, bare_etag(answer.headers.get("etag", "")))
        return True

    async def _delete(self, path: str, etag: str) -> bool:
        """Delete that blob; false where it was gone, or another is there, which is looked at once more."""
        call = self._calls.delete_blob(path, identity=etag)
        answer = await self._client.ask(call)
        if answer.status in (200, 202):
            return True
        if answer.status in (404, 412):
            return False
        raise error_of(call, answer)

    async def _is_taken(self, path: str) -> bool:
        """Whether a file stands there which is neither of ours nor about to become one."""
        answer = await look_at(self._client, self._calls, path)
        if answer is None:
            return False
        metadata = metadata_of(answer)
        return GIVEN_UP not in metadata and EMPTYING not in metadata

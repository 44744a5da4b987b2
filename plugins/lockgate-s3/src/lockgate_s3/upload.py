"""How a task attempt's file gets to S3: one PUT or an upload in parts, completed at its end, or later by another.

The MD5 of every request's body goes with it, so the service checks what it was sent. The etag of an object in parts is
the MD5 of its parts' MD5s, with their number: it is known before the object is there. Not where objects are encrypted
with keys of KMS, or of customers: their etags are no digests (API reference, "Object": ETag). A part's etag tells.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib

import msgspec
from lockgate.model.errors import AnswerLost, FileExists, StoreError
from lockgate.model.files import FileStatus
from lockgate.stores.doubt import Doubt
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Call
from lockgate.stores.http.upload import UploadSteps

from lockgate_s3.answers import code_of, error_of, etag_of, status_of_head, xml_of
from lockgate_s3.calls import Calls

PARTS_MAX = 10_000
TRIES = 6
RETRY_SECONDS = 0.1


class Parts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What completes an upload: its id, and its parts' etags and checksums, these of the algorithm `checked_by`."""

    upload: str
    etags: tuple[str, ...]
    checked_by: str = ""
    checksums: tuple[str, ...] = ()

    def checksum_elements(self) -> list[str]:
        """What goes with each part when the upload is completed."""
        name = f"Checksum{self.checked_by.upper()}"
        return [f"<{name}>{each}</{name}>" for each in self.checksums]


def encode_parts(parts: Parts) -> str:
    """As a token."""
    return msgspec.json.encode(parts).decode()


def decode_parts(token: str) -> Parts:
    """From a token.

    Raises:
        StoreError: it is none of this store's.
    """
    try:
        return msgspec.json.decode(token, type=Parts)
    except msgspec.DecodeError as error:
        raise StoreError("what should complete an upload cannot be read", where=token[:100]) from error


def complete_call(calls: Calls, path: str, parts: Parts, replaces: str = "") -> Call:
    """The request that completes an upload, if no object is there, or, where it `replaces` one, over that."""
    elements = parts.checksum_elements()
    return calls.complete_upload(path, parts.upload, parts.etags, elements, absent=not replaces, identity=replaces)


class PartsUpload(UploadSteps):
    """The upload of one object in parts; `mark` is what it will carry. The steps of a deferred one: `finish` leaves it
    to be completed."""

    def __init__(self, client: StoreClient, calls: Calls, path: str, mark: str) -> None:
        self._client = client
        self._calls = calls
        self._path = path
        self._mark = mark
        self._upload = ""
        self._etags: dict[int, str] = {}
        self._checksums: dict[int, str] = {}
        self._etags_are_digests = True
        self._length = 0
        self._beginning = asyncio.Lock()

    async def whole(self, content: bytes) -> FileStatus:
        """One part, or none."""
        try:
            return await self.finish(content)
        except BaseException:
            await self.give_up()
            raise

    async def part(self, index: int, content: bytes) -> None:
        """One part."""
        if index >= PARTS_MAX:
            raise StoreError(
                f"S3 takes no more than {PARTS_MAX} parts an object",
                where=str(self._calls.root.child(self._path)),
                next_step="raise store.part_bytes, or write smaller files (maxRecordsPerFile)",
            )
        async with self._beginning:
            if not self._upload:
                await self._begin()
        call = self._calls.upload_part(self._path, self._upload, index + 1, content)
        answer = await self._client.ask(call)
        if answer.status != 200:
            raise error_of(call, answer)
        self._length += len(content)
        self._etags[index] = answer.headers.get("etag", "").strip('"')
        if self._calls.checksum is not None:
            self._checksums[index] = call.headers[self._calls.checksum.header]
        if self._etags[index] != base64.b64decode(call.headers["content-md5"]).hex():
            self._etags_are_digests = False

    async def _begin(self) -> None:
        call = self._calls.begin_upload(self._path, self._mark)
        answer = await self._client.ask(call)
        self._upload = xml_of(answer).findtext("UploadId") or ""
        if answer.status != 200 or not self._upload:
            raise error_of(call, answer)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part. Nobody sees the object."""
        # A file without content is one part without any, as S3A's `S3ABlockOutputStream` sends it: an upload that is
        # given up cannot be completed, which could not be said of a PUT that somebody may still send.
        if rest or not self._etags:
            await self.part(len(self._etags), rest)
        numbers = sorted(self._etags)
        parts = Parts(self._upload, tuple(self._etags[index] for index in numbers))
        if (checksum := self._calls.checksum) is not None:
            checksums = tuple(self._checksums[index] for index in numbers)
            parts = msgspec.structs.replace(parts, checked_by=checksum.name, checksums=checksums)
        identity = foreseen(parts) if self._etags_are_digests else ""
        return FileStatus(self._path, self._length, identity, proof=self._mark, upload=encode_parts(parts))

    async def give_up(self) -> None:
        """Abort the upload, which would be kept, and paid for, for ever."""
        if self._upload:
            await self._client.ask(self._calls.abort_upload(self._path, self._upload))


class ObjectUpload(PartsUpload):
    """One that is completed at its end, if nothing is there."""

    async def whole(self, content: bytes) -> FileStatus:
        """One PUT."""
        return await put_if_absent(self._client, self._calls, self._path, content)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part, and the object appears."""
        pending = await super().finish(rest)
        parts = decode_parts(pending.upload)
        call = complete_call(self._calls, self._path, parts)
        try:
            answer = await self._client.ask(call)
            if answer.status == 200 and not code_of(answer):
                return FileStatus(self._path, pending.length, etag_of(answer) or pending.identity)
            doubtful = answer.doubtful
        except AnswerLost:
            doubtful = True
        status = await self._client.ask(self._calls.status(self._path))
        found = status_of_head(self._path, status) if status.status == 200 else None
        if doubtful and found is not None and found.identity == pending.identity:
            return found
        may_be_ours = doubtful and not pending.identity
        if found is not None and not may_be_ours:
            raise FileExists("an object is there already", where=call.where)
        raise AnswerLost("the upload may have been completed", where=call.where)


async def put_if_absent(client: StoreClient, calls: Calls, path: str, content: bytes) -> FileStatus:
    """One PUT that is refused where an object is; after a lost answer, the object that is there says whose it is.

    Raises:
        FileExists: something else is there.
        AnswerLost: it may have been written.
    """
    call = calls.put(path, content, absent=True)
    ours = hashlib.md5(content, usedforsecurity=False).hexdigest()
    lost = AnswerLost("not tried", where=call.where)
    with Doubt(call.where) as doubt:
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
            try:
                answer = await client.ask(call)
            except AnswerLost as error:
                doubt.is_open, lost = True, error
                continue
            if answer.status == 200:
                return FileStatus(path, len(content), answer.headers.get("etag", "").strip('"'))
            doubt.is_open = doubt.is_open or answer.doubtful
            if answer.status == 409:  # another's write is under way: its end decides
                continue
            if answer.status != 412:
                raise error_of(call, answer)
            if doubt.is_open:
                head = await client.ask(calls.status(path))
                found = status_of_head(path, head) if head.status == 200 else None
                if found is not None and (found.length, found.identity) == (len(content), ours):
                    return found
                # Where etags are no digests, the content tells.
                if found is not None and found.length == len(content) and await _holds(client, calls, path, content):
                    return found
            raise FileExists("an object is there already", where=call.where)
        raise lost


async def _holds(client: StoreClient, calls: Calls, path: str, content: bytes) -> bool:
    answer = await client.ask(calls.read(path, max(1, len(content))))
    return answer.status in (200, 206) and answer.body == content


def foreseen(parts: Parts) -> str:
    """The etag that the object will have; empty where a part's is no MD5."""
    try:
        joined = b"".join(bytes.fromhex(etag) for etag in parts.etags)
    except ValueError:
        return ""
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(parts.etags)}"

"""Deferred uploads on Cloud Storage: resumable sessions that the job commit ends.

A session is begun with the mark that the object will carry, and with the condition that nothing is there, which is
judged when it ends. (An upload in parts by the XML API knows no conditions.) All requests before the last carry
multiples of 256 KiB, so up to 256 KiB less a byte are left for that one, and are kept for whoever sends it.

Source: as in `session`; "XML API multipart uploads" of the same documentation, on conditions.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence

from lockgate.engine.run.logs import get_log
from lockgate.engine.run.store import Progress, Store, no_progress
from lockgate.model.errors import AccessDenied, AnswerLost, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, Unknown
from lockgate.model.layout import is_kept_uploads
from lockgate.model.uploads import (
    BegunUpload,
    Completed,
    CompletionOutcome,
    GivenUp,
    NotCompleted,
    Upload,
    UploadRefusal,
)
from lockgate.model.urls import check_relative, parent_of
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer
from lockgate.stores.http.upload import UploadSteps

from lockgate_gcs.answers import error_of, json_of, message_of
from lockgate_gcs.calls import Calls
from lockgate_gcs.identity import content_of, status_of
from lockgate_gcs.kept_uploads import (
    FILE_BYTES_MAX,
    Keeper,
    KeptUpload,
    decode_kept,
    keep_of,
    place_of,
    token_of,
)
from lockgate_gcs.session import ENDED, Session
from lockgate_gcs.settings import CHUNK_STEP
from lockgate_gcs.upload import Checked

log = get_log("lockgate.stores")

EXPIRE_SECONDS = 7 * 86400.0
"""A session lives a week ("Resumable uploads", session URIs)."""

FILES_AT_ONCE = 8
"""Files of kept uploads that are read at once where all are."""


class DeferredUploads:
    """The deferred uploads of one store object: begun here, or by anybody and kept at the store."""

    def __init__(self, store: Store, client: StoreClient, calls: Calls) -> None:
        self._store = store
        self._client = client
        self._calls = calls
        self._keepers: dict[str, Keeper] = {}

    def steps(self, path: str, mark: str, keep: str) -> UploadSteps:
        """The steps of a new one."""
        keeper = self._keepers.setdefault(keep, Keeper(keep, self._store.write_file, self._send))
        return DeferredUpload(self._client, self._calls, keeper, path, mark)

    async def _send(self, upload: KeptUpload, content: bytes) -> None:
        await send_part(self._session(upload), self._calls, upload.path, content, 0)

    def _session(self, upload: KeptUpload) -> Session:
        return Session(self._client, self._calls, upload.path, self._calls.session_of(upload.session))

    async def keep(self, keep: str) -> None:
        """See `Store.keep_uploads`."""
        if (keeper := self._keepers.get(keep)) is not None:
            await keeper.save()
            self._keepers.pop(keep, None)

    async def kept(self, directory: str, but: Collection[str]) -> AsyncIterator[Sequence[BegunUpload]]:
        """See `Store.kept_uploads`."""
        left_out = frozenset(but)
        async for page in self._store.list_tree(directory):
            files = [each for each in page if is_kept_uploads(each.path) and parent_of(each.path) not in left_out]
            for start in range(0, len(files), FILES_AT_ONCE):
                some = files[start : start + FILES_AT_ONCE]
                contents = await self._store.read_files([each.path for each in some], bytes_max=FILE_BYTES_MAX)
                for file, content in zip(some, contents, strict=True):
                    if uploads := self._begun_in(file, content):
                        yield uploads

    def _begun_in(self, file: FileStatus, content: bytes | None) -> list[BegunUpload]:
        try:
            found = decode_kept(content, str(self._calls.root.child(file.path))) if content is not None else []
        except StoreError as error:
            log.warning("uploads are left to expire: the file that keeps them cannot be read", error=str(error))
            return []
        named = {upload.session: (upload, index) for index, upload in enumerate(found) if upload is not None}
        return [BegunUpload(each.path, token_of(file.path, index), file.modified) for each, index in named.values()]

    # Completion

    async def complete(self, uploads: Sequence[Upload], progress: Progress) -> list[CompletionOutcome]:
        """See `Store.complete_uploads`."""
        files = KeptFiles(self._store, uploads)

        async def complete(upload: Upload) -> CompletionOutcome:
            async with files.of(upload) as kept:
                return await self._complete(upload, kept)

        return await for_each(uploads, complete, at_once=self._client.in_flight_max, done=progress)

    async def _complete(self, upload: Upload, kept: KeptUpload | None) -> CompletionOutcome:
        try:
            if kept is None or (kept.path, kept.mark) != (upload.path, upload.mark) or kept.total < 0:
                return await self._known(upload) or NotCompleted(UploadRefusal.UPLOAD_MISSING)
            answer = await self._session(kept).send(kept.tail, kept.total - len(kept.tail), kept.total)
            if answer.status in (200, 201):
                return self._completed(upload, answer)
            if (known := await self._known(upload)) is not None:
                return known
        except AnswerLost as error:
            return await self._known_or(upload, Unknown(error.what))
        except StoreError as error:
            denied = isinstance(error, AccessDenied)
            return NotCompleted(UploadRefusal.NOT_ALLOWED if denied else UploadRefusal.FAILED, error.what)
        if answer.status == 412:
            return NotCompleted(UploadRefusal.TARGET_EXISTS)
        if answer.status in ENDED:
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        if answer.doubtful:
            return Unknown(f"{answer.status} after a try that may have succeeded")
        reason = UploadRefusal.NOT_ALLOWED if answer.status in (401, 403) else UploadRefusal.FAILED
        return NotCompleted(reason, f"{answer.status} {message_of(answer)}".rstrip())

    def _completed(self, upload: Upload, answer: Answer) -> CompletionOutcome:
        found = status_of(upload.path, json_of(answer))
        if found.proof != upload.mark:
            return NotCompleted(UploadRefusal.FAILED, "the session has made another object")
        if upload.identity and content_of(found.identity) != content_of(upload.identity):
            return NotCompleted(UploadRefusal.FAILED, "the store holds other bytes than were sent")
        return Completed(found.identity)

    async def _known(self, upload: Upload) -> Completed | None:
        """What stands at the upload's path, if it is what the upload has become: a session that has ended tells it for
        a while only, and its condition then fails by its own object."""
        (found,) = await self._store.stat_files([upload.path])
        is_it = found is not None and upload.is_what(found, self._store.same_identity)
        return Completed(found.identity) if found is not None and is_it else None

    async def _known_or(self, upload: Upload, otherwise: Unknown) -> CompletionOutcome:
        try:
            return await self._known(upload) or otherwise
        except StoreUnavailable:
            return otherwise

    # Abort

    async def abort(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """See `Store.abort_uploads`. What a session that has ended by becoming an object answers to a cancellation, no
        page says: so whatever has a session may have."""
        files = KeptFiles(self._store, uploads)

        async def abort(upload: Upload | BegunUpload) -> GivenUp:
            kept = self._take(upload.token)
            if kept is not None:
                files.leave(upload)
                return await self._give_up(kept)
            async with files.of(upload) as kept:
                return GivenUp.NOT_FOUND if kept is None else await self._give_up(kept)

        return await for_each(uploads, abort, at_once=self._client.in_flight_max, done=no_progress)

    def _take(self, token: str) -> KeptUpload | None:
        keep = keep_of(token)
        keeper = self._keepers.get(keep)
        if keeper is None:
            return None
        kept = keeper.take(token)
        if keeper.is_empty:
            self._keepers.pop(keep, None)
        return kept

    async def _give_up(self, kept: KeptUpload) -> GivenUp:
        try:
            session = self._session(kept)
        except StoreError as error:  # nor would anybody complete it
            log.warning("an upload is left to expire", error=str(error))
            return GivenUp.NOT_FOUND
        answer = await session.give_up()
        if answer is None:
            return GivenUp.ENDED
        if answer.status in (200, 204, *ENDED):
            return GivenUp.NOT_FOUND
        (found,) = await self._store.stat_files([check_relative(kept.path)])
        if found is None or found.proof != kept.mark:  # nor has it ended by becoming an object
            raise error_of(self._calls.cancel_upload("", kept.path), answer)
        return GivenUp.NOT_FOUND


class KeptFiles:
    """The files that keep some uploads, each read once, and held while one of these uploads is still to come. They come
    in order of tasks, so few are held at once."""

    def __init__(self, store: Store, uploads: Sequence[Upload | BegunUpload]) -> None:
        self._store = store
        self._left = Counter(place_of(upload.token)[0] for upload in uploads)
        self._reading: dict[str, asyncio.Lock] = {}
        self._held: dict[str, list[KeptUpload | None]] = {}

    def of(self, upload: Upload | BegunUpload) -> KeptFile:
        """What is kept of an upload, as an asynchronous context; None where nothing is."""
        return KeptFile(self, upload)

    async def look_up(self, upload: Upload | BegunUpload) -> KeptUpload | None:
        """What is kept of it."""
        file, index = place_of(upload.token)
        async with self._reading.setdefault(file, asyncio.Lock()):
            if file not in self._held:
                (content,) = await self._store.read_files([file], bytes_max=FILE_BYTES_MAX)
                where = str(self._store.url.child(file))
                self._held[file] = decode_kept(content, where) if content is not None else []
            found = self._held[file]
        return found[index] if index < len(found) else None

    def leave(self, upload: Upload | BegunUpload) -> None:
        """One upload less to come."""
        file, _ = place_of(upload.token)
        self._left[file] -= 1
        if not self._left[file]:
            self._held.pop(file, None)


class KeptFile:
    """What is kept of one upload, while it is needed."""

    def __init__(self, files: KeptFiles, upload: Upload | BegunUpload) -> None:
        self._files = files
        self._upload = upload

    async def __aenter__(self) -> KeptUpload | None:
        return await self._files.look_up(self._upload)

    async def __aexit__(self, *error: object) -> None:
        self._files.leave(self._upload)


async def send_part(session: Session, calls: Calls, path: str, content: bytes, first: int) -> None:
    """Send a multiple of 256 KiB that is not the end.

    Raises:
        StoreError: it is not stored.
    """
    answer = await session.send(content, first)
    if answer.status != 308:
        raise error_of(calls.upload_state("", path), answer)


class DeferredUpload(UploadSteps):
    """The steps of one upload that waits to be completed."""

    def __init__(self, client: StoreClient, calls: Calls, keeper: Keeper, path: str, mark: str) -> None:
        self._calls = calls
        self._keeper = keeper
        self._path = path
        self._mark = mark
        self._session = Session(client, calls, path)
        self._written = Checked()

    async def whole(self, content: bytes) -> FileStatus:
        """The session; all else once many are kept, or the attempt commits."""
        await self._session.begin(self._mark)
        self._written.add(content)
        cut = len(content) - len(content) % CHUNK_STEP
        try:
            return self._closed(await self._keeper.add(self._kept(content[cut:]), content[:cut]))
        except BaseException:
            await self.give_up()
            raise

    async def part(self, index: int, content: bytes) -> None:
        """One part, once the session is kept."""
        if not self._session.uri:
            await self._session.begin(self._mark)
            begun = KeptUpload(self._path, self._mark, self._calls.session_kept(self._session.uri))
            await self._keeper.add(begun, at_once=True)
        await self._send(content)

    async def finish(self, rest: bytes) -> FileStatus:
        """The last part but for its tail."""
        cut = len(rest) - len(rest) % CHUNK_STEP
        if cut:
            await self._send(rest[:cut])
        self._written.add(rest[cut:])
        return self._closed(await self._keeper.add(self._kept(rest[cut:])))

    async def give_up(self) -> None:
        """Cancel the session."""
        await self._session.give_up()

    async def _send(self, content: bytes) -> None:
        first = self._written.length
        self._written.add(content)
        await send_part(self._session, self._calls, self._path, content, first)

    def _kept(self, tail: bytes) -> KeptUpload:
        session = self._calls.session_kept(self._session.uri)
        return KeptUpload(self._path, self._mark, session, self._written.length, tail)

    def _closed(self, token: str) -> FileStatus:
        return FileStatus(self._path, self._written.length, self._written.identity, proof=self._mark, upload=token)

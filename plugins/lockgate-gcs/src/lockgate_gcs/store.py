"""The store of Google Cloud Storage.

Identity is checksum, length and generation; a rename is a move with preconditions on the generations of both ends,
and keeps checksum and length. Many moves and deletions travel in one request, each with its own answer, where the
service takes such batches.

Where the service does not know moves (emulators), a rename is refused, unless `store.rename=copy` says that it may be a
rewrite and a deletion, each with preconditions: the capability RENAME_BY_COPY then says so, and the summary.

Flat buckets have no directories: none is made, none is missing. Buckets with a hierarchical namespace make folders as
objects come; what a deletion leaves of them is deleted too.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, ClassVar

from lockgate.engine.run.logs import get_log
from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, FileChanged, FileExists, FileMissing, PathError, StoreUnavailable
from lockgate.model.files import (
    Deleted,
    DirectoryOutcome,
    FileStatus,
    NotRenamed,
    Refusal,
    Rename,
    Renamed,
    RenameOutcome,
    Unknown,
)
from lockgate.model.names import GCS
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload, CompletionOutcome, GivenUp, Upload
from lockgate.model.urls import StoreUrl, check_relative
from lockgate.stores.doubt import Doubt
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.client import Authorizer, StoreClient, is_refusal
from lockgate.stores.http.exchange import Answer, Call
from lockgate.stores.http.upload import StreamedOutput, UploadSteps

from lockgate_gcs.answers import error_of, json_of, message_of, refusal_of, says_no_batches, says_unknown_call
from lockgate_gcs.batch import answers_of, batch_of
from lockgate_gcs.calls import KEPT_BY_COPY, PROOF, Calls
from lockgate_gcs.deferred import EXPIRE_SECONDS, DeferredUploads
from lockgate_gcs.identity import content_of, generation_of, status_of
from lockgate_gcs.settings import SCHEMES, GcsSettings
from lockgate_gcs.upload import ObjectUpload

log = get_log("lockgate.stores")

_COMMON = frozenset(
    {
        Capability.RENAME_WITHOUT_REPLACE,
        Capability.PINNED_SOURCE,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.BULK_DELETE,
        Capability.DURABLE_WRITE,
        Capability.DEFERRED_UPLOAD,
        Capability.CONDITIONAL_WRITE,
    }
)
MOVE_CAPABILITIES = _COMMON | {Capability.ATOMIC_RENAME, Capability.BULK_RENAME}
COPY_CAPABILITIES = _COMMON | {Capability.RENAME_BY_COPY}

_COPIES = uuid.UUID("0d8f0c34-5d0e-4f0d-9a55-6c7b4b1d2f67")
"""The name space of the proofs that copies carry."""

ALONE_MAX = 64
"""So many moves are sent one by one; more go in batches, which cost both sides less."""

BATCHES_IN_FLIGHT = 8
BATCH_ROUNDS = 12
ROUND_SECONDS = 0.1
SETTLE_TRIES = 6
SETTLE_SECONDS = 0.1


class GcsStore(Store):
    """A name prefix of a bucket as a store."""

    name: ClassVar[str] = "gcs"
    name_rules = GCS
    uploads_expire_seconds = EXPIRE_SECONDS
    keeps_uploads = True

    def __init__(self, url: StoreUrl, settings: GcsSettings, authorizer: Authorizer, options: JobOptions) -> None:
        if not url.authority:
            raise PathError("a Cloud Storage URL needs a bucket", where=str(url), next_step="gs://bucket/path")
        root = url.path.strip("/")
        self.url = url
        # Limits are a bucket's, not an account's.
        self.client = StoreClient(f"{settings.endpoint_url}/{url.authority}", authorizer, options)
        self._settings = settings
        self._calls = Calls(
            url, settings.endpoint_url, url.authority, f"{root}/" if root else "", settings.user_project
        )
        self._copies = settings.rename == "copy"
        self._batches = settings.batch_calls > 1
        self._has_folders: bool | None = None
        self._deferred = DeferredUploads(self, self.client, self._calls)

    @property
    def place(self) -> StoreUrl:
        """`gs` and `gcs` are one."""
        return StoreUrl(SCHEMES[0], self.url.authority, self.url.path)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Moves, or the weaker copies once it is known that the service has no moves."""
        return COPY_CAPABILITIES if self._copies else MOVE_CAPABILITIES

    def counters(self) -> Mapping[str, int]:
        """Of all its requests."""
        return self.client.counters()

    def same_identity(self, one: str, other: str) -> bool:
        """Checksum and length; a move changes the generation."""
        return bool(one) and bool(content_of(one)) and content_of(one) == content_of(other)

    # Renames

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """Moves, one by one while they are few enough to be in flight all at once, else many in a request."""
        size = min(self._settings.batch_calls, len(renames) // BATCHES_IN_FLIGHT + 1)
        if self._copies or not self._batches or size < 2 or len(renames) <= min(ALONE_MAX, self.client.in_flight_max):
            return await for_each(renames, self._rename, at_once=self.client.in_flight_max, done=progress)
        calls = [self._move(rename) for rename in renames]
        answers = await self._in_batches(calls, size, progress)

        async def judge(pair: tuple[Rename, Answer | None]) -> RenameOutcome:
            rename, answer = pair
            return Unknown("the answer was lost") if answer is None else await self._moved(rename, answer)

        pairs = list(zip(renames, answers, strict=True))
        return await for_each(pairs, judge, at_once=self.client.in_flight_max, done=no_progress)

    def _move(self, rename: Rename) -> Call:
        return self._calls.move(
            check_relative(rename.source),
            check_relative(rename.target),
            generation=generation_of(rename.identity),
            replace=rename.replace,
        )

    async def _rename(self, rename: Rename) -> RenameOutcome:
        check_relative(rename.source)
        check_relative(rename.target)
        if self._copies:
            return await self._copy_and_delete(rename)
        try:
            return await self._moved(rename, await self.client.ask(self._move(rename)))
        except AnswerLost as error:
            return Unknown(error.what)
        except StoreUnavailable as error:
            return NotRenamed(Refusal.FAILED, error.what)

    async def _moved(self, rename: Rename, answer: Answer) -> RenameOutcome:
        if answer.status == 200:
            return Renamed(status_of(rename.target, json_of(answer)).identity)
        if answer.doubtful:
            return Unknown(f"{answer.status} after a try that may have succeeded")
        if says_unknown_call(answer):
            return await self._refused_without_moves(rename, answer)
        if answer.status == 412 and generation_of(rename.identity):
            (source,) = await self.stat_files([rename.source])
            if source is not None and source.identity != rename.identity:
                return NotRenamed(Refusal.SOURCE_CHANGED)
        return refusal_of(answer)

    async def _refused_without_moves(self, rename: Rename, answer: Answer) -> NotRenamed:
        """The service refused in words that it has for calls it does not know. If the source is there, moving itself
        was refused; copies, which are weaker, are taken by choice only."""
        (source,) = await self.stat_files([rename.source])
        if source is None:
            return NotRenamed(Refusal.SOURCE_MISSING)
        said = f"{answer.status} {message_of(answer)}".rstrip()
        return NotRenamed(Refusal.FAILED, f"{said}; if this service knows no moves, store.rename=copy copies instead")

    def proof_of_copy(self, rename: Rename, source: FileStatus) -> str:
        """What the copy that this rename makes of this source says of itself, whoever makes it."""
        ends = f"{self.url.child(rename.source)}\n{self.url.child(rename.target)}\n{source.identity}"
        return str(uuid.uuid5(_COPIES, ends))

    async def _copy_and_delete(self, rename: Rename) -> RenameOutcome:
        """Rewrite, then delete, each pinned to the source's generation. The copy carries a proof of whose it is, so
        that a later try takes over what an earlier one has left, and nobody else's file of the same content."""
        try:
            call = self._calls.status(check_relative(rename.source))
            answer = await self.client.ask(call)
            if answer.status == 404:
                return NotRenamed(Refusal.SOURCE_MISSING)
            if answer.status != 200:
                return refusal_of(answer)
            found = json_of(answer)
            source = status_of(rename.source, found)
            if rename.identity and rename.identity != source.identity:
                return NotRenamed(Refusal.SOURCE_CHANGED)
            proof = self.proof_of_copy(rename, source)
            copied = await self._rewritten(rename, source, found, proof)
            if not isinstance(copied, FileStatus):
                (target,) = await self.stat_files([rename.target])
                if target is None or target.proof != proof:
                    return copied
                copied = target
            await self._delete_source(rename.source, generation_of(source.identity))
            return Renamed(copied.identity)
        except AnswerLost as error:
            return Unknown(error.what)
        except StoreUnavailable as error:
            return NotRenamed(Refusal.FAILED, error.what)

    async def _rewritten(
        self, rename: Rename, source: FileStatus, found: dict[str, Any], proof: str
    ) -> FileStatus | NotRenamed | Unknown:
        resource = {name: found[name] for name in KEPT_BY_COPY if name in found}
        resource["metadata"] = {**(found.get("metadata") or {}), PROOF: proof}
        token = ""
        while True:
            call = self._calls.rewrite(
                rename.source,
                check_relative(rename.target),
                generation=generation_of(source.identity),
                replace=rename.replace,
                token=token,
                resource=resource,
            )
            try:
                answer = await self.client.ask(call)
            except AnswerLost as error:
                return Unknown(error.what)
            if answer.status != 200:
                return Unknown(f"{answer.status} after a lost answer") if answer.doubtful else refusal_of(answer)
            progress = json_of(answer)
            if progress.get("done"):
                return status_of(rename.target, progress.get("resource", {}))
            token = str(progress.get("rewriteToken", ""))

    async def _delete_source(self, path: str, generation: str) -> None:
        call = self._calls.delete(path, generation=generation)
        answer = await self.client.ask(call)
        # 412: somebody has written another version there since; the one that was copied is gone, as after a rename.
        if answer.status not in (200, 204, 404, 412):
            raise AnswerLost(f"copied, and the source was not deleted: {answer.status}", where=call.where)

    # Batches

    async def _in_batches(self, calls: Sequence[Call], size: int, progress: Progress) -> list[Answer | None]:
        """An answer to each call; None where it was lost. Calls that were refused for there being too many, or that
        failed on the service's side, are sent again in later batches."""
        answers: list[Answer | None] = [None] * len(calls)
        doubtful: set[int] = set()
        waiting = list(range(len(calls)))
        for attempt in range(BATCH_ROUNDS):
            if attempt:
                await asyncio.sleep(min(5.0, ROUND_SECONDS * 2**attempt))
            chunks = [waiting[start : start + size] for start in range(0, len(waiting), size)]

            async def send(chunk: list[int]) -> list[int]:
                return await self._batch(chunk, calls, answers, doubtful)

            at_once = min(BATCHES_IN_FLIGHT, self.client.in_flight_max)
            again = await for_each(chunks, send, at_once=at_once, done=no_progress)
            left = [index for chunk in again for index in chunk]
            progress(len(waiting) - len(left))
            waiting = left
            if not waiting:
                break
        return answers

    async def _batch(
        self, chunk: list[int], calls: Sequence[Call], answers: list[Answer | None], doubtful: set[int]
    ) -> list[int]:
        """Send one batch, note its answers, and return those that are to be sent again."""
        call = batch_of([calls[index] for index in chunk], self._settings.endpoint_url, str(self.url))
        try:
            answer = await self.client.ask(call)
        except StoreUnavailable:
            return []
        if says_no_batches(answer):
            await self._one_by_one(chunk, calls, answers, answer)
            return []
        if answer.status != 200:
            if answer.doubtful:
                return []
            raise error_of(call, answer)
        again = []
        for index, found in zip(chunk, answers_of(answer, len(chunk)), strict=True):
            if found is None:
                doubtful.add(index)
            elif is_refusal(found) or found.status in (408, 500, 502, 504):
                if found.status != 429:
                    doubtful.add(index)
                if is_refusal(found):
                    self.client.slow_down()
                again.append(index)
                continue
            is_doubtful = answer.doubtful or index in doubtful
            answers[index] = None if found is None else Answer(found.status, found.headers, found.body, is_doubtful)
        return again

    async def _one_by_one(
        self, chunk: list[int], calls: Sequence[Call], answers: list[Answer | None], refused: Answer
    ) -> None:
        """The service takes no batches: send the calls of this one by themselves, and all further ones too."""
        if self._batches:
            self._batches = False
            log.info("no batches here: every call is a request", url=str(self.url), answer=str(refused.status))

        async def ask(index: int) -> None:
            with contextlib.suppress(StoreUnavailable):  # no answer, or none that says anything
                answers[index] = await self.client.ask(calls[index])

        await for_each(chunk, ask, at_once=self.client.in_flight_max, done=no_progress)

    # Deletions

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One by one if few, else up to a hundred a request."""
        calls = [self._calls.delete(check_relative(path)) for path in paths]
        return await self._delete_all(calls, progress)

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        """With the generation; one by one if few, else up to a hundred a request."""
        pinned = [file for file in files if generation_of(file.identity)]
        calls = [self._calls.delete(check_relative(f.path), generation=generation_of(f.identity)) for f in pinned]
        outcomes = iter(await self._delete_all(calls, progress))
        # No object is known by an identity without a generation.
        return [next(outcomes) if generation_of(file.identity) else Deleted.CHANGED for file in files]

    async def _delete_all(self, calls: Sequence[Call], progress: Progress) -> list[Deleted]:
        if len(calls) < 3 or not self._batches:
            return await for_each(calls, self._delete, at_once=self.client.in_flight_max, done=progress)
        answers = await self._in_batches(calls, self._settings.batch_calls, progress)
        outcomes = []
        for call, answer in zip(calls, answers, strict=True):
            # A deletion whose answer was lost is simply asked for again.
            outcomes.append(await self._delete(call) if answer is None else self._deleted(call, answer))
        return outcomes

    async def _delete(self, call: Call) -> Deleted:
        return self._deleted(call, await self.client.ask(call))

    @staticmethod
    def _deleted(call: Call, answer: Answer) -> Deleted:
        if answer.status in (200, 204):
            return Deleted.DELETED
        if answer.status == 404:
            return Deleted.DELETED if answer.doubtful else Deleted.MISSING
        if answer.status == 412:
            return Deleted.CHANGED
        raise error_of(call, answer)

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """What is listed below each, a page at a time, with the markers of directories that others make."""

        async def delete(path: str) -> Deleted:
            outcome = Deleted.MISSING
            async for names, _ in self._pages(check_relative(path), delimiter=""):
                if names:
                    calls = [self._calls.delete(status.path) for status in names]
                    await self._delete_all(calls, no_progress)
                    outcome = Deleted.DELETED
            return Deleted.DELETED if await self._delete_folders(path) else outcome

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """True for all: a directory is nothing but the names of what is in it."""
        return [True for _ in paths]

    async def _delete_folders(self, path: str) -> bool:
        """Delete the empty folders that a hierarchical bucket keeps, the deepest first."""
        if not await self._is_hierarchical():
            return False
        found: list[str] = []
        page_token = ""
        while True:
            answer = await self.client.ask(self._calls.list_folders(path, page_token))
            if answer.status != 200:
                return False
            listed = json_of(answer)
            found += [str(folder["name"]) for folder in listed.get("items", [])]
            page_token = str(listed.get("nextPageToken", ""))
            if not page_token:
                break
        for folder in sorted(found, key=lambda each: -each.count("/")):
            await self.client.ask(self._calls.delete_folder(folder))
        return bool(found)

    async def _is_hierarchical(self) -> bool:
        """Asked once; a service or an account that does not say is taken to be flat, which only leaves folders."""
        if self._has_folders is None:
            answer = await self.client.ask(self._calls.layout())
            namespace = json_of(answer).get("hierarchicalNamespace") if answer.status == 200 else None
            self._has_folders = isinstance(namespace, dict) and bool(namespace.get("enabled"))
        return self._has_folders

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Nothing to make."""
        return [DirectoryOutcome("existed") for _ in paths]

    # Looking

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """One request each, many in flight."""

        async def stat(path: str) -> FileStatus | None:
            call = self._calls.status(check_relative(path))
            answer = await self.client.ask(call)
            if answer.status == 200:
                return status_of(path, json_of(answer))
            if answer.status == 404:
                return None
            raise error_of(call, answer)

        return await for_each(paths, stat, at_once=self.client.in_flight_max, done=no_progress)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Objects of this directory, and what has a slash further on as directories."""
        async for files, directories in self._pages(path, delimiter="/"):
            page = [status for status in files if not status.path.endswith("/")]
            page += [FileStatus(each, is_directory=True) for each in directories]
            if page:
                yield page

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """All objects below; markers of directories, whose names end in a slash, are left out."""
        async for files, _ in self._pages(path, delimiter=""):
            page = [status for status in files if not status.path.endswith("/")]
            if page:
                yield page

    async def _pages(self, path: str, *, delimiter: str) -> AsyncIterator[tuple[list[FileStatus], list[str]]]:
        if path:
            check_relative(path)
        cut = len(self._calls.prefix)
        own = self._calls.name(f"{path}/") if path else self._calls.prefix
        page_token = ""
        while True:
            call = self._calls.list_objects(path, delimiter=delimiter, page_token=page_token)
            answer = await self.client.ask(call)
            if answer.status == 404:
                raise FileMissing(
                    "the bucket is not there", where=call.where, next_step="create it, or correct the URL"
                )
            if answer.status != 200:
                raise error_of(call, answer)
            listed = json_of(answer)
            files = [
                status_of(str(each["name"])[cut:], each) for each in listed.get("items", []) if each["name"] != own
            ]
            yield files, [str(each)[cut:].rstrip("/") for each in listed.get("prefixes", [])]
            page_token = str(listed.get("nextPageToken", ""))
            if not page_token:
                return

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """One ranged request each, many in flight."""

        async def read(path: str) -> bytes | None:
            call = self._calls.read(check_relative(path), bytes_max + 1)
            answer = await self.client.ask(call)
            if answer.status in (200, 206):
                return answer.body[: bytes_max + 1]
            if answer.status == 416:  # a range of an empty object
                return b""
            if answer.status == 404:
                return None
            raise error_of(call, answer)

        return await for_each(paths, read, at_once=self.client.in_flight_max, done=no_progress)

    # Writing

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """One insert that is refused where an object is; after a lost answer, the content there says whose it is.

        Raises:
            FileExists: something else is there.
            AnswerLost: it may have been created.
        """
        call = self._calls.insert(check_relative(path), content, absent=True)
        lost = AnswerLost("not tried", where=call.where)
        with Doubt(call.where) as doubt:
            for attempt in range(SETTLE_TRIES):
                if attempt:
                    await asyncio.sleep(SETTLE_SECONDS * 2**attempt)
                try:
                    answer = await self.client.ask(call)
                except AnswerLost as error:
                    doubt.is_open, lost = True, error
                    continue
                if answer.status in (200, 201):
                    return status_of(path, json_of(answer))
                doubt.is_open = doubt.is_open or answer.doubtful
                if answer.status != 412:
                    raise error_of(call, answer)
                if doubt.is_open:
                    (found,) = await self.read_files([path], bytes_max=len(content))
                    (status,) = await self.stat_files([path])
                    if found == content and status is not None:
                        return status
                raise FileExists("an object is there already", where=call.where)
            raise lost

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """One insert, which is one act."""
        call = self._calls.insert(check_relative(path), content, absent=False)
        answer = await self.client.ask(call)
        if answer.status not in (200, 201):
            raise error_of(call, answer)
        return status_of(path, json_of(answer))

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        """One insert with the generation of what it replaces."""
        generation = generation_of(identity)
        call = self._calls.insert(check_relative(path), content, generation=generation)
        changed = FileChanged(
            "another object is there by now",
            where=call.where,
            next_step="somebody else has written it: look at it again before it is written over",
        )
        if not generation:
            raise changed
        answer = await self.client.ask(call)
        if answer.status in (404, 412):
            if not answer.doubtful:
                raise changed
            (found,) = await self.read_files([path], bytes_max=len(content))
            (status,) = await self.stat_files([path])
            if found != content or status is None:
                raise AnswerLost("it may have been written, and replaced since", where=call.where)
            return status
        if answer.status not in (200, 201):
            raise error_of(call, answer)
        return status_of(path, json_of(answer))

    def open_output(self, path: str) -> OutputFile:
        """Sent while it is written."""
        return self._streamed(path, ObjectUpload(self.client, self._calls, check_relative(path)))

    def _streamed(self, path: str, steps: UploadSteps) -> OutputFile:
        where = str(self.url.child(path))
        return StreamedOutput(where, steps, part_bytes=self._settings.chunk_bytes, parts_in_flight=1)

    # Deferred uploads

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        """A resumable session. Long files are sent while they are written, short ones many at a time."""
        return self._streamed(path, self._deferred.steps(check_relative(path), mark, check_relative(keep)))

    async def keep_uploads(self, keep: str) -> None:
        """One write for all short files since the last, then what is still to be sent of them."""
        await self._deferred.keep(keep)

    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        """One listing, and a request for each file."""
        async for page in self._deferred.kept(directory, but):
            yield page

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        """One request each, which is refused where an object is, and one for each file that keeps some of them."""
        return await self._deferred.complete(uploads, progress)

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """One request each, and one for each file that keeps some of them."""
        return await self._deferred.abort(uploads)

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        await self.client.close()

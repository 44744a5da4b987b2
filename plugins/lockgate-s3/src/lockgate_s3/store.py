"""The store of Amazon S3, and of services that speak its language.

S3 has no renames: none is declared, and none is made of copies. Files of task attempts are uploads that nobody sees
before they are completed, each with a mark in its metadata that says whose it is; small files are written with
conditions. Identity is the etag. There are no directories: none is made, none is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import ClassVar
from xml.etree import ElementTree

import msgspec
from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    AnswerLost,
    FileChanged,
    FileMissing,
    PathError,
    StoreUnavailable,
)
from lockgate.model.files import (
    Deleted,
    DirectoryOutcome,
    FileStatus,
    NotRenamed,
    Refusal,
    Rename,
    RenameOutcome,
    Unknown,
)
from lockgate.model.names import S3
from lockgate.model.options import JobOptions
from lockgate.model.uploads import (
    BegunUpload,
    Completed,
    CompletionOutcome,
    GivenUp,
    NotCompleted,
    NoVersions,
    Upload,
    UploadRefusal,
)
from lockgate.model.urls import StoreUrl, check_relative
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.client import Authorizer, StoreClient
from lockgate.stores.http.exchange import Answer, Call
from lockgate.stores.http.upload import StreamedOutput

from lockgate_s3.answers import (
    NULL_VERSION,
    UNKNOWN_KEY,
    code_of,
    error_of,
    etag_of,
    key_in,
    listed_directories,
    listed_objects,
    listed_versions,
    seconds_of,
    status_of_head,
    xml_of,
)
from lockgate_s3.calls import DELETED_AT_ONCE_MAX, Calls
from lockgate_s3.checksums import checksum_named
from lockgate_s3.settings import SCHEMES, S3Settings
from lockgate_s3.soundness import is_aws, is_believed
from lockgate_s3.upload import ObjectUpload, PartsUpload, complete_call, decode_parts, foreseen, put_if_absent
from lockgate_s3.versioning import why_no_versions

CAPABILITIES = frozenset(
    {
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.BULK_DELETE,
        Capability.DURABLE_WRITE,
        Capability.DEFERRED_UPLOAD,
        Capability.LISTED_UPLOADS,
        Capability.CONDITIONAL_WRITE,
        Capability.REPLACE_BY_VERSION,
    }
)
PARTS_IN_FLIGHT = 4
"""Of one file: with the part that is being filled, the memory that its upload takes."""

CONFLICT_SECONDS = 0.1
CONFLICT_TRIES = 6
"""Of a write that another's keeps from being judged (409)."""


class S3Store(Store):
    """A key prefix of a bucket as a store."""

    name: ClassVar[str] = "s3"
    name_rules = S3

    def __init__(self, url: StoreUrl, settings: S3Settings, authorizer: Authorizer, options: JobOptions) -> None:
        if not url.authority:
            raise PathError("an S3 URL needs a bucket", where=str(url), next_step="s3://bucket/path")
        root = url.path.strip("/")
        self.url = url
        base = settings.base_of(url.authority)
        # S3 counts requests by prefix, and a prefix is not known from outside.
        self.client = StoreClient(base, authorizer, options)
        self._settings = settings
        prefix = f"{root}/" if root else ""
        self._calls = Calls(url, base, prefix, settings.headers_of_objects(), checksum_named(settings.checksum))

    @property
    def place(self) -> StoreUrl:
        """`s3` and `s3a` are one."""
        return StoreUrl(SCHEMES[0], self.url.authority, self.url.path)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of S3."""
        return CAPABILITIES

    @property
    def alternative(self) -> str:
        """S3 has no renames."""
        return "leave protocol out, or give protocol=deferred: uploads that the job commit completes"

    @property
    def key_prefix(self) -> str:
        """What the keys of all that is below the root begin with."""
        return self._calls.prefix

    def counters(self) -> Mapping[str, int]:
        """Of all its requests."""
        return self.client.counters()

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """S3 has none."""
        return [NotRenamed(Refusal.FAILED, "S3 has no renames") for _ in renames]

    # Deletions

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """Up to a thousand a request. S3 does not say whether something was there."""
        pages = [paths[start : start + DELETED_AT_ONCE_MAX] for start in range(0, len(paths), DELETED_AT_ONCE_MAX)]

        async def delete(page: Sequence[str]) -> None:
            for path in page:
                check_relative(path)
            await self._delete_page(page)
            progress(len(page))

        await for_each(pages, delete, at_once=2, done=no_progress)
        return [Deleted.GONE for _ in paths]

    async def _delete_page(self, paths: Sequence[str]) -> None:
        if len(paths) == 1 or any(_is_no_xml(path) for path in paths):
            await for_each(paths, self._delete, at_once=self.client.in_flight_max, done=no_progress)
            return
        call = self._calls.delete_many(paths)
        answer = await self.client.ask(call)
        if answer.status != 200 or code_of(answer):
            raise error_of(call, answer)
        # Somebody else may have deleted it meanwhile, which not every service takes for done.
        found = [each for each in xml_of(answer).findall("Error") if each.findtext("Code") != "NoSuchKey"]
        for failed in found:
            said = f"{failed.findtext('Code') or ''} {failed.findtext('Message') or ''}".strip()
            denied = Answer(403 if failed.findtext("Code") == "AccessDenied" else 500, {}, b"")
            error = error_of(call, denied)
            raise type(error)(f"deletion refused: {said}", where=f"{call.where}\n{failed.findtext('Key') or ''}")

    async def _delete(self, path: str) -> None:
        call = self._calls.delete(path)
        answer = await self.client.ask(call)
        if answer.status not in (200, 204, 404):
            raise error_of(call, answer)

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        """One request each, with the etag. That is of the content: so where an answer is lost, the mark is looked at
        before the request is sent again, since others may have written the same bytes there meanwhile."""

        async def delete(file: FileStatus) -> Deleted:
            call = self._calls.delete(check_relative(file.path), identity=file.identity)
            for attempt in range(CONFLICT_TRIES):
                try:
                    answer = await self.client.ask(call)
                except AnswerLost:
                    if attempt == CONFLICT_TRIES - 1:
                        raise
                    (found,) = await self.stat_files([file.path])
                    if found is None:
                        return Deleted.DELETED
                    if (file.proof and found.proof != file.proof) or found.identity != file.identity:
                        return Deleted.CHANGED
                else:
                    if answer.status != 409:
                        break
                await asyncio.sleep(CONFLICT_SECONDS * 2**attempt)
            if answer.status in (200, 204):
                return Deleted.DELETED
            if answer.status == 404:
                return Deleted.MISSING
            if answer.status == 412:
                return Deleted.CHANGED
            raise error_of(call, answer)

        return await for_each(files, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """What is listed below each, a page at a time, with the markers of directories that others make."""

        async def delete(path: str) -> Deleted:
            outcome = Deleted.MISSING
            async for root in self._pages(check_relative(path), delimiter=""):
                found = [status.path for status in listed_objects(root, len(self._calls.prefix))]
                if found:
                    await self._delete_page(found)
                    outcome = Deleted.DELETED
            return outcome

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """True for all: a directory is nothing but the keys of what is in it."""
        return [True for _ in paths]

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
                return status_of_head(path, answer)
            if answer.status == 404:
                return None
            raise error_of(call, answer)

        return await for_each(paths, stat, at_once=self.client.in_flight_max, done=no_progress)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Objects of this directory, and what has a slash further on as directories."""
        cut = len(self._calls.prefix)
        async for root in self._pages(path, delimiter="/"):
            page = [status for status in listed_objects(root, cut) if not status.path.endswith("/") and status.path]
            page += listed_directories(root, cut)
            if page:
                yield page

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """All objects below; markers of directories, whose keys end in a slash, are left out."""
        async for root in self._pages(path, delimiter=""):
            found = listed_objects(root, len(self._calls.prefix))
            page = [status for status in found if not status.path.endswith("/") and status.path]
            if page:
                yield page

    async def directories_beginning(self, beginning: str) -> list[str]:
        """The directories whose path begins with this, and has no further `/`; one request, where there are few."""
        cut = len(self._calls.prefix)
        pages = self._pages("", delimiter="/", beginning=beginning)
        return [status.path async for root in pages for status in listed_directories(root, cut)]

    async def _pages(self, path: str, *, delimiter: str, beginning: str = "") -> AsyncIterator[ElementTree.Element]:
        if path:
            check_relative(path)
        token = ""
        while True:
            call = self._calls.list_objects(path, delimiter=delimiter, token=token, beginning=beginning)
            answer = await self.client.ask(call)
            if answer.status == 404 and code_of(answer) not in UNKNOWN_KEY:
                raise FileMissing(
                    "the bucket is not there", where=call.where, next_step="create it, or correct the URL"
                )
            if answer.status != 200:
                raise error_of(call, answer)
            root = xml_of(answer)
            yield root
            token = root.findtext("NextContinuationToken") or ""
            if root.findtext("IsTruncated") != "true" or not token:
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
            if answer.status == 404 and code_of(answer) != "NoSuchBucket":
                return None
            raise error_of(call, answer)

        return await for_each(paths, read, at_once=self.client.in_flight_max, done=no_progress)

    # Writing

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """One PUT that is refused where an object is."""
        return await put_if_absent(self.client, self._calls, check_relative(path), content)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """One PUT, which is one act."""
        return self._written(path, content, await self._put(self._calls.put(check_relative(path), content)))

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        """One PUT with the etag of what it replaces."""
        call = self._calls.put(check_relative(path), content, identity=identity)
        answer = await self._put(call)
        if answer.status in (404, 412):
            if answer.doubtful:
                (found,) = await self.read_files([path], bytes_max=len(content))
                if found != content:
                    raise AnswerLost("it may have been written, and replaced since", where=call.where)
                (status,) = await self.stat_files([path])
                return status or FileStatus(path, len(content))
            raise FileChanged(
                "another object is there by now",
                where=call.where,
                next_step="somebody else has written it: look at it again before it is written over",
            )
        return self._written(path, content, answer)

    async def _put(self, call: Call) -> Answer:
        for attempt in range(CONFLICT_TRIES):
            answer = await self.client.ask(call)
            if answer.status == 409:  # another's write is under way: its end decides
                await asyncio.sleep(CONFLICT_SECONDS * 2**attempt)
                continue
            if answer.status == 200 or ("if-match" in call.headers and answer.status in (404, 412)):
                return answer
            raise error_of(call, answer)
        raise StoreUnavailable("others keep writing this object", where=call.where)

    @staticmethod
    def _written(path: str, content: bytes, answer: Answer) -> FileStatus:
        return FileStatus(path, len(content), answer.headers.get("etag", "").strip('"'))

    def open_output(self, path: str) -> OutputFile:
        """Sent while it is written, and there at its end."""
        return self._streamed(path, ObjectUpload(self.client, self._calls, check_relative(path), ""))

    # Deferred uploads

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        """Sent while it is written, in parts of one upload. What completes it is no secret."""
        return self._streamed(path, PartsUpload(self.client, self._calls, check_relative(path), mark))

    def _streamed(self, path: str, steps: PartsUpload) -> OutputFile:
        where = str(self.url.child(path))
        return StreamedOutput(where, steps, part_bytes=self._settings.part_bytes, parts_in_flight=PARTS_IN_FLIGHT)

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        """One request each, which is refused where an object is, or another than it replaces. Where an answer is no
        proof, the object is looked at as well."""
        believed = not uploads or await is_believed(self.client, self._calls)

        async def complete(upload: Upload) -> CompletionOutcome:
            outcome = await self._complete(upload)
            if believed or not isinstance(outcome, Completed):
                return outcome
            return await self._proved(upload)

        return await for_each(uploads, complete, at_once=self.client.in_flight_max, done=progress)

    async def _proved(self, upload: Upload) -> CompletionOutcome:
        if (known := await self._known(upload)) is not None:
            return known
        (found,) = await self.stat_files([upload.path])
        if found is None:
            return Unknown("the service says that it is completed, and nothing is there yet")
        if upload.replaces:
            same = self.same_identity(found.identity, upload.replaces)
            return NotCompleted(UploadRefusal.UPLOAD_MISSING if same else UploadRefusal.TARGET_CHANGED)
        return NotCompleted(UploadRefusal.TARGET_EXISTS)

    async def _complete(self, upload: Upload) -> CompletionOutcome:
        parts = decode_parts(upload.token)
        path = check_relative(upload.path)
        try:
            answer = await self.client.ask(complete_call(self._calls, path, parts, upload.replaces))
        except AnswerLost as error:
            return await self._known(upload) or Unknown(error.what)
        except StoreUnavailable as error:
            return NotCompleted(UploadRefusal.FAILED, error.what)
        code = code_of(answer)
        if answer.status == 200 and not code and not answer.doubtful:
            return Completed(etag_of(answer))
        if answer.status == 200 and not code:  # of an earlier try: somebody may have written over it since
            return await self._proved(upload)
        found = await self._known(upload)
        if found is not None:
            return found
        if upload.replaces and (answer.status == 412 or code == "NoSuchKey"):
            return NotCompleted(UploadRefusal.TARGET_CHANGED)
        if answer.status == 412:
            return NotCompleted(UploadRefusal.TARGET_EXISTS)
        if answer.status == 404 or code == "NoSuchUpload":
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        if answer.doubtful:
            return Unknown(f"{answer.status} after a try that may have succeeded")
        reason = UploadRefusal.NOT_ALLOWED if answer.status in (401, 403) else UploadRefusal.FAILED
        return NotCompleted(reason, f"{answer.status} {code}".rstrip())

    async def _known(self, upload: Upload) -> Completed | None:
        """What stands at the upload's path, if it is what the upload has become: the same completion is answered by 200
        for a while, then by 404, and with a condition by 412 against itself."""
        if not upload.mark:
            (found,) = await self.completed([upload])
        else:
            (found,) = await self.stat_files([upload.path])
            found = found if found is not None and upload.is_what(found, self.same_identity) else None
        return None if found is None else Completed(found.identity)

    async def completed(self, uploads: Sequence[Upload]) -> list[FileStatus | None]:
        """What uploads of other programs, which carry no mark, have become: for each the object at its path, if the
        upload is gone and the object's etag and length are what it would have. None where that cannot be said, as of
        any whose etag is no digest. Whose the object is that does not prove."""
        found = await self.stat_files([upload.path for upload in uploads])
        alike = [
            upload
            for upload, status in zip(uploads, found, strict=True)
            if status is not None
            and (status.proof, status.length) == ("", upload.length)
            and status.identity == (foreseen(decode_parts(upload.token)) or None)
        ]
        waiting = dict(zip([each.path for each in alike], await self.are_waiting(alike), strict=True))
        return [
            status if waiting.get(upload.path) is False else None for upload, status in zip(uploads, found, strict=True)
        ]

    async def are_waiting(self, uploads: Sequence[Upload]) -> list[bool]:
        """Whether each is neither complete nor given up; one request each."""

        async def look(upload: Upload) -> bool:
            call = self._calls.list_parts(check_relative(upload.path), decode_parts(upload.token).upload)
            answer = await self.client.ask(call)
            if answer.status == 404 and code_of(answer) != "NoSuchBucket":
                return False
            if answer.status != 200:
                raise error_of(call, answer)
            return True

        return await for_each(uploads, look, at_once=self.client.in_flight_max, done=no_progress)

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """One request each. One that was completed, or given up, is answered by 404 (API reference of Amazon S3,
        "AbortMultipartUpload"); by MinIO of February 2026 with 204, as one that waited: only AWS's own word counts."""
        tells = is_aws(self._calls.base)

        async def abort(upload: Upload | BegunUpload) -> GivenUp:
            token = decode_parts(upload.token).upload if isinstance(upload, Upload) else upload.token
            call = self._calls.abort_upload(check_relative(upload.path), token)
            answer = await self.client.ask(call)
            if answer.status not in (200, 204, 404):
                raise error_of(call, answer)
            return GivenUp.ENDED if tells and answer.status != 404 else GivenUp.NOT_FOUND

        return await for_each(uploads, abort, at_once=self.client.in_flight_max, done=no_progress)

    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        """Those whose keys begin with the root's, which ends with a slash: a plain prefix would find neighbours'."""
        key_marker = upload_marker = ""
        last: Sequence[BegunUpload] = ()
        while True:
            call = self._calls.list_uploads(key_marker, upload_marker)
            answer = await self.client.ask(call)
            if answer.status == 400 and upload_marker and last:
                # versitygw 1.8 leaves the marker's key out first, and then knows no such upload. From the key before
                # it the page's last key is listed once more.
                keys = sorted({self._calls.name(each.path) for each in last})
                key_marker, upload_marker = keys[-2:][0], ""
                continue
            if answer.status != 200:
                raise error_of(call, answer)
            root = xml_of(answer)
            page = self._uploads_in(root)
            seen = {each.token for each in last}
            if new := [each for each in page if each.token not in seen]:
                yield new
            last, before = page, (key_marker, upload_marker)
            key_marker = key_in(root, root.findtext("NextKeyMarker"))
            upload_marker = root.findtext("NextUploadIdMarker") or ""
            if root.findtext("IsTruncated") != "true" or (key_marker, upload_marker) == before:
                return

    def _uploads_in(self, root: ElementTree.Element) -> list[BegunUpload]:
        cut = len(self._calls.prefix)
        return [
            BegunUpload(
                key_in(root, each.findtext("Key"))[cut:],
                each.findtext("UploadId") or "",
                seconds_of(each.findtext("Initiated") or ""),
            )
            for each in root.findall("Upload")
        ]

    # Versions

    async def why_no_versions(self) -> NoVersions | None:
        """Five requests, and, where the service is not AWS's own, once a process a few more."""
        return await why_no_versions(self.client, self._calls)

    async def stat_versions(self, files: Sequence[FileStatus]) -> list[FileStatus | None]:
        """One request each."""

        async def stat(file: FileStatus) -> FileStatus | None:
            path = check_relative(file.path)
            call = self._calls.status_of_version(path, file.version) if file.version else self._calls.status(path)
            answer = await self.client.ask(call)
            if answer.status == 200:
                found = status_of_head(path, answer)
                return msgspec.structs.replace(found, version=file.version or found.version or NULL_VERSION)
            if answer.status in (404, 405):  # 405: it is a delete marker
                return None
            raise error_of(call, answer)

        return await for_each(files, stat, at_once=self.client.in_flight_max, done=no_progress)

    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        """One listing each, and one request for each version of the same length and etag: marks are in no listing."""

        async def find(upload: Upload) -> Sequence[FileStatus]:
            alike = [
                each
                for each in await self._versions_at(check_relative(upload.path))
                if upload.length in (-1, each.length)
                and (not upload.identity or self.same_identity(upload.identity, each.identity))
            ]
            found = await self.stat_versions(alike)
            return [each for each in found if each is not None and upload.is_what(each, self.same_identity)]

        return await for_each(uploads, find, at_once=self.client.in_flight_max, done=no_progress)

    async def _versions_at(self, path: str) -> list[FileStatus]:
        found: list[FileStatus] = []
        key_marker = version_marker = ""
        while True:
            call = self._calls.list_versions(path, key_marker, version_marker)
            answer = await self.client.ask(call)
            if answer.status != 200:
                raise error_of(call, answer)
            root = xml_of(answer)
            page = list(listed_versions(root, len(self._calls.prefix)))
            found += [each for each in page if each.path == path]
            before = key_marker, version_marker
            key_marker = key_in(root, root.findtext("NextKeyMarker"))
            version_marker = root.findtext("NextVersionIdMarker") or ""
            is_last = root.findtext("IsTruncated") != "true" or (key_marker, version_marker) == before
            if is_last or any(each.path != path for each in page):
                return found

    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        """One request each."""

        async def delete(file: FileStatus) -> None:
            call = self._calls.delete_version(check_relative(file.path), file.version)
            answer = await self.client.ask(call)
            if answer.status in (200, 204, 404):
                return
            # versitygw 1.8 answers 400 for a version that is gone.
            if answer.status == 400 and await self.stat_versions([file]) == [None]:
                return
            raise error_of(call, answer)

        await for_each(files, delete, at_once=self.client.in_flight_max, done=no_progress)

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        await self.client.close()


def _is_no_xml(path: str) -> bool:
    """Whether a key has characters that XML 1.0 cannot hold."""
    return any(character < " " and character not in "\t\n\r" for character in path) or "\r" in path

"""The store of Azure accounts without a hierarchical namespace: the Blob service alone.

Such an account has no renames, so none is declared, and none is made of copies. Files of task attempts are blocks that
wait for their names (`deferred`); small files are written with conditions. Identity is the etag. There are no
directories: none is made, none is missing, and those that others mark by empty blobs are no files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lockgate.engine.run.store import OutputFile, Progress, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing
from lockgate.model.files import (
    Deleted,
    DirectoryOutcome,
    FileStatus,
    NotRenamed,
    Refusal,
    Rename,
    RenameOutcome,
)
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload
from lockgate.model.urls import StoreUrl, check_relative
from lockgate.stores.http.bulk import for_each

from lockgate_abfs.answers import CONTAINER_MISSING, bare_etag, code_of, error_of
from lockgate_abfs.blob_listing import Listed, Page, page_of, status_of_blob
from lockgate_abfs.blob_look import look_at
from lockgate_abfs.blob_store import BlobStore
from lockgate_abfs.credentials import Credential
from lockgate_abfs.location import Location
from lockgate_abfs.marks import is_passing
from lockgate_abfs.settings import AbfsSettings
from lockgate_abfs.upload import BlobUpload

CAPABILITIES = frozenset(
    {
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.DURABLE_WRITE,
        Capability.DEFERRED_UPLOAD,
        Capability.LISTED_UPLOADS,
        Capability.CONDITIONAL_WRITE,
    }
)


class FlatStore(BlobStore):
    """A name prefix of a container as a store."""

    def __init__(
        self, url: StoreUrl, location: Location, credential: Credential, settings: AbfsSettings, options: JobOptions
    ) -> None:
        endpoint = location.blob_endpoint
        super().__init__(url, location, credential, settings, options, endpoint=endpoint, folders=True)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of the Blob service."""
        return CAPABILITIES

    @property
    def alternative(self) -> str:
        """There are no renames."""
        return (
            "this storage account has no hierarchical namespace, and so no renames: leave protocol out, or give "
            "protocol=deferred; or upgrade the account (az storage account hns-migration)"
        )

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """There are none."""
        return [NotRenamed(Refusal.FAILED, "an account without hierarchical namespace has no renames") for _ in renames]

    # Deletions

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One request each, many in flight."""

        async def delete(path: str) -> Deleted:
            call = self._calls.delete_blob(check_relative(path))
            answer = await self.client.ask(call)
            if answer.status in (200, 202):
                return Deleted.DELETED
            if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                return Deleted.DELETED if answer.doubtful else Deleted.MISSING
            raise error_of(call, answer)

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """What is listed below each, a page at a time, with the marks of directories that others make."""

        async def delete(path: str) -> Deleted:
            outcome = Deleted.MISSING
            async for page in self._pages(check_relative(path)):
                found = [each.path for each in page.blobs if not is_passing(each.metadata)]
                if found:
                    await self.delete_files(found)
                    outcome = Deleted.DELETED
            return outcome

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """True for all: a directory is nothing but the names of what is in it."""
        return [True for _ in paths]

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Nothing to make."""
        return [DirectoryOutcome("existed") for _ in paths]

    # Looking

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """One HEAD each, many in flight. What stands for a directory is no file, and not told."""

        async def stat(path: str) -> FileStatus | None:
            answer = await look_at(self.client, self._calls, check_relative(path))
            found = None if answer is None else status_of_blob(path, answer)
            return None if found is None or found.is_directory else found

        return await for_each(paths, stat, at_once=self.client.in_flight_max, done=no_progress)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """The blobs right below, and what has a slash further on as directories; pages of up to 5,000."""
        directories: set[str] = set()
        async for page in self._pages(path, delimiter="/"):
            found = [status for each in page.blobs if each.path and (status := each.status()) is not None]
            named = [FileStatus(name, is_directory=True) for name in page.directories]
            # A directory may be there by its mark and by what is in it, on two pages.
            page_found = [status for status in found if not status.is_directory]
            for status in [*named, *(status for status in found if status.is_directory)]:
                if status.path not in directories:
                    directories.add(status.path)
                    page_found.append(status)
            if page_found:
                yield page_found

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """All files below; pages of up to 5,000."""
        async for page in self._pages(path):
            statuses = [each.status() for each in page.blobs]
            if found := [status for status in statuses if status is not None and not status.is_directory]:
                yield found

    async def _pages(self, path: str, *, delimiter: str = "", waiting: bool = False) -> AsyncIterator[Page]:
        if path:
            check_relative(path)
        marker = ""
        while True:
            call = self._calls.list_blobs(path, delimiter=delimiter, marker=marker, waiting=waiting)
            answer = await self.client.ask(call)
            if answer.status == 404:
                raise FileMissing(
                    "the container is not there", where=call.where, next_step="create it, or correct the URL"
                )
            if answer.status != 200:
                raise error_of(call, answer)
            page = page_of(answer, self._location.root)
            yield page
            marker = page.marker
            if not marker:
                return

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """One ranged GET each, many in flight."""

        async def read(path: str) -> bytes | None:
            call = self._calls.read(check_relative(path), bytes_max + 1)
            answer = await self.client.ask(call)
            if answer.status in (200, 206):
                return answer.body[: bytes_max + 1] if _is_file(status_of_blob(path, answer)) else None
            if answer.status == 416:  # a range of what has no content: an empty file, or what stands for a directory
                (found,) = await self.stat_files([path])
                return None if found is None else b""
            if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                return None
            raise error_of(call, answer)

        return await for_each(paths, read, at_once=self.client.in_flight_max, done=no_progress)

    # Writing

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """One Put Blob that is refused where a blob is; after a lost answer, the content that is there tells."""
        return await BlobUpload(self.client, self._calls, check_relative(path)).whole(content)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """One Put Blob, which is one act."""
        call = self._calls.put_blob(check_relative(path), content, absent=False)
        answer = await self.client.ask(call)
        if answer.status != 201:
            raise error_of(call, answer)
        return FileStatus(path, len(content), bare_etag(answer.headers.get("etag", "")))

    def open_output(self, path: str) -> OutputFile:
        """Sent while it is written, and there at its end."""
        return self._streamed(path, BlobUpload(self.client, self._calls, check_relative(path)))

    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        """Names below the root for which only blocks wait, and what this store has put there and somebody who died has
        left. The service lists such names among all blobs, with no content and no word of what they are: so each that
        has none is looked at."""
        async for page in self._pages("", waiting=True):
            left = [each for each in page.blobs if is_passing(each.metadata)]
            empty = [each for each in page.blobs if not each.length and not each.metadata]
            statuses = await self._are_there(empty)
            waiting = [each for each, is_there in zip(empty, statuses, strict=True) if not is_there]
            if begun := [BegunUpload(each.path, "", each.modified) for each in [*left, *waiting]]:
                yield begun

    async def _are_there(self, blobs: Sequence[Listed]) -> list[bool]:
        return [status is not None for status in await self.stat_files([each.path for each in blobs])]


def _is_file(status: FileStatus | None) -> bool:
    return status is not None and not status.is_directory

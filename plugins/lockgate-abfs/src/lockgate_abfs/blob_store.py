"""What the stores of both kinds of account do in one way: streamed files, deferred uploads, and writes and deletions
with conditions, all at the Blob endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.names import ABFS
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload, CompletionOutcome, GivenUp, Upload
from lockgate.model.urls import StoreUrl, check_relative
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.upload import StreamedOutput, UploadSteps

from lockgate_abfs import conditional
from lockgate_abfs.answers import bare_etag
from lockgate_abfs.blocks import block_bytes_at
from lockgate_abfs.calls import Calls
from lockgate_abfs.credentials import Credential
from lockgate_abfs.deferred import EXPIRE_SECONDS, DeferredUploads
from lockgate_abfs.location import Location
from lockgate_abfs.settings import AbfsSettings
from lockgate_abfs.upload import BLOCKS_IN_FLIGHT, refuse_dots


class BlobStore(Store):
    """A part of a container. `endpoint` is where most of its requests go; `folders`: names are no directories there, so
    that a blob can say that it stands for one."""

    name: ClassVar[str] = "abfs"
    name_rules = ABFS
    uploads_expire_seconds = EXPIRE_SECONDS
    uploads_share_names = True
    giving_up_is_seen = True

    def __init__(
        self,
        url: StoreUrl,
        location: Location,
        credential: Credential,
        settings: AbfsSettings,
        options: JobOptions,
        *,
        endpoint: str,
        folders: bool,
    ) -> None:
        self.url = url
        self.client = StoreClient(endpoint, credential, options)
        self._location = location
        self._credential = credential
        self._settings = settings
        self._calls = Calls(url, location)
        self._deferred = DeferredUploads(self.client, self._calls, folders=folders)

    @property
    def place(self) -> StoreUrl:
        """By the endpoint: schemes, and hosts of one connection string, are names of one place."""
        return self._location.place

    def counters(self) -> Mapping[str, int]:
        """Of all its requests."""
        return self.client.counters()

    def same_identity(self, one: str, other: str) -> bool:
        """Etags with and without quotes are the same: Hadoop's manifests have them as the headers do."""
        return bool(one) and bare_etag(one) == bare_etag(other)

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        """One Put Blob with the etag of what it replaces."""
        return await conditional.replace(self.client, self._calls, path, content, identity)

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        """One request each, with the etag."""
        return await conditional.delete_same(self.client, self._calls, files, progress)

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        """Sent while it is written, in blocks that wait for the name. What completes it is no secret. Its directory
        comes with its completion."""
        return self._streamed(path, self._deferred.steps(path, mark))

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        """One request each, which is refused where something is; two for a file without content."""
        return await self._deferred.complete(uploads, progress)

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """One request where nothing waits any more, else three; see `give_up`."""
        return await self._deferred.abort(uploads)

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        await self.client.close()

    def _streamed(self, path: str, steps: UploadSteps) -> OutputFile:
        where = str(self.url.child(path))
        refuse_dots(check_relative(path), where)
        lengths = partial(block_bytes_at, self._settings.block_bytes)
        return StreamedOutput(where, steps, part_bytes=lengths, parts_in_flight=BLOCKS_IN_FLIGHT)

"""The store behind `hdfs://`: hdfs-native's synchronous client, called in threads that have deadlines.

The client has no time-out of its own (a NameNode that accepts and never answers blocks it for ever), its asynchronous
form panics on a refused connection, and its fsspec wrapper cuts names at `#`, `?` and `;`: none of the three is used
here. Identity is length and modification time in milliseconds, which a rename keeps.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar, TypeVar

import hdfs_native
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, FileExists, FileMissing, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.stores.aside_upload import PartWriter
from lockgate.stores.call_threads import CallFailed, CallThreads
from lockgate.stores.http.exchange import Repeat
from lockgate.stores.real_directories import RealDirectoryStore

from lockgate_hdfs.hadoop_conf import RPC_PORT, is_known, one_name_of
from lockgate_hdfs.identity import identity_of, is_same
from lockgate_hdfs.native_errors import NO_SUCH_HOST, translate
from lockgate_hdfs.settings import HdfsSettings

T = TypeVar("T")

CAPABILITIES = frozenset(
    {
        Capability.ATOMIC_RENAME,
        Capability.RENAME_WITHOUT_REPLACE,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.ATOMIC_DIRECTORY_RENAME,
        Capability.CONSTANT_TIME_DIRECTORY_DELETE,
        Capability.REAL_DIRECTORIES,
    }
)
"""Not durable through a power failure: a closed file is in the memory of its DataNodes, not surely on their disks."""

PAGE = 1000


class HdfsStore(RealDirectoryStore):
    """A directory of an HDFS as a store. Connects at the first operation."""

    name: ClassVar[str] = "hdfs"

    def __init__(self, url: StoreUrl, authority: str, settings: HdfsSettings, options: JobOptions) -> None:
        super().__init__(url, settings.threads)
        self.name_rules = settings.name_rules
        self.threads = CallThreads("hdfs", settings.threads, options.timeout_seconds, options.patience_seconds)
        # Without a port it is a name service to hdfs-native; to Hadoop, if it is none, a host at the usual port.
        self._is_known = is_known(authority, settings.hadoop)
        self._namenode = f"hdfs://{authority}" if self._is_known else f"hdfs://{authority}:{RPC_PORT}"
        self._named = one_name_of(authority, settings.hadoop)
        self._configuration = settings.client_configuration(authority)
        self._directory_mode = settings.directory_mode
        self._file_mode = settings.file_mode
        self._own = threading.local()

    @property
    def place(self) -> StoreUrl:
        """By the name service, where the configuration says that a NameNode is of one, and without the usual port."""
        return StoreUrl("hdfs", self._named, self.url.path)

    def same_identity(self, one: str, other: str) -> bool:
        """Also of a file that is named by the other scheme."""
        return is_same(one, other)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of HDFS."""
        return CAPABILITIES

    async def ask(self, kind: str, path: str, work: Callable[[Any, str], T], repeat: Repeat = Repeat.FREELY) -> T:
        """Call `work` with the client and the full path, in a thread."""
        where = self.url.child(path)

        def call() -> T:
            try:
                return work(self._client(), where.path)
            except Exception as error:
                meaning = translate(error, kind, str(where))
                if isinstance(meaning, CallFailed):
                    self._own.client = None
                    if not self._is_known and NO_SUCH_HOST in str(meaning):
                        meaning.why_never = (
                            f"write hdfs://HOST:PORT{where.path}; or, if this is a name service, set "
                            "HADOOP_CONF_DIR, or store.conf_dir, to the directory of the hdfs-site.xml that has it"
                        )
                raise meaning from error

        return await self.threads.ask(kind, str(where), call, repeat)

    def _client(self) -> Any:
        """This thread's client, with a connection of its own: on a shared one a reset strikes the calls of all, and the
        client leaves some of them waiting for ever."""
        if getattr(self._own, "client", None) is None:
            self._own.client = hdfs_native.Client(self._namenode, self._configuration)
        return self._own.client

    async def close(self) -> None:
        """End the threads, and with them their connections."""
        self.threads.close()

    async def stat(self, path: str) -> FileStatus | None:
        """`getFileInfo`."""
        try:
            return status_of(path, await self.ask("stat", path, lambda client, full: client.get_file_info(full)))
        except FileMissing:
            return None

    async def entries(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """`getListing`, whole: a listing that broke off is begun again, so none of it is shown before its end."""
        prefix = f"{path}/" if path else ""

        def listing(client: Any, full: str) -> list[FileStatus]:
            found = [(each.path, each) for each in client.list_status(full)]
            if [name for name, _ in found] == [full] and not found[0][1].isdir:
                return []  # a file lists itself
            return [status_of(prefix + name.rpartition("/")[2], each) for name, each in found]

        try:
            found = await self.ask("list", path, listing)
        except FileMissing:
            return
        for start in range(0, len(found), PAGE):
            yield found[start : start + PAGE]

    async def read(self, path: str, length: int) -> bytes | None:
        """From the DataNodes."""
        try:
            return await self.ask("read", path, lambda client, full: bytes(client.read(full).read(length)))
        except FileMissing:
            return None

    async def put(self, path: str, content: bytes) -> FileStatus:
        """Create, write, close, and look at it: closing sets the modification time."""

        def put(client: Any, full: str) -> FileStatus:
            file = client.create(full, self._new_file(overwrite=True))
            try:
                file.write(content)
                file.close()
            finally:
                disarm(file)
            return status_of(path, client.get_file_info(full))

        return self._whole(await self.ask("write", path, put), len(content))

    def _new_file(self, *, overwrite: bool) -> Any:
        return hdfs_native.WriteOptions(overwrite=overwrite, create_parent=False, permission=self._file_mode)

    def _whole(self, written: FileStatus, length: int) -> FileStatus:
        if written.length != length:
            raise StoreError(
                f"{written.length} of {length} bytes were written", where=str(self.url.child(written.path))
            )
        return written

    async def open_parts(self, path: str) -> PartWriter:
        """Create it; a second try replaces what the first may have left."""
        file = await self.ask("create", path, lambda client, full: client.create(full, self._new_file(overwrite=True)))
        return _FileWriter(self, path, file)

    async def rename(self, rename: Rename) -> RenameOutcome:
        """`rename2`: refuses an existing target unless it may be replaced."""
        target = self.url.child(rename.target).path

        def call(client: Any, full: str) -> None:
            client.rename(full, target, rename.replace)

        try:
            await self.ask("rename", rename.source, call, Repeat.WITH_CARE)
        except AnswerLost as error:
            return Unknown(error.what)
        except StoreUnavailable as error:
            return NotRenamed(Refusal.FAILED, error.what)
        except FileMissing as error:
            return NotRenamed(Refusal.SOURCE_MISSING, error.what)
        except StoreError as error:
            return NotRenamed(Refusal.TARGET_EXISTS, error.what)
        return Renamed(rename.identity)

    async def delete(self, path: str, *, tree: bool) -> bool:
        """One call, a tree too."""
        try:
            return bool(await self.ask("delete", path, lambda client, full: client.delete(full, tree)))
        except FileMissing:
            return False

    async def make_directory(self, path: str, *, parents: bool) -> None:
        """`mkdirs`, which says nothing of a directory that is there: it is looked for first."""
        if not parents and await self.stat(path) is not None:
            raise FileExists("it is there already", where=str(self.url.child(path)))
        with_parents = parents or not path

        def make(client: Any, full: str) -> None:
            client.mkdirs(full, self._directory_mode, with_parents)

        await self.ask("make", path, make)


class _Gone:
    """In the place of a file that nobody closes any more."""

    def close(self) -> None:
        """Nothing."""


def disarm(file: Any) -> None:
    """Keep a file object from closing itself when it is collected: that is a call to the server, without a deadline, in
    whichever thread collects it, and be it the event loop's."""
    file.inner = _Gone()


class _FileWriter(PartWriter):
    """A file of hdfs-native's, written in the store's threads, one call at a time."""

    def __init__(self, store: HdfsStore, path: str, file: Any) -> None:
        self._store = store
        self._path = path
        self._file = file
        self._written = 0

    async def write(self, index: int, content: bytes) -> None:
        """Sent once: a second try would append it twice."""
        await self._store.ask("write", self._path, lambda client, full: self._file.write(content), Repeat.WITH_CARE)
        self._written += len(content)

    async def close(self) -> FileStatus:
        """Close it, and look at it."""
        await self._close()
        status = await self._store.stat(self._path)
        if status is None:
            raise FileMissing("it was deleted while it was written", where=str(self._store.url.child(self._path)))
        return self._store._whole(status, self._written)

    async def give_up(self) -> None:
        """Close it, so that the client stops renewing its lease."""
        await self._close()

    async def _close(self) -> None:
        try:
            await self._store.ask("close", self._path, lambda client, full: self._file.close(), Repeat.WITH_CARE)
        finally:
            disarm(self._file)


def status_of(path: str, found: Any) -> FileStatus:
    """From hdfs-native's own; its times are in milliseconds."""
    modified = found.modification_time / 1000
    if found.isdir:
        return FileStatus(path, is_directory=True, modified=modified)
    return FileStatus(path, found.length, identity_of(found.length, found.modification_time), modified=modified)

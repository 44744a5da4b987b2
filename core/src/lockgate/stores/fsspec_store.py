"""Base of stores on fsspec filesystems: about a hundred lines make a plugin. Needs the extra `fsspec`.

fsspec says nothing of what its `mv` guarantees (most copy and delete), so a plugin gives the rename itself; and what
its own errors mean, where they are not Python's. Everything else comes from here and from `RealDirectoryStore`.

A filesystem object is used by one thread at a time: each of the store's threads connects for itself.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, BinaryIO, ClassVar, TypeVar

from fsspec import AbstractFileSystem

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.model.layout import doomed
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl, parent_of
from lockgate.stores.aside_upload import PartWriter
from lockgate.stores.call_threads import CallFailed, CallThreads
from lockgate.stores.http.exchange import Repeat
from lockgate.stores.real_directories import DirectoryNotEmpty, RealDirectoryStore

T = TypeVar("T")

LIST_TRIES = 20


class FsspecStore(RealDirectoryStore):
    """A directory of an fsspec filesystem that has real directories and an atomic rename.

    `connect` makes a filesystem with a connection of its own; it must not come from fsspec's cache of instances, nor
    cache listings (`skip_instance_cache=True, use_listings_cache=False`).
    """

    may_send_twice = False
    threads_max: ClassVar[int] = 16

    def __init__(self, url: StoreUrl, connect: Callable[[], AbstractFileSystem], options: JobOptions) -> None:
        super().__init__(url, min(self.threads_max, options.requests_in_flight))
        self.threads = CallThreads(
            self.name, self.in_flight_max, options.timeout_seconds, options.patience_seconds, self._drop_connection
        )
        self._connect = connect
        self._own = threading.local()

    # What a plugin gives.

    @abstractmethod
    def rename_path(self, filesystem: AbstractFileSystem, source: str, target: str, *, replace: bool) -> None:
        """Rename as one act; without `replace` raise any `OSError` where the target exists."""

    @abstractmethod
    def identity_of(self, found: dict[str, Any]) -> str:
        """What tells a file's content from another's and survives a rename, from what `info` and `ls` answer."""

    def modified_of(self, found: dict[str, Any]) -> float:
        """When a file was last changed, seconds since 1970."""
        return float(found.get("mtime", 0.0))

    def is_lost_connection(self, error: Exception) -> bool:
        """Whether an error says that no answer came, rather than being one. The connection is then made anew."""
        return isinstance(error, ConnectionError | TimeoutError | EOFError)

    def disconnect(self, filesystem: AbstractFileSystem) -> None:
        """Let go of a filesystem's connection; whatever it raises is ignored."""

    # The calls, in threads.

    async def ask(
        self, kind: str, path: str, work: Callable[[AbstractFileSystem, str], T], repeat: Repeat = Repeat.FREELY
    ) -> T:
        """Call `work` with this thread's filesystem and the full path."""
        where = self.url.child(path)

        def call() -> T:
            with self.errors(kind, str(where)):
                return work(self._filesystem(), where.path)

        return await self.threads.ask(kind, str(where), call, repeat)

    def _filesystem(self) -> AbstractFileSystem:
        if getattr(self._own, "filesystem", None) is None:
            try:
                self._own.filesystem = self._connect()
            except AccessDenied:
                raise
            except Exception as error:
                raise CallFailed(f"no connection: {error}", may_have_acted=False) from error
        return self._own.filesystem

    def _drop_connection(self) -> None:
        filesystem, self._own.filesystem = getattr(self._own, "filesystem", None), None
        if filesystem is not None:
            with contextlib.suppress(Exception):
                self.disconnect(filesystem)

    async def close(self) -> None:
        """End the threads, and with them their connections."""
        self.threads.close()

    @contextlib.contextmanager
    def errors(self, kind: str, where: str) -> Iterator[None]:
        """Turn the filesystem's errors into Lockgate's."""
        try:
            yield
        except (CallFailed, StoreError):
            raise
        except Exception as error:
            reason = f"cannot {kind}: {error}"
            if self.is_lost_connection(error):
                self._drop_connection()
                raise CallFailed(reason, may_have_acted=True) from error
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                raise FileMissing(reason, where=where) from error
            if isinstance(error, FileExistsError):
                raise FileExists(reason, where=where) from error
            if isinstance(error, PermissionError):
                raise AccessDenied(reason, where=where, next_step="check the rights on this path") from error
            raise StoreError(reason, where=where) from error

    def _status(self, path: str, found: dict[str, Any]) -> FileStatus:
        if found["type"] == "directory":
            return FileStatus(path, is_directory=True, modified=self.modified_of(found))
        return FileStatus(path, int(found["size"]), self.identity_of(found), modified=self.modified_of(found))

    async def stat(self, path: str) -> FileStatus | None:
        """`info`."""
        try:
            return self._status(path, await self.ask("stat", path, lambda fs, full: fs.info(full)))
        except FileMissing:
            return None

    async def entries(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """`ls`, one page.

        A server may answer a listing with "not found" because one file went while it was listed; that is no empty
        directory, and is asked again.
        """
        prefix = f"{path}/" if path else ""
        for _ in range(LIST_TRIES):
            status = await self.stat(path)
            if status is None or not status.is_directory:
                return
            with contextlib.suppress(FileMissing):
                found = await self.ask("list", path, lambda fs, full: fs.ls(full, detail=True))
                yield [self._status(prefix + each["name"].rstrip("/").rpartition("/")[2], each) for each in found]
                return
        raise StoreUnavailable("cannot list: files keep vanishing meanwhile", where=str(self.url.child(path)))

    async def read(self, path: str, length: int) -> bytes | None:
        """`open` and one read."""

        def read(fs: AbstractFileSystem, full: str) -> bytes:
            with fs.open(full, "rb") as file:
                return bytes(file.read(length))

        try:
            return await self.ask("read", path, read)
        except FileMissing:
            return None

    async def put(self, path: str, content: bytes) -> FileStatus:
        """`open`, one write, `info`."""

        def put(fs: AbstractFileSystem, full: str) -> dict[str, Any]:
            with fs.open(full, "wb") as file:
                file.write(content)
            return dict(fs.info(full))

        written = self._status(path, await self.ask("write", path, put))
        if written.length != len(content):
            raise StoreError(f"{written.length} of {len(content)} bytes were written", where=str(self.url.child(path)))
        return written

    async def open_parts(self, path: str) -> PartWriter:
        """On a connection of its own, since its calls come from several threads."""

        def begin(_: AbstractFileSystem, full: str) -> _FileWriter:
            filesystem = self._connect()
            return _FileWriter(self, path, filesystem, filesystem.open(full, "wb"))

        return await self.ask("create", path, begin)

    async def rename(self, rename: Rename) -> RenameOutcome:
        """`rename_path`, sent once."""
        target = self.url.child(rename.target).path

        def call(fs: AbstractFileSystem, full: str) -> RenameOutcome:
            try:
                self.rename_path(fs, full, target, replace=rename.replace)
            except OSError as error:
                if self.is_lost_connection(error):
                    raise
                return NotRenamed(Refusal.TARGET_EXISTS, str(error))
            return Renamed()

        try:
            return await self.ask("rename", rename.source, call, Repeat.WITH_CARE)
        except StoreError as error:
            return Unknown(error.what)

    async def delete(self, path: str, *, tree: bool) -> bool:
        """`rm_file` or `rmdir`; a tree from its leaves up, renamed away first, if the filesystem does that."""
        status = await self.stat(path)
        if status is None:
            return False
        if not status.is_directory:
            return await self._delete_one("delete", path, lambda fs, full: fs.rm_file(full))
        if tree:
            aside = doomed(path, uuid.uuid4().hex)
            if isinstance(await self.rename(Rename(path, aside)), Renamed):
                path = aside
            await self._empty(path)
        return await self._delete_directory(path)

    async def _delete_directory(self, path: str) -> bool:
        tries = LIST_TRIES
        while True:
            tries -= 1
            try:
                return await self._delete_one("delete", path, lambda fs, full: fs.rmdir(full))
            except (AccessDenied, StoreUnavailable):
                raise
            except StoreError as error:
                async for page in self.entries(path):
                    if page:
                        raise DirectoryNotEmpty(error.what, where=error.where) from error
                # A listing may miss a file that is renamed at this moment, or what was there has gone since.
                if not tries:
                    raise

    async def _empty(self, path: str) -> None:
        async for page in self.entries(path):
            for each in page:
                if each.is_directory:
                    await self._empty(each.path)
                await self.delete(each.path, tree=False)

    async def _delete_one(self, kind: str, path: str, work: Callable[[AbstractFileSystem, str], None]) -> bool:
        try:
            await self.ask(kind, path, work)
        except FileMissing:
            return False
        return True

    async def make_directory(self, path: str, *, parents: bool) -> None:
        """`mkdir`, from the top down where parents are asked for."""
        try:
            await self.ask("make", path, lambda fs, full: fs.mkdir(full, create_parents=False))
        except FileMissing:
            if not parents and path:
                raise
            await self._make_above(path)
            await self.make_directory(path, parents=False)

    async def _make_above(self, path: str) -> None:
        # Others may make the same; what is still missing afterwards is found out by the call that needs it.
        with contextlib.suppress(StoreError):
            if path:
                await self.make_directory(parent_of(path), parents=True)
            else:
                # The root's own parents are the user's to name, and are made like any destination's.
                await self.ask("make", "", lambda fs, full: fs.makedirs(full.rpartition("/")[0], exist_ok=True))


class _FileWriter(PartWriter):
    """An fsspec file that is written in a store's threads, one call at a time."""

    def __init__(self, store: FsspecStore, path: str, filesystem: AbstractFileSystem, file: BinaryIO) -> None:
        self._store = store
        self._path = path
        self._filesystem = filesystem  # the file needs its connection
        self._file = file
        self._written = 0

    async def write(self, index: int, content: bytes) -> None:
        """A write is sent once: a second one would append it twice."""
        await self._store.ask("write", self._path, lambda fs, full: self._file.write(content), Repeat.WITH_CARE)
        self._written += len(content)

    async def close(self) -> FileStatus:
        """Close it and look at it."""
        await self._store.ask("write", self._path, lambda fs, full: self._file.close(), Repeat.WITH_CARE)
        status = await self._store.stat(self._path)
        where = str(self._store.url.child(self._path))
        if status is None:
            raise FileMissing("it was deleted while it was written", where=where)
        if status.length != self._written:
            raise StoreError(f"{status.length} of {self._written} bytes were written", where=where)
        return status

    async def give_up(self) -> None:
        """Close it."""
        await self._store.ask("close", self._path, lambda fs, full: self._file.close(), Repeat.WITH_CARE)

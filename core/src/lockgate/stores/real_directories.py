"""Base of stores that have real directories, an atomic rename, and one call for one path.

A plugin gives the few calls of its server; this gives the whole `Store`: many calls in flight, small files written
aside and renamed into place, directories that are not brought back, trees listed level by level, and refusals that are
looked into before they are believed, since a client library may have sent a call twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

from lockgate.engine.run.store import OutputFile, Progress, Store, holds_anything, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AccessDenied, AnswerLost, FileExists, FileMissing, StoreError
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
from lockgate.model.layout import unfinished
from lockgate.model.urls import StoreUrl, check_relative, parent_of
from lockgate.stores.aside_upload import AsideUpload, PartWriter
from lockgate.stores.doubt import Doubt
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.upload import StreamedOutput
from lockgate.stores.http.upload_loop import UPLOAD_LOOP

SETTLE_TRIES = 8
SETTLE_SECONDS = 0.05
PART_BYTES = 8 << 20


class DirectoryNotEmpty(StoreError):
    """A directory was to be deleted if it was empty, and is not."""


class RealDirectoryStore(Store):
    """Base of stores that have real directories, an atomic rename, and one call for one path. See the module.

    `may_send_twice`: the client library may repeat a rename by itself, so that a second answer can
    be about the first call."""

    writes_beside: ClassVar[bool] = True
    may_send_twice: ClassVar[bool] = True
    part_bytes: int = PART_BYTES
    parts_in_flight: int = 1

    def __init__(self, url: StoreUrl, in_flight_max: int) -> None:
        self.url = url
        self.in_flight_max = in_flight_max
        self._directories_seen: set[str] = set()

    @property
    def calls_at_once(self) -> int:
        """One for each of the threads."""
        return self.in_flight_max

    # The calls of the server. All raise `StoreError` where they fail, after whatever patience they have.

    @abstractmethod
    async def stat(self, path: str) -> FileStatus | None:
        """The status of a path, None where nothing is, also below a file."""

    @abstractmethod
    def entries(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """The entries of a directory in pages; of one that is not there, or is a file, none."""

    @abstractmethod
    async def read(self, path: str, length: int) -> bytes | None:
        """The first `length` bytes of a file, None where there is no file."""

    @abstractmethod
    async def put(self, path: str, content: bytes) -> FileStatus:
        """Write a file that nobody else knows, whole, whatever an earlier try has left there; its status, with the
        identity. Raises `FileMissing` where its directory is not there, which it never makes."""

    @abstractmethod
    async def open_parts(self, path: str) -> PartWriter:
        """Begin a file that nobody else knows, to be written part by part."""

    @abstractmethod
    async def rename(self, rename: Rename) -> RenameOutcome:
        """Rename a file. `Unknown` where no answer came; `NotRenamed` with reason `FAILED` where it was surely not
        sent; with another reason, here taken only as a hint, where the server refused it."""

    @abstractmethod
    async def delete(self, path: str, *, tree: bool) -> bool:
        """Delete a file, an empty directory, or (`tree`) a directory with all that is in it; False: nothing is there.

        Raises:
            DirectoryNotEmpty: without `tree`, a directory with something in it.
        """

    @abstractmethod
    async def make_directory(self, path: str, *, parents: bool) -> None:
        """Make a directory, with those above it only if `parents`; `""` is the root, made with its parents always.

        Raises:
            FileExists: something is there.
            FileMissing: without `parents`, what is above is not there.
            StoreError: something above is a file, or it failed.
        """

    # Renames

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """One call each, many in flight; a refusal is looked into before it is told."""

        async def rename(each: Rename) -> RenameOutcome:
            outcome = await self.rename(each)
            if isinstance(outcome, NotRenamed) and outcome.reason is not Refusal.FAILED:
                return await self._looked_into(each, outcome)
            return outcome

        return await for_each(renames, rename, at_once=self.in_flight_max, done=progress)

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """By the same call as files, where the server has one for both."""
        if Capability.ATOMIC_DIRECTORY_RENAME not in self.capabilities:
            raise self._cannot(Capability.ATOMIC_DIRECTORY_RENAME)
        self._directories_seen.clear()
        return await self.rename_files([Rename(each.source, each.target) for each in renames])

    async def _looked_into(self, rename: Rename, refused: NotRenamed) -> RenameOutcome:
        """What a refusal means, by what is found at both ends, the source first."""
        try:
            source = await self.stat(rename.source)
            target = await self.stat(rename.target)
            parent = await self.stat(parent_of(rename.target)) if target is None else None
        except StoreError as error:
            return Unknown(f"{refused.detail}; and then {error.what}")
        if source is None:
            if target is not None and self.may_send_twice and self._may_be(rename, target):
                return Unknown("the source is gone and the target is there: the client may have sent it twice")
            return NotRenamed(Refusal.SOURCE_MISSING, refused.detail)
        if target is not None and (target.is_directory or not rename.replace):
            return NotRenamed(Refusal.TARGET_EXISTS, "a directory is there" if target.is_directory else "")
        if target is None and parent is None:
            return NotRenamed(Refusal.PARENT_MISSING, refused.detail)
        # A store that knows of a refusal of its own, such as a changed source, is believed.
        hints = (Refusal.SOURCE_CHANGED,)
        return refused if refused.reason in hints else NotRenamed(Refusal.FAILED, refused.detail)

    def _may_be(self, rename: Rename, target: FileStatus) -> bool:
        return not target.is_directory and (not rename.identity or self.same_identity(rename.identity, target.identity))

    # Deletions

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One call each, many in flight."""

        async def delete(path: str) -> Deleted:
            return Deleted.DELETED if await self.delete(check_relative(path), tree=False) else Deleted.MISSING

        return await for_each(paths, delete, at_once=self.in_flight_max, done=progress)

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One call each, where the server deletes trees."""
        self._directories_seen.clear()

        async def delete(path: str) -> Deleted:
            return Deleted.DELETED if await self.delete(check_relative(path), tree=True) else Deleted.MISSING

        return await for_each(paths, delete, at_once=self.in_flight_max, done=progress)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """In order. What is there is looked at first, since the server's call would delete a file too."""
        self._directories_seen.clear()
        gone = []
        for path in paths:
            found = await self.stat(path)
            if found is None or not found.is_directory:
                gone.append(found is None)
                continue
            try:
                await self.delete(path, tree=False)
                gone.append(True)
            except DirectoryNotEmpty:
                gone.append(False)
            except AccessDenied:
                if not await holds_anything(self, path):
                    raise
                gone.append(False)
        return gone

    # Directories

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """With what is above; within `within` level by level, so that it is never made itself."""
        if within:
            found = await self.stat(within)
            if found is None or not found.is_directory:
                raise FileMissing("a directory is not there", where=str(self.url.child(within)))
            return [await self._make_within(path, within) for path in paths]
        return await for_each(paths, self._make, at_once=self.in_flight_max, done=no_progress)

    async def _make(self, path: str) -> DirectoryOutcome:
        found = await self.stat(path)
        if found is not None:
            return DirectoryOutcome("existed") if found.is_directory else DirectoryOutcome("blocked", path)
        try:
            await self.make_directory(path, parents=True)
        except StoreError as error:
            return await self._why_not_made(path, error)
        return DirectoryOutcome("created")

    async def _make_within(self, path: str, within: str) -> DirectoryOutcome:
        if path == within:
            return DirectoryOutcome("existed")
        try:
            await self.make_directory(path, parents=False)
        except FileMissing:
            parent = parent_of(path)
            if parent == within or not path.startswith(within + "/"):
                raise
            above = await self._make_within(parent, within)
            return above if above.state == "blocked" else await self._make_within(path, within)
        except StoreError as error:
            return await self._why_not_made(path, error)
        return DirectoryOutcome("created")

    async def _why_not_made(self, path: str, error: StoreError) -> DirectoryOutcome:
        """By what is there; raises the error where nothing that is there explains it."""
        at = path
        while at:
            found = await self.stat(at)
            if found is not None and not found.is_directory:
                return DirectoryOutcome("blocked", at)
            if found is not None:
                if at == path:
                    return DirectoryOutcome("existed")
                break
            at = parent_of(at)
        raise error

    # Looking

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """One call each, many in flight."""
        return await for_each(paths, self.stat, at_once=self.in_flight_max, done=no_progress)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """As the server pages it."""
        async for page in self.entries(path):
            if page:
                yield page

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Level by level, a few directories at once."""

        async def entries(directory: str) -> list[FileStatus]:
            return [status async for page in self.entries(directory) for status in page]

        pending = [path]
        while pending:
            now, pending = pending[: self.in_flight_max], pending[self.in_flight_max :]
            for found in await for_each(now, entries, at_once=self.in_flight_max, done=no_progress):
                pending += [status.path for status in found if status.is_directory]
                files = [status for status in found if not status.is_directory]
                if files:
                    yield files

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """One call each, many in flight."""

        async def read(path: str) -> bytes | None:
            return await self.read(check_relative(path), bytes_max + 1)

        return await for_each(paths, read, at_once=self.in_flight_max, done=no_progress)

    # Writing

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """Written aside in its directory, then renamed into place if nothing is there."""
        return await self.put_in_place(path, content, replace=False)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """Written aside in its directory, then renamed over what is there."""
        return await self.put_in_place(path, content, replace=True)

    async def put_in_place(self, path: str, content: bytes, *, replace: bool) -> FileStatus:
        """A whole small file, as one act.

        Raises:
            FileExists: something is there, and it may not be replaced.
            FileMissing: its directory is not there.
            AnswerLost: it may be in place.
        """
        aside = self.aside_of(path)
        try:
            written = await self.put(aside, content)
            await self.rename_into_place(aside, path, written, replace=replace)
        except BaseException:
            await self.drop(aside)
            raise
        return FileStatus(path, written.length, written.identity, modified=written.modified)

    async def rename_into_place(self, aside: str, path: str, written: FileStatus, *, replace: bool) -> None:
        """Rename what only this call knows of, until it is known what became of it; raises as `put_in_place`."""
        where = str(self.url.child(check_relative(path)))
        rename = Rename(aside, path, written.length, written.identity, replace)
        outcome: RenameOutcome = Unknown()
        with Doubt(where) as doubt:
            for attempt in range(SETTLE_TRIES):
                if attempt:
                    await asyncio.sleep(SETTLE_SECONDS * 2**attempt)
                outcome = await self.rename(rename)
                if isinstance(outcome, Renamed):
                    return
                surely_not_sent = isinstance(outcome, NotRenamed) and outcome.reason is Refusal.FAILED
                doubted = doubt.is_open or isinstance(outcome, Unknown)
                # A refusal may be the answer to a second sending, until the source is seen.
                doubt.is_open = doubted or not surely_not_sent
                source = await self.stat(aside)
                if source is None:
                    await self._is_it_ours(path, written, replace=replace)
                    return
                doubt.is_open = doubted
                if isinstance(outcome, NotRenamed) and not surely_not_sent:
                    looked_into = await self._looked_into(rename, outcome)
                    reason = looked_into.reason if isinstance(looked_into, NotRenamed) else None
                    if reason is Refusal.TARGET_EXISTS:
                        raise FileExists("something is there already", where=where)
                    if reason is Refusal.PARENT_MISSING:
                        raise FileMissing("the file's directory is not there", where=where)
            detail = outcome.detail if isinstance(outcome, NotRenamed | Unknown) else ""
            raise StoreError(f"it could not be renamed into place: {detail}", where=where)

    async def _is_it_ours(self, path: str, written: FileStatus, *, replace: bool) -> None:
        """The file aside is gone: into place, or, with its whole directory, for ever."""
        target = await self.stat(path)
        if target is not None and self.same_identity(target.identity, written.identity):
            return
        parent = parent_of(path)
        where = str(self.url.child(path))
        if parent and await self.stat(parent) is None:
            raise FileMissing("the file's directory was deleted meanwhile", where=where)
        if replace and target is not None:
            return  # another writer has replaced it since
        raise AnswerLost("it was in place for a moment, or its directory was deleted and made anew", where=where)

    def aside_of(self, path: str) -> str:
        """A name in the same directory that nobody else knows, and that readers of tables leave out."""
        parent = parent_of(check_relative(path))
        return f"{parent}/{self._aside_name()}" if parent else self._aside_name()

    @staticmethod
    def _aside_name() -> str:
        return unfinished(uuid.uuid4().hex)

    async def drop(self, aside: str) -> None:
        """Delete a file aside, as far as that can be done; never raises for the store."""
        with contextlib.suppress(StoreError):
            await self.delete(aside, tree=False)

    def open_output(self, path: str) -> OutputFile:
        """Written aside while it grows, renamed into place when it is closed. Its directory is looked at once."""
        parent = parent_of(check_relative(path))
        where = str(self.url.child(path))
        if parent and parent not in self._directories_seen:
            found = UPLOAD_LOOP.run(self.stat(parent))
            if found is None or not found.is_directory:
                raise FileMissing("the file's directory is not there", where=where)
            self._directories_seen.add(parent)
        steps = AsideUpload(self, path)
        return StreamedOutput(where, steps, part_bytes=self.part_bytes, parts_in_flight=self.parts_in_flight)

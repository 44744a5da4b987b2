"""Stores that lie: the local store, each time with one promise broken in a way that a real store might break it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from lockgate.engine.run.store import OutputFile, Progress, no_progress
from lockgate.model.errors import FileExists, FileMissing, StoreError
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
from lockgate.model.layout import is_unfinished
from lockgate.model.urls import StoreUrl
from lockgate.stores.local import LocalStore
from lockgate.stores.local_files import identity_of

PAUSE = 0.005
"""Longer than a busy machine keeps a thread waiting, as a rule; each race has many rounds."""

MEANWHILE_TRIES = 2_000


class HonestStore(LocalStore):
    """The local store, without waiting for the disk."""

    def __init__(self, root: str) -> None:
        super().__init__(StoreUrl("file", "", root), durable=False)

    def at(self, path: str) -> str:
        return self._path(path)


class RenameCopies(HonestStore):
    """A rename is a copy and a delete, undeclared; the copy keeps length and modification time."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            source, target = self.at(rename.source), self.at(rename.target)
            if not os.path.exists(source):
                outcomes.append(NotRenamed(Refusal.SOURCE_MISSING))
            elif not os.path.isdir(os.path.dirname(target)):
                outcomes.append(NotRenamed(Refusal.PARENT_MISSING))
            elif os.path.isdir(target) or (os.path.exists(target) and not rename.replace):
                outcomes.append(NotRenamed(Refusal.TARGET_EXISTS))
            else:
                with contextlib.suppress(FileNotFoundError):
                    await asyncio.sleep(PAUSE)
                    shutil.copy2(source, target)
                    await asyncio.sleep(PAUSE)
                    os.unlink(source)
                outcomes.append(Renamed())
            progress(1)
        return outcomes


class CopyIsIdentity(RenameCopies):
    """The same, hidden better: its identity is length and time, which the copy keeps."""

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        return [each and _without_inode(each) for each in await super().stat_files(paths)]

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_directory(path):
            yield [_without_inode(each) for each in page]


def _without_inode(status: FileStatus) -> FileStatus:
    return _with(status, identity=status.identity.partition("-")[2])


def _with(status: FileStatus, **changes: Any) -> FileStatus:
    fields = {name: getattr(status, name) for name in status.__struct_fields__}
    return FileStatus(**{**fields, **changes})


class RenameLinksAndUnlinks(HonestStore):
    """A rename is a link and an unlink, undeclared: each is one act, and never replaces, but both are two."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            if rename.replace:
                outcomes += await super().rename_files([rename], progress)
                continue
            source, target = self.at(rename.source), self.at(rename.target)
            try:
                try:
                    os.link(source, target, follow_symlinks=False)
                except FileExistsError:
                    if not os.path.samestat(os.lstat(source), os.lstat(target)):
                        raise
                await asyncio.sleep(PAUSE)
                os.unlink(source)
                outcomes.append(Renamed())
            except FileExistsError:
                outcomes.append(NotRenamed(Refusal.TARGET_EXISTS))
            except FileNotFoundError:
                missing = Refusal.PARENT_MISSING if os.path.exists(source) else Refusal.SOURCE_MISSING
                outcomes.append(NotRenamed(missing))
            except OSError as error:
                outcomes.append(NotRenamed(Refusal.FAILED, str(error)))
            progress(1)
        return outcomes


class RenameReplaces(HonestStore):
    """A rename replaces although it was told not to."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        return await super().rename_files([_replacing(each) for each in renames], progress)


def _replacing(rename: Rename) -> Rename:
    return Rename(rename.source, rename.target, rename.length, rename.identity, replace=True)


class RenameChecksFirst(HonestStore):
    """A rename looks whether the target is there and then replaces it: right, but for the moment between."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            if not rename.replace and os.path.exists(self.at(rename.target)):
                here = os.path.exists(self.at(rename.source))
                outcomes.append(NotRenamed(Refusal.TARGET_EXISTS if here else Refusal.SOURCE_MISSING))
                progress(1)
                continue
            await asyncio.sleep(PAUSE)
            outcomes += await super().rename_files([_replacing(rename)], progress)
        return outcomes


class RenameDeletesFirst(HonestStore):
    """A rename that replaces deletes the target and then renames: a reader finds nothing for a moment."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        for rename in renames:
            if rename.replace and os.path.isfile(self.at(rename.target)) and os.path.exists(self.at(rename.source)):
                os.unlink(self.at(rename.target))
                await asyncio.sleep(PAUSE)
        return await super().rename_files(renames, progress)


class RenameMakesParents(HonestStore):
    """A rename makes the directory that is missing."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        for rename in renames:
            os.makedirs(os.path.dirname(self.at(rename.target)), exist_ok=True)
        return await super().rename_files(renames, progress)


class RenameMovesInto(HonestStore):
    """A rename onto a directory moves the file into it, as HDFS's old call does."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        moved = []
        for rename in renames:
            into = os.path.isdir(self.at(rename.target))
            target = f"{rename.target}/{os.path.basename(rename.source)}" if into else rename.target
            moved.append(Rename(rename.source, target, rename.length, rename.identity, rename.replace))
        return await super().rename_files(moved, progress)


class BatchMovesInto(RenameMovesInto):
    """The same, hidden better: a rename by itself looks at its target first."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        if len(renames) > 1:
            return await super().rename_files(renames, progress)
        return await HonestStore.rename_files(self, renames, progress)


class DirectoryMerges(HonestStore):
    """A directory that is renamed onto another is merged into it."""

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        for rename in renames:
            target = self.at(rename.target)
            if os.path.isdir(self.at(rename.source)) and os.path.isdir(target):
                for name in os.listdir(self.at(rename.source)):
                    os.replace(f"{self.at(rename.source)}/{name}", f"{target}/{name}")
                os.rmdir(self.at(rename.source))
                return [Renamed()]
        return await super().rename_directories(renames)


class DirectoryReplacesAnEmptyOne(HonestStore):
    """As rename(2) does it."""

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        for rename in renames:
            with contextlib.suppress(OSError):
                os.rmdir(self.at(rename.target))
        return await super().rename_directories(renames)


class DirectoryMovesInto(HonestStore):
    """A directory that is renamed onto another is put inside, as HDFS's old call does."""

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        moved = []
        for rename in renames:
            into = os.path.isdir(self.at(rename.target))
            moved.append(Rename(rename.source, f"{rename.target}/{rename.source}" if into else rename.target))
        return await super().rename_directories(moved)


class DirectoryGoesChildByChild(HonestStore):
    """The target is made, and then filled."""

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            source, target = self.at(rename.source), self.at(rename.target)
            try:
                os.mkdir(target)
                for name in sorted(os.listdir(source)):
                    await asyncio.sleep(PAUSE)
                    os.rename(f"{source}/{name}", f"{target}/{name}")
                os.rmdir(source)
                outcomes.append(Renamed())
            except OSError:
                outcomes.append(NotRenamed(Refusal.TARGET_EXISTS))
        return outcomes


class RenameLosesItsAnswer(HonestStore):
    """A rename sends again what it had done, and tells that the source was not there."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes = await super().rename_files(renames, progress)
        return [
            NotRenamed(Refusal.SOURCE_MISSING) if isinstance(each, Renamed) and number % 7 == 3 else each
            for number, each in enumerate(outcomes)
        ]


class RenameShrugs(HonestStore):
    """A rename that was refused is told to be unknown."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes = await super().rename_files(renames, progress)
        return [Unknown("who knows") if isinstance(each, NotRenamed) else each for each in outcomes]


class RenameAnswersOutOfOrder(HonestStore):
    """A batch is answered for in the order of its completion."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        return sorted(await super().rename_files(renames, progress), key=lambda each: isinstance(each, NotRenamed))


class PinIsIgnored(HonestStore):
    """Claims pinned sources, and renames whatever is there."""


class ProofIsMissing(HonestStore):
    """Claims proofs, and shows none."""


class EtagChanges(HonestStore):
    """Every rename gives the file another identity."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes = await super().rename_files(renames, progress)
        for rename, outcome in zip(renames, outcomes, strict=True):
            if isinstance(outcome, Renamed):
                os.utime(self.at(rename.target))
        return outcomes


class ListingHasOtherEtags(HonestStore):
    """Listings show identities in another form than statuses do, and `same_identity` does not know."""

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_directory(path):
            yield [_with(each, identity=f'"{each.identity}"') for each in page]


class IdentityIsTheLength(HonestStore):
    """The length is all that tells files apart."""

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        return [each and _with(each, identity=f"{each.length}") for each in await super().stat_files(paths)]


class IdentityIsTheContent(HonestStore):
    """Files of one content are taken for one."""

    def _by_content(self, status: FileStatus) -> FileStatus:
        if status.is_directory:
            return status
        with contextlib.suppress(FileNotFoundError):
            return _with(status, identity=hashlib.sha256(Path(self.at(status.path)).read_bytes()).hexdigest())
        return status

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        return [each and self._by_content(each) for each in await super().stat_files(paths)]

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_directory(path):
            yield [self._by_content(each) for each in page]


class EmptyIsTheSame(HonestStore):
    """Two files without an identity are taken for one."""

    def same_identity(self, one: str, other: str) -> bool:
        return one == other


class ListingLags(HonestStore):
    """A listing shows a file only some time after it was written."""

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_directory(path):
            yield [each for each in page if each.is_directory or each.modified < time.time() - 0.2]


class ListingRemembers(HonestStore):
    """A listing still shows for a while what was deleted or renamed away."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._seen: dict[str, dict[str, FileStatus]] = {}

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        seen = self._seen.setdefault(path, {})
        now = {each.path: each async for page in super().list_directory(path) for each in page}
        seen |= now
        yield list(seen.values())
        self._seen[path] = now


class ListingDropsAPage(HonestStore):
    """A listing ends after its first page."""

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        found = [each async for page in super().list_directory(path) for each in page]
        yield sorted(found, key=lambda each: each.path)[:250]


class ListingShifts(HonestStore):
    """Pages are counted off by position, so that files shift between them while others come and go."""

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        start = 0
        while True:
            found = [each async for page in super().list_directory(path) for each in page]
            page = sorted(found, key=lambda each: each.path)[start : start + 50]
            if not page:
                return
            yield page
            start += 50
            await asyncio.sleep(PAUSE)


class ListingByPrefix(HonestStore):
    """A listing of `a` shows what is in `a1` too."""

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_tree(""):
            found = [each for each in page if each.path.startswith(path)]
            if found:
                yield found


class TreeHasDirectories(HonestStore):
    """A tree names its directories among the files."""

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in super().list_tree(path):
            yield page
        async for page in super().list_directory(path):
            yield [each for each in page if each.is_directory]


class CreateRaces(HonestStore):
    """Create-if-absent looks first, and then writes."""

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        if os.path.exists(self.at(path)):
            raise FileExists("it is there", where=path)
        await asyncio.sleep(PAUSE)
        return await self.write_file(path, content)


class CreateShowsParts(HonestStore):
    """Create-if-absent makes the name first, exclusively, and fills it then."""

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        if not os.path.isdir(os.path.dirname(self.at(path))):
            raise FileMissing("no directory", where=path)
        try:
            descriptor = os.open(self.at(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            raise FileExists("it is there", where=path) from None
        await asyncio.sleep(PAUSE)
        with open(descriptor, "wb") as file:
            file.write(content)
        return await _status(self, path)


class WriteShowsParts(HonestStore):
    """A write truncates the file and fills it then."""

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        if not os.path.isdir(os.path.dirname(self.at(path))):
            raise FileMissing("no directory", where=path)
        with open(self.at(path), "wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            await asyncio.sleep(PAUSE)
            file.write(content[len(content) // 2 :])
        return await _status(self, path)


class WriteMakesParents(HonestStore):
    """A write makes the directory that is missing, as object stores' clients do."""

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        return await super().write_file(path, content)


class WriteMovesInto(HonestStore):
    """A write puts its temporary file into a directory that has the file's name."""

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        into = os.path.isdir(self.at(path))
        return await super().write_file(f"{path}/{os.path.basename(path)}.tmp" if into else path, content)


class WriteLeavesScraps(HonestStore):
    """A write leaves its temporary file behind."""

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        status = await super().write_file(path, content)
        shutil.copyfile(self.at(path), self.at(path) + ".tmp")
        return status


async def _status(store: HonestStore, path: str) -> FileStatus:
    found = os.stat(store.at(path))
    return FileStatus(path, found.st_size, identity_of(found), modified=found.st_mtime)


class DeleteMisses(HonestStore):
    """A bulk deletion drops the errors of single files, and tells that all went well."""

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        await super().delete_files([path for number, path in enumerate(paths) if number % 100 != 57], progress)
        return [Deleted.DELETED] * len(paths)


class DeleteByPrefix(HonestStore):
    """Deleting the tree `job1` takes `job10` with it."""

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        for path in paths:
            parent, _, prefix = self.at(path).rpartition("/")
            for name in os.listdir(parent) if os.path.isdir(parent) else ():
                if name.startswith(prefix) and name != prefix:
                    shutil.rmtree(f"{parent}/{name}", ignore_errors=True)
        return await super().delete_directories(paths, progress)


class DeleteTakesFull(HonestStore):
    """A directory is looked at, found empty, and deleted as a tree: with what came meanwhile."""

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        gone = []
        for path in paths:
            if os.path.isdir(self.at(path)) and not os.listdir(self.at(path)):
                await asyncio.sleep(PAUSE)
                shutil.rmtree(self.at(path), ignore_errors=True)
            gone.append(not os.path.exists(self.at(path)))
        return gone


class TreeGoesFileByFile(HonestStore):
    """Claims to delete a tree as one act, and deletes one file after the other."""

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        for path in paths:
            async for page in self.list_tree(path):
                for status in page:
                    await self.delete_files([status.path])
                    await asyncio.sleep(PAUSE)
        return await super().delete_directories(paths, progress)


class TreeIsHeldUp(HonestStore):
    """Deletes what it has listed, and gives up where somebody has written meanwhile."""

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        for path in paths:
            listed = [status.path async for page in self.list_tree(path) for status in page]
            # Who loses the file that it is writing aside takes its directory for gone, and writes no more.
            await self.delete_files([each for each in listed if not is_unfinished(each)])
            for _ in range(MEANWHILE_TRIES):  # whoever writes on will have written
                if any(files for _, _, files in os.walk(self.at(path))):
                    break
                await asyncio.sleep(PAUSE)
            for directory, _, files in os.walk(self.at(path), topdown=False):
                if files:
                    raise StoreError("cannot delete: Directory not empty", where=directory)
                os.rmdir(directory)
        return [Deleted.DELETED for _ in paths]


class WithinIsMade(HonestStore):
    """The directory that must exist is made like any other."""

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        return await super().make_directories(paths)


class DirectoriesVanish(HonestStore):
    """A directory goes with its last file, as on a store without real ones."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes = await super().rename_files(renames, progress)
        for rename in renames:
            parent = os.path.dirname(self.at(rename.source))
            if os.path.isdir(parent) and not os.listdir(parent):
                os.rmdir(parent)
        return outcomes


class NamesAreCut(HonestStore):
    """Paths are parsed as URLs: what follows a `#` or a `?` is cut off."""

    def _path(self, relative: str) -> str:
        return super()._path(relative).partition("#")[0].partition("?")[0]


class NamesAreDecoded(HonestStore):
    """Paths are decoded once too often: `%41` is `A`."""

    def _path(self, relative: str) -> str:
        return super()._path(relative).replace("%41", "A").replace("%3A", ":")


class PlusIsSpace(HonestStore):
    """A plus is read as a space."""

    def _path(self, relative: str) -> str:
        return super()._path(relative).replace("+", " ")


class ReadsTooMuch(HonestStore):
    """A read brings the whole file, however long."""

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        return await super().read_files(paths, bytes_max=1 << 30)


class OutputMayReplace(HonestStore):
    """A data file is opened over another."""

    def open_output(self, path: str) -> OutputFile:
        if os.path.isfile(self.at(path)):
            os.unlink(self.at(path))
        return super().open_output(path)


class CancelledGoesOn(HonestStore):
    """A cancelled batch goes on in the background."""

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        async def slowly() -> list[RenameOutcome]:
            outcomes: list[RenameOutcome] = []
            for rename in renames:
                outcomes += await HonestStore.rename_files(self, [rename], progress)
                await asyncio.sleep(0.0005)
            return outcomes

        return await asyncio.shield(asyncio.ensure_future(slowly()))

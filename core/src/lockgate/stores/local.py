"""The local store: disks, and what is mounted as one.

Identity is inode, length and modification time, which a rename keeps. Calls are plain loops that let others run
now and then: on a local disk the loop itself is the fastest way, and a thread would only add switches (measured:
the docs' page on speed).

Contained: below the root no symbolic link is followed, staged or committed, wherever it leads; one that is replaced
like a file, or deleted with its directory, goes itself. The root may be a link. What another user of the machine
changes between a check and its use is not defended against: whoever can write into the destination owns it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cached_property
from typing import ClassVar

from lockgate.engine.run.store import OutputFile, Progress, Store, directories_above, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.counted import counted
from lockgate.model.errors import (
    AccessDenied,
    CommitRefused,
    DestinationConflict,
    FileMissing,
    PathError,
)
from lockgate.model.files import (
    RENAMED,
    Deleted,
    DirectoryOutcome,
    FileStatus,
    NotRenamed,
    Refusal,
    Rename,
    RenameOutcome,
)
from lockgate.model.layout import doomed, unfinished
from lockgate.model.names import LOCAL
from lockgate.model.urls import StoreUrl, check_text, parent_of
from lockgate.stores.local_delete import NOT_EMPTY, delete_tree
from lockgate.stores.local_files import (
    forget_checksum,
    identity_of,
    open_to_read,
    pages,
    read_at_most,
    status_of,
    sync_directory,
    told,
    write_all,
)
from lockgate.stores.local_links import LinkGuard
from lockgate.stores.local_output import LocalOutput
from lockgate.stores.local_rename import (
    RenameKind,
    link_and_unlink,
    rename_kind,
    rename_without_replacing,
    turn_at,
)

CAPABILITIES = frozenset(
    {
        Capability.ATOMIC_RENAME,
        Capability.RENAME_WITHOUT_REPLACE,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.UNIQUE_IDENTITY,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.ATOMIC_DIRECTORY_RENAME,
        Capability.REAL_DIRECTORIES,
        Capability.DURABLE_WRITE,
    }
)

YIELD_EVERY = 256
"""After so many files of a batch, other tasks of the event loop get a turn."""

MAKE_TRIES = 100
"""How often a directory is tried again whose parent was missing, and is made or found: others may delete that again."""

_AS_EFFECTIVE_USER = os.access in os.supports_effective_ids


TWO_STEP_RENAMES = "two_step_renames"
"""The option that allows what is weaker, as `store.two_step_renames=allow`."""


class LocalStore(Store):
    """A directory as a store. `durable` waits for the disk before a write or a rename counts.

    Where the root's filesystem cannot refuse an existing target as one act, a rename is a link and an unlink, in turns
    among the processes of this machine. `two_step_renames` says that no other machine writes there; without it nothing
    is declared that such renames do not keep, and jobs are refused.
    """

    name: ClassVar[str] = "local"
    name_rules = LOCAL

    def __init__(self, url: StoreUrl, *, durable: bool = True, two_step_renames: bool = False) -> None:
        self.url = url
        self._root = url.path
        self._durable = durable
        self._two_step_renames = two_step_renames

    @cached_property
    def _renames(self) -> RenameKind:
        return rename_kind(self._root)

    @property
    def calls_at_once(self) -> int:
        """One: the kernel answers before another call could be made."""
        return 1

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of the local store at this root, found out once; durable only if asked to wait for the disk."""
        declared = CAPABILITIES if self._durable else CAPABILITIES - {Capability.DURABLE_WRITE}
        if self._renames is RenameKind.ATOMIC:
            return declared
        # Without a rename that refuses to replace, a directory may take the place of an empty one.
        declared -= {
            Capability.ATOMIC_RENAME,
            Capability.RENAME_WITHOUT_REPLACE,
            Capability.ATOMIC_DIRECTORY_RENAME,
        }
        if self._renames is RenameKind.NONE:
            return declared - {Capability.CREATE_IF_ABSENT}
        if self._two_step_renames:
            return declared | {Capability.RENAME_WITHOUT_REPLACE, Capability.RENAME_BY_LINK}
        return declared

    @property
    def alternative(self) -> str:
        """What to do where the filesystem lacks an atomic rename that refuses."""
        if self._renames is RenameKind.LINK:
            return (
                "write to a local disk (ext4, XFS, Btrfs, …); or, if no other machine ever writes below this "
                f"destination, set store.{TWO_STEP_RENAMES}=allow: renames are then a link and an unlink, under a lock"
            )
        if self._renames is RenameKind.ATOMIC:
            return (
                "leave the option protocol out, which chooses one that a local disk can do, or write to another store"
            )
        return "write to a local disk (ext4, XFS, Btrfs, …) or to another store"

    def above(self) -> Sequence[tuple[StoreUrl, str]]:
        """By the root's name as it was given, and by that without symbolic links in it: a job may be at work in a
        directory that is above by one of them only."""
        real = StoreUrl(self.url.scheme, self.url.authority, os.path.realpath(self._root))
        by_name = [(os.path.realpath(url.path), ours) for url, ours in directories_above(self.url)]
        found = dict.fromkeys([*by_name, *((url.path, ours) for url, ours in directories_above(real))])
        return [(StoreUrl(real.scheme, real.authority, path), ours) for path, ours in found]

    @property
    def place(self) -> StoreUrl:
        """The root's path without symbolic links in it."""
        return StoreUrl(self.url.scheme, self.url.authority, os.path.realpath(self._root))

    def _path(self, relative: str) -> str:
        return f"{self._root}/{relative}" if relative else self._root

    async def preflight(self, renames: Sequence[Rename]) -> list[str]:
        """Sources must be regular files of the entries' length and identity, of one name: a file's identity is its
        inode's, so another name of it, in the table perhaps, would be taken for this one. No directory may be a
        symbolic link, and those that are there must let files be moved in, and out again."""
        wrong = []
        closed: list[str] = []
        guard = LinkGuard(self._root)
        seen: set[str] = set()
        for index, rename in enumerate(renames):
            parent = rename.target.rpartition("/")[0]
            if parent not in seen:
                try:
                    guard.check(rename.target)
                except AccessDenied as error:
                    raise DestinationConflict(error.what, where=error.where, next_step=error.next_step) from error
                seen.add(parent)
                if self._is_closed(parent):
                    closed.append(str(self.url.child(parent)))
            try:
                guard.check(rename.source)
                found = os.lstat(self._path(rename.source))
            except AccessDenied as error:
                wrong.append(f"{self._path(rename.source)}: {error}")
                continue
            except (FileNotFoundError, NotADirectoryError) as error:
                wrong.append(f"{self._path(rename.source)}: {error.strerror}")
                continue
            except OSError:
                with told("look at", self.url, rename.source):
                    raise
            if not stat.S_ISREG(found.st_mode):
                wrong.append(f"{self._path(rename.source)}: not a regular file")
            elif found.st_nlink > 1:
                wrong.append(f"{self._path(rename.source)}: has another name (a hard link); copy it instead")
            elif rename.length not in (-1, found.st_size) or rename.identity not in ("", identity_of(found)):
                wrong.append(
                    f"{self._path(rename.source)}: {found.st_size} bytes, identity {identity_of(found)}; "
                    f"the manifest says {rename.length} bytes, identity {rename.identity or 'unknown'}"
                )
            if index % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        if closed:
            raise CommitRefused(
                f"no permission to write in {counted(len(closed), 'directory', 'directories')} where files of the job "
                "are to be",
                where="\n".join(closed[:5]),
                next_step="nothing was moved; give the right to write there, and to look into it, to the user whose "
                "process commits, then run the job again, or commit it again",
            )
        return wrong

    def _is_closed(self, directory: str) -> bool:
        """Whether this process may not write in a directory, or in the nearest above it that is there."""
        while directory and not os.path.lexists(self._path(directory)):
            directory = directory.rpartition("/")[0]
        full = self._path(directory)
        return os.path.isdir(full) and not os.access(full, os.W_OK | os.X_OK, effective_ids=_AS_EFFECTIVE_USER)

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """A plain loop. On a durable store the targets' directories are on disk before it returns, and a file counts as
        done once its directory is: with many directories that takes far longer than the renames. Somebody may have put
        a symbolic link in the place of a directory since the preflight, so each is looked at once more."""
        outcomes: list[RenameOutcome] = []
        touched: Counter[str] = Counter()
        guard = LinkGuard(self._root)
        for start in range(0, len(renames), YIELD_EVERY):
            batch = renames[start : start + YIELD_EVERY]
            try:
                async with self._turn():
                    outcomes += self._rename_batch(batch, touched, guard)
            except BlockingIOError:
                held = "another process of this machine keeps the lock on renames; is it stopped?"
                outcomes += [NotRenamed(Refusal.FAILED, held)] * len(batch)
            if not self._durable:
                progress(len(batch))
            await asyncio.sleep(0)
        if self._durable:
            for directory, files in touched.items():
                # One that somebody has deleted meanwhile took the file with it: there is nothing to be kept.
                with told("rename into", self.url, directory), contextlib.suppress(FileNotFoundError):
                    sync_directory(self._path(directory))
                progress(files)
                await asyncio.sleep(0)
            progress(len(renames) - touched.total())
        return outcomes

    def _turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext() if self._renames is RenameKind.ATOMIC else turn_at(self._root)

    def _rename_batch(self, batch: Sequence[Rename], touched: Counter[str], guard: LinkGuard) -> list[RenameOutcome]:
        root = self._root
        without_replacing = rename_without_replacing if self._renames is RenameKind.ATOMIC else link_and_unlink
        outcomes: list[RenameOutcome] = []
        for rename in batch:
            source, target = f"{root}/{rename.source}", f"{root}/{rename.target}"
            try:
                guard.check(rename.source)
                guard.check(rename.target)
                if rename.replace:
                    os.rename(source, target)
                    forget_checksum(target)
                else:
                    without_replacing(source, target)
                outcomes.append(RENAMED)
                touched[rename.target.rpartition("/")[0]] += 1
            except AccessDenied as error:
                outcomes.append(NotRenamed(Refusal.FAILED, str(error)))
            except OSError as error:
                outcomes.append(_refusal(error, source, target))
        return outcomes

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """One act each, also where a file's rename is two. On a durable store both parents are on disk before it
        returns."""
        outcomes: list[RenameOutcome] = []
        guard = LinkGuard(self._root)
        touched: set[str] = set()
        for rename in renames:
            source, target = self._path(rename.source), self._path(rename.target)
            try:
                guard.check(rename.source)
                guard.check(rename.target)
                if not stat.S_ISDIR(os.lstat(source).st_mode):
                    outcomes.append(NotRenamed(Refusal.FAILED, "not a directory"))
                    continue
                rename_without_replacing(source, target)
                outcomes.append(RENAMED)
                touched.update((parent_of(rename.source), parent_of(rename.target)))
            except AccessDenied as error:
                outcomes.append(NotRenamed(Refusal.FAILED, str(error)))
            except OSError as error:
                outcomes.append(_refusal(error, source, target))
            if len(outcomes) % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        if self._durable:
            for directory in touched:
                with told("rename in", self.url, directory), contextlib.suppress(FileNotFoundError):
                    sync_directory(self._path(directory))
        return outcomes

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """A plain loop of unlinks."""
        outcomes = []
        guard = LinkGuard(self._root)
        for path in paths:
            with told("delete", self.url, path):
                guard.check(path)
                try:
                    os.unlink(self._path(path))
                    outcomes.append(Deleted.DELETED)
                except (FileNotFoundError, NotADirectoryError):
                    outcomes.append(Deleted.MISSING)
            if len(outcomes) % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        progress(len(paths))
        return outcomes

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """Trees, one after the other, each renamed away first; symbolic links in them are deleted, not followed."""
        outcomes = []
        guard = LinkGuard(self._root)
        for path in paths:
            with told("delete", self.url, path):
                guard.check(path)
                outcomes.append(delete_tree(self._path(path), self._path(doomed(path, uuid.uuid4().hex))))
            progress(1)
            await asyncio.sleep(0)
        return outcomes

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """`rmdir`, which the kernel refuses for a directory with anything in it."""
        gone = []
        guard = LinkGuard(self._root)
        for path in paths:
            with told("delete", self.url, path):
                guard.check(path)
                try:
                    os.rmdir(self._path(path))
                    gone.append(True)
                except FileNotFoundError:
                    gone.append(True)
                except OSError as error:
                    if error.errno not in (*NOT_EMPTY, errno.ENOTDIR) and not self._holds_anything(path):
                        raise
                    gone.append(False)
        return gone

    def _holds_anything(self, directory: str) -> bool:
        """Whether a directory is not empty. The kernel looks at what a process may do before it looks into it."""
        try:
            with os.scandir(self._path(directory)) as entries:
                return any(True for _ in entries)
        except OSError:
            return False

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Leaf first: what is above is only touched where the leaf cannot be made."""
        if within and not os.path.isdir(self._path(within)):
            raise FileMissing("a directory is not there", where=str(self.url.child(within)))
        guard = LinkGuard(self._root)
        outcomes = []
        synced: set[str] = set()
        for index, path in enumerate(paths):
            with told("make", self.url, path):
                guard.check(path)
                outcomes.append(self._make(path, within, synced))
            if index % YIELD_EVERY == YIELD_EVERY - 1:
                await asyncio.sleep(0)
        if self._durable:
            for directory in synced:
                with told("make", self.url, os.path.relpath(directory, self._root)):
                    sync_directory(directory)
        return outcomes

    def _make(self, path: str, within: str, synced: set[str], tries: int = MAKE_TRIES) -> DirectoryOutcome:
        full = self._path(path)
        if within and path == within:
            return DirectoryOutcome("existed")
        try:
            os.mkdir(full)
        except FileExistsError:
            if os.path.isdir(full):
                return DirectoryOutcome("existed")
            return DirectoryOutcome("blocked", path)
        except NotADirectoryError:
            return DirectoryOutcome("blocked", self._blocking(path))
        except FileNotFoundError:
            parent = path.rpartition("/")[0]
            # `within` was there a moment ago, and is never made: whoever deleted it means it.
            if within and (parent == within or not path.startswith(within + "/")):
                raise
            if path:
                above = self._make(parent, within, synced)
                if above.state == "blocked":
                    return above
                if not tries:
                    raise AccessDenied(
                        "cannot make: the directory above is there, and none can be made in it",
                        where=str(self.url.child(path)),
                        next_step="write elsewhere; /proc is such a place, or bring back the file system that is to be "
                        "mounted there",
                    ) from None
                return self._make(path, within, synced, tries - 1)
            # The root itself: its own parents are the user's to name, and are made like any destination's.
            self._make_root(full, synced)
        synced.add(os.path.dirname(full))
        return DirectoryOutcome("created")

    def _make_root(self, full: str, synced: set[str]) -> None:
        parent = os.path.dirname(full)
        if not os.path.isdir(parent):
            self._make_root(parent, synced)
        # Somebody else may make the same; what he has not brought to disk yet is brought there here.
        with contextlib.suppress(FileExistsError):
            os.mkdir(full)
        synced.add(parent)

    def _blocking(self, path: str) -> str:
        while path and not os.path.lexists(self._path(path)):
            path = path.rpartition("/")[0]
        return path

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """One `lstat` each."""
        guard = LinkGuard(self._root)
        found: list[FileStatus | None] = []
        for path in paths:
            with told("stat", self.url, path):
                guard.check(path)
                status = self._stat(path)
                if status is None and self._renames is not RenameKind.ATOMIC:
                    async with self._turn():
                        status = self._stat(path)
                found.append(status)
            if len(found) % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return found

    def _stat(self, path: str) -> FileStatus | None:
        try:
            return status_of(path, os.lstat(self._path(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # nothing can have such a name
                return None
            raise

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """The entries with their status, a thousand a page."""
        with told("list", self.url, path):
            LinkGuard(self._root).check(f"{path}/." if path else "")
            for page in pages(self._entries(path)):
                yield page
                await asyncio.sleep(0)

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Depth first; symbolic links are shown as files, never followed."""
        with told("list", self.url, path):
            LinkGuard(self._root).check(f"{path}/." if path else "")
            for page in pages(self._files_below(path)):
                yield page
                await asyncio.sleep(0)

    def _entries(self, path: str) -> Iterator[FileStatus]:
        prefix = f"{path}/" if path else ""
        try:
            scan = os.scandir(self._path(path))
        except (FileNotFoundError, NotADirectoryError):
            return
        with scan:
            for entry in scan:
                try:
                    check_text(entry.name)
                except PathError as error:
                    where = f"{self.url.child(path)}\nname  {error.where}"
                    raise PathError(error.what, where=where, next_step=error.next_step) from error
                with contextlib.suppress(FileNotFoundError):
                    yield status_of(prefix + entry.name, entry.stat(follow_symlinks=False))

    def _files_below(self, path: str) -> Iterator[FileStatus]:
        pending = [path]
        while pending:
            for status in self._entries(pending.pop()):
                if status.is_directory:
                    pending.append(status.path)
                else:
                    yield status

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """One after the other."""
        guard = LinkGuard(self._root)
        contents: list[bytes | None] = []
        for path in paths:
            with told("read", self.url, path):
                guard.check(path)
                content = self._read(path, bytes_max)
                if content is None and self._renames is not RenameKind.ATOMIC:
                    # FUSE filesystems do not find a file while another is renamed over it: not there, only if it is
                    # not there while nobody renames.
                    async with self._turn():
                        content = self._read(path, bytes_max)
                contents.append(content)
        return contents

    def _read(self, path: str, bytes_max: int) -> bytes | None:
        try:
            with open(self._path(path), "rb", buffering=0, opener=open_to_read) as file:
                return read_at_most(file.fileno(), bytes_max + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """Write aside, then give it the name unless that is taken."""
        with told("create", self.url, path):
            return self._write(path, content, replace=False)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """Write aside, then rename over what is there."""
        with told("write", self.url, path):
            async with self._turn():
                return self._write(path, content, replace=True)

    def _write(self, path: str, content: bytes, *, replace: bool) -> FileStatus:
        LinkGuard(self._root).check(path)
        full = self._path(path)
        directory = full.rpartition("/")[0]
        aside = f"{directory}/{unfinished(uuid.uuid4().hex)}"
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            try:
                write_all(descriptor, content)
                if self._durable:
                    os.fsync(descriptor)
                status = status_of(path, os.fstat(descriptor))
            finally:
                os.close(descriptor)
            if replace:
                os.rename(aside, full)
            elif self._renames is RenameKind.ATOMIC:
                rename_without_replacing(aside, full)
            else:
                link_and_unlink(aside, full)  # nobody else knows of the file aside
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
        if self._durable:
            sync_directory(directory)
        return status

    def open_output(self, path: str) -> OutputFile:
        """A buffered file, made anew: one that is there already is refused."""
        with told("create", self.url, path):
            LinkGuard(self._root).check(path)
            return LocalOutput(self.url, path, self._path(path), durable=self._durable)


def _refusal(error: OSError, source: str, target: str) -> NotRenamed:
    if error.errno == errno.EEXIST:
        return NotRenamed(Refusal.TARGET_EXISTS)
    if error.errno == errno.ENOENT:
        missing = Refusal.PARENT_MISSING if os.path.lexists(source) else Refusal.SOURCE_MISSING
        return NotRenamed(missing)
    if error.errno in (errno.EISDIR, errno.ENOTEMPTY):
        return NotRenamed(Refusal.TARGET_EXISTS, error.strerror or "")
    return NotRenamed(Refusal.FAILED, error.strerror or str(error))

"""True contents: what is on the simulated store, whatever anybody was told about it.

Faults are elsewhere (`store.py`), so that they can be lifted. Every change is shown to an observer at once: the
judges see what any reader could see, between any two changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

from lockgate.model.files import FileStatus
from lockgate.model.layout import is_reserved
from lockgate.model.urls import check_relative

NO_TEXT = "no-text-"
"""How a name begins that stands for one that is no text: whoever lists it is refused."""


def is_no_text(path: str) -> bool:
    """Whether a path stands for one whose last name is no text."""
    return path.rpartition("/")[2].startswith(NO_TEXT)


class Stored:
    """One file. Its content never changes; a write makes another. `identity` is the store's measure of sameness."""

    __slots__ = ("content", "identity", "label", "modified", "proof", "serial")

    def __init__(
        self, content: bytes, serial: int, identity: str, label: object, modified: float, proof: str = ""
    ) -> None:
        self.proof = proof
        """Which copying put it there, where a rename is a copy and a deletion."""
        self.content = content
        self.serial = serial
        self.modified = modified
        self.identity = identity
        self.label = label
        """Whose data it is: set for task output and for data that was there before, None for bookkeeping."""


class Pending:
    """One deferred upload: begun, neither completed nor given up. Nobody sees it."""

    __slots__ = ("begun", "path", "stored", "token")

    def __init__(self, path: str, token: str, stored: Stored, begun: float) -> None:
        self.path = path
        self.token = token
        self.stored = stored
        """What it becomes, with its mark as the proof."""
        self.begun = begun


class Observer(Protocol):
    """Told of every change, after it was made."""

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        """A file appeared at `path`, in the place of `old` if that is not None."""

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        """A file was renamed, over `old` if that is not None."""

    def saw_copy(self, actor: str, source: str, target: str, copied: Stored, old: Stored | None) -> None:
        """A file was copied, over `old` if that is not None: the first half of a rename that is two acts."""

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None:
        """A file was deleted."""

    def saw_completion(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        """A deferred upload became a file, in the place of `old` if that is not None."""

    def saw_version_removal(self, actor: str, path: str, gone: Stored, *, was_seen: bool) -> None:
        """One version of a file was deleted; `was_seen`: readers saw it, and see the one before it now, if any."""

    def saw_given_up(self, actor: str, upload: Pending) -> None:
        """A deferred upload was given up."""

    def saw_dropped(self, actor: str, upload: Pending, by: Pending) -> None:
        """A deferred upload went since another of its path was completed, or given up."""


@dataclass
class Disk:
    """Files by path, directories by path (the root is `""`); `real_directories`: they exist by themselves."""

    real_directories: bool
    identity_kind: str
    observer: Observer
    clock: Callable[[], float]
    """The store's own clock, in seconds since 1970."""
    files: dict[str, Stored] = field(default_factory=dict)
    directories: dict[str, float] = field(default_factory=lambda: {"": 0.0})
    """When each was changed last, in seconds since 1970."""
    pending: dict[str, Pending] = field(default_factory=dict)
    """Deferred uploads by their tokens."""
    one_pool_a_path: bool = False
    """Whether the uploads of one path wait in one place, and go with the first of them that ends."""
    keeps_versions: bool = False
    """Whether what is written over, or deleted, stays as an older version. Not of what committers keep."""
    beneath: dict[str, list[Stored | None]] = field(default_factory=dict)
    """The older versions of each path, the oldest first; None: it was deleted. Where versions are and no file is, it
    is deleted now."""
    _serial: int = 0

    def make(self, content: bytes, label: object = None, proof: str = "") -> Stored:
        """A new file, not yet anywhere."""
        self._serial += 1
        return Stored(content, self._serial, self._identity(content, self._serial), label, self.clock(), proof)

    def _identity(self, content: bytes, serial: int) -> str:
        if self.identity_kind == "content+version":
            return f"{hash_of(content):x}-{len(content)}#{serial}"
        if self.identity_kind == "content":
            return f"{crc32(content):x}-{len(content)}"
        if self.identity_kind == "length+time":
            return f"{len(content)}@{self.clock():.0f}"
        return f"{serial:x}-{len(content)}"

    def status(self, path: str) -> FileStatus | None:
        """What is at a path."""
        found = self.files.get(path)
        if found is not None:
            version = str(found.serial) if self.keeps_versions else ""
            return FileStatus(
                path, len(found.content), found.identity, modified=found.modified, proof=found.proof, version=version
            )
        if self.real_directories and path in self.directories:
            return FileStatus(path, is_directory=True, modified=self.directories[path])
        return None

    def has_parent(self, path: str) -> bool:
        """Whether the directory of a path exists, where that matters."""
        return not self.real_directories or path.rpartition("/")[0] in self.directories

    def touch(self, path: str) -> None:
        """The directory of a path has changed."""
        parent = path.rpartition("/")[0]
        if parent in self.directories:
            self.directories[parent] = self.clock()

    def put(self, actor: str, path: str, stored: Stored) -> None:
        """Put a file at a path, replacing what is there."""
        check_relative(path)
        self.touch(path)
        old = self.files.get(path)
        self._keep(path)
        self.files[path] = stored
        self.observer.saw_put(actor, path, stored, old)

    def begin_upload(self, path: str, stored: Stored) -> str:
        """Begin a deferred upload, all of it; its token."""
        check_relative(path)
        token = f"upload-{stored.serial}"
        self.pending[token] = Pending(path, token, stored, self.clock())
        return token

    def complete_upload(self, actor: str, token: str) -> None:
        """Make a file of a deferred upload, replacing what is there."""
        upload = self.pending.pop(token)
        old = self.files.get(upload.path)
        upload.stored.modified = self.clock()
        self._keep(upload.path)
        self.files[upload.path] = upload.stored
        self.observer.saw_completion(actor, upload.path, upload.stored, old)
        self._drop_others(actor, upload)

    def give_up_upload(self, actor: str, token: str) -> None:
        """End a deferred upload; nothing comes of it."""
        upload = self.pending.pop(token)
        self.observer.saw_given_up(actor, upload)
        if upload.path not in self.files:
            self._drop_others(actor, upload)

    def _drop_others(self, actor: str, upload: Pending) -> None:
        if self.one_pool_a_path:
            for other in [each for each in self.pending.values() if each.path == upload.path]:
                self.observer.saw_dropped(actor, self.pending.pop(other.token), upload)

    def move(self, actor: str, source: str, target: str) -> None:
        """Rename a file, replacing what is there."""
        check_relative(target)
        self.touch(source)
        self.touch(target)
        moved = self.files.pop(source)
        old = self.files.get(target)
        if self.identity_kind == "content+version":
            self._serial += 1
            identity = self._identity(moved.content, self._serial)
            moved = Stored(moved.content, moved.serial, identity, moved.label, self.clock())
        self.files[target] = moved
        self.observer.saw_move(actor, source, target, moved, old)

    def move_directory(self, actor: str, source: str, target: str) -> None:
        """Rename a directory with all that is in it, as one act; nothing is at the target."""
        self.touch(source)
        self.touch(target)
        for directory in (*self.directories_below(source), source):
            self.directories[target + directory[len(source) :]] = self.directories.pop(directory)
        for file in self.below(source):
            self.move(actor, file, target + file[len(source) :])

    def copy(self, actor: str, source: str, target: str, proof: str) -> None:
        """Make a file's copy, which says of itself how it came about."""
        check_relative(target)
        self.touch(target)
        found, old = self.files[source], self.files.get(target)
        self._serial += 1
        identity = self._identity(found.content, self._serial)
        copied = Stored(found.content, found.serial, identity, found.label, self.clock(), proof)
        self.files[target] = copied
        self.observer.saw_copy(actor, source, target, copied, old)

    def remove(self, actor: str, path: str) -> None:
        """Delete a file."""
        self.touch(path)
        self._keep(path)
        self.observer.saw_removal(actor, path, self.files.pop(path))

    def _keep(self, path: str) -> None:
        """Something is to take the place of what is at a path."""
        if self.keeps_versions and not is_reserved(path) and (path in self.files or path in self.beneath):
            self.beneath.setdefault(path, []).append(self.files.get(path))

    def versions(self, path: str) -> list[Stored]:
        """Every version of a path that there is, the oldest first."""
        found = [*self.beneath.get(path, ()), self.files.get(path)]
        return [each for each in found if each is not None]

    def remove_version(self, actor: str, path: str, gone: Stored) -> None:
        """Delete one version: if it was the one that readers see, they see the one before it."""
        older = self.beneath.get(path, [])
        was_seen = self.files.get(path) is gone
        if was_seen:
            del self.files[path]
            if older and (before := older.pop()) is not None:
                self.files[path] = before
        else:
            older.remove(gone)
        if not older:
            self.beneath.pop(path, None)
        self.observer.saw_version_removal(actor, path, gone, was_seen=was_seen)

    def below(self, directory: str) -> list[str]:
        """Every file below a directory, in order."""
        if not directory:
            return sorted(self.files)
        prefix = directory + "/"
        return sorted([path for path in self.files if path.startswith(prefix)])

    def directories_below(self, directory: str) -> list[str]:
        """Every real directory below a directory, deepest first."""
        prefix = directory + "/" if directory else ""
        found = [path for path in self.directories if path and path.startswith(prefix)]
        return sorted(found, key=lambda path: (-path.count("/"), path))

    def entries(self, directory: str) -> list[FileStatus]:
        """The entries of one directory, in order of name."""
        prefix = directory + "/" if directory else ""
        cut = len(prefix)
        found: dict[str, FileStatus] = {}
        for path, stored in self.files.items():
            if path.startswith(prefix):
                slash = path.find("/", cut)
                if slash < 0:
                    found[path] = FileStatus(path, len(stored.content), stored.identity, modified=stored.modified)
                else:
                    above = path[:slash]
                    # On a flat store a file and a prefix may have one name, and both are listed.
                    if above + "/" not in found and above not in self.directories:
                        found[above + "/"] = FileStatus(above, is_directory=True)
        for path in self.directories:
            if path.startswith(prefix) and path and path.find("/", cut) < 0 and path != directory:
                found[path + "/"] = FileStatus(path, is_directory=True, modified=self.directories[path])
        return [found[path] for path in sorted(found)]


def hash_of(content: bytes) -> int:
    """A checksum that is the same in every process."""
    value = 2166136261
    for byte in content[:64]:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return value

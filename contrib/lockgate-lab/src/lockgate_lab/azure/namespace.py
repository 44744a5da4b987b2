"""The hierarchical namespace: directories and files, as both the Blob and the DFS calls see them.

Promises, each from the REST page "Path - Create" or the "Known issues with Azure Data Lake Storage" page:

- an etag is never given out twice; a rename keeps the etag of every file it moves. What the etag of a renamed directory
  is, no page says: here it is a new one, so that nobody comes to rely on the other answer;
- creation makes missing parents, rename never does;
- a recursive listing is depth first, siblings ordered by name.

It knows no HTTP, headers or conditions. Every function completes without awaiting.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass

from lockgate_lab.azure.access import DIRECTORY_MODE, FILE_MODE, UMASK, AccessControl
from lockgate_lab.azure.storage_errors import StorageError

Parts = tuple[str, ...]
"""A decoded path, as its elements; the root is the empty tuple."""

_etag_numbers = itertools.count(int(time.time() * 1_000_000))


def new_etag() -> str:
    """Return an etag nobody was given before, without quotes."""
    return f"0x8D{next(_etag_numbers):X}"


@dataclass(frozen=True, slots=True)
class Lease:
    """The latest lease on a node: held until a time, in seconds since 1970. `seconds` is -1 for an infinite one."""

    identity: str
    seconds: int
    until: float
    is_broken: bool = False

    def is_held(self, now: float) -> bool:
        """Whether it still keeps others from writing."""
        return now < self.until

    def state(self, now: float) -> str:
        """`x-ms-lease-state`."""
        if self.is_held(now):
            return "breaking" if self.is_broken else "leased"
        return "broken" if self.is_broken else "expired"


class Node:
    """What a file and a directory have in common."""

    __slots__ = (
        "access", "created", "etag", "group", "lease", "metadata", "modified", "name", "owner", "parent",
        "transaction_id",
    )  # fmt: skip
    resource_type = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parent: Directory | None = None
        self.owner = "$superuser"
        self.group = "$superuser"
        self.access = AccessControl.of_mode(FILE_MODE & ~UMASK)
        self.metadata: dict[str, str] = {}
        self.transaction_id = ""
        self.lease: Lease | None = None
        self.created = time.time()
        self.touch()

    def touch(self) -> None:
        """Give a new etag and modification time."""
        self.etag = new_etag()
        self.modified = time.time()

    def path(self) -> str:
        """Return the path from the root, without a leading slash."""
        parts: list[str] = []
        node: Node = self
        while node.parent is not None:
            parts.append(node.name)
            node = node.parent
        return "/".join(reversed(parts))


class File(Node):
    """A file: its committed content, and what was appended to it and not flushed yet.

    `by_dfs` says which API wrote it. The two do not mix on one file: blocks cannot be put on a file that DFS made, nor
    bytes be appended to one that Blob made.
    """

    __slots__ = ("appended", "by_dfs", "committed_blocks", "content", "is_append_blob", "properties")
    resource_type = "file"

    def __init__(self, name: str, *, by_dfs: bool) -> None:
        super().__init__(name)
        self.by_dfs = by_dfs
        self.is_append_blob = False
        self.content = b""
        self.appended: dict[int, bytes] = {}
        self.committed_blocks: list[tuple[str, int]] = []
        self.properties: dict[str, str] = {}

    def flush(self, position: int, *, retain: bool) -> None:
        """Publish what was appended, up to `position`; raises InvalidFlushPosition when it is not all there."""
        pieces = [self.content]
        length = len(self.content)
        while length < position:
            piece = self.appended.get(length)
            if piece is None:
                break
            pieces.append(piece)
            length += len(piece)
        if length != position:
            raise StorageError("InvalidFlushPosition")
        self.content = b"".join(pieces)
        self.appended = {at: piece for at, piece in self.appended.items() if retain and at >= position}
        self.touch()


class Directory(Node):
    """A directory; its names are kept sorted, so that a page of a listing costs its own length only."""

    __slots__ = ("children", "names")
    resource_type = "directory"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.access = AccessControl.of_mode(DIRECTORY_MODE & ~UMASK)
        self.children: dict[str, Node] = {}
        self.names: list[str] = []

    def attach(self, node: Node) -> None:
        """Put a node here under its name, in place of whatever had that name."""
        if node.name not in self.children:
            if not self.names or node.name > self.names[-1]:
                self.names.append(node.name)
            else:
                insort(self.names, node.name)
        self.children[node.name] = node
        node.parent = self

    def detach(self, name: str) -> None:
        """Remove a child."""
        self.children.pop(name).parent = None
        del self.names[bisect_left(self.names, name)]


class Namespace:
    """One container, which is one filesystem: a root, and the blocks put and not committed.

    `uncommitted` has one pool of blocks per path, shared by all who write that path, as "Put Block" describes.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.root = Directory("")
        self.metadata: dict[str, str] = {}
        self.uncommitted: dict[Parts, dict[str, bytes]] = {}

    def find(self, parts: Parts) -> Node | None:
        """Return the node at a path, or None."""
        node: Node = self.root
        for part in parts:
            if not isinstance(node, Directory):
                return None
            found = node.children.get(part)
            if found is None:
                return None
            node = found
        return node

    def make_directories(self, parts: Parts) -> Directory:
        """Return the directory at a path, made with its parents as needed; PathConflict where a file is in the way."""
        directory = self.root
        for part in parts:
            child = directory.children.get(part)
            if child is None:
                child = Directory(part)
                child.access = directory.access.inherited(DIRECTORY_MODE, UMASK, is_directory=True)
                directory.attach(child)
            elif not isinstance(child, Directory):
                raise StorageError("PathConflict")
            directory = child
        return directory

    def put_file(self, parts: Parts, file: File) -> None:
        """Put a file at a path in place of what was there, with its parents; no directory may have that name.

        It has the access that a new file in its directory gets, or that of the file which it replaces, with its lease.
        """
        parent = self.make_directories(parts[:-1])
        replaced = parent.children.get(parts[-1])
        if isinstance(replaced, Directory):
            raise StorageError("PathConflict")
        file.name = parts[-1]
        if replaced is None:
            file.access = parent.access.inherited(FILE_MODE, UMASK, is_directory=False)
        else:
            file.access, file.lease = replaced.access, replaced.lease
        parent.attach(file)

    def remove(self, node: Node) -> None:
        """Remove a file, or a directory with all below it, at once."""
        assert node.parent is not None
        node.parent.detach(node.name)

    def rename(self, source: Node, target: Parts) -> None:
        """Move a node to a path; a file keeps its etag, and so does every file below a directory.

        A file replaces a file, a directory an empty directory. The parent must be there.
        """
        existing = self.find(target)
        if existing is source:
            raise StorageError("InvalidRenameSourcePath")
        parent = self.find(target[:-1])
        if parent is None:
            raise StorageError("RenameDestinationParentPathNotFound")
        if not isinstance(parent, Directory):
            raise StorageError("PathConflict")
        above: Node | None = parent
        while above is not None:
            if above is source:
                raise StorageError("InvalidRenameSourcePath")
            above = above.parent
        if existing is not None:
            if type(existing) is not type(source):
                raise StorageError("InvalidSourceOrDestinationResourceType")
            if isinstance(existing, Directory) and existing.names:
                raise StorageError("DirectoryNotEmpty")
        assert source.parent is not None
        source.parent.detach(source.name)
        source.name = target[-1]
        parent.attach(source)
        if isinstance(source, Directory):
            source.touch()

    def walk(
        self, top: Directory, *, recursive: bool, after: Parts = (), starts: str = ""
    ) -> Iterator[tuple[str, Node]]:
        """Yield (path relative to `top`, node) below a directory, strictly after a relative path.

        `starts` keeps only children of `top` whose name starts so, and what is below them. What is added or removed
        during the walk may or may not be seen; nothing else is missed.
        """
        return _walk(top, "", recursive, after, starts)


def _walk(top: Directory, prefix: str, recursive: bool, after: Parts, starts: str) -> Iterator[tuple[str, Node]]:
    names = top.names
    index = bisect_left(names, starts) if starts else 0
    if after:
        first = after[0]
        if recursive and len(after) > 1:
            child = top.children.get(first)
            if isinstance(child, Directory) and first.startswith(starts):
                yield from _walk(child, f"{prefix}{first}/", True, after[1:], "")
        elif recursive:
            child = top.children.get(first)
            if isinstance(child, Directory) and first.startswith(starts):
                yield from _walk(child, f"{prefix}{first}/", True, (), "")
        index = max(index, bisect_right(names, first))
    while index < len(names):
        name = names[index]
        if starts and not name.startswith(starts):
            return
        node = top.children[name]
        yield prefix + name, node
        if recursive and isinstance(node, Directory):
            yield from _walk(node, f"{prefix}{name}/", True, (), "")
        index += 1

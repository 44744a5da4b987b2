"""What a store says of a file, and what an operation on it may have done.

Outcomes are closed sets. A rename is `Renamed`, `NotRenamed` or `Unknown`, never a boolean: on `Unknown` nobody
may clean up. All of them are frozen.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct


class FileStatus(Struct, frozen=True, gc=False):
    """One file or directory as a listing or a probe shows it.

    `identity` is an opaque string that equals another's only if both are the same content by the store's own
    measure (DESIGN "Store rules": etag, checksum, inode with length and mtime, …); empty where the store gives
    none. `proof` is the store's note of which request put the file there (a client transaction id), where it
    keeps one. `is_link` says that it is a symbolic link, or something else that is no plain file, such as a pipe, shown
    as a file. `modified` is in seconds since 1970.
    `upload`, of a file that is not there yet, is what completes it. `version` tells the versions of one path apart,
    where a store keeps them and shows it.
    """

    path: str
    length: int = 0
    identity: str = ""
    is_directory: bool = False
    modified: float = 0.0
    proof: str = ""
    upload: str = ""
    version: str = ""
    is_link: bool = False


class Rename(Struct, frozen=True, gc=False):
    """A file to rename, both ends relative to the store's root.

    `identity` pins the source: a store that can, renames only a source that still carries it. `replace` allows
    an existing file at the target to be replaced; without it such a file is never touched.
    """

    source: str
    target: str
    length: int = -1
    identity: str = ""
    replace: bool = False


class Refusal(StrEnum):
    """Why a rename surely did not take place."""

    SOURCE_MISSING = "source missing"
    TARGET_EXISTS = "target exists"
    PARENT_MISSING = "parent of the target missing"
    SOURCE_CHANGED = "source changed"
    FAILED = "failed"


class Renamed(Struct, frozen=True, gc=False):
    """The rename took place. `identity` is the file's identity at the target; `recovered` says that the answer
    was lost and the outcome found out afterwards."""

    identity: str = ""
    recovered: bool = False

    def __str__(self) -> str:
        return "renamed"


class NotRenamed(Struct, frozen=True, gc=False):
    """The rename surely did not take place, and will not."""

    reason: Refusal
    detail: str = ""

    def __str__(self) -> str:
        return f"not renamed, {self.reason.value}" + (f" ({self.detail})" if self.detail else "")


class Unknown(Struct, frozen=True, gc=False):
    """It may have been done, may not, or may yet be."""

    detail: str = ""

    def __str__(self) -> str:
        return "done or not, nobody can tell" + (f" ({self.detail})" if self.detail else "")


RenameOutcome = Renamed | NotRenamed | Unknown


class Deleted(StrEnum):
    """What a deletion did. A failure is raised, not returned."""

    DELETED = "deleted"
    MISSING = "missing"
    GONE = "gone"
    """Nothing is there now; the store does not say whether something was."""
    CHANGED = "changed"
    """What is there is another file than the one that was meant, and stays."""


class DirectoryOutcome(Struct, frozen=True, gc=False):
    """What `make_directories` did for one path: made it, found it, or met a file (`blocked`: its path)."""

    state: Literal["created", "existed", "blocked"]
    blocked: str = ""


class Mismatch(Struct, frozen=True, gc=False):
    """A committed file that is not what its entry says."""

    path: str
    expected: str
    found: str


RENAMED = Renamed()
"""The plain success, shared: a local job returns it once a file."""

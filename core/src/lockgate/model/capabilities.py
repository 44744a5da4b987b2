"""What a store can do, declared by its plugin, required by protocols, shown by `lockgate plugins`.

A combination that is not safe is refused with the missing capability's name and what to use instead. The
conformance kit makes a store prove what it claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from lockgate.model.errors import CapabilityMissing


class Capability(StrEnum):
    """One property of a store. The value is what the CLI and the summary print."""

    ATOMIC_RENAME = "atomic-rename"
    RENAME_WITHOUT_REPLACE = "rename-without-replace"
    PINNED_SOURCE = "pinned-source"
    IDENTITY_KEPT_BY_RENAME = "identity-kept-by-rename"
    UNIQUE_IDENTITY = "unique-identity"
    RENAME_PROOF = "rename-proof"
    CREATE_IF_ABSENT = "create-if-absent"
    ATOMIC_WRITE = "atomic-write"
    CONSISTENT_LISTING = "consistent-listing"
    ATOMIC_DIRECTORY_RENAME = "atomic-directory-rename"
    CONSTANT_TIME_DIRECTORY_DELETE = "constant-time-directory-delete"
    BULK_DELETE = "bulk-delete"
    BULK_RENAME = "bulk-rename"
    REAL_DIRECTORIES = "real-directories"
    DURABLE_WRITE = "durable-write"
    DEFERRED_UPLOAD = "deferred-upload"
    LISTED_UPLOADS = "listed-uploads"
    CONDITIONAL_WRITE = "conditional-write"
    REPLACE_BY_VERSION = "replace-by-version"
    RENAME_BY_COPY = "rename-by-copy"
    RENAME_BY_LINK = "rename-by-link"


MEANING: dict[Capability, str] = {
    Capability.ATOMIC_RENAME: "a file rename happens wholly or not at all, in time that does not grow with its length",
    Capability.RENAME_WITHOUT_REPLACE: "a rename can refuse an existing target, atomically",
    Capability.PINNED_SOURCE: "a rename can refuse a source that has changed, atomically",
    Capability.IDENTITY_KEPT_BY_RENAME: "a renamed file keeps the identity that its listing showed",
    Capability.UNIQUE_IDENTITY: "no two files that are there at once have one identity, not even of the same content",
    Capability.RENAME_PROOF: "the target of a rename shows which request put it there",
    Capability.CREATE_IF_ABSENT: "of several creators of one path exactly one wins, with its whole content",
    Capability.ATOMIC_WRITE: "a small file appears with its whole content or not at all",
    Capability.CONSISTENT_LISTING: "a listing shows every file that was there when it began",
    Capability.ATOMIC_DIRECTORY_RENAME: "a directory is renamed with all that is in it as one act, which refuses a "
    "target that exists, and the files in it keep their identities",
    Capability.CONSTANT_TIME_DIRECTORY_DELETE: "a directory tree is deleted as one act",
    Capability.BULK_DELETE: "many files are deleted by one request",
    Capability.BULK_RENAME: "many files are renamed by one request",
    Capability.REAL_DIRECTORIES: "directories exist by themselves and must exist before a rename into them",
    Capability.DURABLE_WRITE: "an acknowledged write survives a power failure",
    Capability.DEFERRED_UPLOAD: "an upload can be completed later, by another process, and refuse an existing file",
    Capability.LISTED_UPLOADS: "uploads that wait to be completed can be listed, whoever has begun them",
    Capability.CONDITIONAL_WRITE: "a file can be written over, or deleted, only if it is the one that was seen, "
    "atomically",
    Capability.REPLACE_BY_VERSION: "where older versions are kept, an upload can replace the file that was seen, and "
    "be taken back so that this is there again",
    Capability.RENAME_BY_COPY: "WEAKER: a rename is a copy and a delete; a crash between them leaves both",
    Capability.RENAME_BY_LINK: "WEAKER: a rename is a link and an unlink; a crash between them leaves both names",
}

WEAKENING = frozenset({Capability.RENAME_BY_COPY, Capability.RENAME_BY_LINK})
"""Capabilities that are a warning: they are named in the summary of every job that relied on them."""


def require(
    have: Iterable[Capability], needed: Iterable[Capability], *, purpose: str, store: str, alternative: str
) -> None:
    """Check that every needed capability is declared.

    Raises:
        CapabilityMissing: one is not; the text names it, what it means, and the alternative.
    """
    lacking = set(needed) - set(have)
    missing = [capability for capability in Capability if capability in lacking]
    if missing:
        raise CapabilityMissing(
            f"{purpose} is not safe on this store: it lacks "
            + ", ".join(f"{capability.value} ({MEANING[capability]})" for capability in missing),
            where=store,
            next_step=alternative,
        )

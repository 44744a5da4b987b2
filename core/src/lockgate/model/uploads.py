"""Uploads that are completed later, and what completing one may have done.

An upload is deferred if all of its bytes are at the store and nobody sees the file until it is completed, by whoever
holds its `Upload`. Seed: `zero-rename-committer.tex`, "The S3A committers".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from lockgate.model.files import FileStatus, Unknown

TAG_LENGTH = 16
JOB_PART_LENGTH = 6
"""So many characters at the beginning of a tag are its job's, the same for all of its task attempts."""


def job_part_of(marker: str) -> str:
    """How the tags of a job's task attempts begin, by the job's nonce."""
    return hashlib.sha256(marker.encode()).hexdigest()[:JOB_PART_LENGTH]


def tag_of(marker: str, task_attempt_id: str, nonce: str) -> str:
    """What no other task attempt has, in letters and digits, for the names of its files: made of its job's nonce, its
    name, and the nonce of its run. It begins with its job's part, by which a file is known to be that job's."""
    own = hashlib.sha256(f"{marker}-{task_attempt_id}-{nonce}".encode()).hexdigest()
    return f"{job_part_of(marker)}{own[: TAG_LENGTH - JOB_PART_LENGTH]}"


class Upload(Struct, frozen=True, gc=False):
    """One upload that waits to be completed. `mark` was given when it began, and the file will carry it as its `proof`;
    `token` is what the store needs to complete it, of the store's own form; `identity` is the one that the file will
    have, where the store can tell. `replaces` is the identity of the one file over which it may be completed; empty:
    over none."""

    path: str
    mark: str
    token: str
    length: int = -1
    identity: str = ""
    replaces: str = ""

    def is_what(self, status: FileStatus, same_identity: Callable[[str, str], bool]) -> bool:
        """Whether this upload has become that file, which nobody has changed since, by the store's `same_identity`. The
        mark alone does not say so: who edits a file in place keeps its metadata."""
        unchanged = not self.identity or same_identity(self.identity, status.identity)
        return status.proof == self.mark and unchanged and self.length in (-1, status.length)


class UploadRefusal(StrEnum):
    """Why an upload surely was not completed."""

    TARGET_EXISTS = "target exists"
    TARGET_CHANGED = "target changed"
    """It was to replace a file, and another is there, or none."""
    UPLOAD_MISSING = "upload missing"
    NOT_ALLOWED = "not allowed"
    """The credentials may not: it fails again until somebody gives them the right."""
    FAILED = "failed"


class Completed(Struct, frozen=True, gc=False):
    """The file is there, by this call or an earlier one; its identity."""

    identity: str = ""

    def __str__(self) -> str:
        return "completed"


class NotCompleted(Struct, frozen=True, gc=False):
    """The upload surely was not completed by this call, and will not be. Where it is `UPLOAD_MISSING`, an earlier call
    may have completed it: what stands at its path tells."""

    reason: UploadRefusal
    detail: str = ""

    def __str__(self) -> str:
        return f"not completed, {self.reason.value}" + (f" ({self.detail})" if self.detail else "")


CompletionOutcome = Completed | NotCompleted | Unknown


class GivenUp(StrEnum):
    """What giving an upload up has met. A failure is raised, not returned."""

    ENDED = "ended"
    """It surely waited until now, so it has never become a file, and never will."""
    NOT_FOUND = "not found"
    """Nothing of it waits: it was completed, or given up before, or that cannot be told. What stands at its path
    tells."""


class BegunUpload(Struct, frozen=True, gc=False):
    """An upload as a listing shows it: begun, neither completed nor given up. `begun` is in seconds since 1970."""

    path: str
    token: str
    begun: float = 0.0


class NoVersions(Struct, frozen=True, gc=False):
    """Why a file cannot be replaced by an upload so that it comes back; and what the user can do about that, as the
    second half of a sentence, empty where nothing helps."""

    why: str
    remedy: str = ""


NO_VERSIONS = NoVersions("this store keeps no versions that could be brought back")
"""Of a store that does not declare that it keeps any."""

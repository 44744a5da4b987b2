"""The commit record: who commits a job, what, and how far it got.

The record is a sequence of files, each created if absent: `commit.json`, `commit-0001.json`, … The highest one
counts. Creating the next version is the compare-and-swap of every step, of every store: of two drivers that both
believe that they hold the job, one finds the next version taken and stops. (Replacing one file conditionally
would need a conditional write, which HDFS and local disks do not have.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct, field

from lockgate.model.errors import CommitFenced, LockgateError
from lockgate.model.phases import Phase, may_follow
from lockgate.model.receipt import Pin
from lockgate.model.undecodable import UNDECODABLE

RECORD_TYPE = "lockgate.CommitRecord/1"


class Holder(Struct, frozen=True):
    """Who commits. `nonce` is drawn anew by every driver and recoverer: it tells two runs on one host apart, and
    a retried create from a rival's. `process` is the process id; `since` is in seconds since 1970."""

    nonce: str
    host: str = ""
    process: int = 0
    user: str = ""
    since: float = 0.0

    def __str__(self) -> str:
        return f"{self.user or 'somebody'} on {self.host or 'an unknown host'}, process {self.process}"


class Predecessor(Struct, frozen=True):
    """The version that another follows: its number, and the nonce of its holder."""

    sequence: int
    nonce: str


class Ground(Struct, frozen=True, omit_defaults=True):
    """What a job touches of the destination: the leaf directories it writes to, or everything, or all that is `below`
    some directories; `exclusive`: it must be alone there. A job that has not announced touches nothing."""

    directories: Sequence[str] = ()
    everything: bool = False
    exclusive: bool = False
    below: Sequence[str] = ()

    def meets(self, other: Ground) -> bool:
        """Whether the two jobs' result would depend on how they interleave."""
        if not (self.exclusive or other.exclusive):
            return False
        if self.everything:
            return other.everything or bool(other.directories) or bool(other.below)
        if other.everything:
            return bool(self.directories) or bool(self.below)
        if not set(self.directories).isdisjoint(other.directories):
            return True
        return _reaches(self, other) or _reaches(other, self)


def _reaches(ground: Ground, other: Ground) -> bool:
    """Whether something that `other` touches is one of the directories that `ground` has all below of, or in one."""
    touched = [f"{directory}/" for directory in (*other.directories, *other.below)]
    return any(path.startswith(f"{directory}/") for directory in ground.below for path in touched)


class RecordedLocation(Struct, frozen=True):
    """A location beside the destination of a job, where a job of the same id, a part of it, commits the files that are
    to go there: its URL, conflict policy and pins, so that anybody can bring that part to the end of the whole; and
    what it adds to the job's summary."""

    url: str
    policy: str = "append"
    pins: Sequence[Pin] = ()
    files: int = 0
    bytes: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)


class CommitRecord(Struct, frozen=True):
    """One version of the record. `updated` is in seconds since 1970; `marker` is the nonce of the marker of the job
    attempt that commits, empty where another program set the job up, and `set_up` when that marker says that it was
    made, 0 where its driver had not seen it; `set_aside_nonce` and `set_aside_digest` name
    the list of replaced files and its SHA-256, both empty where nothing is replaced; `missing` and `left` are what a
    rollback could not make as it was, kept for whoever ends the job after one who found it and died, and `may_stay`, in
    words, what it may have left that nobody can tell by itself, found before anything was deleted; `given_up`: its
    holder does nothing more, though it may live; `locations` are where parts of this job are, named before any of them
    is claimed; `part_of`: the URL of the destination of the job that this one is a part of, which decides its end;
    `left_out` are the tasks that had begun and not committed when somebody from outside began to commit without them,
    `outputs_beside` what else may be output of the job, in words;
    `follows` is None in the first version; `begun_by` is the nonce of the holder that created that, the same in all
    versions of one record."""

    job_id: str
    job_attempt: int
    sequence: int
    phase: Phase
    holder: Holder
    updated: float
    pins: Sequence[Pin] = ()
    policy: str = "append"
    on_failure: str = "rollback"
    txn_id: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    replaced: int = 0
    set_aside_nonce: str = ""
    set_aside_digest: str = ""
    ground: Ground = Ground()
    made_directories: Sequence[str] = ()
    summary_nonce: str = ""
    marks_success: bool = True
    reason: str = ""
    missing: Sequence[str] = ()
    left: Sequence[str] = ()
    may_stay: str = ""
    marker: str = ""
    set_up: float = 0.0
    given_up: bool = False
    locations: Sequence[RecordedLocation] = ()
    part_of: str = ""
    left_out: Sequence[str] = ()
    outputs_beside: Sequence[str] = ()
    follows: Predecessor | None = None
    begun_by: str = ""
    type: str = RECORD_TYPE

    def succeeded_by(self, phase: Phase, holder: Holder, updated: float, **changes: object) -> CommitRecord:
        """The next version.

        Raises:
            CommitFenced: the phase table does not allow `phase` after this one.
        """
        if not may_follow(self.phase, phase):
            raise CommitFenced(
                f"job {self.job_id} is {self.phase.value} and cannot become {phase.value}",
                where=f"held by {self.holder}",
                next_step="lockgate jobs DEST shows it; lockgate recover DEST JOB ends it",
            )
        changes = {"given_up": False, "follows": Predecessor(self.sequence, self.holder.nonce)} | changes
        return msgspec.structs.replace(
            self, sequence=self.sequence + 1, phase=phase, holder=holder, updated=updated, **changes
        )


_decoder = msgspec.json.Decoder(CommitRecord)
_encoder = msgspec.json.Encoder()


def encode_record(record: CommitRecord) -> bytes:
    """The record as JSON."""
    return _encoder.encode(record)


def decode_record(content: bytes, *, name: str) -> CommitRecord:
    """Read a record; `name` is its URL, for errors.

    Raises:
        LockgateError: it is not a commit record of this version.
    """
    try:
        record = _decoder.decode(content)
    except UNDECODABLE as error:
        raise LockgateError(
            f"a commit record cannot be read: {error}",
            where=name,
            next_step="nothing was touched. If another version wrote it, that version can finish the job; if it is "
            "damaged, delete this one file: recovery then goes by the version before, and by what is in place",
        ) from error
    if record.type != RECORD_TYPE:
        raise LockgateError(
            f"a commit record is of type {record.type!r}, not {RECORD_TYPE!r}",
            where=name,
            next_step="it was written by another version of Lockgate, which can finish the job; nothing was touched",
        )
    return record


def digest_of(content: bytes) -> str:
    """The SHA-256 of some bytes, hexadecimal: how manifests and lists are recognised."""
    return hashlib.sha256(content).hexdigest()

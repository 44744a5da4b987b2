"""One actor's connection to the simulated store: the engine's `Store`, exactly, on a `Disk`, with faults.

Every operation gives others a turn before it takes place; an operation on many files may give them one between two
files, since no store promises that a batch is one act.
"""

from __future__ import annotations

import asyncio
import functools
import io
import types
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, ClassVar

from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    AnswerLost,
    FileChanged,
    FileExists,
    FileMissing,
    PathError,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.files import (
    RENAMED,
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
from lockgate.model.layout import doomed, is_kept_uploads, kept_uploads, location_digest
from lockgate.model.uploads import (
    BegunUpload,
    Completed,
    CompletionOutcome,
    GivenUp,
    NotCompleted,
    NoVersions,
    Upload,
    UploadRefusal,
)
from lockgate.model.urls import StoreUrl, parent_of
from msgspec import structs

from simworld.disk import Disk, Stored, is_no_text
from simworld.event_loop import SimulatedLoop
from simworld.faults import Fault, Faults, Kind

NAMES = (
    StoreUrl("sim", "", "/lake/dataset1"),
    StoreUrl("sim", "host:8020", "/lake/dataset1"),
    StoreUrl("sims", "host", "/lake/dataset1"),
    StoreUrl("sim", "", "/link/dataset1"),
)
"""What the destination is called; most people use the first."""

_BASE = frozenset(
    {
        Capability.ATOMIC_RENAME,
        Capability.RENAME_WITHOUT_REPLACE,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.DURABLE_WRITE,
    }
)

_DIRECTORIES = frozenset({Capability.REAL_DIRECTORIES, Capability.ATOMIC_DIRECTORY_RENAME})


@dataclass(frozen=True)
class StoreProfile:
    """What kind of store is simulated. `remote`: answers can be lost, requests throttled and done late.
    `data_makes_directories`: a task attempt's data brings back directories that are gone, and so does a version of the
    record of a driver that goes on (`create_then_look`)."""

    name: str
    capabilities: frozenset[Capability]
    identity_kind: str = "serial"
    remote: bool = True
    data_makes_directories: bool = False
    protocol: str = "manifest"
    """What `protocol=auto` stands for there."""
    keeps_uploads: bool = False
    """What completes an upload is not in its token, but kept in files, and uploads cannot be listed."""
    uploads_share_names: bool = False
    """The uploads of one path are one: who completes one, or gives one up, ends the others."""
    keeps_versions: bool = False
    """What is written over, or deleted, stays as an older version."""

    @property
    def defers(self) -> bool:
        """Whether jobs there have the protocol `deferred`."""
        return self.protocol == "deferred"

    @property
    def real_directories(self) -> bool:
        """Whether directories exist by themselves."""
        return Capability.REAL_DIRECTORIES in self.capabilities

    @property
    def deletes_at_once(self) -> bool:
        """Whether a tree goes as one act."""
        return Capability.CONSTANT_TIME_DIRECTORY_DELETE in self.capabilities


PROFILES = {
    profile.name: profile
    for profile in (
        StoreProfile("disk", _BASE | _DIRECTORIES | {Capability.UNIQUE_IDENTITY}, remote=False),
        StoreProfile(
            "tree",
            _BASE
            | {Capability.UNIQUE_IDENTITY}
            | _DIRECTORIES
            | {
                Capability.CONSTANT_TIME_DIRECTORY_DELETE,
                Capability.PINNED_SOURCE,
                Capability.CONDITIONAL_WRITE,
            },
            data_makes_directories=True,
        ),
        StoreProfile("hdfs", _BASE | _DIRECTORIES | {Capability.CONSTANT_TIME_DIRECTORY_DELETE}),
        StoreProfile("flat", _BASE | {Capability.PINNED_SOURCE}, identity_kind="content+version"),
    )
}
"""In kind: a local disk; ABFS with a hierarchical namespace; HDFS; a flat object store with a move of its own (GCS)."""

COPYING = StoreProfile(
    "copy",
    (_BASE - {Capability.ATOMIC_RENAME}) | {Capability.PINNED_SOURCE, Capability.RENAME_BY_COPY},
    identity_kind="content+version",
)
"""GCS where it has no moves: a rename is a copy and a deletion, each pinned, and says so."""

BUCKET = StoreProfile(
    "bucket",
    frozenset(
        {
            Capability.CREATE_IF_ABSENT,
            Capability.ATOMIC_WRITE,
            Capability.CONSISTENT_LISTING,
            Capability.BULK_DELETE,
            Capability.DURABLE_WRITE,
            Capability.DEFERRED_UPLOAD,
            Capability.LISTED_UPLOADS,
            Capability.CONDITIONAL_WRITE,
        }
    ),
    identity_kind="content",
    protocol="deferred",
)
"""S3: no renames and no directories, but uploads that are completed later, and conditions. The identity of a file is
that of its content."""

SESSIONS = replace(
    BUCKET, name="sessions", capabilities=BUCKET.capabilities - {Capability.LISTED_UPLOADS}, keeps_uploads=True
)
"""GCS, where jobs are told to rename nothing: what completes an upload is a secret."""

VERSIONED = replace(
    BUCKET, name="versions", capabilities=BUCKET.capabilities | {Capability.REPLACE_BY_VERSION}, keeps_versions=True
)
"""S3, where the bucket keeps older versions of objects."""

POOL = replace(BUCKET, name="pool", uploads_share_names=True)
"""Azure, where jobs rename nothing: all who upload to a name share one pool of blocks that are not committed, and any
commit under that name drops the whole of it (REST reference, "Put Block List")."""

EVERY_STORE = (*PROFILES, BUCKET.name)
"""Every kind that is enumerated."""

REMEMBERED_SECONDS = 300.0
"""For how long a bucket answers a repeated completion as it answered the first, whatever has become of the file."""


def profile_of(name: str) -> StoreProfile:
    """The kind of store of that name."""
    return {each.name: each for each in (COPYING, BUCKET, VERSIONED, SESSIONS, POOL)}.get(name) or PROFILES[name]


@types.coroutine
def turn() -> Generator[None, None, None]:
    """Let others run."""
    yield


@dataclass
class Actor:
    """One process: a driver, a task attempt, a recoverer. Once `dead` it never does anything again."""

    name: str
    process: int
    skew_seconds: float = 0.0
    dead: bool = False
    operations: int = 0
    crashed_at: str = ""
    asleep_until: float = 0.0
    seen_at: float = 0.0
    """When it looked at the store last, by the store's clock."""
    busy: bool = False
    """Whether it is committing or recovering a job now."""
    away: int = 0
    """For how many more of its operations the store is away."""
    slept: bool = False
    """Whether it has ever been asleep, or its clock has jumped: then others may take it for dead."""
    in_a_look: list[tuple[object, Callable[[], None]]] = field(default_factory=list)
    """What it has asked for that is done at its next look at several files, between two of them."""
    stuck: list[object] = field(default_factory=list)
    """What it has asked for that is not done yet, and has no answer if it asks for it again."""


@dataclass
class Ether:
    """What every connection of one run shares."""

    loop: SimulatedLoop
    disk: Disk
    profile: StoreProfile
    faults: Faults
    split_batches: bool
    trace: list[tuple[float, str, str, Any, Any]] = field(default_factory=list)
    reads_at_once_max: int = 0
    split_listings: bool = False
    renames_away: bool = False
    renamed_away: int = 0
    """How many trees have been renamed away: no two to one name."""
    completed: dict[str, float] = field(default_factory=dict)
    """When each deferred upload was completed, by its token."""
    saw_look: Callable[[str, str], None] = lambda actor, path: None
    """Told of every look at a file, by its actor."""


class SimulatedStore(Store):
    """An actor's door to the disk."""

    name: ClassVar[str] = "simulated"

    def __init__(
        self,
        ether: Ether,
        actor: Actor,
        *,
        url: StoreUrl = NAMES[0],
        shows_identities: bool = True,
        seconds_per_rename: float = 0.0,
    ) -> None:
        self.seconds_per_rename = seconds_per_rename
        self.writes: object = None
        """Whose data is written now, for the judges."""
        self.shows_identities = shows_identities
        self.url = url
        self.ether = ether
        self.actor = actor
        self._disk = ether.disk
        self._unkept: dict[str, tuple[str, dict[str, str]]] = {}
        """By the directory that keeps them, uploads of this process that are in no file yet, and the file of them."""

    def above(self) -> Sequence[tuple[StoreUrl, str]]:
        """There is nothing above a simulated destination."""
        return ()

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.ether.profile.capabilities

    @property
    def remote(self) -> bool:
        """Whether answers can be lost."""
        return self.ether.profile.remote

    def same_identity(self, one: str, other: str) -> bool:
        return bool(one) and one.partition("#")[0] == other.partition("#")[0]

    # How an operation meets its fault.

    async def _begin(self, operation: str, subject: Any, items: int = 1) -> Fault | None:
        """Before the operation: others run, then the fault of this moment strikes. Returns the fault still to come."""
        actor, ether = self.actor, self.ether
        if actor.asleep_until > ether.loop.now:
            # A process sleeps as a whole: what it does at once sleeps too.
            await asyncio.sleep(actor.asleep_until - ether.loop.now)
        if actor.dead:
            await self._never()
        number = actor.operations
        actor.operations = number + 1
        fault = ether.faults.at(actor.name, number, items)
        await turn()
        if actor.away:
            actor.away -= 1
            self._note(operation, subject, "away")
            raise StoreUnavailable("planned: the store is away", where=operation)
        if fault is None:
            return None
        kind = fault.kind
        if not self.remote and kind in (Kind.LOST, Kind.LATE, Kind.THROTTLED):
            return None
        if kind is Kind.CRASH_BETWEEN and items < 2:
            kind = Kind.CRASH_AFTER
        elif kind is Kind.SLEEP_BETWEEN and items < 2:
            kind = Kind.SLEEP_BEFORE
        fault = fault._replace(kind=kind)
        self._note("fault", operation, str(fault))
        actor.away = fault.away
        if kind is Kind.CRASH_BEFORE:
            await self._crash(f"before {operation}")
        elif kind is Kind.CLOCK_JUMP:
            actor.skew_seconds += fault.seconds
            actor.slept = True
        elif kind is Kind.SLEEP_BEFORE:
            await self._sleep(fault.seconds)
        elif kind is Kind.UNAVAILABLE:
            self._note(operation, subject, "unavailable")
            raise StoreUnavailable("planned: unavailable", where=operation)
        return fault

    async def _between(self, fault: Fault | None, index: int, operation: str) -> None:
        """Between two files of a batch."""
        if fault is not None and index == max(1, fault.item):
            if fault.kind is Kind.CRASH_BETWEEN:
                await self._crash(f"between files of {operation}")
            elif fault.kind is Kind.SLEEP_BETWEEN:
                await self._sleep(fault.seconds)
        if self.ether.split_batches:
            await turn()

    async def _end(self, fault: Fault | None, operation: str, subject: Any, outcome: Any) -> None:
        """After the operation: it took place; the fault of this moment strikes."""
        self.actor.seen_at = self._disk.clock()
        self.ether.trace.append((self.ether.loop.now, self.actor.name, operation, subject, outcome))
        if fault is None:
            return
        if fault.kind is Kind.CRASH_AFTER:
            await self._crash(f"after {operation}")
        elif fault.kind is Kind.SLEEP_AFTER:
            await self._sleep(fault.seconds)

    async def _crash(self, where: str) -> None:
        self.actor.dead = True
        self.actor.crashed_at = where
        self._note("crashes", where, "")
        await self._never()

    async def _sleep(self, seconds: float) -> None:
        self.actor.slept = True
        self.actor.asleep_until = max(self.actor.asleep_until, self.ether.loop.now + seconds)
        await asyncio.sleep(seconds)

    async def _never(self) -> None:
        await self.ether.loop.create_future()

    def _note(self, operation: str, subject: Any, outcome: Any) -> None:
        self.ether.trace.append((self.ether.loop.now, self.actor.name, operation, subject, outcome))

    def _lost(self, fault: Fault | None, operation: str, subject: Any, effect: Callable[[], object]) -> None:
        """Raise `AnswerLost` if that is the fault; the effect takes place now, or later."""
        if self._waits((operation, subject)):
            raise AnswerLost("planned: answer lost", where=operation)
        if fault is None or fault.kind not in (Kind.LOST, Kind.LATE):
            return
        if fault.kind is Kind.LATE:
            self._later(fault, (operation, subject), lambda: self._late(operation, subject, effect))
            self._note(operation, subject, "no answer, not yet done")
        else:
            self._note(operation, subject, f"{_quietly(effect)}, answer lost")
        raise AnswerLost("planned: answer lost", where=operation)

    def _waits(self, asked: object) -> bool:
        return asked in self.actor.stuck

    def _later(self, fault: Fault, asked: object, effect: Callable[[], None]) -> None:
        if fault.in_a_look or fault.stuck:
            self.actor.stuck.append(asked)
        if fault.in_a_look:
            self.actor.in_a_look.append((asked, effect))
        else:
            self.ether.loop.call_later(fault.seconds, self._at_last, asked, effect)

    def _at_last(self, asked: object, effect: Callable[[], None]) -> None:
        if asked in self.actor.stuck:
            self.actor.stuck.remove(asked)
        effect()

    def _in_turn(self, paths: Sequence[str]) -> Sequence[int]:
        """In which order the files of a look are looked at: a store answers such requests in any."""
        return range(len(paths)) if not self.actor.in_a_look else range(len(paths))[::-1]

    def _done_in_a_look(self) -> None:
        while self.actor.in_a_look:
            self._at_last(*self.actor.in_a_look.pop(0))

    def _late(self, operation: str, subject: Any, effect: Callable[[], object]) -> None:
        self._note(f"late {operation}", subject, _quietly(effect))

    # The operations.

    async def preflight(self, renames: Sequence[Rename]) -> list[str]:
        if self.ether.profile.remote:
            return []
        await self._begin("preflight", None)
        wrong = []
        for rename in renames:
            found = self._disk.files.get(rename.source)
            if found is None or (rename.identity and rename.identity != found.identity):
                wrong.append(rename.source)
        return wrong

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        if Capability.RENAME_BY_COPY in self.capabilities:
            return await self._copy_and_delete(renames)
        if Capability.ATOMIC_RENAME not in self.capabilities:
            return [NotRenamed(Refusal.FAILED, "this store has no renames") for _ in renames]
        fault = await self._begin("rename", renames, len(renames))
        outcomes: list[RenameOutcome] = []
        for index, rename in enumerate(renames):
            if index:
                await self._between(fault, index, "rename")
            await self._take_time()
            struck = fault is not None and index >= fault.item
            if self._waits(rename):
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.THROTTLED:
                outcomes.append(NotRenamed(Refusal.FAILED, "planned: throttled"))
            elif struck and fault is not None and fault.kind is Kind.LATE:
                self._later(fault, rename, functools.partial(self._late_rename, rename))
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.LOST:
                self._rename(rename)
                outcomes.append(Unknown("planned: answer lost"))
            else:
                outcomes.append(self._rename(rename))
        progress(len(renames))
        await self._end(fault, "rename", renames, outcomes)
        return outcomes

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        fault = await self._begin("rename directories", renames, len(renames))
        outcomes: list[RenameOutcome] = []
        for index, rename in enumerate(renames):
            if index:
                await self._between(fault, index, "rename directories")
            await self._take_time()
            struck = fault is not None and index >= fault.item
            if self._waits(rename):
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.THROTTLED:
                outcomes.append(NotRenamed(Refusal.FAILED, "planned: throttled"))
            elif struck and fault is not None and fault.kind is Kind.LATE:
                self._later(fault, rename, functools.partial(self._late_directory, rename))
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.LOST:
                self._rename_directory(rename)
                outcomes.append(Unknown("planned: answer lost"))
            else:
                outcomes.append(self._rename_directory(rename))
        await self._end(fault, "rename directories", renames, outcomes)
        return outcomes

    def _late_directory(self, rename: Rename) -> None:
        self._note("late rename of a directory", rename, self._rename_directory(rename))

    def _rename_directory(self, rename: Rename) -> RenameOutcome:
        disk = self._disk
        if rename.source not in disk.directories:
            return NotRenamed(Refusal.SOURCE_MISSING)
        if not disk.has_parent(rename.target):
            return NotRenamed(Refusal.PARENT_MISSING)
        if rename.target in disk.directories or rename.target in disk.files:
            return NotRenamed(Refusal.TARGET_EXISTS)
        disk.move_directory(self.actor.name, rename.source, rename.target)
        return RENAMED

    def _late_rename(self, rename: Rename) -> None:
        self._note("late rename", rename, self._rename(rename))

    async def _take_time(self) -> None:
        if self.seconds_per_rename:
            await asyncio.sleep(self.seconds_per_rename)
            if self.actor.dead:
                await self._never()

    async def _copy_and_delete(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """Each rename as two acts, with others, and faults, between them."""
        fault = await self._begin("rename", renames, 2 * len(renames))
        outcomes: list[RenameOutcome] = []
        for index, rename in enumerate(renames):
            if index:
                await self._between(fault, 2 * index, "rename")
            await self._take_time()
            struck = fault is not None and index == fault.item // 2
            if struck and fault is not None and fault.kind is Kind.THROTTLED:
                outcomes.append(NotRenamed(Refusal.FAILED, "planned: throttled"))
                continue
            source = self._disk.files.get(rename.source)
            outcome = self._copy(rename, source)
            if isinstance(outcome, Renamed) and source is not None:
                if fault is not None:
                    await self._between(fault, 2 * index + 1, "rename")
                else:
                    await turn()
                if struck and fault is not None and fault.kind is Kind.LOST:
                    outcomes.append(Unknown("planned: copied, and the deletion was not answered"))
                    continue
                now = self._disk.files.get(rename.source)
                if now is not None and now.identity == source.identity:
                    self._disk.remove(self.actor.name, rename.source)
            outcomes.append(outcome)
        await self._end(fault, "rename", renames, outcomes)
        return outcomes

    def _copy(self, rename: Rename, source: Stored | None) -> RenameOutcome:
        disk = self._disk
        if source is None:
            return NotRenamed(Refusal.SOURCE_MISSING)
        if rename.identity not in ("", source.identity):
            return NotRenamed(Refusal.SOURCE_CHANGED)
        proof = proof_of_copy(rename, source.identity)
        there = disk.files.get(rename.target)
        if there is not None and there.proof == proof:
            return Renamed(there.identity)
        if there is not None and not rename.replace:
            return NotRenamed(Refusal.TARGET_EXISTS)
        disk.copy(self.actor.name, rename.source, rename.target, proof)
        return Renamed(disk.files[rename.target].identity)

    def _rename(self, rename: Rename) -> RenameOutcome:
        disk = self._disk
        source = disk.files.get(rename.source)
        if source is None:
            return NotRenamed(Refusal.SOURCE_MISSING)
        if not disk.has_parent(rename.target):
            return NotRenamed(Refusal.PARENT_MISSING)
        if Capability.PINNED_SOURCE in self.ether.profile.capabilities and rename.identity not in (
            "",
            source.identity,
        ):
            return NotRenamed(Refusal.SOURCE_CHANGED)
        if disk.real_directories and rename.target in disk.directories:
            return NotRenamed(Refusal.TARGET_EXISTS)
        if not rename.replace and rename.target in disk.files:
            return NotRenamed(Refusal.TARGET_EXISTS)
        disk.move(self.actor.name, rename.source, rename.target)
        return RENAMED if self.ether.profile.real_directories else Renamed(disk.files[rename.target].identity)

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        fault = await self._begin("delete", paths, len(paths))
        self._lost(fault, "delete", paths, lambda: [self._delete(path) for path in paths])
        outcomes = []
        for index, path in enumerate(paths):
            if index:
                await self._between(fault, index, "delete")
            outcomes.append(self._delete(path))
        progress(len(paths))
        await self._end(fault, "delete", paths, outcomes)
        return outcomes

    def _delete(self, path: str) -> Deleted:
        if path in self._disk.files:
            self._disk.remove(self.actor.name, path)
            return Deleted.DELETED
        return Deleted.MISSING

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        at_once = self.ether.profile.deletes_at_once
        files = 0 if at_once else sum(len(self._disk.below(path)) for path in paths)
        fault = await self._begin("delete tree", paths, max(len(paths), files))
        self._lost(fault, "delete tree", paths, lambda: [self._delete_tree(path) for path in paths])
        outcomes = []
        index = 0
        renames_away = self.ether.renames_away and self._disk.real_directories
        for path in paths:
            if not at_once and renames_away:
                path = self._rename_away(path)
            if not at_once:
                for below in self._shuffled(self._disk.below(path)):
                    if index:
                        await self._between(fault, index, "delete tree")
                    index += 1
                    self._delete(below)
                if self._disk.below(path) and self._disk.real_directories:
                    raise StoreError("cannot delete: Directory not empty", where=path)
            elif index:
                await self._between(fault, index, "delete tree")
            index += 1
            outcomes.append(self._delete_tree(path, with_files=at_once))
        progress(len(paths))
        await self._end(fault, "delete tree", paths, outcomes)
        return outcomes

    def _rename_away(self, path: str) -> str:
        """The local store's way: what is written by the old path from now on is refused."""
        if path not in self._disk.directories:
            return path
        self.ether.renamed_away += 1
        away = doomed(path, f"{self.ether.renamed_away:x}")
        self._disk.move_directory(self.actor.name, path, away)
        return away

    def _shuffled(self, paths: list[str]) -> list[str]:
        return paths if len(self.ether.trace) % 2 else paths[::-1]

    def _delete_tree(self, path: str, *, with_files: bool = True) -> Deleted:
        disk = self._disk
        below = disk.below(path) if with_files else []
        for file in below:
            disk.remove(self.actor.name, file)
        found = path in disk.directories or bool(below)
        for directory in (path, *disk.directories_below(path)):
            disk.directories.pop(directory, None)
        disk.touch(path)
        return Deleted.DELETED if found else Deleted.MISSING

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        fault = await self._begin("delete empty", paths)
        self._lost(fault, "delete empty", paths, lambda: [self._delete_empty(path) for path in paths])
        outcomes = [self._delete_empty(path) for path in paths]
        await self._end(fault, "delete empty", paths, outcomes)
        return outcomes

    def _delete_empty(self, path: str) -> bool:
        disk = self._disk
        if not disk.real_directories or path not in disk.directories:
            return path not in disk.files
        if disk.entries(path):
            return False
        del disk.directories[path]
        disk.touch(path)
        return True

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        fault = await self._begin("make", paths, len(paths))
        self._lost(fault, "make", paths, lambda: [self._make(path, within) for path in paths])
        outcomes = []
        if within and self._disk.real_directories and within not in self._disk.directories:
            self._note("make", paths, f"{within} is missing")
            raise FileMissing("a directory is not there", where=within)
        for index, path in enumerate(paths):
            if index:
                await self._between(fault, index, "make")
            outcomes.append(self._make(path, within))
        await self._end(fault, "make", paths, outcomes)
        return outcomes

    def _make(self, path: str, within: str) -> DirectoryOutcome:
        disk = self._disk
        if not disk.real_directories or path in disk.directories:
            return DirectoryOutcome("existed")
        if within and within not in disk.directories:
            raise FileMissing("a directory is not there", where=within)
        above = path
        missing = []
        while above and above not in disk.directories:
            if above in disk.files:
                return DirectoryOutcome("blocked", above)
            missing.append(above)
            above = above.rpartition("/")[0]
        for directory in missing:
            disk.directories[directory] = disk.clock()
            disk.touch(directory)
        return DirectoryOutcome("created")

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        fault = await self._begin("stat", paths, len(paths))
        found: list[FileStatus | None] = [None] * len(paths)
        for index, at in enumerate(self._in_turn(paths)):
            if index:
                self._done_in_a_look()
                await self._between(fault, index, "stat")
            found[at] = self._shown(self._disk.status(paths[at]))
            self.ether.saw_look(self.actor.name, paths[at])
        await self._end(fault, "stat", paths, found)
        return found

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        fault = await self._begin("list", path)
        entries = self._disk.entries(path)
        await self._end(fault, "list", path, entries)
        _refuse_names(each.path for each in entries)
        if entries and self.ether.split_listings:
            middle = len(entries) // 2
            if middle:
                yield entries[:middle]
                await turn()
            yield entries[middle:]
        elif entries:
            yield entries

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        fault = await self._begin("list tree", path)
        found = [
            status for below in self._disk.below(path) if (status := self._shown(self._disk.status(below))) is not None
        ]
        self.ether.saw_look(self.actor.name, path)
        await self._end(fault, "list tree", path, found)
        _refuse_names(status.path for status in found)
        if found and self.ether.split_listings:
            for status in found:
                yield [status]
                await turn()
        elif found:
            yield found

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        fault = await self._begin("read", paths, len(paths))
        contents: list[bytes | None] = [None] * len(paths)
        for index, at in enumerate(self._in_turn(paths)):
            if index:
                self._done_in_a_look()
                await self._between(fault, index, "read")
            stored = self._disk.files.get(paths[at])
            contents[at] = None if stored is None else stored.content[: bytes_max + 1]
        manifests = sum(location_digest(path) is None for path in paths)  # declarations are one line each
        self.ether.reads_at_once_max = max(self.ether.reads_at_once_max, manifests)
        await self._end(fault, "read", paths, contents)
        return contents

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        return await self._write("create", path, content, replace=False)

    async def create_then_look(self, path: str, content: bytes) -> FileStatus:
        return await self._write("create", path, content, replace=False, makes_directories=True)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        return await self._write("write", path, content, replace=True)

    async def _write(
        self, operation: str, path: str, content: bytes, *, replace: bool, makes_directories: bool = False
    ) -> FileStatus:
        fault = await self._begin(operation, path)

        def effect() -> FileStatus:
            if makes_directories and self.ether.profile.data_makes_directories:
                self._make(parent_of(path), "")
            return self._put(path, content, replace=replace)

        self._lost(fault, operation, path, effect)
        try:
            status = effect()
        except StoreError as error:
            self._note(operation, path, type(error).__name__)
            raise
        await self._end(fault, operation, path, status.identity)
        return status

    def _put(self, path: str, content: bytes, *, replace: bool, label: object = None) -> FileStatus:
        disk = self._disk
        if not disk.has_parent(path):
            raise FileMissing("the directory is not there", where=path)
        if path in disk.files and not replace:
            raise FileExists("something is there", where=path)
        stored = disk.make(content, label)
        disk.put(self.actor.name, path, stored)
        return FileStatus(path, len(content), stored.identity)

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        fault = await self._begin("replace", path)

        def effect() -> FileStatus:
            found = self._disk.files.get(path)
            if found is None or found.identity != identity:
                raise FileChanged("another is there by now", where=path)
            return self._put(path, content, replace=True)

        self._lost(fault, "replace", path, effect)
        try:
            status = effect()
        except FileChanged as error:
            self._note("replace", path, type(error).__name__)
            raise
        await self._end(fault, "replace", path, status.identity)
        return status

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        paths = [file.path for file in files]
        fault = await self._begin("delete same", paths, len(files))
        self._lost(fault, "delete same", paths, lambda: [self._delete_same(file) for file in files])
        outcomes = []
        for index, file in enumerate(files):
            if index:
                await self._between(fault, index, "delete same")
            outcomes.append(self._delete_same(file))
        progress(len(files))
        await self._end(fault, "delete same", paths, outcomes)
        return outcomes

    def _delete_same(self, file: FileStatus) -> Deleted:
        found = self._disk.files.get(file.path)
        if found is not None and found.identity != file.identity:
            return Deleted.CHANGED
        return self._delete(file.path)

    # Deferred uploads.

    @property
    def keeps_uploads(self) -> bool:  # type: ignore[override]  # as the profile says
        return self.ether.profile.keeps_uploads

    @property
    def uploads_share_names(self) -> bool:  # type: ignore[override]  # as the profile says
        return self.ether.profile.uploads_share_names

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        return _Output(self, path, self.writes, mark, keep)

    def write_deferred(self, path: str, mark: str, keep: str, content: bytes, label: object) -> FileStatus:
        """A task attempt's data, whole, at once, as an upload that nobody sees."""
        stored = self._disk.make(content, label, proof=mark)
        token = self._disk.begin_upload(path, stored)
        self._note("upload", path, token)
        if self.keeps_uploads:
            file, waiting = self._unkept.setdefault(keep, (kept_uploads(keep, 0, f"{stored.serial:06x}"), {}))
            waiting[token] = path
            token = f"{token} {file}"
        status = FileStatus(path, len(content), stored.identity, proof=mark, upload=token)
        return self._shown(status) or status

    async def keep_uploads(self, keep: str) -> None:
        if keep in self._unkept:
            file, waiting = self._unkept[keep]
            await self.write_file(file, "\n".join(f"{token} {path}" for token, path in waiting.items()).encode())
            self._unkept.pop(keep, None)

    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        async for page in self.list_tree(directory):
            files = [each.path for each in page if is_kept_uploads(each.path) and parent_of(each.path) not in but]
            for file in files:
                (content,) = await self.read_files([file], bytes_max=1 << 20)
                lines = content.decode().splitlines() if content is not None else []
                if found := [line.split(" ", 1) for line in lines]:
                    yield [BegunUpload(path, f"{token} {file}") for token, path in found]

    def _is_known(self, upload: Upload | BegunUpload) -> bool:
        """Whether what completes an upload is in its token, or in this process, or in a file."""
        token, _, file = upload.token.partition(" ")
        if not self.keeps_uploads or any(token in waiting for _, waiting in self._unkept.values()):
            return True
        kept = self._disk.files.get(file)
        return kept is not None and f"{token} ".encode() in kept.content

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        paths = [upload.path for upload in uploads]
        fault = await self._begin("complete", paths, len(uploads))
        outcomes: list[CompletionOutcome] = []
        for index, upload in enumerate(uploads):
            if index:
                await self._between(fault, index, "complete")
            await self._take_time()
            struck = fault is not None and index >= fault.item
            if self._waits(upload):
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.THROTTLED:
                outcomes.append(NotCompleted(UploadRefusal.FAILED, "planned: throttled"))
            elif struck and fault is not None and fault.kind is Kind.LATE:
                self._later(fault, upload, functools.partial(self._late_completion, upload))
                outcomes.append(Unknown("planned: answer lost"))
            elif struck and fault is not None and fault.kind is Kind.LOST:
                self._complete(upload)
                outcomes.append(Unknown("planned: answer lost"))
            else:
                outcomes.append(self._complete(upload))
        progress(len(uploads))
        await self._end(fault, "complete", paths, outcomes)
        return outcomes

    def _late_completion(self, upload: Upload) -> None:
        self._note("late complete", upload.path, self._complete(upload))

    def _complete(self, upload: Upload) -> CompletionOutcome:
        disk, found, token = self._disk, self._disk.files.get(upload.path), upload.token.partition(" ")[0]
        if token not in disk.pending or not self._is_known(upload):
            since = self.ether.loop.now - self.ether.completed.get(token, -REMEMBERED_SECONDS)
            known = found is not None and found.proof == upload.mark
            if known or since < REMEMBERED_SECONDS:
                return Completed(found.identity if found is not None and known else "")
            return NotCompleted(UploadRefusal.UPLOAD_MISSING)
        if upload.replaces:
            if self.refuses_another and (found is None or found.identity != upload.replaces):
                return NotCompleted(UploadRefusal.TARGET_CHANGED)
        elif found is not None and self.refuses_existing:
            return NotCompleted(UploadRefusal.TARGET_EXISTS)
        disk.complete_upload(self.actor.name, token)
        self.ether.completed[token] = self.ether.loop.now
        return Completed(disk.files[upload.path].identity)

    refuses_existing: ClassVar[bool] = True
    """Whether a completion is conditional."""
    refuses_another: ClassVar[bool] = True
    """Whether one that is to replace a file replaces no other."""

    async def why_no_versions(self) -> NoVersions | None:
        fault = await self._begin("ask for versions", "")
        await self._end(fault, "ask for versions", "", self._disk.keeps_versions)
        return None if self._disk.keeps_versions else NoVersions("planned: none are kept")

    async def stat_versions(self, files: Sequence[FileStatus]) -> list[FileStatus | None]:
        fault = await self._begin("stat versions", files, len(files))
        found = []
        for index, file in enumerate(files):
            if index:
                await self._between(fault, index, "stat versions")
            now = self._disk.status(file.path)
            known = {str(each.serial): each for each in self._disk.versions(file.path)}
            found.append(self._version(file.path, known.get(file.version)) if file.version else now)
            self.ether.saw_look(self.actor.name, file.path)
        await self._end(fault, "stat versions", files, found)
        return found

    @staticmethod
    def _version(path: str, stored: Stored | None) -> FileStatus | None:
        if stored is None:
            return None
        length, version = len(stored.content), str(stored.serial)
        return FileStatus(path, length, stored.identity, proof=stored.proof, version=version)

    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        paths = [upload.path for upload in uploads]
        fault = await self._begin("find versions", paths, len(uploads))
        found: list[Sequence[FileStatus]] = []
        for index, upload in enumerate(uploads):
            if index:
                await self._between(fault, index, "find versions")
            known = [self._version(upload.path, each) for each in self._disk.versions(upload.path)]
            found.append([each for each in known if each is not None and upload.is_what(each, self.same_identity)])
        await self._end(fault, "find versions", paths, found)
        return found

    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        fault = await self._begin("delete versions", files, len(files))
        self._lost(fault, "delete versions", files, lambda: [self._delete_version(file) for file in files])
        for index, file in enumerate(files):
            if index:
                await self._between(fault, index, "delete versions")
            self._delete_version(file)
        await self._end(fault, "delete versions", files, "")

    def _delete_version(self, file: FileStatus) -> None:
        for each in self._disk.versions(file.path):
            if str(each.serial) == file.version:
                self._disk.remove_version(self.actor.name, file.path, each)

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        paths = [upload.path for upload in uploads]
        fault = await self._begin("give up", paths, len(uploads))
        self._lost(fault, "give up", paths, lambda: [self._give_up(upload) for upload in uploads])
        answers: list[GivenUp] = []
        for index, upload in enumerate(uploads):
            if index:
                await self._between(fault, index, "give up")
            answers.append(self._give_up(upload))
        await self._end(fault, "give up", paths, answers)
        return answers

    def _give_up(self, upload: Upload | BegunUpload) -> GivenUp:
        token = upload.token.partition(" ")[0]
        if token not in self._disk.pending or not self._is_known(upload):
            return GivenUp.NOT_FOUND
        self._disk.give_up_upload(self.actor.name, token)
        # Nobody says what a session answers that has become an object.
        return GivenUp.NOT_FOUND if self.keeps_uploads else GivenUp.ENDED

    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        fault = await self._begin("list uploads", "")
        found = [BegunUpload(each.path, each.token, each.begun) for each in self._disk.pending.values()]
        await self._end(fault, "list uploads", "", [each.path for each in found])
        if found and self.ether.split_listings:
            for each in found:
                yield [each]
                await turn()
        elif found:
            yield found

    def open_output(self, path: str) -> OutputFile:
        return _Output(self, path, self.writes)

    def write_output(self, path: str, content: bytes, label: object) -> FileStatus:
        """A task attempt's data, whole, at once; `label` says whose it is."""
        if self.ether.profile.data_makes_directories:
            above = path
            while above := above.rpartition("/")[0]:
                self._disk.directories.setdefault(above, self._disk.clock())
        status = self._put(path, content, replace=False, label=label)
        self._note("write output", path, status.identity)
        return self._shown(status) or status

    def _shown(self, status: FileStatus | None) -> FileStatus | None:
        # A client that knows no identities, as Hadoop's but for ABFS.
        if status is None or self.shows_identities:
            return status
        return structs.replace(status, identity="")


def _refuse_names(paths: Iterable[str]) -> None:
    for path in paths:
        if is_no_text(path):
            raise PathError("a name is no text", where=path, next_step="rename it")


class _Output(OutputFile):
    def __init__(
        self, store: SimulatedStore, path: str, label: object, mark: str | None = None, keep: str = ""
    ) -> None:
        self._mark = mark
        self._keep = keep
        self._store = store
        self._path = path
        self._label = label
        self._stream = io.BytesIO()
        self._status: FileStatus | None = None

    @property
    def stream(self) -> BinaryIO:
        return self._stream

    def close(self) -> FileStatus:
        if self._status is None and self._mark is not None:
            content = self._stream.getvalue()
            self._status = self._store.write_deferred(self._path, self._mark, self._keep, content, self._label)
        elif self._status is None:
            self._status = self._store.write_output(self._path, self._stream.getvalue(), self._label)
        return self._status

    def discard(self) -> None:
        self._stream.close()


def proof_of_copy(rename: Rename, identity: str) -> str:
    """What a copy says of itself: both ends, and the version that was copied."""
    return f"{rename.source} {rename.target} {identity}"


def _quietly(effect: Callable[[], object]) -> object:
    try:
        return effect()
    except (StoreError, FileChanged) as error:
        return type(error).__name__

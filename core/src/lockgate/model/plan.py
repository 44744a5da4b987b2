"""The plan of a job commit, made from manifests without touching anything.

Manifests in, `CommitPlan` out; a second, dumb loop performs it. `lockgate plan` prints the same value. Entries
are kept encoded in a spool, in order of task, so that a job of a million files is never a million Python
objects twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

import msgspec

from lockgate.model.committed_before import CommittedBefore
from lockgate.model.counted import counted
from lockgate.model.duplicates import CHOICE
from lockgate.model.errors import DestinationConflict, DuplicateTarget
from lockgate.model.files import FileStatus
from lockgate.model.hashes import PathHashes, may_hold
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.prediction import Operations
from lockgate.model.receipt import Pin
from lockgate.model.replaced import SetAside, WholeDirectories
from lockgate.model.spooled import Spool, Spooled, Spools, windows
from lockgate.model.statistics import Gathered, Statistics
from lockgate.model.urls import ancestors_of, parent_of

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Entry]).decode


EXTRA_VALUES_MAX = 100
"""So many values of one name of the tasks' extra data are kept."""


WINDOW = 50_000
"""So many paths are compared at a time with the targets of a plan."""


class Survey(StrEnum):
    """How much of the destination a conflict policy must see before it can answer."""

    ANY_FILE = "any file"
    LEAF_DIRECTORIES = "the files in the directories this job writes to"
    CHOSEN_DIRECTORIES = "every file below the directories that `replace_below` names"
    WHOLE_DESTINATION = "every file of the destination"


@dataclass(frozen=True)
class CommitPlan:
    """What a job commit will do.

    `set_aside` is in a fixed order: a file waits under its place in it. `leaf_directories` are the directories that
    files are renamed into (the destination itself left out), and `directories` all that must exist, leaf first.
    `set_aside` and `missing_directories` are filled in when the plan has met the destination. `clears_the_way`: a file
    that stands where the job needs a directory may be set aside, which only a policy that replaces says. `spools` is
    where `set_aside` is kept, which may be as long as the destination has files. `aside_directories` are set aside
    whole, in a fixed order; every file in them is in `set_aside`. `in_place`: the task commits have put the files in
    place, and the job commit looks at each of them `looks_in_place` times. `choices` say of each task whose attempt had
    to be chosen among several which it is, and why. `adopted_directories`: so many directories that tasks have left are
    renamed into the job's own before any file is moved. `left_out` are the tasks that have begun and not committed,
    where somebody from outside asks for the plan, `left_out_stays` says what of them stays in the destination, and
    `outputs_beside` what else may be output of the job, in words; `operations` are then what committing it takes.
    `committed_before`: the job's transaction id was committed, so that a commit moves nothing, and all else is empty.
    """

    entries: Spool
    pins: Sequence[Pin] = ()
    files: int = 0
    bytes: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    leaf_directories: Sequence[str] = ()
    writes_to_root: bool = False
    directories: Sequence[str] = ()
    missing_directories: Sequence[str] = ()
    set_aside: Sequence[SetAside] = ()
    aside_directories: Sequence[str] = ()
    policy: str = "append"
    clears_the_way: bool = False
    target_hashes: Sequence[int] = ()
    choices: Sequence[str] = ()
    spools: Spools = list
    in_place: bool = False
    looks_in_place: int = 2
    adopted_directories: int = 0
    left_out: Sequence[str] = ()
    left_out_stays: str = ""
    outputs_beside: Sequence[str] = ()
    operations: Sequence[Operations] = ()
    committed_before: CommittedBefore | None = None

    def __repr__(self) -> str:
        return (
            f"CommitPlan(policy={self.policy!r}, task_attempts={len(self.pins)}, files={self.files}, "
            f"bytes={self.bytes}, set_aside={len(self.set_aside)})"
        )

    def batches(self, size: int = 10_000) -> Iterator[list[Entry]]:
        """The entries in order, in lists of about `size`."""
        batch: list[Entry] = []
        for chunk in self.entries:
            batch += _decode(chunk)
            if len(batch) >= size:
                yield batch
                batch = []
        if batch:
            yield batch

    @property
    def completes_uploads(self) -> bool:
        """Whether its files appear by uploads that are completed, and not by renames."""
        return any(entry.upload for entry in next(iter(self.batches(1)), ()))

    @property
    def task_directories(self) -> int:
        """Of each task the directories that it writes to, in all; the destination itself left out."""
        return sum(len({parent_of(entry.target) for entry in _decode(chunk)} - {""}) for chunk in self.entries)

    def by_manifest(self) -> Iterator[tuple[Pin, int]]:
        """The pin of each manifest, with how many entries it has, in order."""
        for pin, chunk in zip(self.pins, self.entries, strict=True):
            yield pin, len(_decode(chunk))

    @property
    def replaced(self) -> int:
        """How many files of the destination are replaced. An old `_SUCCESS` is set aside with them, and is none."""
        return sum(aside.path != SUCCESS for aside in self.set_aside)

    @property
    def whole(self) -> WholeDirectories:
        """The directories that are set aside whole."""
        return WholeDirectories(self.aside_directories)

    def writes_any_of(self, paths: Iterable[str]) -> set[str]:
        """Those of `paths` that are targets of this plan."""
        hashes = self.target_hashes
        suspects = {path for path in paths if may_hold(hashes, path)}
        if not suspects:
            return suspects
        return {entry.target for batch in self.batches() for entry in batch if entry.target in suspects}

    def writes_each(self, paths: Iterable[str]) -> Iterator[bool]:
        """Of each path, in order, whether it is a target of this plan. However many there are, a window of them is held
        at a time."""
        for window in windows(paths, WINDOW):
            targets = self.writes_any_of(window)
            for path in window:
                yield path in targets

    def directories_in_the_way(self) -> list[str]:
        """Directories that stand where a file must be, and what is in them, and that are empty once what is replaced is
        set aside; leaf first."""
        parents = {parent_of(aside.path) for aside in self.set_aside} - {""}
        above = parents.union(*map(ancestors_of, parents))
        targets = self.writes_any_of(above)
        found = [path for path in above if targets and not targets.isdisjoint([path, *ancestors_of(path)])]
        return sorted(found, key=lambda path: (-path.count("/"), path))

    def replacing(self, files: Iterable[FileStatus]) -> CommitPlan:
        """This plan with more files to set aside; each is set aside once."""
        more = (SetAside(f.path, f.length, f.identity) for f in files if not f.is_directory)
        if not self.set_aside:
            return dataclasses.replace(self, set_aside=Spooled(self.spools, SetAside, more))
        before = self.set_aside
        asides = before if isinstance(before, Spooled) else Spooled(self.spools, SetAside, before)
        for window in windows(more, WINDOW):
            paths = {aside.path for aside in window}
            known = {aside.path for aside in before if aside.path in paths}
            asides = asides.plus(aside for aside in window if aside.path not in known)
        return dataclasses.replace(self, set_aside=asides)

    def meeting(self, statuses: Mapping[str, FileStatus | None]) -> CommitPlan:
        """This plan after its directories were probed: missing ones, and those that are set aside whole, are to be
        made, leaf first, each once, and files that stand where a directory must be are set aside, if the policy
        replaces.

        Raises:
            DestinationConflict: such a file is there, and the policy leaves alone what it finds.
        """
        whole, inside = set(self.aside_directories), self.whole
        missing = [
            path
            for path in self.directories
            if (there := statuses.get(path)) is None or not there.is_directory or path in whole or path in inside
        ]
        blocking = [status for status in statuses.values() if status is not None and not status.is_directory]
        found = {status.path for status in blocking}
        chosen = {aside.path for aside in self.set_aside if aside.path in found} if found else set()
        in_the_way = sorted(status.path for status in blocking if status.path not in chosen)
        if in_the_way and not self.clears_the_way:
            raise DestinationConflict(
                f"a file is where the job needs a directory, and the conflict policy `{self.policy}` removes none",
                where="\n".join(f"found {path}" for path in in_the_way[:5]),
                next_step="move it away, write elsewhere, or choose the policy replace or replace-partitions",
            )
        # What nobody has listed yet goes by itself, and with it all that is beside it.
        new = [f"{path}/" for path in in_the_way]
        listed = [path for path in self.aside_directories if not any(each.startswith(f"{path}/") for each in new)]
        plan = dataclasses.replace(self, aside_directories=listed) if len(listed) < len(whole) else self
        return dataclasses.replace(plan.replacing(blocking), missing_directories=missing)


class PlanBuilder:
    """Gathers manifests into a plan. The one mutable thing here; it ends with `plan()`."""

    def __init__(self, spool: Spool, policy: str, spools: Spools = list) -> None:
        self._spool = spool
        self._spools = spools
        self._policy = policy
        self._pins: list[Pin] = []
        self._hashes = PathHashes()
        self._files = 0
        self._leaves: set[str] = set()
        self._directories: set[str] = set()
        self._counters: dict[str, int] = {}
        self._statistics = Gathered()
        self._extra: dict[str, dict[str, None]] = {}
        self._bytes = 0
        self._choices: list[str] = []

    def add(self, manifest: TaskManifest, pin: Pin) -> None:
        """Take a checked manifest in."""
        self._pins.append(pin)
        self._spool.append(_encode(manifest.files))
        for entry in manifest.files:
            self._hashes.add(entry.target)
        self._files += len(manifest.files)
        self._leaves.update(parent_of(entry.target) for entry in manifest.files)
        self._directories.update(manifest.directories)
        self._bytes += manifest.bytes_total
        for name, count in manifest.counters.items():
            self._counters[name] = self._counters.get(name, 0) + count
        self._statistics.add(manifest.statistics)
        if "committer_task_file_count" not in manifest.statistics.meanstatistics:
            self._statistics.sample("committer_task_file_count", len(manifest.files))
            self._statistics.sample_all("committer_task_file_size", [entry.length for entry in manifest.files])
        if CHOICE in manifest.extra:
            self._choices.append(str(manifest.extra[CHOICE]))
        for name, value in manifest.extra.items():
            values = self._extra.setdefault(name, {})
            if len(values) < EXTRA_VALUES_MAX:
                values[str(value)] = None

    @property
    def pins(self) -> Sequence[Pin]:
        """Of the manifests that are taken in, the attempts that have saved them named."""
        return self._pins

    def plan(self) -> CommitPlan:
        """The plan, before it has met the destination.

        Raises:
            DuplicateTarget: two tasks write one target, or a file has the name of a directory that another file needs.
        """
        writes_to_root = "" in self._leaves
        leaves = self._leaves - {""}
        directories = leaves | self._directories
        for directory in list(directories):
            directories.update(ancestors_of(directory))
        # A leaf is tried first: where it exists nothing above it needs a look.
        ordered = sorted(directories, key=lambda path: (-path.count("/"), path))
        plan = CommitPlan(
            entries=self._spool,
            pins=self._pins,
            files=self._files,
            bytes=self._bytes,
            counters=self._counters,
            statistics=self._statistics.now(),
            extra={name: list(values) for name, values in sorted(self._extra.items())},
            leaf_directories=sorted(leaves),
            writes_to_root=writes_to_root,
            directories=ordered,
            missing_directories=ordered,
            policy=self._policy,
            target_hashes=self._hashes.in_order(),
            choices=self._choices,
            spools=self._spools,
        )
        self._refuse_duplicates(plan)
        return plan

    def _refuse_duplicates(self, plan: CommitPlan) -> None:
        hashes = plan.target_hashes
        twice = {first for first, second in pairwise(hashes) if first == second}
        both = plan.writes_any_of(plan.directories)
        if both:
            path = min(both)
            raise DuplicateTarget(
                "a file has the name of a directory that another file needs",
                where=f"{path}\n" + "\n".join(_owners(plan, {path})[:4]),
                next_step="nothing was moved; give one of the files another name",
            )
        if not twice:
            return
        # Equal hashes may be chance; the names decide.
        counts: dict[str, int] = {}
        for batch in plan.batches():
            for entry in batch:
                if hash(entry.target) in twice:
                    counts[entry.target] = counts.get(entry.target, 0) + 1
        duplicates = sorted(target for target, count in counts.items() if count > 1)
        if duplicates:
            raise DuplicateTarget(
                f"{counted(len(duplicates), 'path')} would be written by two tasks",
                where="\n".join([f"target  {duplicates[0]}", *_owners(plan, {duplicates[0]})[:4]]),
                next_step="nothing was moved; give the files of different tasks different names; of a job that is over "
                "rename one of them in its task's directory, where there are no manifests",
            )


def _owners(plan: CommitPlan, targets: set[str]) -> list[str]:
    return [f"source  {entry.source}" for batch in plan.batches() for entry in batch if entry.target in targets]

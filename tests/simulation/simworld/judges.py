"""The judges: what must hold between any two changes of the disk, and at the end.

They believe the disk and nobody's word: a job's phase is what the newest version of its commit record on the disk
says, a job is committed when its summary becomes `_SUCCESS` (or, unmarked, when its record says so), and what an
attempt wrote is known from the simulation, not from its manifest.

At every change, a reader's view (`visible`, `_SUCCESS`) is checked by the guarantee's name:

- **abortable**, **exclusive**, **pinned**, **continuity**: a file appears only from a pinned attempt of a job that is
  moving (or rolling back: a driver that slept may still move, and is taken out).
- **undoable**: nothing that was visible is overwritten or deleted before the commit point of the job that replaces
  it; a file is set aside only once the list that says so is written and named by the record.
- **contained**: nobody touches another job's directory, nor anything out of its policy's scope.
- **complete**: at the commit point every file of every pinned attempt is in place, and nothing that is replaced is;
  `_SUCCESS` lists exactly them; whenever `_SUCCESS` is there, so are the files that it lists.
- **fenced**: one commit point a job.
- and gc never touches a job that may be alive.
- **bounded**: manifests are read a window at a time.

What they do not check: times, counters, and what is logged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from lockgate.model.layout import is_reserved
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.summary import Summary, decode_file_list, decode_summary

from simworld.disk import Disk, Stored

MOMENT = 60.0
"""Seconds: what happens within them may go unseen by somebody who looks at one thing after the other."""

_record = msgspec.json.Decoder(CommitRecord).decode
_set_aside = msgspec.json.Decoder(list[tuple[str, int, str]]).decode


class Written(NamedTuple):
    """The label of a task attempt's file."""

    run: str
    attempt: str
    target: str


class Before(NamedTuple):
    """The label of a file that was there before the history began."""

    path: str


class ManifestTruth(NamedTuple):
    """Which attempt of which run wrote a manifest, and what it really wrote: target to content."""

    run: str
    task: int
    attempt: str
    files: dict[str, bytes]


class Violation(NamedTuple):
    """A guarantee that did not hold."""

    guarantee: str
    what: str

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.what}"


@dataclass
class JobTruth:
    """What the disk says of one job directory."""

    directory: str
    sequence: int = -1
    record: CommitRecord | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    pinned: bool = False
    set_aside: dict[str, str] = field(default_factory=dict)
    committed: bool = False
    over: bool = False
    blocks: bool = True
    """Whether a file can stand where a directory must be, on this store."""

    @property
    def phase(self) -> Phase | None:
        """The newest phase."""
        return None if self.record is None else self.record.phase

    def moves_in_order(self, order: str) -> bool:
        """Whether it is moving, and is to keep this order."""
        record = self.record
        return record is not None and record.phase is Phase.MOVING and record.options.get("replace_order") == order

    def replaces(self, path: str) -> bool:
        """Whether its policy allows it to set this visible file aside."""
        record = self.record
        if record is None:
            return False
        if path == "_SUCCESS" or (self.blocks and any(target.startswith(path + "/") for target in self.files)):
            return True
        if record.policy == "replace":
            return True
        if record.policy == "replace-partitions":
            leaf = path.rpartition("/")[0]
            return any(target.rpartition("/")[0] == leaf for target in self.files)
        if record.policy == "append" and record.options.get("delete_target_files") == "True":
            return path in self.files
        return False


class Judges:
    """Observes one history. `violations` is empty as long as every guarantee holds."""

    def __init__(self) -> None:
        self.disk: Disk = None  # type: ignore[assignment]  # set right after: each holds the other
        self.violations: list[Violation] = []
        self.stop: Callable[[], None] = _carry_on
        self.jobs: dict[str, JobTruth] = {}
        self.ended: list[JobTruth] = []
        """Jobs whose id, and so whose directory, another has now."""
        self.manifests: dict[str, ManifestTruth] = {}
        self.attempts: dict[str, tuple[str, int, str, dict[str, bytes]]] = {}
        """What each task attempt's actor writes: run, task, attempt id, target to content."""
        self.offered: dict[str, list[frozenset[tuple[str, str]] | None]] = {}
        """For each job id, the receipts that a driver committed with (attempt and digest); None: those found."""
        self.reported: dict[str, dict[int, str]] = {}
        """For each run, the tasks whose commit had been reported before a driver without receipts began."""
        self.allowed: dict[str, set[str]] = {}
        """Which job ids each actor has to do with; an actor that is not here, with all."""
        self.collectors: dict[str, tuple[float, dict[str, float]]] = {}
        """The actors that are gc: for how many seconds each must take a job that was touched for alive, and when each
        job had been touched when it began."""
        self.touched: dict[str, list[float]] = {}
        """When a job's directory was touched by anybody but gc: the last time, and that before a pause of `MOMENT`."""
        self.committers: dict[str, str] = {}
        """Which actor passed the commit point of a job id."""
        self.same_txn: dict[str, str] = {}
        self.visible: dict[str, Stored] = {}
        self.expected: dict[str, bytes] = {}
        self.marked: dict[str, bytes] | None = None
        """The files that the `_SUCCESS` in place stands for; None: there is none."""
        self.expected_mark = ""
        self.mark_holds = True
        self.job_of_mark = ""
        self.changes = 0

    def begin(self, disk: Disk, files: dict[str, Stored], mark: bytes | None) -> None:
        """The destination before the history."""
        self.disk = disk
        self.visible = dict(files)
        self.expected = {path: stored.content for path, stored in files.items()}
        if mark is not None:
            self.marked = dict(self.expected)
            self.expected_mark = self.job_of_mark = "before"

    def begin_gc(self, actor: str, alive_seconds: float) -> None:
        """From now on, this actor is gc."""
        began = self.disk.clock()
        touched = {}
        for directory, (last, before) in self.touched.items():
            # A job that wakes from a long sleep at the very moment at which gc looks may be taken for dead.
            touched[directory] = before if began - last < MOMENT else last
        self.collectors[actor] = (alive_seconds, touched)

    def accuse(self, guarantee: str, what: str) -> None:
        """A guarantee is broken."""
        self.violations.append(Violation(guarantee, what))
        self.stop()

    def truth(self, path: str) -> JobTruth | None:
        """The job in whose directory a path lies."""
        parts = path.split("/", 3)
        if len(parts) < 4 or parts[0] != "_temporary":
            return None
        directory = parts[1]
        found = self.jobs.get(directory)
        if found is None:
            found = self.jobs[directory] = JobTruth(directory, blocks=self.disk.real_directories)
        return found

    # What the disk tells.

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        self.changes += 1
        top = path.split("/", 1)[0]
        if top == "_temporary":
            job = self.truth(path)
            self._within(actor, path)
            name = path.rpartition("/")[2]
            if job is None:
                return
            if name.startswith("commit") and name.endswith(".json"):
                self._saw_record(actor, job, new.content)
            elif name == "job.json" and job.over:
                # The id is used again, after its first job was over: another job.
                self.ended.append(job)
                self.jobs[job.directory] = JobTruth(job.directory, blocks=job.blocks)
            elif "-manifest.json" in name and actor in self.attempts:
                run, task, attempt, files = self.attempts[actor]
                self.manifests.setdefault(digest_of(new.content), ManifestTruth(run, task, attempt, files))
        elif top == "_SUCCESS":
            self.accuse("complete", f"_SUCCESS was written in place by {actor}, not renamed")
        elif top != "_lockgate":
            self.accuse("abortable", f"{path} was written in place by {actor}")

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        self.changes += 1
        from_here, to_here = not source.startswith("_temporary/"), not target.startswith("_temporary/")
        if not from_here:
            self._within(actor, source)
        if not to_here:
            self._within(actor, target)
        if not from_here and not to_here:
            return
        if source == "_SUCCESS":
            self._mark_goes(actor, target)
        elif from_here and not is_reserved(source):
            self._goes_aside(actor, source, target, moved)
        if target == "_SUCCESS":
            self._mark_comes(actor, source, moved)
        elif to_here and not is_reserved(target):
            self._appears(actor, source, target, moved, old)

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None:
        self.changes += 1
        if path.startswith("_temporary/"):
            job = self.truth(path)
            self._within(actor, path)
            superseded = path.endswith("/_SUCCESS.returning") and self.marked is not None
            if job is not None and _is_set_aside(path) and not job.committed and not superseded:
                self.accuse("undoable", f"{actor} deleted {path}, set aside by a job that is not committed")
        elif path == "_SUCCESS":
            self.accuse("undoable", f"{actor} deleted _SUCCESS")
        elif not is_reserved(path):
            # Nobody deletes by name what a reader can see: between a look and the deletion it may become another's.
            self.visible.pop(path, None)
            self.accuse("undoable", f"{actor} deleted {path}: {gone.label}")

    def _within(self, actor: str, path: str) -> None:
        directory = path.split("/", 2)[1]
        if actor in self.collectors:
            job = self.jobs.get(directory)
            alive, touched = self.collectors[actor]
            idle = self.disk.clock() - touched.get(directory, 0.0)
            if idle < alive and not (job is not None and job.over):
                self.accuse("contained", f"gc touched {path} of a job that was at work {idle:.0f} s ago")
            return
        now = self.disk.clock()
        times = self.touched.setdefault(directory, [now, 0.0])
        if now - times[0] > MOMENT:
            times[1] = times[0]
        times[0] = now
        allowed = self.allowed.get(actor)
        if allowed is not None and directory not in allowed:
            self.accuse("contained", f"{actor} touched {path}, of another job")

    def _saw_record(self, actor: str, job: JobTruth, content: bytes) -> None:
        record = _record(content)
        if record.sequence <= job.sequence:
            return
        job.sequence, job.record = record.sequence, record
        if record.phase is Phase.MOVING and not job.pinned:
            self._pin(job, record)
        if record.phase is Phase.MOVING and record.set_aside_digest:
            self._read_set_aside(job, record)
        if record.phase is Phase.COMMITTED:
            if not record.marks_success and not job.committed:
                self._commit_point(actor, job, None)
            elif not job.committed:
                self.accuse("complete", f"{actor} recorded {job.directory} as committed before its commit point")
        if record.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
            job.over = True

    def _pin(self, job: JobTruth, record: CommitRecord) -> None:
        job.pinned = True
        runs, tasks = set(), set()
        for pin in record.pins:
            manifest = self.manifests.get(pin.digest)
            if manifest is None:
                self.accuse("pinned", f"{job.directory} pins a manifest that no attempt wrote: {pin.task_attempt_id}")
                return
            if manifest.task in tasks:
                self.accuse("exclusive", f"{job.directory} pins two attempts of task {manifest.task}")
                return
            if manifest.files:
                # Manifests without files may be the same in two jobs of one id, byte for byte.
                runs.add(manifest.run)
            tasks.add(manifest.task)
            job.files.update(manifest.files)
        if len(runs) > 1:
            self.accuse("exclusive", f"{job.directory} pins attempts of several jobs: {sorted(runs)}")
        offered = self.offered.get(record.job_id, [])
        pins = frozenset((pin.task_attempt_id, pin.digest) for pin in record.pins)
        if None in offered:
            for run in runs or self.reported:
                missing = set(self.reported.get(run, ())) - tasks
                if missing and (runs or (f"manifest_{record.job_id}" == job.directory and len(self.reported) == 1)):
                    self.accuse("complete", f"{job.directory} leaves out committed tasks {sorted(missing)}")
        elif pins not in offered:
            self.accuse("pinned", f"{job.directory} pins {sorted(a for a, _ in pins)}, no driver's receipts")

    def _read_set_aside(self, job: JobTruth, record: CommitRecord) -> None:
        path = f"_temporary/{job.directory}/{record.job_attempt:02d}/set-aside-{record.set_aside_digest[:16]}.json"
        stored = self.disk.files.get(path)
        if stored is None or digest_of(stored.content) != record.set_aside_digest:
            self.accuse("undoable", f"{job.directory} moves before the list of what it sets aside is written")
            return
        job.set_aside = {aside[0]: aside[2] for aside in _set_aside(stored.content)}

    # What a reader sees.

    def _appears(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        if old is not None:
            self.accuse("undoable", f"{actor} overwrote {target}")
            return
        self.visible[target] = moved
        job = self.truth(source)
        if job is None:
            self.accuse("contained", f"{actor} renamed {source} to {target}")
            return
        if "/replaced/" in source:
            if job.phase is not Phase.ROLLING_BACK:
                self.accuse("undoable", f"{actor} brought {target} back in phase {job.phase}")
            return
        label = moved.label
        if job.over:
            self.accuse("continuity", f"{actor} added {target} after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK, Phase.PUBLISHING):
            self.accuse("abortable", f"{actor} made {target} visible in phase {job.phase}")
        elif job.files.get(target) != moved.content:
            self.accuse("exclusive", f"{target} became visible with the content of {label}, not of a pinned attempt")
        elif job.moves_in_order("old-first"):
            both = [path for path in job.set_aside if self._is_old(path, job)]
            if both:
                self.accuse("old-first", f"{target} is seen together with {both[0]}, which it replaces")

    def _is_old(self, path: str, job: JobTruth) -> bool:
        found = self.visible.get(path)
        return found is not None and found.content != job.files.get(path)

    def _goes_aside(self, actor: str, source: str, target: str, moved: Stored) -> None:
        self.visible.pop(source, None)
        job = self.truth(target)
        if job is not None and "/withdrawn/" in target:
            if job.phase is not Phase.ROLLING_BACK or moved.content != job.files.get(source):
                self.accuse("undoable", f"{actor} took out {source}, which is not its own: {moved.label}")
            self._check_mark(f"{actor} took out {source}")
            return
        if job is None or "/replaced/" not in target:
            self.accuse("contained", f"{actor} renamed {source} to {target}")
            return
        if job.over:
            self.accuse("continuity", f"{actor} set {source} aside after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK):
            self.accuse("undoable", f"{actor} set {source} aside in phase {job.phase}")
        elif source not in job.set_aside:
            self.accuse("undoable", f"{actor} set {source} aside, which no recorded list names")
        elif not job.replaces(source):
            self.accuse(
                "contained", f"{actor} set {source} aside, out of the scope of {job.record and job.record.policy}"
            )
        elif job.moves_in_order("new-first"):
            needed = {path for path in job.files if path not in job.set_aside}
            blocking = any(path == source or path.startswith(source + "/") for path in job.files)
            absent = [path for path in needed if path not in self.visible]
            if absent and not blocking:
                self.accuse("new-first", f"{source} is gone before {absent[0]}, which replaces it, is there")
        self._check_mark(f"{actor} set {source} aside")

    def _check_mark(self, because: str) -> None:
        if self.marked is None or not self.mark_holds:
            return
        for path, content in self.marked.items():
            found = self.visible.get(path)
            if found is None or found.content != content:
                self.accuse("complete", f"_SUCCESS of {self.job_of_mark} is there, and {path} is not: {because}")
                return

    def _mark_goes(self, actor: str, target: str) -> None:
        job = self.truth(target)
        self.marked = None
        if job is None or "/replaced/" not in target:
            self.accuse("contained", f"{actor} renamed _SUCCESS to {target}")
        elif job.over:
            self.accuse("continuity", f"{actor} set _SUCCESS aside after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK) or "_SUCCESS" not in job.set_aside:
            self.accuse("undoable", f"{actor} set _SUCCESS aside in phase {job.phase}")

    def _mark_comes(self, actor: str, source: str, moved: Stored) -> None:
        job = self.truth(source)
        summary = decode_summary(moved.content, name=source)
        self.job_of_mark = summary.job_id
        listed = self._listed(summary)
        if job is not None and _is_set_aside(source):
            if job.phase is not Phase.ROLLING_BACK:
                self.accuse("undoable", f"{actor} brought _SUCCESS back in phase {job.phase}")
            self.marked = listed
            # Another job that is half way planned without it: until its own comes, this one may be over its data.
            self.mark_holds = all(other.over or other is job or not other.pinned for other in self.jobs.values())
            self._check_mark(f"{actor} brought _SUCCESS back")
            return
        if job is None or job.phase is not Phase.PUBLISHING:
            self.accuse("complete", f"{actor} published _SUCCESS in phase {job and job.phase}")
            return
        if job.committed:
            self.accuse("fenced", f"{actor} published {job.directory} for a second time")
        if listed != job.files:
            self.accuse(
                "complete",
                f"_SUCCESS of {job.directory} lists {sorted(listed)}, committed were {sorted(job.files)}",
            )
        self.marked = dict(job.files)
        self.mark_holds = True
        self._commit_point(actor, job, summary)

    def _listed(self, summary: Summary) -> dict[str, bytes]:
        """What a summary lists: each file's content where it is in place with the length and identity it states."""
        ours = summary.lockgate
        if ours is None:
            return {}
        files = ours.files.inline
        if ours.files.companion:
            stored = self.disk.files.get(ours.files.companion)
            if stored is None:
                self.accuse("complete", f"{ours.files.companion} is missing")
                return {}
            files = list(decode_file_list(stored.content, ours.files, name="companion"))
        found = {}
        for file in files:
            visible = self.visible.get(file.path)
            if visible is None:
                found[file.path] = b"nothing"
            elif (
                len(visible.content) != file.length
                or visible.identity.partition("#")[0] != file.identity.partition("#")[0]
            ):
                found[file.path] = b"another identity"
            else:
                found[file.path] = visible.content
        if len(files) != ours.files.count:
            self.accuse("complete", f"the summary counts {ours.files.count} files and lists {len(files)}")
        return found

    def _commit_point(self, actor: str, job: JobTruth, summary: Summary | None) -> None:
        job.committed = True
        record = job.record
        assert record is not None
        self.committers[record.job_id] = actor
        if record.txn_id:
            other = self.same_txn.setdefault(record.txn_id, record.job_id)
            if other != record.job_id:
                self.accuse("exactly once", f"{other} and {record.job_id} committed the transaction {record.txn_id}")
        if summary is not None:
            self.expected_mark = record.job_id
        else:
            self.expected_mark = self.job_of_mark if self.marked is not None else ""
        replaced = [path for path in self.expected if path not in job.files and job.replaces(path)]
        replaced += [path for path in self.expected if path in job.files]
        for path in replaced:
            if path in job.files and not job.replaces(path):
                self.accuse("concurrent", f"{job.directory} committed {path}, which was there")
            self.expected.pop(path, None)
        self.expected.update(job.files)
        for path, content in job.files.items():
            found = self.visible.get(path)
            if found is None or found.content != content:
                self.accuse("complete", f"{job.directory} is committed and {path} is {found and found.label}")
                return
        for path in replaced:
            if path not in job.files and path in self.visible:
                self.accuse("complete", f"{job.directory} is committed and {path}, which it replaces, is still there")
                return

    # At the end.

    def judge_end(self, *, settled: bool) -> None:
        """Nothing is at work any more: the destination is the serial result of the committed jobs, byte for byte."""
        seen = {path: stored.content for path, stored in self.disk.files.items() if not is_reserved(path)}
        for path in sorted(seen.keys() | self.expected.keys()):
            if seen.get(path) != self.expected.get(path):
                guarantee = "complete" if path in self.expected else "exclusive"
                self.accuse(
                    guarantee,
                    f"in the end {path} is {_short(seen.get(path))}, and should be {_short(self.expected.get(path))}",
                )
                return
        mark = self.disk.files.get("_SUCCESS")
        found = decode_summary(mark.content, name="_SUCCESS").job_id if mark is not None else ""
        # Where jobs on disjoint partitions meet, one that is undone may bring back a `_SUCCESS` that is too old: of
        # three jobs, or if another has committed without leaving one.
        marks = all(job.record is None or job.record.marks_success for job in self.jobs.values())
        certain = len(self.jobs) < 2 or (len(self.jobs) == 2 and marks)
        if found != self.expected_mark and certain:
            self.accuse("complete", f"in the end _SUCCESS is of {found!r}, and should be of {self.expected_mark!r}")
        if settled:
            left = self.disk.below("_temporary")
            if left or "_temporary" in self.disk.directories:
                self.accuse("resumable", f"after recovery there is left: {left[:3] or '_temporary'}")


def _carry_on() -> None:
    """Judge on."""


def _is_set_aside(path: str) -> bool:
    return "/replaced/" in path or path.endswith("/_SUCCESS.returning")


def _short(content: bytes | None) -> str:
    return "absent" if content is None else repr(content.decode(errors="replace"))[:60]

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

Where people change files by other programs: what a person wrote is never deleted or overwritten, unless a policy
replaces it that has seen that very version; nobody commits over a file of the job after seeing that it is changed or
gone, and with `validate_output` somebody looks; and who is told that a job is undone is told which of its files stay,
being changed.

What a protocol does not promise, by its `Attributes`, is not asked of its jobs. Where committed work is visible before
its job commits, a task attempt may show its own files, once it has saved which; they may be taken out again until they
are pinned; and where a partition is not held through, an attempt that has looked at its job before that was claimed may
leave files that nobody takes out.

What they do not check: times, counters, and what is logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from lockgate.engine.record.marker import JobMarker
from lockgate.engine.run.protocol import Attributes, Protocol
from lockgate.model.layout import (
    BOOKKEEPING,
    ENDED_SUFFIX,
    FILE_LISTS,
    JOBS,
    REPLACED,
    TEMPORARY,
    JobLayout,
    TaskAttempt,
    in_whole_directory,
    is_kept_uploads,
    is_reserved,
    let_go_nonce,
    ordinal_in,
    record_sequence,
    replaced_nonce,
    transaction_outcome,
)
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, Predecessor, digest_of
from lockgate.model.replaced import decode_replaced
from lockgate.model.summary import Summary, decode_file_list, decode_summary

from simworld.disk import Disk, Pending, Stored, is_no_text

MOMENT = 60.0
"""Seconds: what happens within them may go unseen by somebody who looks at one thing after the other."""

OF_UNDOING = frozenset({"complete", "undoable", "told right"})
"""What does not hold for a job that was undone after its commit point, since nothing said any more that it was past."""

IS_MADE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A job id that was made, and not given."""

_record = msgspec.json.Decoder(CommitRecord).decode


class Written(NamedTuple):
    """The label of a task attempt's file."""

    run: str
    attempt: str
    target: str


class Before(NamedTuple):
    """The label of a file that was there before the history began."""

    path: str


class Strange(NamedTuple):
    """The label of a file that another committer, which knows nothing of Lockgate, has written."""

    actor: str
    path: str


class Edited(NamedTuple):
    """The label of a file that a person has put where another had been; `of` is the label of that, or of what that was
    made of."""

    actor: str
    path: str
    of: object
    keeps_mark: bool


def root_of(label: object) -> object:
    """The label of what a file was before people changed it."""
    return label.of if isinstance(label, Edited) else label


class Touch(NamedTuple):
    """What a person has done to a path, last of all: what is there since (None: nothing), the label of what that was
    before people came, and after how many changes."""

    stored: Stored | None
    of: object
    at: int


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
    owners: dict[str, Written] = field(default_factory=dict)
    """Whose file is to be at each target: bytes may be equal, this is not."""
    runs: set[str] = field(default_factory=set)
    """The runs whose attempts it has pinned."""
    pinned: bool = False
    set_aside: dict[str, str] = field(default_factory=dict)
    beneath: dict[str, str] = field(default_factory=dict)
    """The identities of those of `set_aside` in whose place files of the same names come, and which stay beneath."""
    directories: tuple[str, ...] = ()
    """Those that it sets aside whole."""
    holders: set[str] = field(default_factory=set)
    """The actors that have held its record."""
    set_up_after: int = 0
    """After how many changes it was set up first."""
    claimed_at: float = 0.0
    """When somebody took it: a commit that was refused has let go of it."""
    committed: bool = False
    committed_at: float = 0.0
    over: bool = False
    robbed: bool = False
    """Whether another committer has deleted something of its directory, but for its marker."""
    unmarked: bool = False
    """Whether it has deleted that."""
    has_set_aside: bool = False
    """Whether it has begun to set aside what it replaces: with `new-first` its own files come before that."""
    blocks: bool = True
    """Whether a file can stand where a directory must be, on this store."""
    protocol: Protocol | None = None
    """Its commit protocol, once its record says it."""

    undone_since: int = 0
    """After how many changes its record said that it is being undone; 0: it does not."""

    @property
    def replaces_afterwards(self) -> bool:
        """Whether its record is its commit point, `_SUCCESS` or not, and what it replaces goes after that."""
        return self.protocol is not None and not self.protocol.commits_by_success

    @property
    def commits_by_success(self) -> bool:
        """Whether it is committed by its `_SUCCESS`."""
        return self.record is not None and self.record.marks_success and not self.replaces_afterwards

    @property
    def phase(self) -> Phase | None:
        """The newest phase."""
        return None if self.record is None else self.record.phase

    def owns(self, path: str, stored: Stored | None) -> bool:
        """Whether what is at a path is this job's own file of that target."""
        return stored is not None and stored.label is not None and stored.label == self.owners.get(path)

    def moves_in_order(self, order: str) -> bool:
        """Whether it is moving, and is to keep this order."""
        record = self.record
        if record is None or self.replaces_afterwards:
            return False
        return record.phase is Phase.MOVING and record.options.get("replace_order") == order

    @property
    def left_no_trace(self) -> bool:
        """Whether nothing waits, now that its record is lost, that would say that it had begun: it replaces nothing, or
        was to set it aside when all its own files would be in place."""
        if not self.robbed or self.has_set_aside:
            return False
        late = self.record is not None and self.record.options.get("replace_order") == "new-first"
        return late or not self.set_aside

    def replaces(self, path: str) -> bool:
        """Whether its policy allows it to set this visible file aside."""
        record = self.record
        if record is None:
            return False
        if path == "_SUCCESS" or record.policy == "replace":
            return True
        if record.policy == "replace-partitions":
            if self.blocks and any(target.startswith(path + "/") for target in self.files):
                return True
            leaf = path.rpartition("/")[0]
            return any(target.rpartition("/")[0] == leaf for target in self.files)
        if record.policy == "append" and record.options.get("delete_target_files") == "True":
            return path in self.files
        return False


def _follows(record: CommitRecord, before: CommitRecord | None) -> bool:
    """Whether a version follows this one, as it must; None: it must be the first."""
    return record.follows == (before and Predecessor(before.sequence, before.holder.nonce))


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
        self.lists_uploads = True
        """Whether the store shows uploads that no manifest names."""
        self.names_tell = True
        """Whether the names of most uploads say whose they are. Where they do not, those that a late attempt has left
        stay until gc finds them old, and what is pending in the end is not judged."""
        self.protocols: Mapping[str, Protocol] = {}
        """What a record's name of a protocol stands for."""
        self.promises: Mapping[str, Attributes] = {}
        """What each job's protocol promises, by the job's id."""
        self.looked_at_record: Callable[[str, str], float] = _at_no_time
        """When an actor has looked last at the record of a job of that id."""
        self.strays: dict[str, Written] = {}
        """What attempts that were cut off have left, of protocols that do not hold through that."""
        self.id_of_run: dict[str, str] = {}
        self.doomed: dict[str, tuple[Stored, set[str]]] = {}
        """What committed jobs are to delete yet, and which: of protocols that replace after their commit point."""
        self.saved: dict[str, frozenset[Written]] = {}
        """The manifests that are there, and whose files each names, so that others know of their uploads."""
        self.saved_until: dict[Written, int] = {}
        """After how many changes a file was named no longer by one of the manifests that named it."""
        self.said: set[Written] = set()
        """Files that attempts had saved that they would show, in manifests that another program has deleted since."""
        self.due: set[str] = set()
        """The tokens of the uploads that were pending, and known, when their job was committed, or began to be undone:
        that those do not stay which it did not commit is for those who end it."""
        self.job_of_run: dict[str, str] = {}
        """Which run began the job that a run is an attempt at: itself, mostly."""
        self.reported: dict[str, dict[int, str]] = {}
        """For each run, the tasks whose commit had been reported before a driver without receipts began."""
        self.allowed: dict[str, set[str]] = {}
        """Which job ids each actor has to do with; an actor that is not here, with all."""
        self.collectors: dict[str, tuple[float, dict[str, float]]] = {}
        """The actors that are gc: for how many seconds each must take a job that was touched for alive, and when each
        job had been touched when it began."""
        self.collects_at_once = False
        """Whether an operator has called gc who says that nobody is at work."""
        self.touched: dict[str, list[float]] = {}
        """When a job's directory was touched by anybody but gc: the last time, and that before a pause of `MOMENT`."""
        self.committers: dict[str, str] = {}
        """Which actor passed the commit point of a job id."""
        self.same_txn: dict[str, str] = {}
        self.strangers: set[str] = set()
        """The actors that are other committers."""
        self.temporary_deleted = 0
        """How often these have deleted `_temporary`."""
        self.deleting_temporary = 0
        """How many of them are about it."""
        self.people: set[str] = set()
        """The actors that are people, who change files by other programs."""
        self.by_people: dict[str, Touch] = {}
        """Where a person was the last to change what a reader sees."""
        self.ever_touched: set[str] = set()
        """And where people have ever changed it: `_SUCCESS` does not stand for that any more."""
        self.taken: dict[str, str] = {}
        """Where what a person wrote was moved to by an undoing, to where it was: it must come back."""
        self.moved_along: dict[str, tuple[str, JobTruth]] = {}
        """What was set aside with its directory, and nobody had seen: where it is, to where it was and by which job. It
        must come back before that commits."""
        self.made_inside: dict[str, tuple[str, int]] = {}
        """What a person has made in a directory that was set aside, having it open: where it is, to the place of all of
        them, and after how many changes. Nobody who looks there after that may delete it."""
        self.looks: dict[tuple[str, str], int] = {}
        """After how many changes an actor looked at a path last."""
        self.appeared: dict[str, int] = {}
        """After how many changes a job's file appeared at a path last."""
        self.happened: Callable[[str, str], None] = _nothing_happens
        """Told of each new phase of a job, and, as `appears`, of each of its files that a reader can see."""
        self.unforced: dict[str, str] = {}
        """The recoverers that must not take the job that they come for from a driver that is at work. (Another of its
        transaction id they may end: its driver finds out, and returns the same summary.)"""
        self.is_at_work: Callable[[str], bool] = _nobody
        """Whether an actor lives, and has never been silent, and works at a commit or a recovery."""
        self.is_alive: Callable[[str], bool] = _nobody
        """The same, whatever it works at."""
        self.asides: dict[str, tuple[str, JobTruth]] = {}
        """What is set aside now: where it waits, to where it was and which job replaces it."""
        self.came_back_late: set[str] = set()
        """What was brought back of a job whose record was lost: another may have replaced its partition meanwhile."""
        self.copies: dict[str, str] = {}
        """Where a rename is two acts: what a reader still sees, to where its copy waits."""
        self.visible: dict[str, Stored] = {}
        self.expected: dict[str, bytes] = {}
        self.at_first: dict[str, bytes] = {}
        """What was there before any job."""
        self.marked: dict[str, bytes] | None = None
        """The files that the `_SUCCESS` in place stands for; None: there is none."""
        self.expected_mark = ""
        self.mark_holds = True
        self.job_of_mark = ""
        self.marked_before = ""
        """Whose `_SUCCESS` it was that the one in place has replaced."""
        self.changes = 0
        self.nobody_knows = False
        """Whether nothing says any more that a job is committed, whose driver died before it could note it, and lists
        of what it has replaced are left. Who is told to undo it does; what this does to the data is not judged."""

    def begin(self, disk: Disk, files: dict[str, Stored], mark: bytes | None) -> None:
        """The destination before the history."""
        self.disk = disk
        self.visible = dict(files)
        self.expected = {path: stored.content for path, stored in files.items()}
        self.at_first = dict(self.expected)
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
        if self.nobody_knows and guarantee in OF_UNDOING:
            return
        self.violations.append(Violation(guarantee, what))
        self.stop()

    def _lose_what_is_known(self) -> None:
        """Another committer has deleted something, or has written its `_SUCCESS`."""
        for path, job in self.asides.values():
            gone = job.committed and job.robbed and path != "_SUCCESS" and not self.has_record(job)
            said = JobLayout(job.directory).ended in self.disk.files or (
                self.marked is not None and self.job_of_mark == job.directory
            )
            self.nobody_knows |= gone and not said

    def truth(self, path: str) -> JobTruth | None:
        """The job in whose directory a path lies."""
        directory = directory_of(path)
        if directory is None:
            return None
        found = self.jobs.get(directory)
        if found is None:
            found = self.jobs[directory] = JobTruth(directory, blocks=self.disk.real_directories)
        return found

    def was_committed(self, job_id: str) -> bool:
        """Whether a job of this id has passed its commit point."""
        directory = job_id
        known = [*self.ended, *self.jobs.values()]
        return any(job.committed for job in known if job.directory == directory)

    def _note_comes(self, actor: str, path: str) -> None:
        """A note says that a job has committed, for ever: by it others are refused, and what waits is let go of."""
        if path.startswith(f"{FILE_LISTS}/_") and path.endswith(ENDED_SUFFIX):
            job_id = path.removeprefix(f"{FILE_LISTS}/_").removesuffix(ENDED_SUFFIX)
            known = [job for job in (*self.ended, *self.jobs.values()) if job.directory == job_id]
            # Of a job whose record is lost a person may say that it has committed.
            if known and not any(job.committed or job.robbed for job in known):
                self.accuse("told right", f"{actor} noted that {job_id} had committed, which has not")

    # What the disk tells.

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        self.changes += 1
        if actor in self.people and is_internal(path):
            self.made_inside[path] = (path.partition("-whole/")[0] + "-whole", self.changes)
            return
        if actor in self.people:
            self._person_changes(path, new, old)
            return
        top = path.split("/", 1)[0]
        if actor in self.strangers:
            if path == "_SUCCESS":
                # Another committer's: it lists nothing.
                self.marked, self.expected_mark, self.job_of_mark = {}, "", ""
                self._lose_what_is_known()
            return
        if path.startswith(f"{JOBS}/"):
            job = self.truth(path)
            self._within(actor, path)
            name = path.rpartition("/")[2]
            if job is None:
                return
            if name == "commit.json" and job.robbed and job.record is not None:
                # Somebody has deleted the record: who comes now begins anew.
                self.ended.append(job)
                job = self.jobs[job.directory] = JobTruth(job.directory, blocks=job.blocks, robbed=True)
            if name.startswith("commit") and name.endswith(".json"):
                self._saw_record(actor, job, new.content)
            elif name == "job.json" and job.over and not (self.has_record(job) and self._has_predecessor(job)):
                # The id is used again, after its first job was over: another job.
                self.ended.append(job)
                self.jobs[job.directory] = JobTruth(job.directory, blocks=job.blocks)
                job = self.jobs[job.directory]
                self._find_record(job)
            elif "-manifest.json" in name and actor in self.attempts:
                run, task, attempt, files = self.attempts[actor]
                # An attempt also saves a rival's manifest again, at that one's own path: whoever saved it first has it.
                own = ManifestTruth(run, task, attempt, files)
                truth = self.manifests.setdefault(digest_of(new.content), own)
                self._saved(path, frozenset(Written(truth.run, truth.attempt, target) for target in truth.files))
            if name == "job.json" and old is None:
                job.set_up_after = job.set_up_after or self.changes
        elif top in (TEMPORARY, BOOKKEEPING):
            self._within(actor, path)
            self._note_comes(actor, path)
        elif top == "_SUCCESS":
            self._mark_written(actor, new)
        else:
            self.accuse("abortable", f"{path} was written in place by {actor}")

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        self.changes += 1
        from_here, to_here = not is_internal(source), not is_internal(target)
        if actor in self.people:
            self._person_moves_away(source, target, moved)
            return
        if actor in self.strangers:
            self._strange_move(actor, source, target, moved, old)
            return
        if not from_here:
            self._within(actor, source)
        if not to_here:
            self._within(actor, target)
        if not from_here and not to_here:
            if source.endswith("/job.json") and actor in self.unforced:
                self._ends_unforced(actor, source, moved)
            self._note_comes(actor, target)
            waiting = self.asides.pop(source, None)
            if waiting is not None:
                self.asides[target] = waiting
            if source in self.taken:
                self.taken[target] = self.taken.pop(source)
            if source in self.made_inside:
                self.made_inside[target] = self.made_inside.pop(source)
            if source in self.moved_along:
                self.moved_along[target] = self.moved_along.pop(source)
            return
        if source == "_SUCCESS":
            self._mark_goes(actor, target)
        elif from_here and not is_reserved(source):
            self._goes_aside(actor, source, target, moved)
        if target == "_SUCCESS":
            self._mark_comes(actor, source, moved)
        elif to_here and not is_reserved(target):
            self._appears(actor, source, target, moved, old)

    def saw_copy(self, actor: str, source: str, target: str, copied: Stored, old: Stored | None) -> None:
        self.changes += 1
        from_here, to_here = not is_internal(source), not is_internal(target)
        for internal in [*([] if from_here else [source]), *([] if to_here else [target])]:
            self._within(actor, internal)
        if from_here:
            self.copies[source] = target
        elif not to_here:
            if source in self.asides:
                self.asides[target] = self.asides[source]
        elif target == "_SUCCESS":
            self._mark_comes(actor, source, copied)
        else:
            self._appears(actor, source, target, copied, old)

    def saw_completion(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        self.changes += 1
        job = self._job_of(new)
        if old is not None and (job is None or job.beneath.get(path) != old.identity):
            self.accuse("undoable", f"{actor} overwrote {path}")
            return
        self.visible[path] = new
        self.by_people.pop(path, None)
        if job is None:
            self.accuse("abortable", f"{actor} made {path} visible, of a job that has not begun: {new.label}")
        else:
            self._shows(actor, job, path, new)

    def saw_version_removal(self, actor: str, path: str, gone: Stored, *, was_seen: bool) -> None:
        self.changes += 1
        if was_seen:
            self.visible.pop(path, None)
            if path in self.disk.files:
                self.visible[path] = self.disk.files[path]
        if not self._may_delete(actor, path, gone):
            self.accuse("undoable", f"{actor} deleted a version of {path}: {gone.label}")
        self._check_mark(f"{actor} deleted a version of {path}")

    def saw_given_up(self, actor: str, upload: Pending) -> None:
        self.changes += 1
        label = upload.stored.label
        if not isinstance(label, Written):
            return
        job_id = self.id_of_run[label.run]
        self._within(actor, f"{JobLayout(job_id).job_directory}/{upload.path}")
        job = self.jobs.get(job_id)
        counts = job is not None and job.owners.get(upload.path) == label
        if job is not None and counts and job.phase in (Phase.MOVING, Phase.PUBLISHING):
            self.accuse("complete", f"{actor} gave up {upload.path} of {job_id}, which is committing it")

    def saw_dropped(self, actor: str, upload: Pending, by: Pending) -> None:
        self.changes += 1
        whose, theirs = upload.stored.label, by.stored.label
        if isinstance(whose, Written) and isinstance(theirs, Written):
            self.accuse(
                "contained",
                f"{actor} ended the upload of {upload.path} of {whose.attempt} of {whose.run} with that of "
                f"{theirs.attempt} of {theirs.run}",
            )

    def _job_of(self, stored: Stored) -> JobTruth | None:
        """The job whose task attempt wrote a file, or another of its id."""
        label = stored.label
        return self.jobs.get(self.id_of_run[label.run]) if isinstance(label, Written) else None

    def _may_delete(self, actor: str, path: str, gone: Stored) -> bool:
        """Whether what a reader could see was to go: a committed job has replaced it, or a job that is being undone had
        completed it. It is known by what it is, not by its name or content."""
        doomed = self.doomed.get(path)
        allowed = self.allowed.get(actor)
        if doomed is not None and doomed[0] is gone:
            del self.doomed[path]
            return allowed is None or bool(allowed & doomed[1])
        job = self._job_of(gone)
        if job is None or job.committed or not job.replaces_afterwards or not job.owns(path, gone):
            # Or somebody has deleted its record, and it is aborted.
            lost = [one for one in self.ended if one.robbed and not one.committed and one.owns(path, gone)]
            job = self.jobs.get(lost[0].directory) if lost else None
            return job is not None and job.phase is Phase.ROLLING_BACK and (allowed is None or job.directory in allowed)
        return job.phase is Phase.ROLLING_BACK and (allowed is None or job.directory in allowed)

    def _may_withdraw(self, actor: str) -> bool:
        """Whether somebody may delete `_SUCCESS`: on behalf of a committed job that replaces something."""
        allowed = self.allowed.get(actor)
        return any(
            job.committed and job.replaces_afterwards and job.set_aside
            for job in self.jobs.values()
            if allowed is None or job.directory in allowed
        )

    def _is_back(self, path: str, gone: Stored) -> bool:
        back = self.disk.files.get(path)
        return back is not None and back.serial == gone.serial

    def _gone_after_copy(self, actor: str, path: str, gone: Stored) -> bool:
        """Whether a removal is the second half of a rename, which is judged here."""
        copy = self.disk.files.get(self.copies.get(path, ""))
        if copy is None or copy.serial != gone.serial:
            return False
        target = self.copies.pop(path)
        if path == "_SUCCESS":
            self._mark_goes(actor, target)
        else:
            self._goes_aside(actor, path, target, gone)
        return True

    def _cleans_up_late(self, actor: str, job: JobTruth, path: str) -> bool:
        """Whether somebody, who slept while an earlier job of this id was ended, deletes the record of a later one."""
        ended = any(one.directory == job.directory and actor in one.holders for one in self.ended)
        return (
            ended and not job.over and actor not in job.holders and record_sequence(path.rpartition("/")[2]) is not None
        )

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None:
        self.changes += 1
        if actor in self.people:
            self._person_changes(path, None, gone)
            return
        if not is_internal(path) and self._gone_after_copy(actor, path, gone):
            return
        if is_internal(path):
            job = self.truth(path)
            self._within(actor, path)
            if path.endswith("/job.json") and actor in self.unforced and job is not None:
                # One that was renamed away, to be deleted, is judged when that is done.
                self._ends_unforced(actor, path, gone)
            named = self.saved.pop(path, frozenset())
            self.saved_until |= dict.fromkeys(named, self.changes)
            if actor in self.strangers:
                self.said |= named
            if job is not None and (actor in self.strangers or self._cleans_up_late(actor, job, path)):
                # Its marker is missed by its own driver and tasks alone: its record says what it is.
                is_marker = path.endswith("/job.json")
                job.unmarked, job.robbed = job.unmarked or is_marker, job.robbed or not is_marker
                self._lose_what_is_known()
            waiting = self.asides.pop(path, None)
            taken = self.taken.pop(path, "")
            made = self.made_inside.pop(path, None)
            if made is not None and self.looks.get((actor, made[0]), -1) < 0:
                self.accuse("undoable", f"{actor} deleted {path}, made there by somebody, and had not looked")
            elif made is not None and self.looks[actor, made[0]] >= made[1]:
                self.accuse("undoable", f"{actor} deleted {path}, made there by somebody before it looked")
            along = self.moved_along.pop(path, None)
            if along is not None:
                self.accuse("undoable", f"{actor} deleted {along[0]}, which was set aside with its directory, unseen")
            if taken and not self._is_back(taken, gone):
                self.accuse("undoable", f"{actor} deleted what a person wrote to {taken}, and an undoing has taken out")
            if waiting is not None and (waiting in self.asides.values() or self._is_back(waiting[0], gone)):
                return
            superseded = waiting is not None and waiting[0] == "_SUCCESS" and self.marked is not None
            if waiting is not None and not waiting[1].committed and not superseded:
                self.accuse("undoable", f"{actor} deleted {path}, set aside by a job that is not committed")
        elif path == "_SUCCESS":
            self.marked = None
            if not self._may_withdraw(actor):
                self.accuse("undoable", f"{actor} deleted _SUCCESS")
        elif not is_reserved(path):
            # Nobody deletes by name what a reader can see: between a look and the deletion it may become another's.
            self.visible.pop(path, None)
            if not self._may_delete(actor, path, gone):
                self.accuse("undoable", f"{actor} deleted {path}: {gone.label}")
            self._check_mark(f"{actor} deleted {path}")

    def _find_record(self, job: JobTruth) -> None:
        """What a late driver has begun where the job's directory had been, before the id was used again."""
        versions = [
            _record(stored.content)
            for path, stored in self.disk.files.items()
            if path.startswith(f"{JOBS}/{job.directory}/commit") and path.endswith(".json")
        ]
        for version in sorted(versions, key=lambda version: version.sequence):
            if _follows(version, job.record):
                job.sequence, job.record = version.sequence, version
        if job.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
            # Who deletes this record, and sets the job up again, begins another.
            job.over = True

    def was_claimed_and_lost_its_marker(self, job_id: str) -> bool:
        """Whether another committer has deleted the marker of a job whose driver had not come to look for that."""
        job = self.jobs.get(job_id)
        if job is None or job.record is None or job.phase is not Phase.CLAIMED:
            return False
        return JobLayout(job_id, job.record.job_attempt).job_marker not in self.disk.files

    def has_record(self, job: JobTruth) -> bool:
        """Whether the job's own newest version is there, and not one that a late driver has begun anew."""
        if job.record is None:
            return False
        stored = self.disk.files.get(JobLayout(job.record.job_id).commit_record(job.sequence))
        return stored is not None and _record(stored.content) == job.record

    def _is_cut_off(self, job: JobTruth) -> bool:
        """Whether nobody goes by the newest version any more: it is gone, or another stands where it says that the one
        before it is."""
        if not self.has_record(job) or job.record is None or job.record.follows is None:
            return not self.has_record(job)
        before = self._before(job.record)
        return before is not None and before.holder.nonce != job.record.follows.nonce

    def _has_predecessor(self, job: JobTruth) -> bool:
        """Whether the version before the newest is there: a cleanup deletes it first, and may have been cut short; and
        then a driver that slept may have begun another record in its place."""
        return job.record is None or self._is_preceded(job.record)

    def _came_after_its_commit(self, directory: str) -> bool:
        """Whether a delayed request has created what is there, once the job had committed and was cleaned up."""
        job = self.jobs.get(directory)
        is_late = job is None or job.record is None or not self._has_predecessor(job)
        return is_late and any(one.directory == directory and one.committed for one in self.ended)

    def _is_preceded(self, record: CommitRecord) -> bool:
        if record.follows is None:
            return True
        before = self._before(record)
        return before is not None and before.holder.nonce == record.follows.nonce

    def _before(self, record: CommitRecord) -> CommitRecord | None:
        """The version that stands where this one says that the one before it is."""
        if record.follows is None:
            return None
        stored = self.disk.files.get(JobLayout(record.job_id).commit_record(record.follows.sequence))
        return None if stored is None else _record(stored.content)

    def _within(self, actor: str, path: str) -> None:
        directory = directory_of(path)
        if directory is None or actor in self.strangers:
            return
        if actor in self.collectors:
            job = self.jobs.get(directory)
            alive, touched = self.collectors[actor]
            idle = self.disk.clock() - touched.get(directory, 0.0)
            # An abort that was cut short is ended at once where its driver is known to be dead.
            doomed = job is not None and job.phase is Phase.ROLLING_BACK and not job.pinned
            over = self._came_after_its_commit(directory) or (job is not None and (job.over or job.robbed))
            if idle < alive and not doomed and not over:
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
        before = job.record
        if not _follows(record, before) and not (job.robbed and self._is_cut_off(job)):
            # Of a driver that slept while the job was undone and run again, or its record lost and begun anew. Nobody
            # goes by it.
            return
        if record.phase is Phase.COMMITTED and job.robbed and not job.committed and not self._is_preceded(record):
            # Its driver slept while another committer deleted all that was before it: that it was published, or undone,
            # was to be read there. It is told that somebody else has ended the job, and nobody goes by it.
            return
        comes_for = self.unforced.get(actor) == job.directory
        if before is not None and comes_for and before.holder.nonce != record.holder.nonce:
            self._took_over(actor, job, before)
        job.sequence, job.record = record.sequence, record
        if before is None or before.phase is Phase.REFUSED:
            job.claimed_at = self.disk.clock()
        if record.phase is Phase.ROLLING_BACK and not job.undone_since:
            job.undone_since = self.changes
        self.happened(record.phase.value, "")
        job.protocol = self.protocols.get(record.options.get("protocol", ""))
        if record.phase in (Phase.COMMITTED, Phase.ROLLING_BACK):
            self._must_give_up(record.job_id)
        job.holders.add(actor)
        if record.phase is Phase.MOVING and not job.pinned:
            self._pin(job, record)
        if record.phase is Phase.MOVING and record.set_aside_digest:
            self._read_set_aside(job, record)
        if record.phase is Phase.COMMITTED:
            # Where another committer has deleted the waiting summary, the record alone can say it; the data is there.
            if not job.committed and (not job.commits_by_success or job.robbed):
                self._commit_point(actor, job, None)
            elif not job.committed:
                self.accuse("complete", f"{actor} recorded {job.directory} as committed before its commit point")
        if record.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
            job.over = True
        # One that came late, after it was deleted, makes those count that follow it and are there yet.
        after = self.disk.files.get(JobLayout(record.job_id).commit_record(record.sequence + 1))
        if after is not None:
            self._saw_record(actor, job, after.content)

    def _took_over(self, actor: str, job: JobTruth, before: CommitRecord) -> None:
        if before.holder.user == actor:
            return
        at_work = self.is_at_work(actor) and self.is_at_work(before.holder.user)
        if at_work and before.phase in (Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING):
            self.accuse("fenced", f"{actor} took {job.directory} from {before.holder.user}, which is at work")

    def _ends_unforced(self, actor: str, path: str, gone: Stored) -> None:
        """Somebody who has not said that a job is over deletes its marker."""
        job, marker = self.truth(path), msgspec.json.decode(gone.content, type=JobMarker)
        if job is not None and (job.over or job.robbed or (job.record and job.record.marker == marker.nonce)):
            return
        if self.is_at_work(actor) and self.is_alive(marker.user) and marker.user != actor:
            self.accuse("fenced", f"{actor} ended the job that {marker.user} has set up, which is at work")

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
            for target in manifest.files:
                job.owners[target] = Written(manifest.run, manifest.attempt, target)
        job.runs |= runs
        if len({self.job_of_run.get(run, run) for run in runs}) > 1:
            self.accuse("exclusive", f"{job.directory} pins attempts of several jobs: {sorted(runs)}")
        offered = self.offered.get(record.job_id, [])
        pins = frozenset((pin.task_attempt_id, pin.digest) for pin in record.pins)
        if None in offered:
            for run in runs or self.reported:
                missing = set(self.reported.get(run, ())) - tasks
                if missing and (runs or (record.job_id == job.directory and len(self.reported) == 1)):
                    self.accuse("complete", f"{job.directory} leaves out committed tasks {sorted(missing)}")
        elif None not in offered and pins not in offered:
            self.accuse("pinned", f"{job.directory} pins {sorted(a for a, _ in pins)}, no driver's receipts")

    def pinned_of(self, layout: JobLayout, marker: str, name: TaskAttempt) -> str:
        """The digest by which a job's record, as it is now, counts this task attempt; empty where it does not, or no
        commit of the job, as that marker names it, goes on, or somebody has deleted what the job keeps."""
        job = self.jobs.get(layout.job_id)
        if job is None or job.robbed or job.record is None or job.record.marker != marker:
            return ""
        if job.phase not in (Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING):
            return ""
        pins = [pin for pin in job.record.pins if pin.job_attempt == layout.job_attempt]
        return next((pin.digest for pin in pins if pin.task_attempt_id == name.task_attempt_id), "")

    def judge_pinned_is_there(self, actor: str, layout: JobLayout, digest: str) -> None:
        """A pinned manifest outlives whatever another run of its attempt saves."""
        saved = [self.disk.files[path].content for path in self.disk.below(layout.manifests)]
        if digest not in map(digest_of, saved):
            self.accuse("pinned", f"{actor} has written over a manifest that {layout.job_id} has pinned")

    def _read_set_aside(self, job: JobTruth, record: CommitRecord) -> None:
        path = JobLayout(record.job_id).replaced_list(record.set_aside_nonce)
        stored = self.disk.files.get(path)
        if stored is None and job.robbed:
            # A driver that slept finds, after this version, that those before it are gone: it may set nothing aside.
            job.set_aside, job.beneath = {}, {}
            return
        if stored is None or digest_of(stored.content) != record.set_aside_digest:
            self.accuse("undoable", f"{job.directory} moves before the list of what it sets aside is written")
            return
        replaced = decode_replaced(stored.content, name=path)
        job.set_aside = {aside.path: aside.identity for aside in replaced.files}
        job.beneath = {aside.path: aside.identity for aside in replaced.files if aside.version}
        job.directories = tuple(replaced.directories)

    # What a reader sees.

    def _appears(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        if old is not None:
            self.accuse("undoable", f"{actor} overwrote {target}")
            return
        self.visible[target] = moved
        self.by_people.pop(target, None)
        if self._is_brought_back(source, target, moved) or self._comes_back_along(actor, source, target):
            return
        job = self.truth(source)
        if job is None and self._shows_early(actor, target, moved):
            return
        if job is None:
            self.accuse("contained", f"{actor} renamed {source} to {target}")
            return
        waiting = self.asides.pop(source, None)
        if waiting is not None:
            if waiting[0] != target:
                self.accuse("undoable", f"{actor} brought {waiting[0]} back as {target}")
            elif job.committed or (job.phase is not Phase.ROLLING_BACK and not job.robbed):
                self.accuse("undoable", f"{actor} brought {target} back in phase {job.phase}")
            elif job.robbed:
                self.came_back_late.add(target)
            return
        self._shows(actor, job, target, moved)

    def _shows_early(self, actor: str, target: str, moved: Stored) -> bool:
        """A task attempt shows a file of its own before its job commits, if the job's protocol says that they do."""
        label, own = moved.label, self.attempts.get(actor)
        promises = self.promises.get(self.id_of_run[label.run]) if isinstance(label, Written) else None
        if promises is None or promises.committed_invisible or not isinstance(label, Written):
            return False
        job_id = self.id_of_run[label.run]
        job = self.jobs.get(job_id)
        self.appeared[target] = self.changes
        self.happened("appears", target)
        if own is None or (own[0], own[2]) != (label.run, label.attempt):
            self.accuse("exclusive", f"{actor} made {target} visible, of {label.attempt} of {label.run}")
        elif promises.uncommitted_invisible and not any(label in saved for saved in (self.said, *self.saved.values())):
            self.accuse("abortable", f"{actor} made {target} visible, and has not saved that it would")
        elif job is not None and job.record is not None and not job.robbed:
            knew = self.looked_at_record(actor, job_id) > job.claimed_at
            if promises.holds_through_partition or (knew and job.phase is not Phase.REFUSED):
                self.accuse("continuity", f"{actor} added {target} in phase {job.phase} of {job_id}")
            self.strays[target] = label
        return True

    def _may_take_out_early(self, job: JobTruth, source: str, moved: Stored) -> bool:
        """Whether a file that a task attempt has shown early may be taken out: unless it is committed with its job."""
        label, promises = moved.label, self.promises.get(job.directory)
        if promises is None or promises.committed_invisible or not isinstance(label, Written):
            return False
        counts = job.committed or (job.pinned and job.phase is not Phase.ROLLING_BACK and not job.robbed)
        return self.id_of_run[label.run] == job.directory and not (counts and job.owns(source, moved))

    def _shows(self, actor: str, job: JobTruth, target: str, moved: Stored) -> None:
        """A job's own file has become visible."""
        self.appeared[target] = self.changes
        self.happened("appears", target)
        label = moved.label
        if job.over:
            self.accuse("continuity", f"{actor} added {target} after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK, Phase.PUBLISHING):
            self.accuse("abortable", f"{actor} made {target} visible in phase {job.phase}")
        elif not job.owns(target, moved):
            self.accuse("exclusive", f"{target} became visible with the content of {label}, not of a pinned attempt")
        elif job.moves_in_order("old-first"):
            both = [path for path in job.set_aside if self._is_old(path, job)]
            if both:
                self.accuse("old-first", f"{target} is seen together with {both[0]}, which it replaces")

    def _is_old(self, path: str, job: JobTruth) -> bool:
        found = self.visible.get(path)
        if found is None or root_of(found.label) == job.owners.get(path, ""):
            return False
        # Where a rename is two acts, a person may have written another version between them, which stays.
        return not self._is_unseen(job, path, found)

    def _goes_aside(self, actor: str, source: str, target: str, moved: Stored) -> None:
        self.visible.pop(source, None)
        self.by_people.pop(source, None)
        job = self.truth(target)
        if job is not None and "withdrawn/" in target and self._is_taken_out(job, source, target, moved):
            return
        if job is not None and "withdrawn/" in target and self._may_take_out_early(job, source, moved):
            self._check_mark(f"{actor} took out {source}")
            return
        if job is not None and "withdrawn/" in target:
            in_order = job.phase is Phase.ROLLING_BACK or (job.robbed and not job.committed)
            if not in_order or not self._was_placed_by(job, source, moved):
                self.accuse("undoable", f"{actor} took out {source}, which is not its own: {moved.label}")
            self._check_mark(f"{actor} took out {source}")
            return
        if job is None or (ordinal_in(target) is None and not self._is_in_its_directory(job, source, target)):
            self.accuse("contained", f"{actor} renamed {source} to {target}")
            return
        job.has_set_aside = True
        if source not in job.set_aside and in_whole_directory(target) is not None and not job.over:
            self.moved_along[target] = (source, job)
            return
        self.asides[target] = (source, job)
        if self._is_of_a_lost_commit(job, source):
            pass
        elif job.over:
            self.accuse("continuity", f"{actor} set {source} aside after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK):
            self.accuse("undoable", f"{actor} set {source} aside in phase {job.phase}")
        elif source not in job.set_aside:
            self.accuse("undoable", f"{actor} set {source} aside, which no recorded list names")
        elif not job.replaces(source):
            self.accuse(
                "contained", f"{actor} set {source} aside, out of the scope of {job.record and job.record.policy}"
            )
        elif job.moves_in_order("new-first") and not job.robbed:  # it may be an undoing without the record
            needed = {path for path in job.files if path not in job.set_aside}
            blocking = any(
                path == source or path.startswith(source + "/") or source.startswith(path + "/") for path in job.files
            )
            absent = [path for path in needed if path not in self.visible and path not in self.ever_touched]
            if absent and not blocking:
                self.accuse("new-first", f"{source} is gone before {absent[0]}, which replaces it, is there")
        self._check_mark(f"{actor} set {source} aside")

    @staticmethod
    def _is_in_its_directory(job: JobTruth, source: str, target: str) -> bool:
        """Whether a file has moved with a directory that the job's list names, and is where that says."""
        parted = in_whole_directory(target)
        if parted is None or parted[0] >= len(job.directories):
            return False
        return source == f"{job.directories[parted[0]]}/{parted[1]}"

    def _comes_back_along(self, actor: str, source: str, target: str) -> bool:
        """Whether a file that was set aside unseen, or made there, is back."""
        if self.made_inside.pop(source, None) is not None:
            self.expected[target] = self.disk.files[target].content
            self.ever_touched.add(target)
            return True
        before = self.moved_along.pop(source, None)
        if before is not None and before[0] != target:
            self.accuse("undoable", f"{actor} brought {before[0]} back as {target}")
        return before is not None

    def _was_placed_by(self, job: JobTruth, path: str, stored: Stored) -> bool:
        """Whether a file is the job's own: also of a commit of it whose record was lost."""
        return job.owns(path, stored) or any(one.owns(path, stored) for one in self._lost_commits(job))

    def _is_of_a_lost_commit(self, job: JobTruth, path: str) -> bool:
        """Whether a driver that slept may set this file aside: it does not know that its record was deleted, and begun
        anew since."""
        return any(path in one.set_aside for one in self._lost_commits(job))

    def _lost_commits(self, job: JobTruth) -> list[JobTruth]:
        """The commits of a job whose record another committer has deleted, since when it has been begun anew."""
        return [one for one in self.ended if one.directory == job.directory and one.robbed and not one.committed]

    def _check_mark(self, because: str) -> None:
        if self.marked is None or not self.mark_holds:
            return
        for path, content in self.marked.items():
            found = self.visible.get(path)
            # A file of a job that replaces it by name is there before that job's `_SUCCESS`, as any of its files.
            if found is not None and (job := self._job_of(found)) is not None and path in job.beneath:
                continue
            if (found is None or found.content != content) and path not in self.ever_touched:
                self.accuse("complete", f"_SUCCESS of {self.job_of_mark} is there, and {path} is not: {because}")
                return

    def _mark_goes(self, actor: str, target: str) -> None:
        job = self.truth(target)
        self.marked = None
        if job is None or ordinal_in(target) is None:
            self.accuse("contained", f"{actor} renamed _SUCCESS to {target}")
            return
        self.asides[target] = ("_SUCCESS", job)
        job.has_set_aside = True
        if self._is_of_a_lost_commit(job, "_SUCCESS"):
            pass
        elif job.over:
            self.accuse("continuity", f"{actor} set _SUCCESS aside after {job.directory} was over")
        elif job.phase not in (Phase.MOVING, Phase.ROLLING_BACK) or "_SUCCESS" not in job.set_aside:
            self.accuse("undoable", f"{actor} set _SUCCESS aside in phase {job.phase}")

    def _mark_comes(self, actor: str, source: str, moved: Stored) -> None:
        job = self.truth(source)
        summary = decode_summary(moved.content, name=source) if moved.content else Summary()
        self.marked_before = self.job_of_mark if self.marked is not None else ""
        self.job_of_mark = summary.job_id
        listed = self._listed(summary)
        if job is not None and self.asides.pop(source, None) is not None:
            if job.committed or (job.phase is not Phase.ROLLING_BACK and not job.robbed):
                self.accuse("undoable", f"{actor} brought _SUCCESS back in phase {job.phase}")
            self.marked = listed
            # Another job that is half way planned without it: until its own comes, this one may be over its data.
            # And one that has committed without leaving any may have replaced what this one lists.
            others = [other for other in (*self.ended, *self.jobs.values()) if other is not job]
            self.mark_holds = all(other.over or not other.pinned for other in others if other not in self.ended)
            self.mark_holds &= not any(o.committed and o.record and not o.record.marks_success for o in others)
            self._check_mark(f"{actor} brought _SUCCESS back")
            return
        if job is None or job.phase is not Phase.PUBLISHING:
            self.accuse("complete", f"{actor} published _SUCCESS in phase {job and job.phase}")
            return
        if job.committed:
            self.accuse("fenced", f"{actor} published {job.directory} for a second time")
        if not self._is_list_of(listed, job.files):
            self.accuse(
                "complete",
                f"_SUCCESS of {job.directory} lists {sorted(listed)}, committed were {sorted(job.files)}",
            )
        self.marked = dict(job.files)
        self.mark_holds = True
        self._commit_point(actor, job, summary)

    def _mark_written(self, actor: str, new: Stored) -> None:
        """`_SUCCESS` is written in place: what only a protocol does whose commit point is another."""
        summary = decode_summary(new.content, name="_SUCCESS")
        known = [job for job in (*self.ended, *self.jobs.values()) if job.directory == summary.job_id]
        committed = [job for job in known if job.committed]
        if not any(job.replaces_afterwards for job in known):
            self.accuse("complete", f"_SUCCESS was written in place by {actor}, not renamed")
            return
        if not committed:
            self.accuse("complete", f"{actor} wrote _SUCCESS of {summary.job_id}, which is not committed")
            return
        allowed = self.allowed.get(actor)
        if allowed is not None and summary.job_id not in allowed:
            self.accuse("contained", f"{actor} wrote _SUCCESS of another job, {summary.job_id}")
        listed, files = self._listed(summary), committed[-1].files
        if not self._is_list_of(listed, files):
            self.accuse("complete", f"_SUCCESS of {summary.job_id} lists {listed}, committed were {sorted(files)}")
        self.marked_before = self.job_of_mark if self.marked is not None else ""
        self.marked, self.job_of_mark, self.mark_holds = dict(files), summary.job_id, True

    def _is_list_of(self, listed: Mapping[str, bytes], files: Mapping[str, bytes]) -> bool:
        """Whether a summary lists exactly these files, and they are there; but for what people have changed since."""
        different = {path for path in files if listed.get(path) != files[path]} - self.ever_touched
        return listed.keys() == files.keys() and not different

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
            elif len(visible.content) != file.length or (
                file.identity and visible.identity.partition("#")[0] != file.identity.partition("#")[0]
            ):
                found[file.path] = b"another identity"
            else:
                found[file.path] = visible.content
        if len(files) != ours.files.count:
            self.accuse("complete", f"the summary counts {ours.files.count} files and lists {len(files)}")
        return found

    def _commit_point(self, actor: str, job: JobTruth, summary: Summary | None) -> None:
        job.committed, job.committed_at = True, self.disk.clock()
        record = job.record
        assert record is not None
        self.committers[record.job_id] = actor
        self._refuse_second_commit(job, record)
        if record.txn_id:
            other = self.same_txn.setdefault(record.txn_id, record.job_id)
            if other != record.job_id and not self._is_past_finding_out(other, record.txn_id):
                self.accuse("exactly once", f"{other} and {record.job_id} committed the transaction {record.txn_id}")
        if summary is not None or (job.replaces_afterwards and record.marks_success):
            self.expected_mark = record.job_id
        elif job.replaces_afterwards:
            self.expected_mark = "" if job.set_aside else self.expected_mark
        else:
            self.expected_mark = self.job_of_mark if self.marked is not None else ""
        replaced = [path for path in self.expected if path not in job.files and self._is_replaced_by(job, path)]
        replaced += [path for path in self.expected if path in job.files]
        for path in replaced:
            if path in job.files and not job.replaces(path) and not self._has_been_touched(job, path):
                self.accuse("concurrent", f"{job.directory} committed {path}, which was there")
            self.expected.pop(path, None)
        self.expected.update(job.files)
        self._judge_people(actor, job)
        for path in (path for path, holder in self.moved_along.values() if holder is job):
            self.accuse("undoable", f"{actor} committed, and {path} that goes with it nobody had seen")
        for path in job.set_aside:
            there = self.visible.get(path)
            if path in self.by_people and (there is None or self._is_unseen(job, path, there)):
                self._expect_what_is_there(path)
        for path, content in job.files.items():
            found = self.visible.get(path)
            if self._has_been_touched(job, path):
                self._expect_what_is_there(path)
            elif found is None or found.content != content:
                self.accuse("complete", f"{job.directory} is committed and {path} is {found and found.label}")
                return
        if job.replaces_afterwards:
            self._doom(job)
            return
        for path in replaced:
            if path not in job.files and path in self.visible and not self._is_unseen(job, path, self.visible[path]):
                self.accuse("complete", f"{job.directory} is committed and {path}, which it replaces, is still there")
                return

    def _doom(self, job: JobTruth) -> None:
        """From its commit point on, what the job replaces may be deleted on its behalf."""
        for path in job.set_aside:
            if path not in job.files and not job.replaces(path):
                self.accuse("contained", f"{job.directory} is to delete {path}, out of the scope of its policy")
            stored = self.visible.get(path)
            if path in job.beneath:
                continue
            if stored is not None and not self._is_unseen(job, path, stored):
                before = self.doomed.get(path)
                others = before[1] if before is not None and before[0] is stored else set()
                self.doomed[path] = (stored, {job.directory, *others})

    def _is_past_finding_out(self, job_id: str, txn_id: str) -> bool:
        """Whether nothing said any more that this job has committed its transaction: its driver died at the commit
        point, and other committers have deleted its record and written a `_SUCCESS` of their own over its."""
        known = [*self.ended, *self.jobs.values()]
        robbed = any(job.robbed and job.directory == job_id for job in known)
        kept = transaction_outcome(digest_of(txn_id.encode())) in self.disk.files
        return robbed and not kept and self.marked_before != job_id

    def _refuse_second_commit(self, job: JobTruth, record: CommitRecord) -> None:
        """Two attempts at one job, or the same driver again: the later is refused. Where another committer has deleted
        the record, as long as there is anything that says so."""
        jobs = {self.job_of_run.get(run, run) for run in job.runs}
        for other in self.ended:
            same = other.directory == job.directory and jobs & {self.job_of_run.get(run, run) for run in other.runs}
            noted = JobLayout(record.job_id).ended in self.disk.files
            if same and other.committed and (not other.robbed or noted or self.marked_before == record.job_id):
                self.accuse("fenced", f"two attempts at {record.job_id} committed")

    def _is_replaced_by(self, job: JobTruth, path: str) -> bool:
        # What another committer put there after the look at the destination is not seen, and stays.
        seen = self.visible.get(path)
        unseen = seen is not None and isinstance(seen.label, Strange) and path not in job.set_aside
        unseen = unseen or (seen is not None and self._is_unseen(job, path, seen))
        return job.replaces(path) and not unseen

    # What people do.

    def saw_look(self, actor: str, path: str) -> None:
        """An actor has looked at a path."""
        if self.people:
            self.looks[actor, path] = self.changes

    def _person_changes(self, path: str, new: Stored | None, old: Stored | None) -> None:
        """A person has put a file at a path, or deleted the one that was there. From now on that is what is to be
        there, unless another file of that name waits to come back."""
        self.by_people[path] = Touch(new, root_of(old.label if old is not None else None), self.changes)
        self.ever_touched.add(path)
        copy = self.copies.pop(path, "")
        job = self.truth(copy)
        if copy in self.disk.files and job is not None and ordinal_in(copy) is not None and "withdrawn/" not in copy:
            # The second half of that rename will find nothing to do: this is a new file in the place of one set aside.
            self.asides[copy] = (path, job)
        withheld = path in self.withheld()
        if new is None:
            self.visible.pop(path, None)
            if not withheld:
                self.expected.pop(path, None)
            return
        self.visible[path] = new
        if not withheld:
            self.expected[path] = new.content

    def _expect_what_is_there(self, path: str) -> None:
        self.expected.pop(path, None)
        if path in self.visible:
            self.expected[path] = self.visible[path].content

    def _person_moves_away(self, source: str, target: str, moved: Stored) -> None:
        """A person has made room for what is to come back."""
        self.visible.pop(source, None)
        self.by_people.pop(source, None)
        if self.expected.get(source) == moved.content:
            del self.expected[source]
        self.visible[target] = moved
        self.expected[target] = moved.content

    def _has_been_touched(self, job: JobTruth, path: str) -> bool:
        """Whether a person was the last to change a file that the job had put there."""
        touch = self.by_people.get(path)
        return touch is not None and touch.of == job.owners.get(path, "")

    @staticmethod
    def _is_unseen(job: JobTruth, path: str, stored: Stored) -> bool:
        """Whether what stands where the job replaces a file is a version that a person wrote after it had looked."""
        seen = job.set_aside.get(path)
        return isinstance(stored.label, Edited) and (seen is None or _of_content(seen) != _of_content(stored.identity))

    def _judge_people(self, actor: str, job: JobTruth) -> None:
        """At the commit point: nothing that a person wrote is to be deleted that nobody has seen; and nobody commits
        over a file of the job that they have seen changed, or deleted, by a person."""
        for path in self.unseen_asides(job):
            self.accuse("undoable", f"{actor} committed, and {path} that goes with it a person had changed since")
        if job.robbed or job.record is None:
            return
        validates = job.record.options.get("validate_output") == "True"
        for path in job.files:
            looked = self.looks.get((actor, path), -1)
            if self._has_been_touched(job, path) and looked >= self.by_people[path].at:
                self.accuse("complete", f"{actor} committed though it had seen what a person has done to {path}")
            looked = max(self.looks.get((holder, path), -1) for holder in {actor, *job.holders})
            if self.people and validates and looked < self.appeared.get(path, 0):
                self.accuse("complete", f"{actor} committed, and nobody had looked at {path} as `validate_output` asks")

    def unseen_asides(self, job: JobTruth) -> list[str]:
        """Where a job has set a version aside that a person wrote after it had looked: it must not commit over that."""
        found = ((path, self.disk.files.get(place)) for place, (path, holder) in self.asides.items() if holder is job)
        return [p for p, waits in found if waits is not None and p != "_SUCCESS" and self._is_unseen(job, p, waits)]

    def _is_taken_out(self, job: JobTruth, source: str, target: str, moved: Stored) -> bool:
        """Whether an undoing has moved what a person wrote between its look and its rename: it must bring it back."""
        promises = self.promises.get(job.directory)
        early = promises is not None and not promises.committed_invisible
        if not isinstance(moved.label, Edited) or not (early or job.phase is Phase.ROLLING_BACK):
            return False
        self.taken[target] = source
        return True

    def _is_brought_back(self, source: str, target: str, moved: Stored) -> bool:
        return self.taken.pop(source, "") == target != "" and isinstance(moved.label, Edited)

    def _strange_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        if not is_internal(source) or is_internal(target):
            return
        if old is not None:
            self.accuse("undoable", f"the simulation itself: {actor} overwrote {target}")
        self.visible[target] = moved
        self.expected[target] = moved.content

    # At the end.

    def withheld(self) -> dict[str, JobTruth]:
        """What was visible and is still set aside, by a job that never committed: where it was, and by whom."""
        return {path: job for path, job in self.asides.values() if not job.committed and path != "_SUCCESS"}

    def _may_differ(self, path: str) -> bool:
        """Whether a job whose directory another committer has deleted accounts for what is at a path: its own files,
        which nobody can tell from others any more, may stay, and what it has set aside may wait beside them."""
        found = self.visible.get(path)
        if path in self.came_back_late and found is not None:
            return True
        if found is not None and found.label == self.strays.get(path, ""):
            return True
        robbed = [job for job in (*self.ended, *self.jobs.values()) if job.robbed and not job.committed]
        if path not in self.expected and found is not None and self._was_shown_early_by_one_that_is_lost(found):
            return True
        if found is not None and not any(job.owns(path, found) for job in robbed):
            return False
        if path not in self.expected:
            return found is not None
        aside = self.withheld().get(path)
        return aside is not None and aside.robbed

    def _was_shown_early_by_one_that_is_lost(self, stored: Stored) -> bool:
        """Whether a task attempt has shown a file before its job committed, of which another committer has deleted what
        says so, with the job's directory."""
        label = stored.label
        job_id = self.id_of_run[label.run] if isinstance(label, Written) else ""
        if job_id not in self.promises or self.promises[job_id].committed_invisible:
            return False
        return any(job.directory == job_id and job.robbed for job in (*self.ended, *self.jobs.values()))

    def _is_of_another_that_committed(self, job_id: str) -> bool:
        """Where the record is the commit point, `_SUCCESS` comes after it: of jobs that did not meet, another's may
        come last. What it lists is there, or it would have been accused."""
        known = [*self.ended, *self.jobs.values()]
        return any(job.directory == job_id and job.committed and job.replaces_afterwards for job in known)

    def left_uploads(self, of: JobTruth | None = None) -> list[str]:
        """Uploads that are pending although their job is over, and those who ended it could know of them. `of`: those
        that this job had pinned."""
        uploads = self.disk.pending.values()
        if of is not None:
            return [each.path for each in uploads if of.owns(each.path, each.stored)]
        return [each.path for each in uploads if each.token in self.due]

    def _saved(self, path: str, labels: frozenset[Written]) -> None:
        """A manifest. Where it takes the place of an earlier run's, nothing names that one's uploads any more."""
        gone = self.saved.get(path, labels) - labels
        self.due -= {upload.token for upload in self.disk.pending.values() if upload.stored.label in gone}
        self.saved_until |= dict.fromkeys(gone, self.changes)
        self.saved[path] = labels

    def _must_give_up(self, job_id: str) -> None:
        """A job has come to its end. Uploads of it are known that a manifest names, or a file that keeps them for an
        attempt that does not count; and, where uploads can be listed, those whose names tell whose they are."""
        below = f"{JobLayout(job_id).job_directory}/"
        known = {label for path, labels in self.saved.items() if path.startswith(below) for label in labels}
        made = IS_MADE.fullmatch(job_id) if self.lists_uploads else None
        job = self.jobs.get(job_id)
        pins = job.record.pins if job is not None and job.record is not None else ()
        pinned = tuple(f"/tasks/{pin.task_attempt_id}/" for pin in pins)
        files = [path for path in self.disk.below(below[:-1]) if is_kept_uploads(path)]
        files = [path for path in files if not any(directory in path for directory in pinned)]
        kept = b"\n".join(self.disk.files[path].content for path in files)
        for upload in self.disk.pending.values():
            named = upload.stored.label in known or f"{upload.token} ".encode() in kept
            if named or (made and job_id in upload.path.rpartition("/")[2]):
                self.due.add(upload.token)

    def _is_list_of_a_late_driver(self, path: str) -> bool:
        """Whether a list is one that no record names, of a driver that came too late: where nothing keeps it from
        setting files aside when it wakes, gc keeps its list for `remember_seconds`."""
        nonce = replaced_nonce(path) or replaced_nonce(path.removesuffix(".new") + ".list")
        if nonce is None or self.disk.real_directories or not path.startswith(f"{REPLACED}/"):
            return False
        known = (job.record for job in (*self.ended, *self.jobs.values()) if job.record is not None)
        return all(not record.set_aside_nonce.startswith(nonce) for record in known if record.set_aside_nonce)

    def _cannot_be_listed(self, place: str) -> bool:
        """Whether a directory that was set aside holds what cannot be listed: once its job has committed, nobody can
        say whether all that is in it was replaced, so it is kept and named."""
        directory = re.match(r".*-whole/[^/]+/", place)
        below = self.disk.below(directory[0].rstrip("/")) if directory else ()
        return any(is_no_text(path) for path in below)

    def judge_end(self, *, settled: bool) -> None:
        """Nothing is at work any more: the destination is the serial result of the committed jobs, byte for byte."""
        seen = {path: stored.content for path, stored in self.disk.files.items() if not is_reserved(path)}
        for path in sorted(seen.keys() | self.expected.keys()):
            if seen.get(path) != self.expected.get(path) and not self._may_differ(path):
                guarantee = "complete" if path in self.expected else "exclusive"
                self.accuse(
                    guarantee,
                    f"in the end {path} is {_short(seen.get(path))}, and should be {_short(self.expected.get(path))}",
                )
                return
        for place, (path, job) in self.asides.items():
            if not job.robbed and not (job.committed and self._cannot_be_listed(place)):
                self.accuse("undoable", f"in the end {path} is still set aside, at {place}")
        for place, (path, job) in self.moved_along.items():
            if not job.robbed and not (job.committed and self._cannot_be_listed(place)):
                self.accuse("undoable", f"in the end {path}, which nobody had seen, is still set aside, at {place}")
        if self.strangers:
            return
        mark = self.disk.files.get("_SUCCESS")
        found = decode_summary(mark.content, name="_SUCCESS").job_id if mark is not None else ""
        # Where jobs on disjoint partitions meet, one that is undone may bring back a `_SUCCESS` that is too old: of
        # three jobs, or if another has committed without leaving one.
        marks = all(job.record is None or job.record.marks_success for job in self.jobs.values())
        certain = len(self.jobs) < 2 or (len(self.jobs) == 2 and marks)
        if certain and found != self.expected_mark and self._is_of_another_that_committed(found):
            return
        if found != self.expected_mark and certain:
            self.accuse("complete", f"in the end _SUCCESS is of {found!r}, and should be of {self.expected_mark!r}")
        if settled and self.names_tell and (uploads := self.left_uploads()):
            self.accuse("cleaned up", f"after recovery these uploads are pending: {uploads[:3]}")
        if settled:
            left = [*self.disk.below(JOBS), *self.disk.below(REPLACED)]
            # Where somebody has deleted a manifest, and not the record, nobody can tell what was moved.
            left = [path for path in left if not ((job := self.truth(path)) is not None and job.robbed)]
            left = [path for path in left if not self._is_list_of_a_late_driver(path)]
            left = [path for path in left if not self._cannot_be_listed(path)]
            if self.made_inside:
                left = [path for path in left if path not in self.made_inside and let_go_nonce(path) is None]
            if left or (JOBS in self.disk.directories and not self.strangers):
                self.accuse("resumable", f"after recovery there is left: {left[:3] or JOBS}")


def directory_of(path: str) -> str | None:
    """The name of the job's directory in which a path lies, or to which it belongs; None for any other path."""
    parts = path.split("/", 3)
    if is_reserved(path) and len(parts) > 3 and parts[1] in ("jobs", "replaced"):
        return None if parts[2].startswith(".aside-") else parts[2]
    return None


def is_internal(path: str) -> bool:
    """Whether no reader looks there: what committers keep, but for `_SUCCESS`."""
    return path != "_SUCCESS" and is_reserved(path)


def _nobody(name: str) -> bool:
    return False


def _at_no_time(actor: str, job_id: str) -> float:
    return 0.0


def _nothing_happens(moment: str, path: str) -> None:
    """Nobody waits for it."""


def _of_content(identity: str) -> str:
    """The part of an identity that a rename keeps."""
    return identity.partition("#")[0]


def _carry_on() -> None:
    """Judge on."""


def _short(content: bytes | None) -> str:
    return "absent" if content is None else repr(content.decode(errors="replace"))[:60]

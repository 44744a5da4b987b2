"""Jobs that other programs have left (Hadoop's FileOutputCommitter, Hive), and people who end them: they commit, abort,
recover, undo and collect garbage, die in the middle, come back with another choice, and meet each other, jobs of ours,
and writers who take the names that the jobs give their files.

The judge goes by whose file each is, and believes nobody:

- **undoable**: nothing that was visible before is overwritten, or goes; no two files are the same one.
- **complete**: once a job's commit point is passed, none of its files goes. In the end a job has all files of one whole
  attempt at each task in the destination, or none; all, if somebody was told that it is committed.
- **exclusive**: of attempts that lost nothing is seen; of a job of which somebody is told that it is undone, or
  aborted, nothing.
- **kept**: of a job that nobody was asked to end, or whose commit was refused, every file is where its program left it;
  whose commit failed, somewhere.
- **cleaned up**: after the last operator nothing is left of jobs that are over.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from lockgate.engine.commit_once import commit_once
from lockgate.engine.outside.abort import abort_found
from lockgate.engine.outside.commit import ready_to_commit
from lockgate.engine.outside.recover import recover_found
from lockgate.engine.recovery.collect_garbage import collect_garbage
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import LockgateError
from lockgate.model.hive_output import job_id_of
from lockgate.model.layout import BOOKKEEPING, JOBS, REPLACED, SUCCESS, JobLayout, TaskAttempt
from lockgate.model.layout import FOUND as PLACES
from lockgate.model.summary import decode_summary
from lockgate.model.urls import parent_of
from lockgate.plugins.builtin.hive_protocol import HIVE
from lockgate.plugins.builtin.v1_protocol import V1

from simworld.disk import Stored
from simworld.faults import CRASHES, Kind
from simworld.features import same_bytes
from simworld.judges import Before, Judges, Written
from simworld.scenario import PARTITIONS, AttemptPlan, JobPlan, Scenario, changed, draw_job, draw_scenario, options
from simworld.store import Actor
from simworld.world import HOOKS, PROTOCOLS, History, World

FOUND = "found"
"""What `explore.py` calls these histories."""

HIVES_DIRECTORY = ".hive-staging_hive_2024-11-21_17-21-00_123_456-{}/_tmp.-ext-10000"
HADOOPS_TRACKER = "20241121172{:03d}"

ERRANDS = ("commit", "commit", "commit", "abort", "recover", "finish", "undo", "gc")
"""What people come for."""


@dataclass(frozen=True)
class Left:
    """What a job of another program has left: by task, by attempt, where each file is to be in the destination.
    `again`: the same id once more, as long after the beginning, if the first is over by then."""

    run: str
    protocol: str
    job_id: str
    directories: Mapping[tuple[int, int], str]
    files: Mapping[tuple[int, int], Mapping[str, bytes]]
    again: float | None = None
    late: tuple[int, int] | None = None
    """One of the attempts, which the program commits only later: as one act, by a rename."""
    late_at: float = 0.0

    def of(self, run: str) -> list[tuple[str, Written, bytes]]:
        """Where each file lies, whose it is, and what is in it, for one run of the job."""
        return [
            (f"{self.directories[attempt]}/{path}", Written(run, f"{attempt[0]}.{attempt[1]}", path), content)
            for attempt, files in self.files.items()
            for path, content in files.items()
        ]


@dataclass(frozen=True)
class Errand:
    """Somebody who comes by: for the job of that number, of those that others have left."""

    does: str
    job: int
    at: float
    duplicates: str = "largest"
    forces: bool = True


@dataclass(frozen=True)
class FoundScenario:
    """A usual scenario, with jobs of ours beside, and what others have left."""

    usual: Scenario
    left: tuple[Left, ...]
    errands: tuple[Errand, ...]
    ends_all: bool
    """Whether the last operator aborts whatever is not committed; else what nobody has begun stays."""
    rivals: tuple[tuple[int, int], ...] = ()
    """For the jobs of these numbers somebody writes a file at a name that one of its files is to have: when so many
    files of jobs have come into the destination."""
    policy: str = "append"
    """By which conflict policy people commit. One that replaces is for a single job, and without jobs of ours."""


def draw_found(seed: int) -> FoundScenario:
    """The scenario of a seed."""
    random = Random(f"found {seed}")
    chance = random.random
    usual = draw_scenario(random)
    store = random.choice(("disk", "tree", "hdfs"))
    alike = chance() < 0.4
    left = tuple(
        (_left_by_hive if chance() < 0.5 else _left_by_hadoop)(random, number, alike=alike)
        for number in range(random.choice((1, 1, 2)))
    )
    ours: tuple[JobPlan, ...] = ()
    if chance() < 0.5:
        job = draw_job(random, 0, "append", same_transaction=False, same_id=False)
        chosen = changed(changed(job.options, delete_target_files=False), mark_success=True)
        chosen = changed(chosen, protocol=random.choice(("manifest", "v1")))
        attempts = tuple(replace(plan, scans=False) for plan in job.attempts)
        ours = (
            replace(job, job_id="ours", options=chosen, attempts=attempts, same_bytes=alike, twin=None, run="ours"),
        )
    errands = tuple(
        Errand(
            random.choice(ERRANDS),
            random.randrange(len(left)),
            random.choice((0.0, 0.0, 1.0, 30.0, 400.0)) * chance(),
            random.choice(("largest", "newest", "refuse")),
            forces=chance() < 0.9,
        )
        for _ in range(random.randint(1, 5))
    )
    before = usual.before
    if alike and chance() < 0.5:
        name = "p=1/000000_0"
        before = {**before, name: same_bytes(name)}
    kinds = tuple(kind for kind in Kind if chance() < (0.7 if kind in CRASHES else 0.4))
    usual = replace(
        usual,
        store=store,
        before={path: content for path, content in before.items() if path != "p=a b"},
        marked_before=False,
        jobs=ours,
        visitors=(),
        fault_kinds=kinds,
        fault_rate=random.choice((0.0, 0.02, 0.05, 0.1)) if kinds else 0.0,
        faults_max=random.choice((1, 2, 4, 8)),
        settle_before_sleepers_wake=False,
    )
    alone = not ours and len(left) == 1
    policy = random.choice(("replace", "replace-partitions")) if alone and chance() < 0.5 else "append"
    rivals = tuple(
        (random.randrange(len(left)), random.randrange(4))
        for _ in range(random.randint(1, 2) if policy == "append" and chance() < 0.3 else 0)
    )
    return FoundScenario(usual, left, errands, ends_all=chance() < 0.5, rivals=rivals, policy=policy)


def _contents(random: Random, run: str, attempt: str, paths: list[str], *, alike: bool) -> dict[str, bytes]:
    longer = b"+" * random.choice((0, 0, 1, 3))
    return {path: same_bytes(path) if alike else f"{run}|{attempt}|{path}".encode() + longer for path in paths}


def _left_by_hive(random: Random, number: int, *, alike: bool) -> Left:
    directory = HIVES_DIRECTORY.format(number)
    run = f"found{number}"
    files = {}
    for task in range(random.randint(1, 3)):
        partitions = random.sample(("p=1", "p=2", ""), random.randint(1, 2))
        for attempt in range(random.choice((1, 1, 2))):
            paths = [f"{each}/{task:06d}_{attempt}".removeprefix("/") for each in partitions]
            files[task, attempt] = _contents(random, run, f"{task}.{attempt}", paths, alike=alike)
    return _with_late_attempt(
        random, Left(run, HIVE.name, job_id_of(directory), dict.fromkeys(files, directory), files)
    )


def _with_late_attempt(random: Random, left: Left) -> Left:
    """With something that happens later, too: an attempt's commit, or a job of the same id."""
    if random.random() < 0.3:
        return replace(left, late=max(left.files), late_at=random.choice((0.0, 1.0, 30.0, 300.0)) * random.random())
    return replace(left, again=random.choice((None, None, 100.0, 1_000.0)))


def _left_by_hadoop(random: Random, number: int, *, alike: bool) -> Left:
    tracker = HADOOPS_TRACKER.format(number)
    run = f"found{number}"
    files, directories = {}, {}
    for task in range(random.randint(1, 3)):
        paths = [
            f"{partition}/part-{task}{'' if alike else number}".removeprefix("/")
            for partition in random.sample(PARTITIONS, random.randint(1, 2))
        ]
        files[task, 0] = _contents(random, run, f"{task}.0", paths, alike=alike)
        directories[task, 0] = f"_temporary/0/task_{tracker}_0000_m_{task:06d}"
    return _with_late_attempt(random, Left(run, V1.name, f"job_{tracker}_0000", directories, files))


@dataclass
class Whose:
    """What the judge knows of one run of a job."""

    attempts: dict[str, set[Written]] = field(default_factory=dict)
    """The files of each attempt; attempts are `TASK.ATTEMPT`, of our own jobs as their ids."""
    committed: bool = False
    ever_seen: bool = False
    told_committed: str = ""
    ended_by: str = ""
    """Who came to end it otherwise than by a commit. (One that fails leaves the job as it is.)"""
    late: str = ""
    """The attempt that is committed later, and may be missed."""
    came_late: bool = False
    """It is that attempt alone, which nobody comes back for."""

    def is_whole(self, seen: set[Written]) -> bool:
        """Whether these are all files of one attempt at each task."""
        left = set(seen)
        for task in {attempt.rpartition(".")[0] for attempt in self.attempts}:
            of = [files for attempt, files in self.attempts.items() if attempt.rpartition(".")[0] == task]
            taken = [files for files in of if files and files <= left]
            if not taken and all(of) and not (self.late.rpartition(".")[0] == task and len(of) == 1):
                return False
            for files in taken[:1]:
                left -= files
        return not left


class FoundJudges(Judges):
    """Observes one history of jobs that were found. Every policy is `append`."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, Whose] = {}
        self.run_of_id: dict[str, list[str]] = {}
        self.first: dict[str, Stored] = {}
        self.policy = "append"
        self.ever_committed: set[Written] = set()
        self.at_work: dict[str, set[str]] = {}
        """Who has begun to do something to a job of an id, and has come to no end yet."""
        self.is_dead: Callable[[str], bool] = _nobody
        self.arrived = 0
        """How many files of jobs have come into the destination."""
        self.when_one_comes: Callable[[int], None] = _nothing

    def is_another_at_work(self, job_id: str, actor: str = "") -> bool:
        """Whether somebody else has to do with a job."""
        return any(name != actor and not self.is_dead(name) for name in self.at_work.get(job_id, ()))

    def seen_of(self, run: str) -> set[Written]:
        """The files of a run that a reader sees."""
        labels = (stored.label for path, stored in self.disk.files.items() if not is_hidden(path))
        return {label for label in labels if isinstance(label, Written) and label.run == run}

    def was_committed(self, job_id: str) -> bool:
        """Whether a commit point of a job of this id was passed."""
        return any(self.runs[run].committed for run in self.run_of_id.get(job_id, ()))

    def withheld(self) -> dict[str, object]:  # type: ignore[override]
        """Nothing is replaced here."""
        return {}

    def _is_replaced(self, path: str) -> bool:
        """Whether a job has committed that replaces what was there before. (Of two of one id the second replaces what
        the first has committed, as the next job would.)"""
        committed = [run for run, whose in self.runs.items() if whose.committed]
        if self.policy == "append" or not committed:
            return False
        partitions = {parent_of(each.target) for each in self.ever_committed}
        return self.policy == "replace" or parent_of(path) in partitions

    # What the disk tells.

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        self.changes += 1
        if path == SUCCESS:
            self._mark(actor, new)
        elif not is_hidden(path):
            self._comes(actor, path, new, old)

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        self.changes += 1
        if not is_hidden(source):
            self._goes(actor, source, moved)
        if target == SUCCESS:
            self._mark(actor, moved)
        elif not is_hidden(target):
            self._comes(actor, target, moved, old)

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None:
        self.changes += 1
        if not is_hidden(path):
            self._goes(actor, path, gone)

    def _comes(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        if old is not None:
            self.accuse("undoable", f"{actor} overwrote {path}")
        label = new.label
        if not isinstance(label, Written):
            if label != Before(path):
                self.accuse("exclusive", f"{actor} put {path}, which is no task attempt's: {label}")
            return
        self.runs[label.run].ever_seen = True
        self.arrived += 1
        self.when_one_comes(self.arrived)

    def _goes(self, actor: str, path: str, gone: Stored) -> None:
        label = gone.label
        if not isinstance(label, Written):
            if self.policy == "append":
                self.accuse("undoable", f"{actor} took out {path}, which was there before")
        elif self.runs[label.run].committed:
            self.accuse("complete", f"{actor} took out {path}, which {label.run} has committed")

    def _mark(self, actor: str, new: Stored) -> None:
        job_id = decode_summary(new.content, name=SUCCESS).job_id
        whole = [
            run
            for run in self.run_of_id.get(job_id, ())
            if not self.runs[run].committed and self.runs[run].is_whole(self.seen_of(run))
        ]
        if not whole:
            if not self.was_committed(job_id):
                self.accuse("complete", f"{actor} wrote the _SUCCESS of {job_id}, whose files are not all there")
            return
        self.runs[whole[-1]].committed = True
        self.ever_committed |= self.seen_of(whole[-1])

    def judge_end(self, *, settled: bool) -> None:
        """Nothing is at work any more."""
        for path, stored in self.first.items():
            there = self.disk.files.get(path) is stored
            if there is self._is_replaced(path):
                self.accuse("undoable", f"in the end {path} is {'still there' if there else 'not as it was before'}")
        for run, whose in self.runs.items():
            seen = self.seen_of(run)
            if whose.told_committed and not (whose.committed and whose.is_whole(seen)):
                self.accuse(
                    "told right", f"{whose.told_committed} was told that {run} is committed, and there is {seen}"
                )
            if seen and not whose.is_whole(seen):
                self.accuse("complete", f"in the end of {run} there is only {seen}")
            if seen and not whose.committed:
                self.accuse("exclusive", f"in the end {seen} is there, and {run} has not committed")
            if whose.committed and not seen and any(whose.attempts.values()):
                self.accuse("complete", f"in the end nothing of {run} is there, which has committed")


def _nobody(name: str) -> bool:
    return False


def _nothing(count: int) -> None:
    pass


def is_hidden(path: str) -> bool:
    """Whether no reader looks there."""
    return any(each[0] in "._" for each in path.split("/"))


class FoundWorld(World):
    """The world of one such history."""

    def __init__(self, seed: int, found: FoundScenario) -> None:
        self.found = found
        for protocol in (V1, HIVE):
            PROTOCOLS[protocol.name] = protocol
        super().__init__(seed, found.usual, judges=FoundJudges)
        self.judge.is_dead = lambda name: self.actors[name].dead

    @property
    def judge(self) -> FoundJudges:
        """The judge, as what it is."""
        assert isinstance(self.judges, FoundJudges)
        return self.judges

    def _furnish(self) -> None:
        super()._furnish()
        self.judge.first = dict(self.ether.disk.files)
        self.judge.policy = self.found.policy
        for left in self.found.left:
            self._leave(left, left.run)
        self.judge.when_one_comes = self._take_names
        self._take_names(0)

    def _leave(self, left: Left, run: str) -> None:
        """What the other program does, as one act: nobody here looks while it writes."""
        disk, judge = self.ether.disk, self.judge
        judge.runs[run] = whose = Whose()
        judge.run_of_id.setdefault(left.job_id, []).append(run)
        whose.late = f"{left.late[0]}.{left.late[1]}" if left.late else ""
        for path, label, content in left.of(run):
            whose.attempts.setdefault(label.attempt, set()).add(label)
            if label.attempt != whose.late:
                self._put(path, disk.make(content, label))

    def _put(self, path: str, stored: Stored) -> None:
        disk, above = self.ether.disk, path
        while above := above.rpartition("/")[0]:
            disk.directories.setdefault(above, disk.clock())
        disk.touch(path)
        disk.files[path] = stored

    def begin(self) -> None:
        """Let everybody begin."""
        for job in self.scenario.jobs:
            self.judge.runs[job.run] = Whose()
            self.judge.run_of_id.setdefault(job.job_id, []).append(job.run)
        super().begin()
        HOOKS.used = HOOKS.used | {V1.name, HIVE.name}
        for number, errand in enumerate(self.found.errands):
            actor = self.actor(f"person{number}")
            self.start(actor, self._run_errand(errand, actor))
        for left in self.found.left:
            if left.late is not None:
                self.start(actor := self.actor(f"{left.run}.late"), self._commit_late(left, actor))
            if left.again is not None:
                actor = self.actor(f"{left.run}.program")
                self.start(actor, self._leave_again(left, actor))

    def _take_names(self, arrived: int) -> None:
        """Somebody who knows nothing of jobs writes files, and keeps them."""
        disk = self.ether.disk
        for number, (job, after) in enumerate(self.found.rivals):
            names = sorted({path for files in self.found.left[job].files.values() for path in files})
            name = Random(f"rival {number} {self.seed}").choice(names)
            if after == arrived and name not in disk.files:
                stored = disk.make(b"another's", Before(name))
                self._put(name, stored)
                self.judge.first[name] = stored

    async def _commit_late(self, left: Left, actor: Actor) -> None:
        """A task of the other program that is still at work, though people have come to end its job."""
        await asyncio.sleep(left.late_at)
        disk, judge = self.ether.disk, self.judge
        late = judge.runs[left.run].late
        run = left.run
        if not any(path in disk.files for path, label, _ in left.of(run) if label.attempt != late):
            # The others are taken, or gone: what comes now looks like a job of this one task.
            run = f"{run}.late"
            judge.runs[run] = Whose(
                {late: {label for _, label, _ in left.of(run) if label.attempt == late}}, came_late=True
            )
            judge.run_of_id[left.job_id].append(run)
        for path, label, content in left.of(run):
            if label.attempt == late:
                self._put(path, disk.make(content, label))
        self.tell(actor, f"commits {left.late}")

    async def _leave_again(self, left: Left, actor: Actor) -> None:
        assert left.again is not None
        for _ in range(3):
            await asyncio.sleep(left.again)
            disk = self.ether.disk
            own = f"{PLACES}{left.protocol}/{left.job_id}"
            over = not disk.below(own) and own not in disk.directories
            gone = not any(disk.below(directory) for directory in left.directories.values())
            if over and gone and not self.judge.is_another_at_work(left.job_id):
                self._leave(left, f"{left.run}b")
                self.tell(actor, f"leaves {left.job_id} again")
                return

    def _start_attempt(self, job: JobPlan, plan: AttemptPlan) -> None:
        name = TaskAttempt(plan.task, plan.attempt).task_attempt_id
        labels = {Written(job.run, name, target) for target in plan.targets}
        self.judge.runs[job.run].attempts[f"{plan.task}.{plan.attempt}"] = labels
        super()._start_attempt(job, plan)

    # People.

    def _run_for(self, actor: Actor, protocol: str, duplicates: str = "largest") -> JobRun:
        given: dict[str, object] = {"duplicates": duplicates} if protocol == HIVE.name else {}
        chosen = options(
            requests_in_flight=2, alive_seconds=900.0, protocol=protocol, conflict=self.found.policy, **given
        )
        return dataclasses.replace(self.run_of(actor, None, JobLayout("nobody")), options=chosen)

    async def _run_errand(self, errand: Errand, actor: Actor) -> None:
        await asyncio.sleep(errand.at)
        left = self.found.left[errand.job]
        try:
            await self._do(errand.does, left, actor, duplicates=errand.duplicates, force=errand.forces)
        except LockgateError as error:
            self.tell(actor, f"{errand.does} {left.job_id}: {type(error).__name__}: {error.what}")

    async def _do(
        self, what: str, left: Left, actor: Actor, *, duplicates: str = "largest", force: bool = True
    ) -> None:
        """One errand.

        Raises:
            LockgateError: it could not be done.
        """
        judge, job_id = self.judge, left.job_id
        run = self._run_for(actor, left.protocol, duplicates)
        told = ["protocol", "duplicates"] if left.protocol == HIVE.name else ["protocol"]
        at_work = judge.at_work.setdefault(job_id, set())
        at_work.add(actor.name)
        whose = judge.runs[judge.run_of_id[job_id][-1]]
        try:
            if what == "gc":
                garbage = await collect_garbage(run)
                self.tell(actor, f"gc: {[(found.path, found.action) for found in garbage]}")
                return
            if what == "commit":
                job, seen = await ready_to_commit(run, job_id, by_what_is_found=True, force=force, told=told)
                await commit_once(job, None, seen=seen)
                self.tell(actor, f"committed {job_id}")
                committed = [judge.runs[run] for run in judge.run_of_id[job_id] if judge.runs[run].committed]
                (committed[-1] if committed else whose).told_committed = actor.name
                return
            whose.ended_by = actor.name
            if what == "abort":
                await abort_found(run, job_id, force=force, told=told)
                undone = True
                self.tell(actor, f"aborted {job_id}")
            else:
                undo = {"recover": None, "finish": False, "undo": True}[what]
                recovery = (await recover_found(run, job_id, undo=undo, force=force, told=told))[job_id]
                undone = recovery.outcome == "undone"
                self.tell(actor, f"{what} {job_id}: {recovery.outcome} from {recovery.phase}")
            self._judge_undone(actor, left, undone=undone)
        finally:
            if not actor.dead:
                at_work.discard(actor.name)

    def _judge_undone(self, actor: Actor, left: Left, *, undone: bool) -> None:
        judge = self.judge
        runs = [run for run in judge.run_of_id[left.job_id] if not judge.runs[run].committed]
        if undone and not judge.is_another_at_work(left.job_id, actor.name):
            seen = {label for run in runs for label in judge.seen_of(run)}
            if seen:
                judge.accuse("told right", f"{actor.name} was told that {left.job_id} is undone, and there is {seen}")

    # The last operator.

    async def _settle(self, actor: Actor) -> None:
        first = True if self.scenario.settle_undoes else None
        for attempt in range(6):
            undo = first if attempt % 2 == 0 else (None if first else True)
            for protocol in ("manifest", V1.name, HIVE.name):
                run = self._run_for(actor, protocol)
                try:
                    found = await recover_found(run, None, undo=undo, force=True, told=())
                except LockgateError as error:
                    self.tell(actor, f"recover: {type(error).__name__}: {error.what}")
                    continue
                for job_id in [job_id for job_id, each in found.items() if each.outcome == "undone"]:
                    for each in self.judge.run_of_id.get(job_id, ()):
                        self.judge.runs[each].ended_by = actor.name
                self.tell(actor, f"settles {[(job_id, each.outcome, each.problem) for job_id, each in found.items()]}")
            for job_id in [job.job_id for job in self.scenario.jobs] + [
                left.job_id for left in self.found.left if self.found.ends_all
            ]:
                protocol = next((left.protocol for left in self.found.left if left.job_id == job_id), "manifest")
                try:
                    await abort_found(self._run_for(actor, protocol), job_id, force=True, told=())
                    self.tell(actor, f"aborts {job_id}")
                except LockgateError as error:
                    self.tell(actor, f"abort {job_id}: {type(error).__name__}: {error.what}")
            garbage = await collect_garbage(self._run_for(actor, "manifest"))
            self.tell(actor, f"gc: {[(each.path, each.action) for each in garbage]}")

    def _judge_end(self) -> None:
        self.judge.judge_end(settled=True)
        disk, judge = self.ether.disk, self.judge
        there = {stored.label for stored in disk.files.values()}
        begun = {path.split("/")[2] for path in disk.below(BOOKKEEPING) if path.startswith(PLACES)}
        for left in self.found.left:
            run = judge.run_of_id[left.job_id][-1]
            whose = judge.runs[run]
            on_time = [(path, label) for path, label, _ in left.of(run) if label.attempt != whose.late]
            lies = [path for path, label in on_time if path in disk.files and disk.files[path].label == label]
            if whose.came_late:
                continue
            if self.found.ends_all or whose.committed:
                hidden = [path for path, stored in disk.files.items() if is_hidden(path) and _is_of(run, stored, whose)]
                if hidden:
                    judge.accuse("cleaned up", f"in the end of {run} there is left {hidden[:3]}")
            elif not whose.ever_seen and not whose.ended_by and len(lies) < len(on_time):
                judge.accuse("kept", f"in the end of {run} there is only {lies}, and nobody was asked to end it")
            elif not whose.ended_by and (lost := [str(label) for _, label in on_time if label not in there]):
                judge.accuse("kept", f"in the end {lost} is nowhere, and nobody was asked to end {run}")
            if left.job_id in begun and (self.found.ends_all or whose.committed):
                judge.accuse("cleaned up", f"in the end the directory of {left.job_id} is there")
        if left_over := disk.below(JOBS) + disk.below(REPLACED):
            judge.accuse("cleaned up", f"in the end there is left {left_over[:3]}")


def _is_of(run: str, stored: Stored, whose: Whose) -> bool:
    """Whether a file is of the attempts that had committed when people came."""
    label = stored.label
    return isinstance(label, Written) and label.run == run and label.attempt != whose.late


def play_found(seed: int) -> History:
    """Play the history of a seed."""
    world = FoundWorld(seed, draw_found(seed))
    history = world.play()
    history.committed = sum(whose.committed for whose in world.judge.runs.values())
    return history


def told_of(seed: int) -> str:
    """What of a seed's scenario `render` does not show."""
    found = draw_found(seed)
    lines = [f"  {each}" for each in (*found.left, *found.errands)]
    return "\n".join([f"python tests/simulation/explore.py --protocol {FOUND} --replay {seed}", *lines])

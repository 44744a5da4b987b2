"""One history: a scenario, a seed, the real engine in every actor, the judges, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from lockgate.engine.commit_once import commit_once
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.setup import setup_job
from lockgate.engine.manifests.committed_tasks import committed_tasks
from lockgate.engine.record.neighbours import job_layouts
from lockgate.engine.record.transactions import forget_outcomes
from lockgate.engine.recovery.collect_garbage import collect_garbage
from lockgate.engine.recovery.recover import Recovery, recover_job
from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.job_run import JobRun, OpenStore
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import Event, Runtime
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.duplicates import Answer, Duplicates
from lockgate.model.errors import (
    CommitFailed,
    CommitFenced,
    CommitRefused,
    LockgateError,
    OutcomeUnknown,
    StoreError,
    UsageError,
)
from lockgate.model.files import FileStatus, Mismatch, NotRenamed, Refusal, Rename, RenameOutcome
from lockgate.model.layout import REPLACED, JobLayout, TaskAttempt
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.receipt import Receipt
from lockgate.model.record import Holder
from lockgate.model.summary import CommittedFile, FileList, LockgateSummary, Summary, encode_summary
from lockgate.model.uploads import tag_of
from lockgate.model.urls import StoreUrl, parent_of
from lockgate.plugins.builtin.conflict_policies import lockgate_resolve_conflicts
from lockgate.plugins.builtin.duplicate_resolutions import lockgate_resolve_duplicates
from lockgate.plugins.builtin.file_validation import lockgate_validate_file
from lockgate.plugins.builtin.job_cleanup import lockgate_cleanup
from lockgate.plugins.builtin.manifest_protocol import MANIFEST
from lockgate.plugins.builtin.rename_recovery import lockgate_recover_rename
from lockgate.protocols.deferred import DeferredProtocol

from simworld.answers import (
    judge_abort,
    judge_abort_error,
    judge_commit_error,
    judge_failure_event,
    judge_garbage,
    judge_let_go,
    judge_offer,
    judge_recovery,
    why_finishable,
)
from simworld.disk import NO_TEXT, Disk, is_no_text
from simworld.event_loop import ACTOR, simulated_loop
from simworld.faults import Faults, Kind, NoFaults, RandomFaults
from simworld.features import same_bytes, scenario_of
from simworld.judges import MOMENT, Before, Edited, Judges, Violation, Written
from simworld.movers import Movers
from simworld.people import act
from simworld.readers import read_again_and_again
from simworld.scenario import AttemptPlan, JobPlan, Person, Scenario, Stranger, Visitor, changed, options
from simworld.store import NAMES, Actor, Ether, SimulatedStore, profile_of, proof_of_copy, turn
from simworld.strangers import commit_or_abort
from simworld.timeline import Servers

EPOCH = 1_800_000_000.0
"""The wall clock at virtual second 0."""

TURNS_MAX = 60_000
"""A history that takes more turns than this has come to no end."""

ALIVE = 900.0
"""For how many seconds after its last sign of life gc takes a job for alive."""

LAST = "last operator"
"""Who comes when all others have come to an end, and nothing goes wrong any more."""

MOVER = "person who makes room"
"""Who moves a file away where an error says so."""

SETTLE_AT = 1_500.0
WAKE_BY = 20_000.0
"""Virtual seconds: when an operator may look after the jobs first, and when the last sleeper has woken."""


PROTOCOLS: dict[str, Protocol] = {each.name: each for each in (MANIFEST, DeferredProtocol())}
"""The protocols that jobs here may have."""

USUAL = frozenset(PROTOCOLS)


def by_protocol(scenario: Scenario, protocol: Protocol) -> Scenario:
    """The same scenario, its jobs by another protocol that commits by renames; the judges are those of such protocols.
    Operators know nothing of it: they go by the jobs' own records."""
    PROTOCOLS[protocol.name] = protocol
    jobs = tuple(replace(job, options=changed(job.options, protocol=protocol.name)) for job in scenario.jobs)
    return replace(scenario, jobs=jobs)


class PlainHooks:
    """The engine's hooks, answered by the built-in plugins without a plugin manager."""

    used: frozenset[str] = frozenset()
    """The protocols of the history that is played, besides those that every history knows: what others have made known
    before must change nothing of it."""

    def protocols(self) -> Mapping[str, Protocol]:
        return {name: protocol for name, protocol in PROTOCOLS.items() if name in USUAL or name in self.used}

    def protocol(self, name: str) -> Protocol:
        return PROTOCOLS[name]

    def check_choices(self, options: JobOptions) -> None:
        """Here there is whatever a scenario names."""

    def recover_rename(
        self, store: Store, rename: Rename, outcome: RenameOutcome, source: FileStatus | None, target: FileStatus | None
    ) -> RenameOutcome:
        copies = Capability.RENAME_BY_COPY in store.capabilities and source is not None
        if copies and target is not None and target.proof == proof_of_copy(rename, source.identity):
            # As the plugin of Cloud Storage answers.
            return NotRenamed(Refusal.FAILED, "copied, and the source not deleted yet")
        return lockgate_recover_rename(store, rename, outcome, source, target)

    def validate_file(self, store: Store, expected: FileStatus, found: FileStatus | None) -> Mismatch | None:
        answer = lockgate_validate_file(store, expected, found)
        return None if answer is True else answer

    def resolve_conflicts(
        self, plan: CommitPlan, options: JobOptions, existing: Sequence[FileStatus] | None
    ) -> CommitPlan | Survey:
        answer = lockgate_resolve_conflicts(plan, options, existing)
        assert answer is not None
        return answer

    def resolve_duplicates(self, duplicates: Duplicates, options: JobOptions) -> Answer:
        answer = lockgate_resolve_duplicates(duplicates, options)
        assert answer is not None
        return answer

    def cleanup(self, store: Store, options: JobOptions) -> CleanupPlan:
        return lockgate_cleanup(store, options)


HOOKS = PlainHooks()


@dataclass
class History:
    """How one history went."""

    seed: int
    scenario: Scenario
    violations: list[Violation]
    trace: list[tuple[float, str, str, Any, Any]]
    turns: int
    changes: int
    committed: int
    crashes: int
    told: list[str]
    actors: dict[str, Actor] = field(default_factory=dict)


def _ignore(event: Event) -> None:
    """Nobody listens."""


def _raise_mistake(error: BaseException | None) -> None:
    """Raise a mistake of the engine's own code, for which it has rolled back as for any other failure."""
    while error is not None:
        if isinstance(error, TypeError | AttributeError | NameError | LookupError | AssertionError):
            raise error
        error = error.__cause__ or error.__context__


async def _elsewhere(url: str) -> Store:
    raise StoreError("no other store here", where=url)


class World:
    """The simulated world of one history."""

    prefix: str = ""
    """How the names of those begin who come here, and are in no plan by name."""
    names: Sequence[StoreUrl] = NAMES
    """What the destination is called."""

    def __init__(
        self,
        seed: int,
        scenario: Scenario,
        faults: Faults | None = None,
        judges: type[Judges] = Judges,
        beside: World | None = None,
    ) -> None:
        """`beside`: another destination of the same world, with the same time and the same actors."""
        self.seed = seed
        self.scenario = scenario
        random = Random(seed)
        self.loop = (
            simulated_loop(Random(random.getrandbits(64)), scenario.stickiness, scenario.hurry)
            if beside is None
            else beside.loop
        )
        self.judges = judges()
        self.judges.stop = self._halt
        self.judges.is_at_work = self._is_at_work
        self.judges.is_alive = self._lives
        self.judges.protocols = PROTOCOLS
        self.judges.promises = {job.job_id: PROTOCOLS[job.options.protocol].attributes for job in scenario.jobs}
        self.judges.looked_at_record = self._looked_at
        profile = profile_of(scenario.store)
        self.judges.lists_uploads = Capability.LISTED_UPLOADS in profile.capabilities
        self.judges.names_tell = not profile.keeps_versions
        loop = self.loop
        identities = "length+time" if scenario.coarse_identities and profile.name == "hdfs" else profile.identity_kind
        disk = Disk(profile.real_directories, identities, self.judges, lambda: EPOCH + loop.now)
        disk.one_pool_a_path = profile.uploads_share_names
        disk.keeps_versions = profile.keeps_versions
        if faults is None:
            faults = (
                RandomFaults(
                    Random(random.getrandbits(64)),
                    scenario.fault_rate,
                    scenario.fault_kinds,
                    scenario.faults_max,
                    scenario.sleep_seconds_max,
                )
                if scenario.fault_rate
                else NoFaults()
            )
        self.ether = Ether(
            self.loop,
            disk,
            profile,
            faults,
            scenario.split_batches,
            split_listings=scenario.split_listings,
            renames_away=scenario.renames_away,
        )
        self.random = random
        self.actors: dict[str, Actor] = {} if beside is None else beside.actors
        self.tasks: list[asyncio.Task[Any]] = [] if beside is None else beside.tasks
        self.reading: dict[asyncio.Task[Any], Actor] = {}
        self.wake_by = WAKE_BY * (5 if scenario.seconds_per_rename else 1)
        self.markers: dict[str, str] = {}
        self.begun: dict[str, float] = {}
        self.receipts: dict[str, dict[int, Receipt]] = {}
        self.failed: dict[str, set[tuple[int, int]]] = {}
        self.set_up: set[str] = set()
        self.undone: set[str] = set()
        """The ids of jobs that a visitor has undone."""
        self.attempting: dict[str, set[str]] = {}
        """The task attempts of each run that have not come to an end."""
        self.told: list[str] = [] if beside is None else beside.told
        self.servers = Servers(self)
        self.waiting: list[tuple[list[int], Person, asyncio.Future[str]]] = []
        """The people who wait for something to happen, and how often it must."""
        self.judges.happened = self._happened
        self.ether.saw_look = self.judges.saw_look
        self._furnish()

    def _halt(self) -> None:
        self.loop.halted = True

    def _furnish(self) -> None:
        disk, scenario = self.ether.disk, self.scenario
        listed = []
        for path, content in scenario.before.items():
            stored = disk.make(content, Before(path))
            disk.files[path] = stored
            listed.append(CommittedFile(path, len(content), stored.identity))
            above = path
            while above := above.rpartition("/")[0]:
                disk.directories[above] = EPOCH
        visible = dict(disk.files)
        mark = None
        if scenario.marked_before:
            ours = LockgateSummary(files=FileList(len(listed), listed))
            mark = encode_summary(Summary(success=True, jobId="before", lockgate=ours))
            disk.files["_SUCCESS"] = disk.make(mark)
        self.judges.begin(disk, visible, mark)

    # Actors.

    def actor(self, name: str, *directories: str) -> Actor:
        """A new process."""
        skew = (self.random.random() - 0.5) * 2 * self.scenario.skew_seconds
        found = Actor(name, len(self.actors) + 1, skew)
        self.actors[name] = found
        if directories:
            self.judges.allowed[name] = set(directories)
        return found

    def run_of(
        self,
        actor: Actor,
        job: JobPlan | None,
        layout: JobLayout,
        *,
        marker: str = "",
        attempt: str = "",
        alive_seconds: float = 0.0,
        shows_identities: bool = True,
        calls_it: int = 0,
    ) -> JobRun:
        """The engine's view of a job from one process."""
        loop, scenario = self.loop, self.scenario
        runtime = Runtime(
            wall=lambda: EPOCH + loop.now + actor.skew_seconds,
            tick=loop.time,
            random=Random(self.random.getrandbits(64)),
            emit=functools.partial(self._hear, actor) if scenario.judges_finishing else _ignore,
            host="host",
            process=actor.process,
            user=actor.name,
            is_gone=self._is_gone if scenario.sees_processes else (lambda holder: False),
        )
        run = JobRun(
            layout=layout,
            options=job.options if job else self._operators_options(alive_seconds),
            store=self.connect(
                actor,
                self.names[calls_it % len(self.names)],
                shows_identities=shows_identities,
                # A task renames one manifest: only those who move many files take long.
                seconds_per_rename=0.0 if attempt else scenario.seconds_per_rename,
            ),
            hooks=HOOKS,
            runtime=runtime,
            open_store=self.opener(actor),
            marker=marker,
            # A driver that has set a job up knows which is its own. Where no id has two nonces it need not.
            is_own=bool(marker) and any(each.is_new for each in scenario.jobs),
            task_attempt_id=attempt,
            movers=Movers(self, actor, job, marker) if job and scenario.movers and not attempt else None,
        )
        run.marker_server = self.servers.asked_by(run, actor, job) if job and attempt else None
        return run

    def connect(
        self, actor: Actor, url: StoreUrl, *, shows_identities: bool = True, seconds_per_rename: float = 0.0
    ) -> SimulatedStore:
        """One process's connection to the store."""
        return SimulatedStore(
            self.ether, actor, url=url, shows_identities=shows_identities, seconds_per_rename=seconds_per_rename
        )

    def opener(self, actor: Actor) -> OpenStore:
        """By what a process opens stores elsewhere."""
        return _elsewhere

    def _operators_options(self, alive_seconds: float) -> JobOptions:
        protocol = self.ether.profile.protocol
        return options(
            requests_in_flight=2,
            alive_seconds=alive_seconds,
            **({} if protocol == MANIFEST.name else {"protocol": protocol}),
        )

    def _hear(self, actor: Actor, event: Event) -> None:
        # A driver that commits twice hears of its second commit that it has failed.
        twice = any(job.commits_twice and actor.name.startswith(f"{job.run}.") for job in self.scenario.jobs)
        if event.name == "job-fails" and not actor.dead and not twice:
            judge_failure_event(self.judges, actor.name, event.job_id, str(event.details.get("error")))

    def _is_at_work(self, name: str) -> bool:
        actor = self.actors.get(name)
        return actor is not None and actor.busy and self._lives(name)

    def _lives(self, name: str) -> bool:
        actor = self.actors.get(name)
        return actor is not None and not actor.dead and not actor.slept

    def _is_gone(self, holder: Holder) -> bool:
        for actor in self.actors.values():
            if actor.process == holder.process:
                return actor.dead
        return False

    def start(self, actor: Actor, work: Coroutine[Any, Any, Any]) -> None:
        """Let an actor begin."""
        context = contextvars.copy_context()
        context.run(ACTOR.set, actor.name)
        task = self.loop.create_task(work, name=actor.name, context=context)
        task._log_destroy_pending = False
        self.tasks.append(task)

    def tell(self, actor: Actor, what: str) -> None:
        """Note in the history what an actor was told or did."""
        self.told.append(f"{actor.name}: {what}")
        self.ether.trace.append((self.loop.now, actor.name, "told", what, ""))

    # What the actors do.

    async def drive(self, job: JobPlan, actor: Actor) -> None:
        """A driver: set up, start task attempts, collect receipts, commit."""
        await asyncio.sleep(job.start)
        if job.again_of and not await (self._is_dead(job) if job.restarts else self._is_undone(job)):
            return
        layout = job.layout
        marker = self.markers[job.run]
        run = self.run_of(actor, job, layout, marker=marker, calls_it=job.calls_it)
        for left in (2, 1, 0):
            try:
                await setup_job(run)
                break
            except StoreError as error:
                if not left:
                    self.tell(actor, f"setup failed: {type(error).__name__}")
                    return
            except (UsageError, CommitRefused, OutcomeUnknown) as error:
                self.tell(actor, f"setup refused: {error.what}")
                return
        self.set_up.add(job.run)
        self.servers.start(job, actor, marker=marker, calls_it=job.calls_it)
        if not await self._set_up_elsewhere(job, actor, run):
            return
        if job.takes_over and not await self._take_over_tasks(job, actor, run):
            return
        for plan in job.attempts:
            if plan.task not in self.receipts[job.run]:
                self._start_attempt(job, plan)
        if not job.aborts_early:
            await self._await_receipts(job)
        # Unless it is asleep for ever, a driver begins to commit at a time that its twin knows.
        self.begun[job.run] = self.loop.now
        if job.twin is not None:
            twin = self.actor(f"{job.run}.twin", *self.judges.allowed.get(actor.name, ()))
            self.start(twin, self._drive_late(job, twin, job.twin))
        await self._finish(job, actor, run)

    async def _set_up_elsewhere(self, job: JobPlan, actor: Actor, run: JobRun) -> bool:
        """What a driver sets up beside its job, in other places; False: it was refused."""
        return True

    async def _is_undone(self, job: JobPlan) -> bool:
        """Wait until somebody has undone the job, and its tasks are over, as whoever runs it again must see to; False:
        it does not come to that."""
        for _ in range(100):
            if job.job_id in self.undone and not self._has_tasks(job.again_of):
                return True
            await asyncio.sleep(10.0)
        return False

    async def _is_dead(self, job: JobPlan) -> bool:
        """Wait until the first driver of the job is dead, and its tasks are over, whatever has become of the job;
        False: it does not come to that."""
        for _ in range(200):
            if self.actors[f"{job.again_of}.driver"].dead and not self._has_tasks(job.again_of):
                return True
            await asyncio.sleep(2.0)
        return False

    def _has_tasks(self, run: str) -> bool:
        """Whether a run has task attempts at work, or may start some yet."""
        tasks_live = any(not self.actors[name].dead for name in self.attempting.get(run, ()))
        return tasks_live or self._may_start_tasks(run)

    def _may_start_tasks(self, run: str) -> bool:
        """Whether a driver is still on its way to starting its tasks."""
        driver = f"{run}.driver"
        over = run in self.begun or self.actors[driver].dead
        return not over and not any(line.startswith(f"{driver}: setup") for line in self.told)

    async def _take_over_tasks(self, job: JobPlan, actor: Actor, run: JobRun) -> bool:
        try:
            earlier = await committed_tasks(run)
        except LockgateError as error:
            self.tell(actor, f"takes over no tasks: {type(error).__name__}: {error.what}")
            return False
        if self.scenario.judges_finishing:
            judge_offer(self.judges, actor.name, run.layout, earlier)
        numbers = {TaskAttempt(plan.task, plan.attempt).task_id: plan.task for plan in job.attempts}
        self.receipts[job.run] = {numbers[receipt.task_id]: receipt for receipt in earlier}
        self.tell(actor, f"takes over {[receipt.task_attempt_id for receipt in earlier]}")
        return True

    async def _drive_late(self, job: JobPlan, actor: Actor, delay: float) -> None:
        await asyncio.sleep(delay)
        layout, marker = job.layout, self.markers[job.run]
        await self._finish(job, actor, self.run_of(actor, job, layout, marker=marker, calls_it=job.calls_it))

    async def _await_receipts(self, job: JobPlan) -> None:
        tasks = {plan.task for plan in job.attempts}
        attempts = {(plan.task, plan.attempt) for plan in job.attempts}
        receipts, failed = self.receipts[job.run], self.failed[job.run]
        for _ in range(12):
            if tasks <= receipts.keys():
                return
            if all(attempt in failed or attempt[0] in receipts for attempt in attempts):
                return
            await asyncio.sleep(5.0)

    async def _finish(self, job: JobPlan, actor: Actor, run: JobRun) -> None:
        receipts = self.receipts[job.run]
        complete = {plan.task for plan in job.attempts} <= receipts.keys()
        if job.aborts or not complete:
            await self._give_up(job, actor, run, "it was told to" if job.aborts else "tasks failed")
            return
        given = list(receipts.values()) if job.with_receipts else None
        await self._commit(job, actor, run, given)
        if job.commits_twice:
            await asyncio.sleep(job.commits_again_after)
            await self._commit(job, actor, run, given)

    async def _commit(self, job: JobPlan, actor: Actor, run: JobRun, given: list[Receipt] | None) -> None:
        judges = self.judges
        offered = judges.offered.setdefault(job.job_id, [])
        if given is None:
            judges.reported[job.run] = {task: r.task_attempt_id for task, r in self.receipts[job.run].items()}
            offered.append(None)
        else:
            offered.append(frozenset((r.task_attempt_id, r.digest) for r in given))
        began = self.ether.disk.clock()
        actor.busy = True
        try:
            async with self.servers.closed(job, actor):
                summary = await commit_once(run, given)
        except LockgateError as error:
            actor.busy = False
            _raise_mistake(error)
            self.tell(actor, f"commit: {type(error).__name__}: {error.what}")
            if self.scenario.judges_finishing:
                self._judge_commit_error(job, actor, began, error)
            definite = isinstance(error, CommitFailed | CommitRefused)
            if definite and judges.committers.get(job.job_id) == actor.name and not job.commits_twice:
                judges.accuse("told right", f"{actor.name} committed and was told {type(error).__name__}: {error.what}")
            if job.gives_up:
                await self._give_up(job, actor, run, "its commit failed")
            return
        await self.servers.stop(job, actor)
        actor.busy = False
        self.tell(actor, f"committed by {summary.job_id}")
        if not any(each[1:3] == (actor.name, "fault") for each in self.ether.trace):
            judge_let_go(judges, actor, job.layout, run.marker, summary)
        # Of an outcome that was forgotten nobody knows any more which job it was.
        forgotten = not summary.job_id and job.options.txn_id in judges.same_txn
        if not judges.was_committed(summary.job_id) and not forgotten:
            judges.accuse("told right", f"{actor.name} was told that {summary.job_id} is committed")
        if not job.options.txn_id and summary.job_id != job.job_id:
            judges.accuse("told right", f"{actor.name} got the summary of {summary.job_id}")

    def _judge_commit_error(self, job: JobPlan, actor: Actor, began: float, error: LockgateError) -> None:
        looked = self._looked_at(actor.name, job.job_id)
        judge_commit_error(self.judges, actor, began, looked, job.job_id, error)

    async def _give_up(self, job: JobPlan, actor: Actor, run: JobRun, why: str) -> None:
        try:
            await self._abort(run, actor, f"aborted, since {why}")
        except LockgateError as error:
            self.tell(actor, f"abort: {type(error).__name__}: {error.what}")
        else:
            await self.servers.stop(job, actor)

    async def _abort(self, run: JobRun, actor: Actor, told: str) -> None:
        judging, began = self.scenario.judges_finishing, self.judges.changes
        try:
            await abort_job(run)
        except LockgateError as error:
            if judging:
                judge_abort_error(self.judges, actor.name, error)
            raise
        self.tell(actor, told)
        if judging:
            own = run.marker if run.is_own else ""
            judge_abort(self.judges, actor.name, run.layout.job_id, own, began=began, looked=actor.seen_at)

    async def _recover(self, run: JobRun, actor: Actor, *, undo: bool | None, force: bool) -> Recovery:
        actor.busy = True
        try:
            recovery = await recover_job(run, undo=undo, force=force)
        finally:
            actor.busy = False
        slept_since = recovery.phase is None and self._began_commit_since_look(actor, run.layout)
        if self.scenario.judges_finishing and not slept_since:
            judge_recovery(self.judges, actor.name, run.layout.job_id, recovery)
        return recovery

    def _began_commit_since_look(self, actor: Actor, layout: JobLayout) -> bool:
        """Whether the job's commit began only when the last request of this actor had been answered: who sleeps after
        that tells what was so."""
        requests = [each for each in self.ether.trace if each[2] not in ("told", "fault")]
        looked = max((each[0] for each in requests if each[1] == actor.name), default=0.0)
        records = [each[0] for each in requests if each[2] == "create" and each[3] == layout.commit_record(0)]
        return bool(records) and min(records) > looked

    def _looked_at(self, actor: str, job_id: str) -> float:
        """When an actor has looked last which versions a job's record has."""
        directory = JobLayout(job_id).job_directory
        looks = [each[0] for each in self.ether.trace if each[1:4] == (actor, "list", directory)]
        return EPOCH + max(looks, default=0.0)

    def _start_attempt(self, job: JobPlan, plan: AttemptPlan) -> None:
        name = TaskAttempt(plan.task, plan.attempt)
        again = ".again" if plan.is_again else ""
        actor = self.actor(f"{job.run}.{plan.task}.{plan.attempt}{again}", job.job_id)
        files = {
            target: same_bytes(target) if job.same_bytes else f"{job.run}|{name.task_attempt_id}|{target}".encode()
            for target in plan.targets
        }
        self.judges.attempts[actor.name] = (job.run, plan.task, name.task_attempt_id, files)
        self.attempting.setdefault(job.run, set()).add(actor.name)
        self.start(actor, self._attempt(job, plan, name, actor, files))

    async def _attempt(
        self, job: JobPlan, plan: AttemptPlan, name: TaskAttempt, actor: Actor, files: dict[str, bytes]
    ) -> None:
        if plan.start:
            await asyncio.sleep(plan.start)
        try:
            await self._write_and_commit(job, plan, name, actor, files)
        finally:
            self.attempting[job.run].discard(actor.name)

    async def _write_and_commit(
        self, job: JobPlan, plan: AttemptPlan, name: TaskAttempt, actor: Actor, files: dict[str, bytes]
    ) -> None:
        layout = job.layout
        run = self.run_of(
            actor,
            job,
            layout,
            marker=self.markers[job.run],
            attempt=name.task_attempt_id,
            shows_identities=job.shows_identities,
            calls_it=job.calls_it,
        )
        store = run.store
        assert isinstance(store, SimulatedStore)
        failed = self.failed[job.run]
        staged: dict[str, FileStatus] = {}
        if run.protocol.announces_files:
            store.writes = Written(job.run, name.task_attempt_id, "")
        try:
            await run.protocol.set_up_task(run)
            nonce = f"{self.random.getrandbits(24):06x}"
            tag = f"-{tag_of(run.marker, run.task_attempt_id, nonce)}" if run.protocol.needs_tags(run) else ""
            if tag:  # as front ends name files
                files = {f"{target}{tag}": content for target, content in files.items()}
                self.judges.attempts[actor.name] = (job.run, plan.task, name.task_attempt_id, files)
            final = {target: run.protocol.final_path(run, target) for target in files}
            if any(path != target for target, path in final.items()):
                named = {final[target]: content for target, content in files.items()}
                self.judges.attempts[actor.name] = (job.run, plan.task, name.task_attempt_id, named)
            working = run.protocol.working_directory(run).removeprefix(run.url("")).strip("/")
            for ordinal, (target, content) in enumerate(files.items()):
                label = Written(job.run, name.task_attempt_id, final[target])
                if plan.scans:
                    path = f"{working}/{target}"
                    if self.ether.profile.real_directories:
                        parent = path.rpartition("/")[0]
                        await store.make_directories([parent], within=working)
                    staged[target] = store.write_output(path, content, label)
                    continue
                await turn()
                if directory := parent_of(target):
                    await run.protocol.set_up_directory(run, directory)
                if run.protocol.announces_files:
                    await run.protocol.announce_file(run, target)
                store.writes = label
                output = run.protocol.open_file(run, ordinal, target, nonce)
                output.stream.write(content)
                staged[target] = output.close()
            await self._linger(plan, run, store, working, tag, nonce)
            if plan.fails:
                await run.protocol.abort_task(run, name, staged)
                failed.add((plan.task, plan.attempt))
                return
            if plan.waits:
                await asyncio.sleep(plan.waits)
            receipt = await self._commit_of_one_run(job, run, name, actor, None if plan.scans else staged)
            if plan.given_up:
                await run.protocol.abort_task(run, name)
                failed.add((plan.task, plan.attempt))
                return
            if plan.report_lost:
                receipt = await self._commit_again(run, name, None if plan.scans else staged, receipt)
        except LockgateError as error:
            self.tell(actor, f"task attempt failed: {type(error).__name__}: {error.what}")
            failed.add((plan.task, plan.attempt))
            if plan.attempt % 2 == 0:
                with contextlib.suppress(LockgateError):
                    await run.protocol.abort_task(run, name, staged)
            return
        # The driver takes the first report of a task that it hears, and never another.
        self.receipts[job.run].setdefault(plan.task, receipt)

    async def _commit_of_one_run(
        self, job: JobPlan, run: JobRun, name: TaskAttempt, actor: Actor, staged: dict[str, FileStatus] | None
    ) -> Receipt:
        """A task commit. Where the job is being committed with another run of the attempt when it begins, and is yet
        when it ends, it does no harm to that one's manifest, and is told so."""
        rivals = sum(plan.task == name.task and not plan.is_again for plan in job.attempts) > 1
        pinned = "" if rivals else self.judges.pinned_of(run.layout, run.marker, name)
        receipt: Receipt | None = None
        try:
            receipt = await run.protocol.commit_task(run, name, staged, {"rows_written": 1})
            return receipt
        finally:
            if pinned and self.judges.pinned_of(run.layout, run.marker, name) == pinned:
                self.judges.judge_pinned_is_there(actor.name, run.layout, pinned)
                if receipt is not None and receipt.digest != pinned:
                    what = f"{actor.name} was told that it has committed, and its job commits with another run of it"
                    self.judges.accuse("continuity", what)

    async def _linger(
        self, plan: AttemptPlan, run: JobRun, store: SimulatedStore, directory: str, tag: str, nonce: str
    ) -> None:
        for number in range(plan.lingers):
            await asyncio.sleep(plan.pause)
            if store.actor.dead:
                await self.loop.create_future()
            if self.ether.profile.protocol == MANIFEST.name and not run.protocol.announces_files:
                store.write_output(f"{directory}/more-{number}", b"more", None)
            else:
                path = f"p=1/more-{number}-{run.layout.job_id}{tag}"
                store.writes = Written(*store.writes[:2], path) if isinstance(store.writes, Written) else None
                if run.protocol.announces_files:
                    await run.protocol.set_up_directory(run, parent_of(path))
                    await run.protocol.announce_file(run, path)
                run.protocol.open_file(run, 100 + number, path, nonce).close()

    async def _commit_again(
        self, run: JobRun, name: TaskAttempt, staged: dict[str, FileStatus] | None, first: Receipt
    ) -> Receipt:
        """The report of the first commit was lost: the very same commit once more must give the very same receipt."""
        try:
            again = await run.protocol.commit_task(run, name, staged, {"rows_written": 1})
        except CommitFailed as error:
            # Without identities the staged files are looked at again, and may be in place by now.
            store = run.store
            assert isinstance(store, SimulatedStore)
            told = (store.shows_identities and not self._is_robbed(run.layout)) or not self._has_begun(run.layout)
            told = told and run.protocol.attributes.task_commit_repeatable
            if told and not isinstance(error.__cause__, StoreError | OutcomeUnknown):
                self.judges.accuse("repeatable", f"{name.task_attempt_id} committed again: {error.what}")
            raise
        if again != first and not self._has_begun(run.layout):
            self.judges.accuse("repeatable", f"{name.task_attempt_id} committed again with another receipt")
        return again

    def _is_robbed(self, layout: JobLayout) -> bool:
        job = self.judges.jobs.get(layout.job_id)
        return job is not None and job.robbed

    def _has_begun(self, layout: JobLayout) -> bool:
        """Whether a driver has the job already, and may have moved what the attempt wrote."""
        job = self.judges.jobs.get(layout.job_id)
        is_over = any(ended.directory == layout.job_id for ended in self.judges.ended)
        return job is None or job.record is not None or job.robbed or is_over

    def visited(self, visitor: Visitor) -> JobPlan:
        """The job that somebody comes for."""
        return self.scenario.jobs[visitor.job]

    async def _visit(self, visitor: Visitor, actor: Actor) -> None:
        job = self.visited(visitor)
        await asyncio.sleep(visitor.at)
        layout = job.layout
        run = self.run_of(actor, job, layout, calls_it=visitor.calls_it)
        # Where timers fire although others are ready, time runs on while a driver is between two steps.
        even = not self.scenario.hurry and self.scenario.skew_seconds <= MOMENT
        if not visitor.force and job.options.alive_seconds and even:
            self.judges.unforced[actor.name] = layout.job_id
        try:
            if visitor.errand == "gc":
                # Whose clock has jumped can take anybody for dead; that is safe, but not what gc promises.
                jumps = Kind.CLOCK_JUMP in self.scenario.fault_kinds
                self.judges.begin_gc(actor.name, 0.0 if jumps else ALIVE - 2 * self.scenario.skew_seconds)
                garbage = await collect_garbage(self.run_of(actor, None, JobLayout("nobody"), alive_seconds=ALIVE))
                self.tell(actor, f"gc: {[(found.path, found.action) for found in garbage]}")
            elif visitor.errand == "abort":
                await self._abort(run, actor, "aborted")
            else:
                undo = {"recover": None, "finish": False, "undo": True}[visitor.errand]
                if undo is False and self._is_robbed(layout):
                    # To finish a job whose record is lost is to say that its files are all there. Nobody says so here.
                    undo = None
                recovery = await self._recover(run, actor, undo=undo, force=visitor.force)
                self.tell(actor, f"recovery: {recovery.outcome} from {recovery.phase}")
                if recovery.outcome == "undone":
                    self.undone.add(layout.job_id)
        except LockgateError as error:
            self.tell(actor, f"{visitor.errand}: {type(error).__name__}: {error.what}")

    async def _meddle(self, stranger: Stranger, actor: Actor) -> None:
        await asyncio.sleep(stranger.at)
        for _ in range(stranger.turns):
            await turn()
        await commit_or_abort(self.ether, self.judges, actor.name, stranger)

    def _happened(self, moment: str, path: str) -> None:
        for left, person, future in self.waiting:
            if person.moment == moment and not future.done():
                left[0] -= 1
                if left[0] <= 0:
                    future.set_result(path)

    async def _change(self, person: Person, actor: Actor) -> None:
        """A person, who may wait for ever."""
        appeared = ""
        if person.moment == "time":
            await asyncio.sleep(person.at)
        else:
            future: asyncio.Future[str] = self.loop.create_future()
            self.waiting.append(([person.nth if person.moment == "appears" else 1], person, future))
            appeared = await future
        for _ in range(person.turns):
            await turn()
        lengths_tell = not all(job.shows_identities for job in self.scenario.jobs)
        what = act(self.ether, actor.name, person, appeared, lengths_tell=lengths_tell)
        if what:
            self.tell(actor, what)

    # An operator, without faults.

    async def _settle(self, actor: Actor) -> None:
        """What an operator does after a crash: recover every job; what never began to commit is aborted."""
        run = self.run_of(actor, None, JobLayout("nobody"))
        undo = True if self.scenario.settle_undoes else None
        for attempt in range(6):
            layouts = [layout async for layout in job_layouts(run)]
            # And the jobs whose directories others have deleted, with data still set aside.
            held = {job.directory for job in self.judges.withheld().values()}
            layouts += [JobLayout(job_id) for job_id in sorted(held - {layout.job_id for layout in layouts})]
            if not layouts:
                break
            for layout in layouts:
                await self._settle_job(actor, layout, undo if attempt % 2 == 0 else (None if undo else True))
        self.judges.collects_at_once = True
        garbage = await collect_garbage(run)
        if actor.name == LAST and self.scenario.judges_finishing:
            judge_garbage(self.judges, actor.name, garbage)

    def _why_finishable(self, layout: JobLayout) -> str:
        return why_finishable(self.judges, layout)

    async def _settle_job(self, actor: Actor, layout: JobLayout, undo: bool | None) -> None:
        run = self.run_of(actor, None, layout, calls_it=self.scenario.operators_call_it)
        must = ""
        if actor.name == LAST and not undo and self.scenario.judges_finishing:
            must = self._why_finishable(layout)
            if must and self.judges.was_claimed_and_lost_its_marker(layout.job_id):
                undo = False  # nobody but this operator, who knows that nothing else was deleted, can say so
        touched = len(self.told_of_people())
        outcome: str = ""
        try:
            recovery = await self._recover(run, actor, undo=undo, force=True)
            outcome = recovery.outcome
            self.tell(actor, f"settles {layout.job_id}: {recovery.outcome} from {recovery.phase}")
            if recovery.outcome == "nothing":
                await self._abort(run, actor, f"aborted {layout.job_id}")
        except LockgateError as error:
            _raise_mistake(error)
            outcome = f"{type(error).__name__}: {error.what}"
            self.tell(actor, f"settles {layout.job_id}: {outcome}")
            if "move it away" in error.next_step or "move away what" in error.next_step:
                self._make_room(layout)
        if len(self.told_of_people()) > touched:
            must = ""
        if must and outcome != "finished":
            self.judges.accuse("finishes", f"{layout.job_id} could be finished ({must}), and was not: {outcome}")

    def told_of_people(self) -> list[str]:
        """What people have done."""
        return [line for line in self.told if line.startswith("person")]

    def _make_room(self, layout: JobLayout) -> None:
        """What an operator is told to do: what a person has written where a replaced file must come back, or below it,
        goes by another name."""
        disk = self.ether.disk
        for path in [each for each in disk.below(f"{REPLACED}/{layout.job_id}") if is_no_text(each)]:
            disk.move(MOVER, path, f"kept.{path.rpartition('/')[2].removeprefix(NO_TEXT)}")
        for path, job in self.judges.withheld().items():
            if job.directory != layout.job_id:
                continue
            for below in disk.below(path):
                if isinstance(disk.files[below].label, Edited):
                    disk.move(MOVER, below, f"{path}.kept{below[len(path) :].replace('/', '-')}")
            while path:
                found = disk.files.get(path)
                if found is not None and isinstance(found.label, Edited):
                    disk.move(MOVER, path, f"{path}.kept")
                path = path.rpartition("/")[0]

    # The run.

    def begin(self) -> None:
        """Let everybody begin who is in the scenario."""
        HOOKS.used = frozenset(job.options.protocol for job in self.scenario.jobs)
        for job in self.scenario.jobs:
            nonce = "" if job.is_new else self.markers.get(job.again_of, "")
            self.markers[job.run] = nonce or f"{self.random.getrandbits(64):016x}"
        shared = {job.options.txn_id for job in self.scenario.jobs if job.options.txn_id}
        # Where files are announced, who sets a job up ends those of dead writers.
        shared |= {job.run for job in self.scenario.jobs if PROTOCOLS[job.options.protocol].announces_files}
        together = {job.job_id for job in self.scenario.jobs} if shared else set()
        for job in self.scenario.jobs:
            self._introduce(job)
            actor = self.actor(f"{job.run}.driver", job.job_id, *together)
            self.start(actor, self.drive(job, actor))
        for number, visitor in enumerate(self.scenario.visitors):
            job = self.visited(visitor)
            gc = visitor.errand == "gc"
            actor = self.actor(f"{self.prefix}visitor{number}", *(() if gc else (job.job_id, *together)))
            self.start(actor, self._visit(visitor, actor))
        for number, stranger in enumerate(self.scenario.strangers):
            actor = self.actor(f"{self.prefix}stranger{number}")
            self.judges.strangers.add(actor.name)
            self.start(actor, self._meddle(stranger, actor))
        for number, person in enumerate(self.scenario.people):
            actor = self.actor(f"{self.prefix}person{number}")
            self.judges.people |= {actor.name, MOVER}
            self.start(actor, self._change(person, actor))
        for number in range(self.scenario.readers):
            actor = self.actor(f"reader{number}")
            self.start(actor, read_again_and_again(self, actor, Random(f"reader {number} {self.seed}")))
            self.reading[self.tasks[-1]] = actor

    def play(self) -> History:
        """Run the history to its end and judge it."""
        self.begin()
        if self.scenario.settle_before_sleepers_wake:
            self._until(SETTLE_AT)
            self._settle_now("operator")
            if not self.judges.violations and not self.loop.halted:
                self._check_sleepers()
        self._until(self.wake_by)
        self._check_ended()
        # A workflow does not always wait for an operator before it runs its write again.
        if self.seed % 2:
            self._repeat_transactions("repetition")
        if self.scenario.forgets:
            self._forget()
        self._settle_now(LAST)
        self._check_readers()
        if not self.judges.violations:
            self._judge_end()
            self._repeat_transactions("last repetition")
            window = max((job.options.requests_in_flight for job in self.scenario.jobs), default=2)
            if self.ether.reads_at_once_max > window:
                self.judges.accuse("bounded", f"{self.ether.reads_at_once_max} manifests read at once, of {window}")
        return self._ended()

    def _judge_end(self) -> None:
        self.judges.judge_end(settled=True)

    def _introduce(self, job: JobPlan) -> None:
        """Let the judges know whose job a run is of, before any of its receipts comes in."""
        self.receipts[job.run] = {}
        self.failed[job.run] = set()
        self.judges.job_of_run[job.run] = job.attempt_of or job.run
        self.judges.id_of_run[job.run] = job.job_id

    def _until(self, when: float) -> None:
        if self.loop.halted:
            return
        if not self.loop.run(until=when, turns_max=TURNS_MAX):
            self.judges.accuse("live", f"no end after {TURNS_MAX} turns")

    def _settle_now(self, name: str) -> None:
        if self.loop.halted:
            return
        faults, self.ether.faults = self.ether.faults, NoFaults()
        actor = self.actor(name)
        actor.skew_seconds = 0.0
        self.start(actor, self._settle(actor))
        self._until(max(self.loop.now, self.wake_by if name == LAST else self.loop.now) + self.wake_by / 2)
        self.ether.faults = faults if name != LAST else NoFaults()

    def _forget(self) -> None:
        """All that came after a batch of a stream has been committed: the ids of the first ones are let go of."""
        if self.loop.halted:
            return
        self.ether.faults = NoFaults()
        actor = self.actor("stream")
        run = self.run_of(actor, None, JobLayout("nobody"))
        for txn_id in {job.options.txn_id for job in self.scenario.jobs} - {""}:
            if txn_id in self.judges.same_txn:
                series, _, number = txn_id.rpartition("/")
                self.start(actor, forget_outcomes(run, series, int(number)))
        self._until(self.loop.now + 1_000.0)

    def _check_sleepers(self) -> None:
        """Settled while some sleep: what a reader sees is right already."""
        if not any(task.done() for task in self.tasks[-1:]):
            self.judges.accuse("live", "the operator does not come to an end")

    def _check_ended(self) -> None:
        if self.loop.halted:
            return
        for task, actor in zip(self.tasks, self.actors.values(), strict=True):
            # A throttled store may keep a reader beyond the time that jobs have; not beyond that of the last operator.
            waits = actor.name in self.judges.people or task in self.reading
            if not task.done() and not actor.dead and not waits:
                self.judges.accuse("live", f"{actor.name} does not come to an end")
                return
            if task.done() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]

    def _check_readers(self) -> None:
        for task, actor in self.reading.items() if not self.loop.halted else ():
            if not task.done() and not actor.dead:
                self.judges.accuse("live", f"{actor.name} does not come to an end")
            elif task.done() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]

    def _repeat_transactions(self, name: str) -> None:
        """Nobody is at work any more, and nothing goes wrong. So one more job of each transaction id is not told that
        the id is held: it commits, or is told how the id has ended."""
        if self.loop.halted:
            return
        faults, self.ether.faults = self.ether.faults, NoFaults()
        firsts = {job.options.txn_id: job for job in reversed(self.scenario.jobs) if job.options.txn_id}
        for txn_id, first in firsts.items():
            patient = first.options.replace(conflict="append", wait_seconds_max=3_600.0)
            job = JobPlan(name, name.replace(" ", "-"), patient, attempts=())
            self.markers[job.run] = name
            self._introduce(job)
            actor = self.actor(name, *{each.job_id for each in (job, *self.scenario.jobs)})
            actor.skew_seconds = 0.0
            heard = len(self.told)
            self.start(actor, self.drive(job, actor))
            self._until(self.loop.now + self.wake_by / 2)
            told = [what for what in self.told[heard:] if what.startswith(f"{name}: ")]
            if not self.tasks[-1].done() or f"{name}: commit: {CommitFenced.__name__}" in "".join(told):
                self.judges.accuse("live", f"the transaction {txn_id} is held though nobody is at work: {told}")
        self.ether.faults = faults

    def _ended(self) -> History:
        for task in self.tasks:
            if task.done() and not task.cancelled():
                error = task.exception()
                if error is not None and not self.judges.violations:
                    raise error
        crashes = sum(actor.dead for actor in self.actors.values())
        history = History(
            self.seed,
            self.scenario,
            self.judges.violations,
            self.ether.trace,
            self.loop.turns,
            self.judges.changes,
            sum(job.committed for job in self.judges.jobs.values()),
            crashes,
            self.told,
            self.actors,
        )
        self._bury()
        return history

    def _bury(self) -> None:
        """Let go of actors that crashed, without letting their `finally` clauses do anything."""
        self.loop.over = True
        for actor in self.actors.values():
            actor.dead = True
        for task in (*self.tasks, *asyncio.all_tasks(self.loop)):
            if not task.done():
                coroutine = task.get_coro()
                with contextlib.suppress(BaseException):
                    coroutine.close()
        self.tasks.clear()


def play(
    seed: int, scenario: Scenario | None = None, faults: Faults | None = None, judges: type[Judges] = Judges
) -> History:
    """Play the history of a seed."""
    if scenario is None:
        scenario = scenario_of(seed)
    if scenario.places:
        from simworld.parts import PartsWorld  # it is made of this module's

        return PartsWorld(seed, scenario, faults).play()
    return World(seed, scenario, faults, judges).play()

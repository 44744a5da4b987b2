"""Jobs with parts in other locations: several destinations, each with a disk and judges of its own, in one world.

A part is judged where it is, as any job is: by the same judges, which know that it has no commit point of its own. What
they ask beyond that is in `PlaceJudges` and `WholeJudges`:

- no part moves, or shows anything, unless the whole is moving;
- the commit point of the whole finds every part complete, a part says that it has committed only after that, and then
  it is never undone;
- the whole says that it was undone only once all its parts are, and its end is theirs;
- gc of a location leaves a part alone as long as anything of the whole is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec
from lockgate.engine.job.locations import options_of_part
from lockgate.engine.job.setup import setup_job
from lockgate.engine.record.marker import JobMarker
from lockgate.engine.recovery.recover import Recovery
from lockgate.engine.run.job_run import JobRun, OpenStore
from lockgate.engine.run.store import Store
from lockgate.model.errors import FileExists, JobNotFound, LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JOBS, JobLayout, TaskAttempt
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.receipt import Receipt, pins_of
from lockgate.model.record import RecordedLocation, digest_of
from lockgate.model.summary import Summary
from lockgate.model.urls import StoreUrl, parent_of, parse_url

from simworld.answers import judge_abort, why_finishable
from simworld.faults import ANSWERS, Fault, Faults
from simworld.features import same_bytes
from simworld.judges import JobTruth, Judges, Written, directory_of
from simworld.scenario import AttemptPlan, JobPlan, Place, Scenario, Visitor
from simworld.store import NAMES, Actor, SimulatedStore, turn
from simworld.world import LAST, World

if TYPE_CHECKING:
    from simworld.disk import Stored

MOVES = (Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK)
"""The phases of the whole in which a part may move: in the last, by a driver that slept, or to take things back."""


class WholeJudges(Judges):
    """Observes the destination of jobs that have parts elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: dict[str, PlaceJudges] = {}
        """The judges of each location, by each of its names."""

    def _commit_point(self, actor: str, job: JobTruth, summary: Summary | None) -> None:
        super()._commit_point(actor, job, summary)
        for location in job.record.locations if job.record is not None else ():
            self.elsewhere[location.url].commits_with_the_whole(actor, job)

    def _saw_record(self, actor: str, job: JobTruth, content: bytes) -> None:
        before = job.record
        super()._saw_record(actor, job, content)
        if job.record is not before and job.phase is Phase.ROLLED_BACK:
            for judges in dict.fromkeys(self.elsewhere.values()):
                judges.is_undone_with_the_whole(actor, job)


class PlaceJudges(Judges):
    """Observes one location, where parts of the destination's jobs are beside jobs of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.place = ""
        self.whole: WholeJudges = None  # type: ignore[assignment]  # set right after
        self.divided: set[str] = set()
        """The ids of the jobs that may have parts here."""
        self.set_up_late: set[str] = set()
        """Of those, the ones whose parts somebody has set up anew when the job itself was coming to its end."""
        self.late: set[str] = set()
        """Of those, the ones of whose parts somebody has changed something when the job itself was over, or a task, or
        who set it up, when it was coming to its end."""

    def accuse(self, guarantee: str, what: str) -> None:
        super().accuse(guarantee, f"at {self.place}: {what}")

    def _whole_of(self, job: JobTruth) -> JobTruth | None:
        return self.whole.jobs.get(job.directory)

    def _saw_record(self, actor: str, job: JobTruth, content: bytes) -> None:
        before = job.record
        super()._saw_record(actor, job, content)
        if job.record is before or job.directory not in self.divided:
            return
        whole = self._whole_of(job)
        if whole is None or whole.record is None:
            return
        named = any(self.whole.elsewhere[each.url] is self for each in whole.record.locations)
        # What a late driver or task has left there, when the part was over, may well be deleted.
        if job.phase is Phase.ROLLING_BACK and whole.committed and named and job.pinned:
            self.accuse("undoable", f"{actor} undoes a part of {job.directory}, which is committed")
        # Who ends a part of a committed job, of whose record an early version alone is left, takes it through this.
        passes = job.robbed and whole.committed
        if job.phase is Phase.MOVING and whole.phase not in MOVES and not passes:
            self.accuse("abortable", f"{actor} moves a part of {job.directory}, which is {whole.phase}")

    def _commit_point(self, actor: str, job: JobTruth, summary: Summary | None) -> None:
        if job.directory in self.divided and not self.whole.was_committed(job.directory):
            self.accuse("complete", f"{actor} recorded a part of {job.directory} as committed before the whole is")
            return
        if job.directory in self.divided and any(self._is_lost_record_of(job, one) for one in self.ended):
            job.committed = True  # as the whole was with what the record said that is lost: this one says only that
            return
        super()._commit_point(actor, job, summary)

    @staticmethod
    def _is_lost_record_of(job: JobTruth, other: JobTruth) -> bool:
        return other.directory == job.directory and other.robbed and other.committed

    def commits_with_the_whole(self, actor: str, whole: JobTruth) -> None:
        """The commit point of the whole is that of its part here: all of that must be in place."""
        job = self.jobs.get(whole.directory)
        if job is not None and job.robbed and job.phase in (None, Phase.CLAIMED, Phase.REFUSED):
            # Begun anew by who came meanwhile, after somebody had deleted what said that all is in place.
            lost = [one for one in self.ended if one.directory == whole.directory and one.phase is Phase.PUBLISHING]
            job = lost[-1] if lost else job
        if job is None or job.record is None or job.phase is not Phase.PUBLISHING:
            self.accuse("complete", f"{actor} committed {whole.directory}, whose part is {job and job.phase}")
        elif not job.committed:
            self._commit_point(actor, job, None)

    def is_undone_with_the_whole(self, actor: str, whole: JobTruth) -> None:
        """The whole says that it was undone: nothing of its part may be seen, nothing that was there be away."""
        job = self.jobs.get(whole.directory)
        if job is None or job.robbed or whole.directory not in self.divided:
            return
        for path in job.files:
            if job.owns(path, self.visible.get(path)):
                self.accuse("undoable", f"{actor} says that {job.directory} was undone, and {path} is there")
        for path, holder in self.withheld().items():
            if holder is job:
                self.accuse("undoable", f"{actor} says that {job.directory} was undone, and {path} is set aside")

    def _shows(self, actor: str, job: JobTruth, target: str, moved: Stored) -> None:
        super()._shows(actor, job, target, moved)
        whole = self._whole_of(job)
        if job.directory in self.divided and (whole is None or whole.phase not in MOVES):
            phase = whole.phase if whole is not None else None
            self.accuse("abortable", f"{actor} made {target} visible while the whole is in phase {phase}")

    def judge_end(self, *, settled: bool) -> None:
        """Also of a part whose record somebody has deleted: the lists that it keeps elsewhere tell what it did."""
        super().judge_end(settled=settled)
        for job in (*self.ended, *self.jobs.values()):
            if job.directory not in self.divided or not job.robbed or self.whole.was_committed(job.directory):
                continue
            for path in job.files:
                if job.owns(path, self.visible.get(path)):
                    self.accuse("undoable", f"{job.directory} did not commit, and {path} of its part is there")
                    return
            for path, holder in self.withheld().items():
                if holder is job:
                    self.accuse("undoable", f"{job.directory} did not commit, and {path} is still set aside")
                    return

    def _within(self, actor: str, path: str) -> None:
        super()._within(actor, path)
        directory = directory_of(path)
        if directory is None or directory not in self.divided:
            return
        is_there = JobLayout(directory).job_marker in self.whole.disk.files
        whole = self.whole.jobs.get(directory)
        ends = whole is not None and whole.phase in (Phase.COMMITTED, Phase.ROLLING_BACK, Phase.ROLLED_BACK)
        sets_up = path == JobLayout(directory).job_marker
        if not is_there or (ends and (sets_up or actor in self.attempts)):
            self.late.add(directory)
            if sets_up:
                self.set_up_late.add(directory)
        elif sets_up:
            self.set_up_late.discard(directory)
        elif directory in self.set_up_late:
            return  # whoever saw that the part was over may delete what came after that
        elif actor in self.collectors and not ((part := self.jobs.get(directory)) is not None and part.over):
            self.accuse("contained", f"gc touched {path}, a part of a job that is not over")


class SharedFaults:
    """The faults of the destination's world strike in all of it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """The fault at an actor's operation."""
        return self._world.ether.faults.at(actor, number, items)


class Told(list[Any]):
    """What happens in one location, told among what happens everywhere."""

    def __init__(self, place: str, everywhere: list[Any]) -> None:
        super().__init__()
        self._place = place
        self._everywhere = everywhere

    def append(self, entry: Any) -> None:
        """Tell of one operation."""
        super().append(entry)
        at, actor, operation, *rest = entry
        self._everywhere.append((at, actor, f"{self._place}: {operation}" if operation != "told" else operation, *rest))


class NamedStore(SimulatedStore):
    """A connection that knows which names are of one place."""

    known_as: StoreUrl

    @property
    def place(self) -> StoreUrl:
        """The first of the names."""
        return self.known_as


def names_of(place: str) -> tuple[StoreUrl, ...]:
    """What a location is called."""
    return (StoreUrl("sim", "", f"/elsewhere/{place}"), StoreUrl("sims", "host", f"/elsewhere/{place}"))


class PlaceWorld(World):
    """One location of a world, and who is at work there beside the parts."""

    def __init__(self, whole: PartsWorld, seed: int, place: Place) -> None:
        self.divided = [job for job in whole.scenario.jobs if job.run in place.policies]
        known = [*place.scenario.jobs, *self.divided]
        scenario = replace(
            place.scenario,
            judges_finishing=whole.scenario.judges_finishing,
            visitors=place.scenario.visitors if known else (),
        )
        super().__init__(seed, scenario, SharedFaults(whole), PlaceJudges, beside=whole)
        self.whole = whole
        self.place = place
        self.names = names_of(place.name)
        self.prefix = f"{place.name}."
        self.ether.trace = Told(place.name, whole.ether.trace)
        judges = self.judges
        assert isinstance(judges, PlaceJudges) and isinstance(whole.judges, WholeJudges)
        judges.place, judges.whole = place.name, whole.judges
        judges.violations = whole.judges.violations
        whole.judges.elsewhere |= {str(name): judges for name in self.names}
        for job in self.divided:
            judges.divided.add(job.job_id)
            judges.job_of_run[job.run], judges.id_of_run[job.run] = job.run, job.job_id
            judges.promises = {**judges.promises, job.job_id: whole.judges.promises[job.job_id]}

    def actor(self, name: str, *directories: str) -> Actor:
        found = super().actor(name, *directories)
        self.whole.allow(name, directories)
        return found

    def opener(self, actor: Actor) -> OpenStore:
        return self.whole.opener(actor)

    def connect(
        self, actor: Actor, url: StoreUrl, *, shows_identities: bool = True, seconds_per_rename: float = 0.0
    ) -> SimulatedStore:
        found = NamedStore(
            self.ether, actor, url=url, shows_identities=shows_identities, seconds_per_rename=seconds_per_rename
        )
        found.known_as = self.names[0] if self.place.is_told_apart else url
        return found

    def visited(self, visitor: Visitor) -> JobPlan:
        known = [*self.scenario.jobs, *self.divided]
        return known[visitor.job % len(known)]

    def _why_finishable(self, layout: JobLayout) -> str:
        return "" if any(job.job_id == layout.job_id for job in self.divided) else super()._why_finishable(layout)

    def part_run(self, actor: Actor, job: JobPlan, whole: JobRun, *, attempt: str = "", calls_it: int = 0) -> JobRun:
        """One process's view of the part that a job has here."""
        options = _part_options(job.options, self.place.policies[job.run])
        run = self.run_of(
            actor,
            None,
            job.layout,
            marker=whole.marker,
            attempt=attempt,
            shows_identities=job.shows_identities,
            calls_it=calls_it,
        )
        run.options, run.part_of = options, str(whole.store.url)
        return run


class PartsWorld(World):
    """The world of a scenario in which jobs have parts elsewhere."""

    def __init__(self, seed: int, scenario: Scenario, faults: Faults | None = None) -> None:
        self.places: list[PlaceWorld] = []
        super().__init__(seed, scenario, faults, WholeJudges)
        for place in scenario.places:
            self.places.append(PlaceWorld(self, seed ^ crc32(place.name.encode()), place))
        self.elsewhere: dict[tuple[str, str], list[tuple[PlaceWorld, str, Receipt]]] = {}
        """What each task attempt has committed elsewhere, and by which name of that place."""

    def actor(self, name: str, *directories: str) -> Actor:
        found = super().actor(name, *directories)
        self.allow(name, directories)
        return found

    def allow(self, name: str, directories: Sequence[str]) -> None:
        """An actor has to do with these jobs, wherever they have parts."""
        for world in (self, *self.places) if directories else ():
            world.judges.allowed[name] = set(directories)

    def connect(
        self, actor: Actor, url: StoreUrl, *, shows_identities: bool = True, seconds_per_rename: float = 0.0
    ) -> SimulatedStore:
        found = NamedStore(
            self.ether, actor, url=url, shows_identities=shows_identities, seconds_per_rename=seconds_per_rename
        )
        found.known_as = NAMES[0]
        return found

    def opener(self, actor: Actor) -> OpenStore:
        async def open_store(url: str) -> Store:
            asked = parse_url(url)
            for world in (self, *self.places):
                if asked in world.names:
                    return world.connect(actor, asked)
            raise StoreError("no other store here", where=url)

        return open_store

    def begin(self) -> None:
        super().begin()
        for place in self.places:
            place.begin()

    def _places_of(self, job: JobPlan) -> list[PlaceWorld]:
        return [place for place in self.places if job.run in place.place.policies]

    # Drivers.

    async def _set_up_elsewhere(self, job: JobPlan, actor: Actor, run: JobRun) -> bool:
        try:
            for place in self._places_of(job):
                if job.run in place.place.declared:
                    await self._declare(run, str(place.names[0]))
                    await setup_job(place.part_run(actor, job, run))
        except LockgateError as error:
            self.tell(actor, f"setup elsewhere failed: {type(error).__name__}: {error.what}")
            await self._give_up(job, actor, run, "its setup failed")
            return False
        return True

    async def _finish(self, job: JobPlan, actor: Actor, run: JobRun) -> None:
        complete = {plan.task for plan in job.attempts} <= self.receipts[job.run].keys()
        if self._places_of(job) and complete and not job.aborts:
            try:
                run.locations = await self._locations(job, actor, run)
            except LockgateError as error:
                self.tell(actor, f"parts were not set up: {type(error).__name__}: {error.what}")
                await self._give_up(job, actor, run, "its parts were not set up")
                return
        await super()._finish(job, actor, run)

    async def _locations(self, job: JobPlan, actor: Actor, run: JobRun) -> list[RecordedLocation]:
        """What the driver commits elsewhere: what the attempts of its receipts have told, and what it replaces."""
        found: list[RecordedLocation] = []
        attempts = [receipt.task_attempt_id for receipt in self.receipts[job.run].values()]
        told = [each for attempt in attempts for each in self.elsewhere.get((job.run, attempt), ())]
        for place in self._places_of(job):
            by_name: dict[str, list[Receipt]] = {str(place.names[0]): []} if job.run in place.place.declared else {}
            for _, name, receipt in [each for each in told if each[0] is place]:
                one = name if not place.place.is_told_apart or not by_name else next(iter(by_name))
                by_name.setdefault(one, []).append(receipt)
            offered = place.judges.offered.setdefault(job.job_id, [])
            for name, receipts in by_name.items():
                number = place.names.index(parse_url(name))
                await setup_job(place.part_run(actor, job, run, calls_it=number))
                offered.append(frozenset((each.task_attempt_id, each.digest) for each in receipts))
                found.append(
                    RecordedLocation(
                        name,
                        place.place.policies[job.run],
                        pins_of(receipts, job.job_id),
                        sum(each.files for each in receipts),
                        sum(each.bytes for each in receipts),
                    )
                )
        return found

    # Tasks.

    async def _write_and_commit(
        self, job: JobPlan, plan: AttemptPlan, name: TaskAttempt, actor: Actor, files: dict[str, bytes]
    ) -> None:
        try:
            told = [
                await self._write_at(place, targets, job, plan, name, actor)
                for place in self._places_of(job)
                if (targets := place.place.targets.get((job.run, plan.task, plan.attempt)))
            ]
        except LockgateError as error:
            self.tell(actor, f"task attempt failed elsewhere: {type(error).__name__}: {error.what}")
            self.failed[job.run].add((plan.task, plan.attempt))
            return
        self.elsewhere[job.run, name.task_attempt_id] = told
        await super()._write_and_commit(job, plan, name, actor, files)

    async def _write_at(
        self,
        place: PlaceWorld,
        targets: Sequence[str],
        job: JobPlan,
        plan: AttemptPlan,
        name: TaskAttempt,
        actor: Actor,
    ) -> tuple[PlaceWorld, str, Receipt]:
        """As a task of Spark's: it declares the location, leaves the marker of the part there, and writes."""
        attempt = name.task_attempt_id
        whole = self.run_of(
            actor, job, job.layout, marker=self.markers[job.run], attempt=attempt, calls_it=job.calls_it
        )
        calls_it = place.place.calls_it.get((job.run, plan.task), 0)
        declared = str(place.names[calls_it])
        # One place has one name in manifests, where it can be known: the driver saves those of such writers.
        one_name = 0 if place.place.is_told_apart else calls_it
        part = place.part_run(actor, job, whole, attempt=attempt, calls_it=one_name)
        store = part.store
        assert isinstance(store, SimulatedStore)
        files = {
            target: same_bytes(target)
            if job.same_bytes
            else f"{job.run}|{attempt}|{place.place.name}/{target}".encode()
            for target in targets
        }
        place.judges.attempts[actor.name] = (job.run, plan.task, attempt, files)
        await self._look_for_job(whole)
        await self._declare(whole, declared)
        # Whoever ends the job looks for declarations after the marker counts no more.
        await self._look_for_job(whole)
        await part.protocol.set_up_job(part)
        await self._mark(part)
        await part.protocol.set_up_task(part)
        nonce = f"{self.random.getrandbits(24):06x}"
        staged: dict[str, FileStatus] = {}
        for ordinal, (target, content) in enumerate(files.items()):
            await turn()
            if directory := parent_of(target):
                await part.protocol.set_up_directory(part, directory)
            store.writes = Written(job.run, attempt, target)
            output = part.protocol.open_file(part, ordinal, target, nonce)
            output.stream.write(content)
            staged[target] = output.close()
        return place, str(store.url), await part.protocol.commit_task(part, name, staged, {"rows_written": 1})

    async def _look_for_job(self, run: JobRun) -> None:
        (found,) = await run.store.stat_files([run.layout.job_marker])
        if found is None:
            raise JobNotFound("the job of this task is over", where=run.layout.job_marker)

    async def _declare(self, run: JobRun, url: str) -> None:
        if self.ether.profile.real_directories:
            await run.store.make_directories([run.layout.locations])
        await run.store.write_file(run.layout.location(digest_of(url.encode())), url.encode())

    async def _mark(self, part: JobRun) -> None:
        marker = JobMarker(part.layout.job_id, part.marker, part.runtime.wall(), user="task", part_of=part.part_of)
        with contextlib.suppress(FileExists):
            await part.store.create_file(part.layout.job_marker, msgspec.json.encode(marker))

    # What is asked of all places.

    def _recorded_at(self, job: JobTruth) -> list[PlaceJudges]:
        judges = self.judges
        assert isinstance(judges, WholeJudges)
        return [judges.elsewhere[each.url] for each in (job.record.locations if job.record is not None else ())]

    def _why_finishable(self, layout: JobLayout) -> str:
        why = super()._why_finishable(layout)
        job = self.judges.jobs.get(layout.job_id)
        if not why or job is None or not (parts := self._recorded_at(job)) or job.committed:
            return why
        if job.phase is Phase.CLAIMED or not all(
            judges.jobs[layout.job_id].phase in (Phase.MOVING, Phase.PUBLISHING) and why_finishable(judges, layout)
            for judges in parts
            if layout.job_id in judges.jobs
        ):
            return ""
        return f"{why}, and so are its {len(parts)} parts" if all(layout.job_id in j.jobs for j in parts) else ""

    def _judge_undone_elsewhere(self, actor: Actor, job_id: str, began: Sequence[int] | None = None) -> None:
        if self.scenario.judges_finishing and not self.judges.was_committed(job_id):
            for place, at in zip(self.places, began or [None] * len(self.places), strict=True):
                judge_abort(place.judges, actor.name, job_id, began=at)

    async def _abort(self, run: JobRun, actor: Actor, told: str) -> None:
        began = [place.judges.changes for place in self.places]
        await super()._abort(run, actor, told)
        self._judge_undone_elsewhere(actor, run.layout.job_id, began)

    async def _recover(self, run: JobRun, actor: Actor, *, undo: bool | None, force: bool) -> Recovery:
        recovery = await super()._recover(run, actor, undo=undo, force=force)
        if recovery.outcome == "undone":
            self._judge_undone_elsewhere(actor, run.layout.job_id)
        return recovery

    def _judge_commit_error(self, job: JobPlan, actor: Actor, began: float, error: LockgateError) -> None:
        super()._judge_commit_error(job, actor, began, error)
        if "the destination was restored" in error.what:
            self._judge_undone_elsewhere(actor, job.job_id)

    async def _settle(self, actor: Actor) -> None:
        await super()._settle(actor)
        if actor.name == LAST and not self.told_of_people():
            self._judge_what_is_left()
        for place in self.places:
            await place._settle(actor)

    def _judge_what_is_left(self) -> None:
        """All jobs of the destination are ended, and with them their parts, but for what tasks have brought there after
        that, and where a store did not do what it was asked: that is for gc of the location."""
        if any(kind in ANSWERS for kind in self.scenario.fault_kinds):
            return
        for place in self.places:
            judges = place.judges
            assert isinstance(judges, PlaceJudges)
            for job in place.divided:
                left = judges.disk.below(JobLayout(job.job_id).job_directory)
                record = judges.jobs[job.job_id].record if job.job_id in judges.jobs else None
                if record is not None and record.phase is Phase.ROLLED_BACK and not record.part_of:
                    continue  # somebody has aborted it there, before the main job was set up: that is for gc, too
                if left and job.job_id not in judges.late and not self.judges.disk.below(JOBS):
                    judges.accuse("cleaned up", f"{job.job_id} is over, and its part is not: {left[:3]}")

    def _judge_end(self) -> None:
        super()._judge_end()
        for place in self.places:
            if not self.judges.violations:
                place._judge_end()


_OPTIONS: dict[tuple[int, str], tuple[JobOptions, JobOptions]] = {}
"""By the identity of a job's options, which are kept here, and a policy: those of a part."""


def _part_options(options: JobOptions, policy: str) -> JobOptions:
    key = (id(options), policy)
    if key not in _OPTIONS:
        _OPTIONS[key] = options, options_of_part(options, policy)
    return _OPTIONS[key][1]

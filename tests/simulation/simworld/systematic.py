"""Small spaces, enumerated: every crash point of a driver and of its recoverer, every interleaving of two attempts.

A crash point is before an operation, or between two files of its batch; after the last operation there is nothing
left to interrupt, and after any other it is before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from simworld.faults import Fault, Kind, PlannedFaults
from simworld.scenario import POLICIES, AttemptPlan, JobPlan, Scenario, Visitor, changed, options, options_on
from simworld.store import EVERY_STORE, profile_of
from simworld.world import History, World

DRIVER = "job0.driver"
RECOVERER = "visitor0"
RECOVERER_COMES = 2_000.0
"""Virtual seconds: long after the driver has ended, or died."""

ORDERS = ("old-first", "new-first")
DIRECTORIES = "directories"
"""Old first, and by whole directories."""


@dataclass
class Recorder:
    """No faults; notes how many files each operation of each actor is on."""

    plan: dict[tuple[str, int], Fault] = field(default_factory=dict)
    seen: dict[str, list[int]] = field(default_factory=dict)

    def at(self, actor: str, number: int, items: int) -> Fault | None:
        """Note, and what is planned."""
        self.seen.setdefault(actor, []).append(items)
        return self.plan.get((actor, number))


def small_job(store: str, policy: str, order: str = "old-first", *, undo: bool = False) -> Scenario:
    """One job of two tasks that meets data of the same partition, of the same name, and of a partition it must not
    touch."""
    before = {
        "p=1/old": b"before|p=1|old",
        "p=1/part-0": b"before|p=1|part-0",
        "p=2/old": b"before|p=2|old",
        "p=9/kept": b"before|p=9|kept",
    }
    # Where nothing is renamed, no file can take the place of one of its name.
    first = "p=1/part-0" if policy.startswith("replace") and not profile_of(store).defers else "p=1/part-1"
    attempts = (AttemptPlan(0, 0, (first, "p=3/part-0")), AttemptPlan(1, 0, ("p=2/part-1",)))
    whole = order == DIRECTORIES
    chosen = options(
        conflict=policy,
        replace_order="old-first" if whole else order,
        set_aside="directories" if whole else "files",
        validate_output=True,
        requests_in_flight=2,
        alive_seconds=0.0,
    )
    job = JobPlan("job0", "job1", options_on(store, chosen), attempts)
    if policy.startswith("fail"):
        before = {"p=9/kept": b"before|p=9|kept"} if policy == "fail-partitions" else {}
    return Scenario(
        store,
        before,
        policy != "fail",
        (job,),
        settle_undoes=undo,
        stickiness=1.0,
        judges_finishing=True,
    )


def small_jobs() -> Iterator[Scenario]:
    """Every store, policy, order and outcome."""
    for store in EVERY_STORE:
        for policy in (*POLICIES, "fail-partitions") if profile_of(store).defers else POLICIES:
            # Readers of a bucket see old and new together, whatever the order.
            replaces = policy.startswith("replace") and not profile_of(store).defers
            orders = ORDERS if replaces else ORDERS[:1]
            if replaces and (store == "tree" or (store == "disk" and policy == "replace-partitions")):
                orders = (*ORDERS, DIRECTORIES)
            for order in orders:
                for undo in (False, True):
                    yield small_job(store, policy, order, undo=undo)


def crash_points(items: list[int]) -> Iterator[tuple[int, Fault]]:
    """Every moment at which an actor that did these operations may die."""
    for number, count in enumerate(items):
        yield number, Fault(Kind.CRASH_BEFORE)
        if count > 1:
            yield number, Fault(Kind.CRASH_BETWEEN, 1)
    yield len(items) - 1, Fault(Kind.CRASH_AFTER)


Moments = list[tuple[int, Fault]]
Choice = Callable[[Moments], Moments]


@dataclass(frozen=True)
class Sample:
    """Which moments of two actors are played: of the first, and for each of those, of the second."""

    of_the_first: Choice
    of_the_second: Choice


def _all(moments: Moments) -> Moments:
    return moments


all_of_them = Sample(_all, _all)
"""Every moment of both."""


def some_of_them(chance: Random, *, share: float, most: int) -> Sample:
    """Of the first actor such a share and the last; of the second at most so many, others for each of the first."""

    def of_the_first(moments: Moments) -> Moments:
        return [moment for moment in moments[:-1] if chance.random() < share] + moments[-1:]

    return Sample(of_the_first, lambda moments: chance.sample(moments, min(most, len(moments))))


def every_crash(scenario: Scenario) -> Iterator[History]:
    """The driver dies at each of its crash points; an operator finishes or undoes."""
    recorder = Recorder()
    yield World(0, scenario, recorder).play()
    for number, fault in crash_points(recorder.seen[DRIVER]):
        yield World(0, scenario, PlannedFaults({(DRIVER, number): fault})).play()


def every_pair_of_crashes(scenario: Scenario, sample: Sample = all_of_them) -> Iterator[History]:
    """The driver dies at each of its crash points, and for each, a recoverer at each of its own, or both at a sample of
    them; then an operator comes."""
    errand = "undo" if scenario.settle_undoes else "recover"
    scenario = replace(scenario, visitors=(Visitor(errand, 0, RECOVERER_COMES),))
    recorder = Recorder()
    World(0, scenario, recorder).play()
    for number, fault in sample.of_the_first(list(crash_points(recorder.seen[DRIVER]))):
        first = Recorder({(DRIVER, number): fault})
        yield World(0, scenario, first).play()
        for second, other in sample.of_the_second(list(crash_points(first.seen.get(RECOVERER, [])))):
            yield World(0, scenario, PlannedFaults({(DRIVER, number): fault, (RECOVERER, second): other})).play()


SLEEPS = 10_000.0


def and_then_another(scenario: Scenario, *, undo: bool) -> Scenario:
    """The small job, two that come to finish or undo it, and later another job that writes the same names."""
    first = scenario.jobs[0]
    attempts = tuple(replace(attempt, targets=attempt.targets[:1]) for attempt in first.attempts)
    chosen = options(conflict="replace-partitions", requests_in_flight=2, alive_seconds=0.0)
    chosen = options_on(scenario.store, chosen)
    if profile_of(scenario.store).defers:
        attempts = tuple(replace(plan, targets=tuple(f"{path}.b" for path in plan.targets)) for plan in attempts)
    second = JobPlan("job1", "job10", chosen, attempts, start=2 * RECOVERER_COMES)
    visitors = tuple(Visitor("undo" if undo else "recover", 0, at * RECOVERER_COMES) for at in (1.0, 1.5))
    return replace(scenario, jobs=(first, second), visitors=visitors)


def every_death_that_readers_see(scenario: Scenario) -> Iterator[History]:
    """The driver dies at each of its crash points, nobody comes to end its job, another job appends meanwhile, and
    readers ask what counts: by then the `_SUCCESS` of the first, if it came so far, has gone."""
    first = scenario.jobs[0]
    attempts = tuple(replace(each, targets=tuple(f"{path}.b" for path in each.targets[:1])) for each in first.attempts)
    second = replace(
        first,
        run="job1",
        job_id="job10",
        options=changed(first.options, conflict="append"),
        attempts=attempts,
        start=30.0,
    )
    scenario = replace(scenario, jobs=(first, second), readers=3)
    recorder = Recorder()
    yield World(0, scenario, recorder).play()
    for number, fault in crash_points(recorder.seen[DRIVER]):
        yield World(number, scenario, PlannedFaults({(DRIVER, number): fault})).play()


def every_lost_answer_of_a_store_that_goes_away(scenario: Scenario, away: int = 40) -> Iterator[History]:
    """The driver has no answer to each of its operations, which took place, and then nothing answers for a while."""
    recorder = Recorder()
    yield World(0, scenario, recorder).play()
    for number in range(len(recorder.seen[DRIVER])):
        yield World(0, scenario, PlannedFaults({(DRIVER, number): Fault(Kind.LOST, 0, 0.0, away)})).play()


def every_answer_lost_and_done_in_a_look(scenario: Scenario) -> Iterator[History]:
    """Each actor has no answer to each of its operations, which take place while it looks what has become of them: of
    several files, after the last was looked at, and before the first."""
    recorder = Recorder()
    yield World(0, scenario, recorder).play()
    for actor, items in recorder.seen.items():
        for number in range(len(items)):
            fault = Fault(Kind.LATE, in_a_look=True)
            yield World(0, scenario, PlannedFaults({(actor, number): fault})).play()


def every_request_that_is_done_at_last(scenario: Scenario, seconds: float) -> Iterator[History]:
    """Each actor has no answer to each of its operations, however often it asks, and then it is done."""
    recorder = Recorder()
    yield World(0, scenario, recorder).play()
    for actor, items in recorder.seen.items():
        for number in range(len(items)):
            fault = Fault(Kind.LATE, 0, seconds, stuck=True)
            yield World(0, scenario, PlannedFaults({(actor, number): fault})).play()


ATTEMPT = "job0.0.0"


def every_request_that_is_done_at_last_of_one_that_died(scenario: Scenario, seconds: float) -> Iterator[History]:
    """The same, of the first task attempt, which dies at each of its operations that come after."""
    recorder = Recorder()
    World(0, scenario, recorder).play()
    for number in range(len(recorder.seen[ATTEMPT])):
        stuck = {(ATTEMPT, number): Fault(Kind.LATE, 0, seconds, stuck=True)}
        then = Recorder(stuck)
        World(0, scenario, then).play()
        for dies in range(number + 1, len(then.seen[ATTEMPT])):
            crash = {(ATTEMPT, dies): Fault(Kind.CRASH_BEFORE)}
            yield World(0, scenario, PlannedFaults(stuck | crash)).play()


def every_crash_and_answer_lost_in_a_look(scenario: Scenario, sample: Sample = all_of_them) -> Iterator[History]:
    """The driver dies at each of its crash points, or at a sample of them, and the same is met by who recovers its job,
    or undoes it."""
    errand = "undo" if scenario.settle_undoes else "recover"
    scenario = replace(scenario, visitors=(Visitor(errand, 0, RECOVERER_COMES),))
    recorder = Recorder()
    World(0, scenario, recorder).play()
    for number, fault in sample.of_the_first(list(crash_points(recorder.seen[DRIVER]))):
        first = Recorder({(DRIVER, number): fault})
        World(0, scenario, first).play()
        for second in range(len(first.seen.get(RECOVERER, []))):
            late = Fault(Kind.LATE, in_a_look=True)
            yield World(0, scenario, PlannedFaults({(DRIVER, number): fault, (RECOVERER, second): late})).play()


def sleeping_points(items: list[int]) -> Iterator[tuple[int, Fault]]:
    """Every moment at which an actor that does these operations may fall asleep, for longer than anybody waits."""
    for number, count in enumerate(items):
        yield number, Fault(Kind.SLEEP_BEFORE, 0, SLEEPS)
        if count > 1:
            yield number, Fault(Kind.SLEEP_BETWEEN, 1, SLEEPS)


def every_sleeping_driver(scenario: Scenario, *, late_attempt: bool = False) -> Iterator[History]:
    """The driver falls asleep at each of its operations, its job is ended by another and followed by another, and then
    it wakes up and goes on. `late_attempt`: so does a second attempt of a task, which wakes up first and writes."""
    asleep: dict[tuple[str, int], Fault] = {}
    if late_attempt:
        job = scenario.jobs[0]
        job = replace(job, attempts=(*job.attempts, AttemptPlan(0, 1, ("p=1/late",))))
        scenario = replace(scenario, jobs=(job, *scenario.jobs[1:]))
        asleep["job0.0.1", 0] = Fault(Kind.SLEEP_AFTER, 0, 0.8 * SLEEPS)
    recorder = Recorder(asleep)
    World(0, scenario, recorder).play()
    for number, fault in sleeping_points(recorder.seen[DRIVER]):
        yield World(0, scenario, PlannedFaults({**asleep, (DRIVER, number): fault})).play()


def every_sleeping_recoverer(scenario: Scenario, sample: Sample = all_of_them) -> Iterator[History]:
    """The driver dies at each of its operations; the first recoverer falls asleep at each of its own, or both at a
    sample of them; a second ends the job, another job follows, and then the first wakes up and goes on."""
    recorder = Recorder()
    World(0, scenario, recorder).play()
    for number, fault in sample.of_the_first(list(crash_points(recorder.seen[DRIVER]))):
        first = Recorder({(DRIVER, number): fault})
        World(0, scenario, first).play()
        for second, other in sample.of_the_second(list(sleeping_points(first.seen.get(RECOVERER, [])))):
            yield World(0, scenario, PlannedFaults({(DRIVER, number): fault, (RECOVERER, second): other})).play()


@dataclass
class Schedule:
    """Chooses as its prefix says, then always the one that became ready last; notes how many there were to choose
    from."""

    prefix: tuple[int, ...]
    widths: list[int] = field(default_factory=list)

    def __call__(self, waiting: int) -> int:
        """The next choice."""
        at = len(self.widths)
        self.widths.append(waiting)
        return self.prefix[at] if at < len(self.prefix) else 0


def every_schedule(play: Callable[[Schedule], History], *, preemptions_max: int) -> Iterator[History]:
    """Every order in which the actors may take turns, with at most so many departures from running one actor on."""
    pending: list[tuple[tuple[int, ...], int]] = [((), 0)]
    while pending:
        prefix, preemptions = pending.pop()
        schedule = Schedule(prefix)
        yield play(schedule)
        if preemptions == preemptions_max:
            continue
        for depth in range(len(prefix), len(schedule.widths)):
            for other in range(1, schedule.widths[depth]):
                padding = (0,) * (depth - len(prefix))
                pending.append(((*prefix, *padding, other), preemptions + 1))


def two_attempts(
    store: str,
    *,
    with_receipts: bool,
    report_lost: bool = False,
    given_up: bool = False,
    at_commit: bool = False,
) -> Scenario:
    """One task, two attempts that write other names. `report_lost`: the first commits again; `given_up`: it aborts
    after its commit; `at_commit`: the second begins when the driver begins to commit."""
    job = JobPlan(
        "job0",
        "job1",
        options_on(store, options(conflict="append", requests_in_flight=2)),
        (
            AttemptPlan(0, 0, ("p=1/first",), report_lost=report_lost, given_up=given_up),
            AttemptPlan(0, 1, ("p=1/second",), start=5.0 if at_commit else 0.0),
        ),
        with_receipts=with_receipts,
    )
    return Scenario(store, {}, False, (job,), judges_finishing=True)


def play_schedule(scenario: Scenario) -> Callable[[Schedule], History]:
    """A function that plays the scenario by a schedule."""

    def play(schedule: Schedule) -> History:
        world = World(0, scenario)
        world.loop.choose = schedule
        return world.play()

    return play

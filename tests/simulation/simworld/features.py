"""What the real world has beyond one kind of data, one driver a job and one committer: each can be left out of a run.

A feature widens a scenario that was drawn without it, by a chance of its own, so that leaving one out changes nothing
else. `ON` are those that random histories have by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from random import Random
from uuid import UUID
from zlib import crc32

from lockgate.model.capabilities import Capability

from simworld.faults import CRASHES, SLEEPS, Kind
from simworld.scenario import (
    ACTS,
    MOMENTS,
    POLICIES,
    AttemptPlan,
    JobPlan,
    Person,
    Place,
    Scenario,
    Stranger,
    Visitor,
    changed,
    draw_job,
    draw_scenario,
    options_on,
)
from simworld.store import BUCKET, COPYING, NAMES, PROFILES, VERSIONED, profile_of


class Feature(StrEnum):
    """One thing that a history may have."""

    EQUAL = "equal contents"
    STRANGERS = "other committers"
    TIDYING = "directories of jobs deleted by others"
    LINGERING = "tasks that write on"
    TRANSACTIONS = "transactions in every order"
    ATTEMPTS = "several attempts at a job"
    LONG_MOVES = "moves that take long"
    NAMES = "one destination of many names"
    COPIES = "a rename is two acts"
    SHAPES = "files where directories were"
    AGAIN = "a job that was undone is run again"
    UPLOADS = "uploads instead of renames"
    PEOPLE = "people who edit in place"
    DIRECTORIES = "directories set aside whole"
    PARTS = "parts in other locations"
    FINISHING = "recovery finishes what it can"
    TWICE = "a task run twice under one number"


ON: frozenset[Feature] = frozenset(Feature) - {Feature.PARTS}
"""What random histories have. Parts, of which each place has judges of its own, have tests of their own."""


def scenario_of(seed: int, features: Iterable[Feature] = ON, *, surely: bool = False) -> Scenario:
    """The scenario of a seed; `surely`: with every one of these features, whatever chance says."""
    scenario = draw_scenario(Random(f"scenario {seed}"))
    chosen = frozenset(features)
    for feature, (share, widen) in _WIDEN.items():
        # A checksum costs less than a generator that most histories do not need.
        drawn = crc32(f"{feature.value} {seed}".encode()) / (1 << 32)
        if feature in chosen and (drawn < share or surely):
            scenario = widen(scenario, Random(f"{feature.value} {seed}"))
            if feature is Feature.UPLOADS and not surely and crc32(f"versions {seed}".encode()) % 4 == 0:
                scenario = _versions(scenario, Random(f"versions {seed}"))
            if feature is Feature.AGAIN and not surely and crc32(f"restarted {seed}".encode()) % 3 == 0:
                scenario = restarted(scenario, Random(f"restarted {seed}"))
    return replace(scenario, judges_finishing=Feature.FINISHING in chosen)


def same_bytes(target: str) -> bytes:
    """The content of a file that everybody writes alike."""
    return f"same|{target}".encode()


def _shares_an_id(scenario: Scenario) -> bool:
    return len({job.job_id for job in scenario.jobs}) < len(scenario.jobs)


def _equal(scenario: Scenario, random: Random) -> Scenario:
    """Attempts, jobs and what was there before have the same bytes under the same names."""
    if _shares_an_id(scenario):
        return scenario
    chance = random.random
    jobs = []
    alike = chance() < 0.7
    for job in scenario.jobs:
        attempts = job.attempts
        if alike:
            # The numbers in the names tell jobs apart: here they do not.
            attempts = tuple(
                replace(plan, targets=tuple(dict.fromkeys(_without_job(path) for path in plan.targets)))
                for plan in attempts
            )
        jobs.append(
            replace(job, attempts=attempts, same_bytes=chance() < 0.8, shows_identities=chance() < 0.75),
        )
    before = {path: same_bytes(path) if chance() < 0.7 else content for path, content in scenario.before.items()}
    if before and chance() < 0.6:
        for plan in jobs[0].attempts:
            for target in plan.targets:
                if chance() < 0.6 and not _is_blocked(target, before):
                    before[target] = same_bytes(target)
    return replace(scenario, jobs=tuple(jobs), before=before, coarse_identities=True)


def _without_job(path: str) -> str:
    directory, slash, name = path.rpartition("/")
    return directory + slash + (f"j0{name[2:]}" if name[:1] == "j" and name[1:2].isdigit() else name)


def _is_blocked(target: str, before: Iterable[str]) -> bool:
    return any(target.startswith(path + "/") or path.startswith(target + "/") for path in before)


def _strangers(scenario: Scenario, random: Random) -> Scenario:
    chance = random.random
    strangers = tuple(
        Stranger(
            random.choice((0.0, 0.0, 1.0, 30.0, 200.0, 2_500.0)) * chance(),
            tuple(
                f"{random.choice(('p=1/', 'p=2/', ''))}spark-{number}-{file}" for file in range(random.randint(0, 2))
            ),
            aborts=chance() < 0.3,
        )
        for number in range(random.choice((1, 1, 2)))
    )
    return replace(scenario, strangers=(*scenario.strangers, *strangers))


def _tidied(scenario: Scenario, random: Random) -> Scenario:
    if _shares_an_id(scenario):
        # An id that was given twice is found out by the directory of the first job, and by nothing else.
        return scenario
    scenario = _strangers(replace(scenario, strangers=()), random)
    return replace(scenario, strangers=tuple(replace(each, tidies=True) for each in scenario.strangers))


def _lingering(scenario: Scenario, random: Random) -> Scenario:
    """A speculative attempt writes on, whatever became of its job."""
    if _shares_an_id(scenario):
        return scenario
    chance = random.random
    jobs = list(scenario.jobs)
    number = random.randrange(len(jobs))
    job = jobs[number]
    late = AttemptPlan(
        0,
        9,
        (f"p=1/late-{number}",),
        start=random.choice((0.0, 0.0, 5.0)) * chance(),
        lingers=random.randint(1, 6),
        pause=random.choice((0.0, 0.0, 0.01, 0.1)),
    )
    aborts = chance() < 0.4
    jobs[number] = replace(
        job, attempts=(*job.attempts, late), aborts=aborts or job.aborts, aborts_early=aborts and chance() < 0.8
    )
    return replace(scenario, jobs=tuple(jobs), renames_away=chance() < 0.5)


def _twice(scenario: Scenario, random: Random) -> Scenario:
    """An attempt is slow; it is taken for dead, and its task run again under the same number, with other files.
    (Not by uploads: the abort of one run gives up what is known by the number, and leaves the other's pending.)"""
    if _shares_an_id(scenario) or profile_of(scenario.store).protocol != "manifest":
        return scenario
    chance = random.random
    jobs = list(scenario.jobs)
    number = random.randrange(len(jobs))
    numbers = [plan.task for plan in jobs[number].attempts]
    attempts: list[AttemptPlan] = []
    for plan in jobs[number].attempts:
        # With another attempt at the task, the refusal may be that one's doing.
        if numbers.count(plan.task) > 1:
            attempts.append(plan)
            continue
        first = replace(plan, scans=False, fails=False, given_up=False, report_lost=False)
        again = replace(
            first,
            targets=tuple(f"{target}.again" for target in plan.targets),
            start=random.choice((0.0, 1.0, 10.0)) * chance(),
            report_lost=chance() < 0.15,
            is_again=True,
        )
        attempts += [replace(first, waits=random.choice((0.0, 5.0, 30.0, 60.0, 300.0)) * chance()), again]
    jobs[number] = replace(jobs[number], attempts=tuple(attempts), aborts=False)
    return replace(scenario, jobs=tuple(jobs))


def _transactions(scenario: Scenario, random: Random) -> Scenario:
    """Every job has one transaction id; refused ones commit again; in the end the id is forgotten."""
    if _shares_an_id(scenario):
        return scenario
    chance = random.random
    jobs = list(scenario.jobs)
    if len(jobs) == 1:
        jobs.append(replace(jobs[0], run="job1", job_id="job10"))
    starts = [random.choice((0.0, 0.0, 10.0, 400.0, 2_000.0)) * chance() for _ in jobs]
    together: list[JobPlan] = [
        replace(
            job,
            options=changed(job.options, txn_id="txn 1/ü/7"),
            start=start,
            commits_twice=chance() < 0.5,
            commits_again_after=random.choice((0.0, 0.0, 30.0)),
            gives_up=chance() < 0.1,
            twin=None,
        )
        for job, start in zip(jobs, starts, strict=True)
    ]
    return replace(scenario, jobs=tuple(together), forgets=chance() < 0.5)


def _attempts(scenario: Scenario, random: Random) -> Scenario:
    """The first attempt at a job may die anywhere, or live on; another begins meanwhile, or later."""
    if _shares_an_id(scenario):
        return scenario
    chance = random.random
    first = replace(scenario.jobs[0], commits_twice=False)
    second = replace(
        first,
        run=f"{first.run}b",
        job_attempt=1,
        attempt_of=first.run,
        takes_over=chance() < 0.6,
        with_receipts=True,
        start=first.start + random.choice((1.0, 10.0, 70.0, 400.0, 2_000.0)) * chance(),
        aborts=False,
        twin=None,
        attempts=tuple(
            plan if chance() < 0.7 else replace(plan, targets=tuple(f"{target}.b" for target in plan.targets))
            for plan in first.attempts
        ),
    )
    crashes = tuple({*scenario.fault_kinds, *(CRASHES if chance() < 0.7 else ())})
    return replace(
        scenario,
        jobs=(first, second, *scenario.jobs[1:]),
        visitors=tuple(replace(each, job=each.job and each.job + 1) for each in scenario.visitors),
        fault_kinds=tuple(kind for kind in Kind if kind in crashes),
        fault_rate=(scenario.fault_rate or random.choice((0.0, 0.02, 0.05))) if crashes else 0.0,
    )


def _long_moves(scenario: Scenario, random: Random) -> Scenario:
    """Moving takes longer than a driver may be silent; recoverers come meanwhile, and believe the record."""
    chance = random.random
    jobs = tuple(replace(job, options=changed(job.options, alive_seconds=900.0)) for job in scenario.jobs)
    visitors = tuple(
        Visitor(
            random.choice(("recover", "finish", "undo", "gc")), random.randrange(len(jobs)), at, force=chance() < 0.2
        )
        for at in sorted(
            random.choice((300.0, 1_500.0, 4_000.0)) * (0.5 + chance()) for _ in range(random.randint(1, 3))
        )
    )
    return replace(
        scenario,
        jobs=jobs,
        visitors=() if _shares_an_id(scenario) else visitors,
        seconds_per_rename=random.choice((100.0, 400.0, 700.0)),
        skew_seconds=min(scenario.skew_seconds, 5.0),
        hurry=0.0,
        settle_before_sleepers_wake=False,
    )


def _names(scenario: Scenario, random: Random) -> Scenario:
    """Drivers, recoverers and operators call the destination by different names."""
    draw = random.randrange
    return replace(
        scenario,
        jobs=tuple(replace(job, calls_it=draw(len(NAMES))) for job in scenario.jobs),
        visitors=tuple(replace(visitor, calls_it=draw(len(NAMES))) for visitor in scenario.visitors),
        operators_call_it=draw(len(NAMES)),
    )


def _copies(scenario: Scenario, random: Random) -> Scenario:
    return replace(scenario, store=COPYING.name)


def _shapes(scenario: Scenario, random: Random) -> Scenario:
    """A job that replaces the table writes a file where the table has a directory, and files below that."""
    before = dict(scenario.before)
    for job in scenario.jobs:
        if job.options.conflict != "replace":
            continue
        others = {path for other in scenario.jobs for plan in other.attempts for path in plan.targets if other != job}
        for path in sorted({path for plan in job.attempts for path in plan.targets} - others):
            if random.random() < 0.5 and not _is_blocked(path, [*before, *others]) and path not in before:
                before |= {f"{path}/{name}": b"deep" for name in random.choice((("a",), ("a", "b/c"), ("b/c",)))}
    return replace(scenario, before=before)


def _again(scenario: Scenario, random: Random) -> Scenario:
    """A driver sleeps; its job is undone, and the same pickled job run again, or another of its id; then the driver
    wakes."""
    if _shares_an_id(scenario) or scenario.jobs[0].options.txn_id:
        return scenario
    chance = random.random
    first = replace(scenario.jobs[0], aborts=False, commits_twice=False, twin=None)
    other_names = chance() < 0.5
    if Capability.PINNED_SOURCE not in profile_of(scenario.store).capabilities:
        # The names of files that other programs staged are the same in both runs, and such a rename takes either.
        first = replace(first, attempts=tuple(replace(plan, scans=False) for plan in first.attempts))
    second = replace(
        first,
        run=f"{first.run}r",
        again_of=first.run,
        with_receipts=True,
        start=0.0,
        attempts=tuple(
            replace(plan, targets=tuple(f"{path}.r" if other_names else path for path in plan.targets), lingers=0)
            for plan in first.attempts
        ),
    )
    visitors = tuple(replace(each, job=each.job and each.job + 1) for each in scenario.visitors)
    undoing = tuple(
        Visitor("undo", 0, random.choice((5.0, 50.0, 500.0)) * (0.2 + chance())) for _ in range(random.randint(1, 2))
    )
    chosen = {*scenario.fault_kinds, *SLEEPS}
    widened = replace(
        scenario,
        jobs=(first, second, *scenario.jobs[1:]),
        visitors=(*visitors, *undoing),
        fault_kinds=tuple(kind for kind in Kind if kind in chosen),
        fault_rate=scenario.fault_rate or random.choice((0.02, 0.05)),
        faults_max=max(2, scenario.faults_max),
        sleep_seconds_max=random.choice((100.0, 1_000.0, 5_000.0)),
        settle_before_sleepers_wake=False,
    )
    if chance() < 0.5:
        return widened
    late = Visitor(random.choice(("recover", "gc")), 1, random.choice((100.0, 1_000.0, 5_000.0)) * (0.2 + chance()))
    return replace(
        widened,
        jobs=(first, replace(second, is_new=True), *scenario.jobs[1:]),
        visitors=(*widened.visitors, late),
    )


def restarted(scenario: Scenario, random: Random) -> Scenario:
    """A driver dies, and its program is started again at once, whatever the job's phase is: nobody has ended it. (Its
    attempts have the numbers that they had, and so their working directories: where other programs stage files, which
    are listed, an attempt takes what its earlier run has left there for its own.)"""
    second = next((job for job in scenario.jobs if job.again_of), None)
    if second is None:
        return scenario
    chosen = {*scenario.fault_kinds, *CRASHES}
    return replace(
        scenario,
        jobs=tuple(
            replace(
                job,
                restarts=job is second,
                attempts=tuple(replace(plan, scans=False) for plan in job.attempts),
            )
            if job.job_id == second.job_id
            else job
            for job in scenario.jobs
        ),
        # Some come while the first is at its commit, or when it has died, or while the second is at work; or nobody.
        visitors=() if random.random() < 0.5 else scenario.visitors,
        fault_kinds=tuple(kind for kind in Kind if kind in chosen),
        fault_rate=max(scenario.fault_rate, 0.03),
    )


def _uploads(scenario: Scenario, random: Random) -> Scenario:
    """All of it on a bucket: nobody renames, so no other committer comes by, and no file takes the place of one of its
    name. Most names are new, and hold the job's id, which may be one that was made."""
    chance = random.random
    new_names, made, fails_in_partitions = chance() < 0.85, chance() < 0.5, chance() < 0.3
    ids = {job.job_id: str(UUID(int=random.getrandbits(128))) if made else job.job_id for job in scenario.jobs}
    jobs = []
    for job in scenario.jobs:
        chosen = options_on(BUCKET.name, job.options)
        if chosen.conflict == "fail" and fails_in_partitions:
            chosen = changed(chosen, conflict="fail-partitions")
        suffix = f"-{ids[job.job_id]}" if new_names else ""
        attempts = tuple(
            replace(plan, scans=False, targets=tuple(f"{target}{suffix}" for target in plan.targets))
            for plan in job.attempts
        )
        jobs.append(replace(job, job_id=ids[job.job_id], options=chosen, attempts=attempts))
    return replace(scenario, store=BUCKET.name, jobs=tuple(jobs), strangers=())


def _versions(scenario: Scenario, random: Random) -> Scenario:
    """On a bucket that keeps older versions of its objects, where the names of most jobs are those of files that are
    there, or of other jobs."""
    chance = random.random
    there = sorted(path for path in scenario.before if "/" in path)
    jobs = []
    for job in scenario.jobs:
        suffix = f"-{job.job_id}" if chance() < 0.8 else "/"
        # Each task has names of its own, all its attempts the same.
        known = {plan.task: there[plan.task :: 3] if chance() < 0.8 else [] for plan in job.attempts}
        attempts = tuple(
            replace(
                plan,
                targets=tuple(
                    dict.fromkeys([*known[plan.task], *(target.removesuffix(suffix) for target in plan.targets)])
                ),
            )
            for plan in job.attempts
        )
        chosen = job.options
        if chosen.conflict in ("append", "fail", "fail-partitions") and chance() < 0.5:
            chosen = changed(chosen, conflict=random.choice(("replace", "replace-partitions")))
        jobs.append(replace(job, options=chosen, attempts=attempts))
    return replace(scenario, store=VERSIONED.name, jobs=tuple(jobs))


def _people(scenario: Scenario, random: Random) -> Scenario:
    """People change, replace and delete files that are there, at moments that matter. (Not where other committers come
    by, who delete records: what then is whose, nobody can tell.)"""
    if _shares_an_id(scenario) or scenario.strangers:
        return scenario
    chance = random.random
    people = tuple(
        Person(
            random.choice(MOMENTS),
            random.choice(ACTS),
            nth=random.choice((1, 1, 2, 3)),
            at=random.choice((0.0, 1.0, 30.0, 200.0, 4_000.0)) * chance(),
            turns=random.choice((0, 0, 1, 2, 5, 12)),
            of_jobs=chance() < 0.7,
            choice=chance(),
        )
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    return replace(scenario, people=people)


_REPLACING = ("replace", "replace-partitions", "replace-partitions")


def _directories(scenario: Scenario, random: Random) -> Scenario:
    """What is replaced goes by directories, which hold files, and files deeper; others write into them meanwhile."""
    if _shares_an_id(scenario) or not profile_of(scenario.store).real_directories:
        return scenario
    chance = random.random
    before = dict(scenario.before)
    for partition in ("p=1", "p=2"):
        names = ("part-0.parquet", "old b", *(("q=1/deep",) if chance() < 0.25 else ()))
        for path in (f"{partition}/{name}" for name in names):
            if chance() < 0.9 and not _is_blocked(path, before):
                before.setdefault(path, f"before|{path}".encode())
    jobs = []
    for job in scenario.jobs:
        chosen = changed(job.options, set_aside="directories")
        if chance() < 0.7:
            chosen = changed(changed(chosen, replace_order="old-first"), conflict=random.choice(_REPLACING))
        jobs.append(replace(job, options=chosen))
    rivals = (
        ()
        if scenario.strangers
        else tuple(
            Person(
                random.choice(("claimed", "moving", "moving", "appears", "publishing", "rolling-back", "committed")),
                random.choice(("add", "add", "add", "make inside", "make inside", "hide inside", "rewrite", "delete")),
                at=random.choice((0.0, 1.0, 30.0)) * chance(),
                turns=random.randrange(12),
                of_jobs=False,
                choice=chance(),
            )
            for _ in range(random.choice((0, 1, 2)))
        )
    )
    people = (*scenario.people, *rivals)
    # As the local store does: who writes by a path cannot hold a deletion up.
    return replace(scenario, before=before, jobs=tuple(jobs), people=people, renames_away=True)


def _parts(scenario: Scenario, random: Random) -> Scenario:
    """Jobs have parts elsewhere, on stores of one kind or of several, with rivals, and people who come by there. (Not
    of further attempts at a job, nor of one that is run again: Spark's own writers, which have parts, know neither.)"""
    unlike = any(job.attempt_of or job.again_of for job in scenario.jobs) or scenario.strangers or scenario.movers
    if _shares_an_id(scenario) or unlike or scenario.store not in PROFILES:
        return scenario
    chance = random.random
    jobs = tuple(replace(job, with_receipts=job.with_receipts or chance() < 0.9) for job in scenario.jobs)
    divided = [job for number, job in enumerate(jobs) if number == 0 or chance() < 0.4]
    names = ("one", "two")[: random.choice((1, 1, 2))]
    places = tuple(_place(scenario, random, name, divided) for name in names)
    return replace(scenario, jobs=jobs, places=places)


def _tidiers(random: Random, start: float) -> tuple[Stranger, ...]:
    """Somebody who deletes the directories of jobs, or their records, or their markers: often while the driver that
    began at `start` is at its commit, or when it has died."""
    at = start + random.choice((0.0, 5.0, 5.0, 5.0, 10.0, 30.0, 2_500.0))
    only, turns = random.choice(("", "", "records", "records", "markers")), random.randrange(100)
    return (Stranger(at, (), aborts=True, tidies=True, only=only, turns=turns),)


def _place(scenario: Scenario, random: Random, name: str, divided: list[JobPlan]) -> Place:
    """A location, what is there, which parts it has, and who else is at work there."""
    chance = random.random
    before = {}
    for path in ("old", "deep/old b", "p=1/old", "part-0.parquet"):
        if chance() < 0.4:
            before[path] = same_bytes(path) if chance() < 0.2 else f"before|{name}|{path}".encode()
    here = [job for job in divided if chance() < 0.8] or divided[:1]
    policies = {job.run: random.choice(("replace", "replace", "append", "append", "fail")) for job in here}
    targets: dict[tuple[str, int, int], tuple[str, ...]] = {}
    for job in here:
        for plan in job.attempts:
            own = tuple(
                f"{directory}{job.run if chance() < 0.7 else 'j'}t{plan.task}{end}"
                for directory, end in (("", ""), ("deep/", " b"), ("", "-2"))
                if chance() < 0.4
            )
            first = targets.get((job.run, plan.task, 0))
            targets[job.run, plan.task, plan.attempt] = first if first is not None and chance() < 0.6 else own
    replacing = [job.run for job in here if policies[job.run] == "replace"]
    rivals = tuple(
        replace(
            draw_job(random, number, random.choice(POLICIES), same_transaction=False, same_id=False),
            run=f"{name}-rival{number}",
            job_id=f"rival-{name}{number}",
        )
        for number in range(random.choice((0, 0, 1)))
    )
    visitors = tuple(
        Visitor(
            random.choice(("recover", "finish", "undo", "abort", "gc")),
            random.randrange(len(rivals) + len(here)),
            random.choice((0.0, 1.0, 30.0, 200.0, 4_000.0)) * chance(),
            force=chance() < 0.8,
        )
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    )
    there = replace(
        scenario,
        store=scenario.store if chance() < 0.5 else random.choice(tuple(PROFILES)),
        before=before,
        marked_before=bool(before) and chance() < 0.4,
        jobs=rivals,
        visitors=visitors,
        strangers=_tidiers(random, divided[0].start) if chance() < 0.15 else (),
        people=(),
        forgets=False,
        operators_call_it=0,
        judges_finishing=True,
    )
    calls_it = {(run, task): 1 for run, task, _ in targets if chance() < 0.2}
    declared = frozenset(run for run in replacing if chance() < 0.4)
    return Place(name, there, policies, targets, declared, calls_it, is_told_apart=chance() < 0.9)


WITH_PARTS = ON - {Feature.UPLOADS, Feature.COPIES, Feature.STRANGERS, Feature.TIDYING, Feature.ATTEMPTS, Feature.AGAIN}
"""What histories may have beside parts."""


def scenario_with_parts(seed: int) -> Scenario:
    """The scenario of a seed, its jobs with parts elsewhere; a few have none, where two jobs share an id."""
    return _parts(scenario_of(seed, WITH_PARTS), Random(f"{Feature.PARTS.value} {seed}"))


def scenario_on_a_bucket(seed: int) -> Scenario:
    """The scenario of a seed as it is on the other stores, taken to a bucket."""
    return _uploads(scenario_of(seed, ON - {Feature.UPLOADS, Feature.TWICE}), Random(f"{Feature.UPLOADS.value} {seed}"))


def scenario_with_versions(seed: int) -> Scenario:
    """The same, taken to a bucket that keeps versions."""
    return _versions(scenario_on_a_bucket(seed), Random(f"versions {seed}"))


_WIDEN: dict[Feature, tuple[float, Callable[[Scenario, Random], Scenario]]] = {
    Feature.EQUAL: (0.3, _equal),
    Feature.STRANGERS: (0.15, _strangers),
    Feature.TIDYING: (0.15, _tidied),
    Feature.LINGERING: (0.15, _lingering),
    Feature.TRANSACTIONS: (0.1, _transactions),
    Feature.ATTEMPTS: (0.15, _attempts),
    Feature.LONG_MOVES: (0.1, _long_moves),
    Feature.NAMES: (0.2, _names),
    Feature.COPIES: (0.1, _copies),
    Feature.SHAPES: (0.15, _shapes),
    Feature.AGAIN: (0.15, _again),
    Feature.UPLOADS: (0.15, _uploads),
    Feature.PEOPLE: (0.15, _people),
    Feature.DIRECTORIES: (0.2, _directories),
    Feature.PARTS: (0.1, _parts),
    Feature.TWICE: (0.1, _twice),
}

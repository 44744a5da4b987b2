"""Scenarios of protocols by which files are seen before their job commits: `direct`, `stocator`, `emrfs`, `markers`,
and `markers` by a timeline server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.builtin.direct_protocol import DIRECT
from lockgate.plugins.builtin.emrfs_protocol import EMRFS
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.plugins.builtin.stocator_protocol import STOCATOR

from simworld.early_judges import EarlyJudges
from simworld.faults import Kind
from simworld.features import Feature, scenario_of
from simworld.marker_judges import MarkerJudges
from simworld.scenario import Scenario, changed
from simworld.store import profile_of
from simworld.world import History, by_protocol
from simworld.world import play as play_any

FEATURES = (Feature.EQUAL, Feature.TRANSACTIONS, Feature.ATTEMPTS, Feature.NAMES, Feature.AGAIN)

EARLY: dict[str, Protocol] = {each.name: each for each in (DIRECT, STOCATOR, EMRFS, MARKERS)}
BY_SERVER = "markers-by-server"


def early_scenario(protocol: Protocol, seed: int) -> Scenario | None:
    """That of the seed, on a store that the protocol takes, with policies that it takes; None: two jobs have been given
    one id."""
    # With markers, one that writes on is found out, as far as its job is not over.
    more = [Feature.LINGERING] if protocol.announces_files else []
    if protocol is not EMRFS:  # an abort of one run takes out what the other has committed: the number is the same
        more.append(Feature.TWICE)
    scenario = scenario_of(seed, (*FEATURES, *more))
    firsts = [job.job_id for job in scenario.jobs if not (job.attempt_of or job.again_of)]
    if len(set(firsts)) < len(firsts):
        return None
    if not protocol.needs <= profile_of(scenario.store).capabilities or seed % 4 == 0:
        scenario = replace(scenario, store="bucket")
    jobs = []
    for job in scenario.jobs:
        options = changed(changed(job.options, conflict="append"), delete_target_files=False)
        attempts = tuple(replace(plan, scans=False) for plan in job.attempts)
        # What is taken out is known by its identity, so a store that shows none is not one that they take.
        jobs.append(replace(job, options=options, attempts=attempts, shows_identities=True))
    return by_protocol(replace(scenario, jobs=tuple(jobs)), protocol)


def by_server(seed: int, scenario: Scenario) -> Scenario:
    """The same with a timeline server in each driver; not on the store like HDFS, where markers are direct. In half of
    them much goes wrong, while attempts ask for more markers, so that files of them are written again and again."""
    random = Random(f"timeline server {seed}")
    jobs = []
    for job in scenario.jobs:
        options = changed(job.options, markers_type="timeline_server_based")
        options = changed(options, markers_batch_interval_ms=random.choice((1, 50, 3_000)))
        options = changed(options, markers_batch_threads=random.choice((1, 1, 2, 3)))
        jobs.append(replace(job, options=options))
    store = random.choice(("disk", "tree", "flat")) if scenario.store == "hdfs" else scenario.store
    scenario = replace(scenario, jobs=tuple(jobs), store=store)
    scenario = _stormy(random, scenario) if random.random() < 0.5 else scenario
    if any(job.again_of for job in jobs):
        # Nor is a request under way of who has ended the first run: it would delete the markers of the second.
        kinds = tuple(kind for kind in scenario.fault_kinds if kind is not Kind.LATE)
        scenario = replace(scenario, fault_kinds=kinds, fault_rate=scenario.fault_rate if kinds else 0.0)
    return scenario


def _stormy(random: Random, scenario: Scenario) -> Scenario:
    chance = random.random
    jobs = []
    for job in scenario.jobs:
        attempts = tuple(
            replace(
                plan,
                targets=(*plan.targets, *(f"p=1/m{plan.task}-{number}" for number in range(random.choice((0, 2, 4))))),
                lingers=plan.lingers or random.choice((0, 0, 2)),
                pause=random.choice((0.0, 2.0, 30.0)),
            )
            for plan in job.attempts
        )
        jobs.append(replace(job, attempts=attempts))
    kinds = tuple(kind for kind in Kind if chance() < 0.5) or (Kind.LATE,)
    return replace(
        scenario,
        jobs=tuple(jobs),
        fault_kinds=kinds,
        fault_rate=random.choice((0.03, 0.1)),
        faults_max=random.choice((4, 8, 16)),
        hurry=random.choice((0.0, 0.0, scenario.hurry)),
    )


def scenario_by_server(seed: int) -> Scenario | None:
    """That of the seed, with `markers` by timeline servers."""
    scenario = early_scenario(MARKERS, seed)
    return None if scenario is None else by_server(seed, scenario)


def scenarios(protocol: Protocol, seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds."""
    found = ((seed, early_scenario(protocol, seed)) for seed in seeds)
    return ((seed, scenario) for seed, scenario in found if scenario is not None)


def scenarios_by_server(seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds with `markers` by timeline servers."""
    found = ((seed, scenario_by_server(seed)) for seed in seeds)
    return ((seed, scenario) for seed, scenario in found if scenario is not None)


def play_early(protocol: Protocol, seed: int, scenario: Scenario) -> History:
    """Play one of them, before its judges."""
    usual = type("Judges", (EarlyJudges,), {"played": protocol.name})
    return play_any(seed, scenario, judges=MarkerJudges if protocol is MARKERS else usual)

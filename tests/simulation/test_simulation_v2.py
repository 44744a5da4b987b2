"""Jobs of Hadoop's second algorithm, whose tasks move their files into the destination; and that algorithm with one
thing wrong at a time. What it does not promise, by its attributes, the judges do not ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lockgate.plugins.builtin.v2_protocol import V2
from lockgate.protocols.v2.protocol import POLICIES
from simworld.features import ON, Feature, scenario_of
from simworld.history import render
from simworld.scenario import JobPlan, Scenario, changed
from simworld.store import profile_of
from simworld.world import by_protocol, play


def _by_v2(job: JobPlan) -> JobPlan:
    options = changed(job.options, delete_target_files=False)
    if options.conflict not in POLICIES:
        options = changed(options, conflict="append")
    return replace(job, options=options, shows_identities=True)


def scenarios(seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds whose store the protocol takes, with the conflict policies that it takes. Its manifests come
    from listings, which show identities."""
    for seed in seeds:
        scenario = scenario_of(seed, ON - {Feature.UPLOADS})
        if V2.needs <= profile_of(scenario.store).capabilities:
            yield seed, by_protocol(replace(scenario, jobs=tuple(map(_by_v2, scenario.jobs))), V2)


def test_the_guarantees_hold_in_every_history() -> None:
    committed = 0
    for seed, scenario in scenarios(range(0, 200)):
        history = play(seed, scenario)
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 50

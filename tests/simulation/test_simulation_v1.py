"""Jobs of Hadoop's first algorithm, on stores that rename a directory as one act; and that algorithm with one thing
wrong at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from lockgate.plugin import TaskAttempt
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate.protocols.file_output import job_directories
from lockgate.protocols.v1 import protocol, task_commit
from simworld.features import ON, Feature, scenario_of
from simworld.history import render
from simworld.scenario import Scenario, Stranger
from simworld.store import profile_of
from simworld.world import by_protocol, play

FOUND = (201, 424, 1041, 1571)
"""Seeds that broke the protocol before it was mended."""


def scenarios(seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds whose store the protocol takes. Its manifests come from listings, which show identities."""
    for seed in seeds:
        scenario = scenario_of(seed, ON - {Feature.UPLOADS})
        if V1.needs <= profile_of(scenario.store).capabilities:
            scenario = by_protocol(scenario, V1)
            yield seed, replace(scenario, jobs=tuple(replace(job, shows_identities=True) for job in scenario.jobs))


def test_the_guarantees_hold_in_every_history() -> None:
    committed = 0
    for first, last in ((0, 150), *((seed, seed + 1) for seed in FOUND)):
        for seed, scenario in scenarios(range(first, last)):
            history = play(seed, scenario)
            assert not history.violations, render(history)
            committed += history.committed
    assert committed > 50


@contextmanager
def deletes_a_rivals_output() -> Iterator[None]:
    """Hadoop's way: what another attempt has committed is deleted, and its receipt is taken all the same."""

    async def delete(run, attempt: TaskAttempt, committed: str) -> None:
        await run.store.delete_directories([committed])

    async def nothing(run, plan, where=None):
        pass

    with (
        patch.object(task_commit, "_displace_rival", delete),
        patch.object(protocol, "refuse_unless_staged", nothing),
        patch.object(protocol, "refuse_if_changed", nothing),
    ):
        yield


@contextmanager
def deletes_the_job_attempt_directory() -> Iterator[None]:
    """A job ends by deleting `_temporary/0` where it is empty, whoever has made it or been set up in it."""
    right = job_directories.delete_of_job

    async def delete(run):
        await right(run)
        await run.store.delete_empty_directories(["_temporary/0/_temporary", "_temporary/0", "_temporary"])

    with patch.object(job_directories, "delete_of_job", delete):
        yield


MUTANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    each.__name__: each for each in (deletes_a_rivals_output,)
}

SEARCHED = {"deletes_a_rivals_output": (400, 1500)}
"""The seeds that are looked through for each, until one shows it: of this one, one in a hundred does."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    with MUTANTS[name]():
        for seed, scenario in scenarios(range(*SEARCHED[name])):
            if play(seed, scenario).violations:
                print(f"{name}: seed {seed}")
                return
    raise AssertionError(f"no history of {SEARCHED[name]} shows what is wrong with {name}")


def deletes_what_hadoop_has_made(histories: Callable[[range], Iterator[tuple[int, Scenario]]]) -> bool:
    """Whether `_temporary/0` is deleted while a job of Hadoop's without output is at work there, in any of these."""
    idle = (Stranger(1.0, (), at_work=400),)
    every = [play(seed, replace(scenario, strangers=idle)) for seed, scenario in histories(range(20))]
    return any("is at work, was deleted" in each.what for history in every for each in history.violations)


def test_contained_the_directory_of_a_job_of_hadoops_without_output_stays() -> None:
    assert not deletes_what_hadoop_has_made(scenarios)
    with deletes_the_job_attempt_directory():
        assert deletes_what_hadoop_has_made(scenarios)

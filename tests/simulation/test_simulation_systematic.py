"""Small spaces, enumerated: crash points, pairs of crash points, interleavings."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable

import pytest
from simworld.history import render
from simworld.scenario import Scenario
from simworld.store import EVERY_STORE
from simworld.systematic import (
    Sample,
    all_of_them,
    and_then_another,
    every_crash,
    every_pair_of_crashes,
    every_schedule,
    every_sleeping_driver,
    every_sleeping_recoverer,
    play_schedule,
    small_job,
    small_jobs,
    some_of_them,
    two_attempts,
)
from simworld.world import History


def _all_hold(histories: Iterable[History]) -> int:
    count = 0
    for history in histories:
        count += 1
        assert not history.violations, render(history)
    return count


def _named(scenario: Scenario) -> str:
    chosen = scenario.jobs[0].options
    outcome = "undo" if scenario.settle_undoes else "finish"
    order = "directories" if chosen.set_aside == "directories" else chosen.replace_order
    return f"{scenario.store}-{chosen.conflict}-{order}-{outcome}"


SMALL_JOBS = list(small_jobs())
# Every second one, finished and undone by turns; all of them in `nox -s long`.
SOME_SMALL_JOBS = [
    each for n, each in enumerate(SMALL_JOBS) if os.environ.get("TEST_EVERY_PAIR") or (n ^ n >> 1 ^ n >> 2) % 2 == 0
]
FIRST_MOMENTS_SHARE, SECOND_MOMENTS_MAX = 0.3, 1
"""Pairs of moments are many: this share of a driver's, and for each so many of a recoverer's; all of them in
`nox -s long`."""
PAIRS_QUICK = [small_job("tree", "replace-partitions", undo=undo) for undo in (False, True)]


@pytest.fixture
def sample() -> Sample:
    """Which moments of two actors are played. The seed is printed; TEST_SEED repeats it."""
    if os.environ.get("TEST_EVERY_PAIR"):
        return all_of_them
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={seed}")
    return some_of_them(random.Random(seed), share=FIRST_MOMENTS_SHARE, most=SECOND_MOMENTS_MAX)


@pytest.mark.parametrize("scenario", SMALL_JOBS, ids=_named)
def test_resumable_and_undoable_from_every_crash_point_of_a_driver(scenario: Scenario) -> None:
    assert _all_hold(every_crash(scenario)) > 25


@pytest.mark.parametrize("scenario", PAIRS_QUICK, ids=_named)
def test_resumable_and_undoable_from_crash_points_of_driver_and_recoverer(scenario: Scenario, sample: Sample) -> None:
    assert _all_hold(every_pair_of_crashes(scenario, sample)) > 10


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", SOME_SMALL_JOBS, ids=_named)
def test_resumable_and_undoable_from_pairs_of_crash_points_of_driver_and_recoverer(
    scenario: Scenario, sample: Sample
) -> None:
    assert _all_hold(every_pair_of_crashes(scenario, sample)) > 10


@pytest.mark.parametrize("scenario", SOME_SMALL_JOBS, ids=_named)
def test_continuity_when_a_driver_sleeps_at_any_operation_until_its_job_is_long_over(scenario: Scenario) -> None:
    scenario = and_then_another(scenario, undo=scenario.settle_undoes)
    assert _all_hold(every_sleeping_driver(scenario)) > 20


@pytest.mark.parametrize("scenario", SOME_SMALL_JOBS, ids=_named)
def test_continuity_when_a_driver_and_an_attempt_sleep_until_their_job_is_long_over(scenario: Scenario) -> None:
    """Where the attempt's data brings directories back, they must not be taken for the job's."""
    scenario = and_then_another(scenario, undo=scenario.settle_undoes)
    assert _all_hold(every_sleeping_driver(scenario, late_attempt=True)) > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", SOME_SMALL_JOBS, ids=_named)
def test_continuity_when_a_recoverer_sleeps_until_its_job_is_long_over(scenario: Scenario, sample: Sample) -> None:
    scenario = and_then_another(scenario, undo=scenario.settle_undoes)
    assert _all_hold(every_sleeping_recoverer(scenario, sample)) > 5


@pytest.mark.parametrize("store", EVERY_STORE)
@pytest.mark.parametrize("with_receipts", [True, False])
def test_exclusive_in_every_interleaving_of_two_attempts_of_one_task(store: str, with_receipts: bool) -> None:
    scenario = two_attempts(store, with_receipts=with_receipts)
    histories = every_schedule(play_schedule(scenario), preemptions_max=99)
    assert _all_hold(histories) >= 70


@pytest.mark.parametrize("store", EVERY_STORE)
@pytest.mark.parametrize("with_receipts", [True, False])
def test_exclusive_when_an_attempt_commits_while_another_repeats_its_own(store: str, with_receipts: bool) -> None:
    scenario = two_attempts(store, with_receipts=with_receipts, report_lost=True)
    assert _all_hold(every_schedule(play_schedule(scenario), preemptions_max=4)) > 100


@pytest.mark.parametrize("store", EVERY_STORE)
@pytest.mark.parametrize("with_receipts", [True, False])
def test_complete_when_an_attempt_commits_while_another_that_had_committed_aborts(
    store: str, with_receipts: bool
) -> None:
    scenario = two_attempts(store, with_receipts=with_receipts, given_up=True)
    for history in every_schedule(play_schedule(scenario), preemptions_max=3):
        assert not history.violations, render(history)
        # Where the aborted attempt came last, a driver without receipts cannot tell, and refuses.
        refused = any("ReceiptUnmatched" in line for line in history.told)
        assert history.committed == 1 or (refused and not with_receipts), render(history)


@pytest.mark.parametrize("store", EVERY_STORE)
@pytest.mark.parametrize("with_receipts", [True, False])
def test_complete_when_an_attempt_commits_while_the_driver_does(store: str, with_receipts: bool) -> None:
    scenario = two_attempts(store, with_receipts=with_receipts, at_commit=True)
    assert _all_hold(every_schedule(play_schedule(scenario), preemptions_max=2)) > 100


def test_every_order_of_three_and_two_turns_is_ten() -> None:
    """The enumeration itself, on a world without an engine: 5! / (3! 2!) orders, each once."""
    from random import Random

    from simworld.event_loop import simulated_loop
    from simworld.store import turn
    from simworld.systematic import Schedule

    seen = []

    def play(schedule: Schedule) -> str:
        loop = simulated_loop(Random(0))
        loop.choose = schedule
        order: list[str] = []

        async def act(name: str, times: int) -> None:
            for _ in range(times):
                order.append(name)
                await turn()

        loop.run([act("a", 3), act("b", 2)], until=1.0, turns_max=100)
        seen.append("".join(order))
        return seen[-1]

    list(every_schedule(play, preemptions_max=99))  # type: ignore[arg-type]
    assert len(set(seen)) == 10

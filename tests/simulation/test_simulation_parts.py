"""Jobs with parts in other locations: all of them become visible or none is left, whatever goes wrong, and where."""

from __future__ import annotations

import os
import time

from simworld.features import scenario_with_parts
from simworld.history import render
from simworld.world import play

HISTORIES = int(os.environ.get("HISTORIES", 300))

FOUND = {
    1: "whoever came to a job with parts by another name of its destination could not finish it",
    5: "nor undo it",
    20636: "a part whose record was lost, and begun anew by who could not finish the whole, kept its files when undone",
}


def test_every_guarantee_holds_in_random_histories_of_jobs_with_parts() -> None:
    first = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={first}")
    committed = 0
    for seed in range(first, first + HISTORIES):
        history = play(seed, scenario_with_parts(seed))
        assert not history.violations, f"TEST_SEED={seed}\n{render(history)}"
        committed += history.committed
    assert committed > HISTORIES / 4


def test_every_guarantee_holds_in_the_histories_that_broke_one() -> None:
    for seed in FOUND:
        history = play(seed, scenario_with_parts(seed))
        assert not history.violations, render(history)

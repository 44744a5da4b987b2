"""The simulation can fail: each mutant of the engine is caught, and the engine passes the same histories."""

from __future__ import annotations

from itertools import islice

import mutants_deferred  # noqa: F401  # enters its mutants into the list
import mutants_directories  # noqa: F401
import mutants_mended  # noqa: F401
import mutants_movers  # noqa: F401
import mutants_museum  # noqa: F401
import mutants_parts  # noqa: F401
import pytest
from mutants import MUTANTS, Mutant, hunt, seeds_of
from mutants_table import DOCS, updated
from simworld.features import Feature
from simworld.history import render
from simworld.world import play

HONEST_MAX = 50
"""So many of a mutant's last histories are played with the engine as it is; other tests play thousands."""


def _named(chosen: Mutant) -> str:
    return chosen.name.replace(" ", "-")


@pytest.mark.parametrize("chosen", MUTANTS, ids=_named)
def test_the_simulation_catches(chosen: Mutant) -> None:
    count, history = hunt(chosen)
    assert history is not None, f"{count} histories, and nobody noticed: {chosen.what}"
    assert history.violations[0].guarantee in chosen.caught_by, render(history)
    for seed, scenario in islice(seeds_of(chosen), max(0, count - HONEST_MAX), count):
        honest = play(seed, scenario)
        assert not honest.violations, render(honest)


def test_there_are_at_least_twelve_mutants_and_the_museum_is_complete() -> None:
    assert len([chosen for chosen in MUTANTS if not chosen.real_bug and not chosen.mended]) >= 12
    museum = {chosen.real_bug for chosen in MUTANTS if chosen.real_bug}
    assert museum >= {
        "SPARK-33402",
        "SPARK-39195",
        "SPARK-29037",
        "HADOOP-17258",
        "HADOOP-17112",
        "MAPREDUCE-7435",
        "SPARK-56588",
        "the cleanup of dataset1 that reached dataset10",
        "overwrite that deletes before it moves",
    }


def test_every_feature_of_the_world_catches_a_fault_that_this_engine_had() -> None:
    shown = {feature for chosen in MUTANTS if chosen.mended for feature in chosen.features}
    assert shown == set(Feature)


def test_every_mutant_says_what_is_wrong() -> None:
    for chosen in MUTANTS:
        assert chosen.what.endswith((".", ")")), chosen.name


def test_the_docs_list_the_mutants_as_they_are() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert updated(text) == text, "run: python tests/simulation/explore.py --write-docs"

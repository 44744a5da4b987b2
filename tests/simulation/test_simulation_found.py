"""Jobs that other programs have left, and people who end them at any moment, one after the other and at once; and the
same with one thing wrong at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

import pytest
from lockgate.engine.job import job_commit
from lockgate.engine.recovery import recover
from lockgate.engine.run.job_run import JobRun
from lockgate.protocols.hive import adopt as hive
from simworld.found import draw_found, play_found, told_of
from simworld.history import render

HISTORIES = int(os.environ.get("HISTORIES", 150))

FOUND = (
    # An abort came between the look at a job's tasks and the claim, and the driver died right after that: who finished
    # the job replaced the table by nothing.
    7338,
    # A commit that was refused left its record beside an abort, and no later abort could be carried out.
    3600,
)
"""Seeds that broke a guarantee before it was mended."""


def _seeds() -> range:
    first = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={first}")
    return range(first, first + HISTORIES)


def test_the_guarantees_hold_in_every_history() -> None:
    committed = 0
    for seed in (*FOUND, *_seeds()):
        history = play_found(seed)
        assert not history.violations, f"{told_of(draw_found(seed))}\n{render(history)}"
        committed += any(": committed " in line for line in history.told)
    assert committed > HISTORIES // 5


@contextmanager
def finishes_what_has_no_tasks() -> Iterator[None]:
    """Nobody misses tasks that were there a moment ago, before the claim or when the job is recovered."""

    async def nothing(*ignored: object) -> None:
        pass

    with (
        patch.object(job_commit, "_refuse_if_tasks_have_gone", nothing),
        patch.object(job_commit, "refuse_if_tasks_have_committed", nothing),
        patch.object(recover, "refuse_if_tasks_have_committed", nothing),
    ):
        yield


@contextmanager
def aborts_only_what_is_there() -> Iterator[None]:
    """An abort asks for Hive's directory, though another has taken it, and it is gone."""
    usual = hive.adopt

    async def adopt(run: JobRun, *, if_there: bool = False) -> None:
        await usual(run)

    with patch.object(hive, "adopt", adopt):
        yield


MUTANTS: dict[str, tuple[Callable[[], AbstractContextManager[None]], range]] = {
    "finishes_what_has_no_tasks": (finishes_what_has_no_tasks, range(7_300, 7_380)),
    "aborts_only_what_is_there": (aborts_only_what_is_there, range(3_560, 3_620)),
}
"""And the seeds that are looked through for each."""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    mutant, seeds = MUTANTS[name]
    with mutant():
        for seed in seeds:
            if play_found(seed).violations:
                print(f"{name}: seed {seed}")
                return
    raise AssertionError(f"no history of {seeds} shows what is wrong with {name}")

"""Jobs that other programs have left, and people who end them at any moment, one after the other and at once; and the
same with one thing wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lockgate.engine.job import answer_failure, job_commit
from lockgate.engine.recovery import recover
from simworld.found import play_found, told_of
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
        assert not history.violations, f"{told_of(seed)}\n{render(history)}"
        committed += history.committed
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


def test_a_mutant_that_finishes_what_has_no_tasks_is_found() -> None:
    with finishes_what_has_no_tasks():
        for seed in range(7_640, 7_720):
            if play_found(seed).violations:
                print(f"seed {seed}")
                return
    raise AssertionError("no history of 80 shows what is wrong")


def test_a_mutant_whose_failed_commit_undoes_at_a_loss_is_found() -> None:
    async def never(*ignored: object) -> bool:
        return False

    with patch.object(answer_failure, "_would_lose", never):
        for seed in range(50, 200):
            if any(each.guarantee == "kept" for each in play_found(seed).violations):
                print(f"seed {seed}")
                return
    raise AssertionError("no history of 150 shows what is wrong")

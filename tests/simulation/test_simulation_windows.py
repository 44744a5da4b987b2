"""The same histories, with windows of one file: what a job replaces, what waits and what is brought back is looked at a
window at a time, and anything may happen between two of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lockgate.engine.job import conflicts
from lockgate.engine.renames import replaced_files, restore_replaced, roll_back
from lockgate.engine.run import sorting
from lockgate.model import plan, replaced, spooled
from simworld.features import scenario_of
from simworld.history import render
from simworld.world import play

FIRST, HISTORIES = 400_000, 600


@pytest.fixture(autouse=True)
def windows_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in (
        (spooled, ("CHUNK",)),
        (replaced, ("CHUNK",)),
        (sorting, ("RUN", "READ_AHEAD")),
        (plan, ("WINDOW",)),
        (conflicts, ("AT_ONCE",)),
        (restore_replaced, ("WINDOW",)),
        (replaced_files, ("BATCH",)),
        (roll_back, ("BATCH",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, 1)


def _replacing() -> Iterator[int]:
    seed = FIRST
    while True:
        if any(job.options.conflict.startswith("replace") for job in scenario_of(seed).jobs):
            yield seed
        seed += 1


def test_every_guarantee_holds_where_every_file_is_a_window() -> None:
    seeds = _replacing()
    for _ in range(HISTORIES):
        history = play(next(seeds))
        assert not history.violations, render(history)

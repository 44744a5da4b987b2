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
    954591: "a part of whose record the newest version alone was left kept its files when undone",
    701480: "a job that goes on, though of its record the newest version alone was left, was in nobody's way",
    700980: "a record begun anew, and what was left of the one before, of the same manifests, passed for one",
    706397: "the judge went by a version that follows another than the one that has that number",
    1011: "the judge did not know that a version counts again when a delayed request brings back the one before",
    18047: "a part whose record was lost was begun anew, and its own files taken for old ones that it replaces",
    411753: "the judge took the last steps of a lost record, on behalf of a committed job, for moves",
    412013: "the judge held who sets a part up, while its job is aborted, for no late one",
    414129: "the judge did not know the part that a job commits by a record that is lost",
    431308: "the judge did not know what is set aside by a lost record, and let go of by the one that was begun anew",
    430495: "a part whose manifests were lost, too, could not be undone by its lists",
    59400: "a job that had lost its record for a while was finished over what others had committed meanwhile",
    439036: "another one",
    302787: "a job committed though the record of its part was gone, and another had put files where that replaced all",
    461351: "the judge took a part that late tasks had set up anew for one of a job at work",
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

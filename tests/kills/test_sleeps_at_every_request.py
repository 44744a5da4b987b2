"""Fenced, resumable and undoable on remote stores, against a driver that sleeps: at each request that it makes, before
the store hears of it or before it hears the answer, it is stopped (SIGSTOP). Somebody else takes it for dead, ends its
job and collects garbage. Then it wakes, its request arrives, and it goes on. What it says in the end is so, and the
destination is as the other has left it.

Sampled here, by a seed that is printed; `nox -s long` goes through all of them.
"""

from __future__ import annotations

import random
import re

import pytest
from asked_worlds import JOB, AskedWorld, Seen, Strike, judge_each, moments
from forked_drivers import End, ForkedDrivers

SLEEPS = 1
"""How many moments of a kind of job are tried here; the second test takes one more."""

NOT_BEGUN = ("no trace", "not begun", "nothing")
"""What somebody finds who comes before the job's commit has begun, and aborts it. A job whose setup goes on after that
is a job like any other."""

MAY_HAVE_COMMITTED = ("OutcomeUnknown", "CleanupFailed")
"""What a driver says that has passed its commit point, or does not know."""


@pytest.mark.timeout(3600)
def test_a_driver_that_sleeps_while_another_ends_its_job_changes_nothing_when_it_wakes(
    sleeping_world: AskedWorld, other_drivers: ForkedDrivers, chance: random.Random, every: bool
) -> None:
    world = sleeping_world
    world.measure()

    def judge(strike: Strike) -> None:
        judge_sleep(world, other_drivers, strike, undo=chance.random() < 0.5)

    what = f"{world.kind}: the job asks {len(world.asked)} times"
    judge_each(what, moments(world.asked), judge, chance, SLEEPS, every)


@pytest.mark.timeout(600)
def test_told_right_when_the_last_version_of_a_record_arrives_after_its_job_was_undone(
    sleeping_world: AskedWorld, other_drivers: ForkedDrivers
) -> None:
    """Where the record is the commit point, whoever ended that job once more believed the version that said
    `committed`, and noted that the job had committed, which had been undone."""
    world = sleeping_world
    world.measure()
    versions = [at for at, asked in enumerate(world.asked) if re.search(r"(PUT|POST|PATCH) .*commit-\d+\.json", asked)]
    judge_sleep(world, other_drivers, Strike(versions[-1], answered=False), undo=True)


def judge_sleep(world: AskedWorld, others: ForkedDrivers, strike: Strike, *, undo: bool) -> None:
    """Put the job's process to sleep at a request, have another end its job meanwhile, and judge what is left."""
    found: list[tuple[Seen, End]] = []

    def meanwhile() -> None:
        seen = world.look()
        told = {"url": world.store.url, "options": world.store.direct, "job_id": JOB, "undo": undo}
        found.append((seen, others.do("end", **told)))

    world.begin_anew()
    end, asked = world.hold(strike, meanwhile, **world.job())
    if not found:  # of requests in flight at once there are not as many each time
        assert not end.error, f"{world.kind}: {strike}: {end}"
        return
    (seen, other) = found[0]
    story = f"{world.kind}: slept {strike}, {asked}, in phase {seen.phase}; undo={undo}: {other}; then {end}"
    assert not other.error, story
    new = seen.committed or other.told["outcome"] == "finished"
    if not end.error:
        assert new or other.told["outcome"] in NOT_BEGUN, story
        new = True
    again = world.do("end", job_id=JOB, undo=not new)
    assert not again.error, f"{story}; again: {again}"
    if end.error in MAY_HAVE_COMMITTED:
        new = new or world.look().visible == world.new
    assert world.look().committed is new, f"{story}; again: {again}"
    # The list of what it meant to set aside, where no directory's absence refuses it, gc keeps until it is old.
    old = {"url": world.store.url, "options": world.store.direct | {"remember_seconds": "0"}}
    assert not world.drivers.do("collect_garbage", **old).error, story
    left = world.unsaved(world.look())
    assert not left or not new, story
    world.judge_end(story, again.told, new=new, unsaved=left, next_job=not world.kind.replaces)

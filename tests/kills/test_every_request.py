"""Resumable, on remote stores: the process of a job, driver and tasks, is killed at each request that it makes, before
the store hears of it and when the store has carried it out and nobody was told; then another process finishes or
undoes it, by what the store shows alone. And no request's lost answer is ever taken for a wrong one. Requests that only
look change nothing: a process that is killed there leaves what it leaves before its next change.

Sampled here, by a seed that is printed; `nox -s long` goes through all of them.
"""

from __future__ import annotations

import random

import pytest
from asked_worlds import JOB, AskedWorld, Strike, judge_each, moments

KILLS = 2
RECOVERIES = 1
LOST = 1
"""How many moments of a kind of job are tried here."""

MAY_HAVE_COMMITTED = ("OutcomeUnknown", "CleanupFailed")
"""What a driver says that has passed its commit point, or does not know."""


@pytest.mark.timeout(3600)
def test_resumable_when_a_job_is_killed_at_any_request(world: AskedWorld, chance: random.Random, every: bool) -> None:
    world.measure()

    def judge(strike: Strike) -> None:
        world.begin_anew()
        end, asked = world.kill(strike, **world.job())
        if not end.killed:  # of requests in flight at once there are not as many each time
            assert not end.error, f"{world.kind}: {strike}: {end}"
        seen, undo = world.look(), chance.random() < 0.5
        story = f"{world.kind}: killed {strike}, {asked}, in phase {seen.phase}, then undo={undo}"
        world.end_and_judge(story, seen, undo=undo, next_job=chance.random() < 0.3)

    judge_each(asking(world), strikes(world), judge, chance, KILLS, every)


@pytest.mark.timeout(3600)
def test_resumable_when_recovery_is_killed_at_any_request(
    world: AskedWorld, chance: random.Random, every: bool
) -> None:
    """The job's process has died between claim and commit point, then the recoverer dies; another one ends the job, in
    the same direction."""
    world.measure()
    undo = chance.random() < 0.5
    before = world.kill_between()
    state = world.store.keep()
    end, asked = world.count("recover", **world.recovery(undo=undo))
    assert not end.error, end

    def judge(strike: Strike) -> None:
        world.store.bring_back(state)
        _, name = world.kill(strike, "recover", **world.recovery(undo=undo))
        story = f"{world.kind}: killed in phase {before.phase}; a recovery, undo={undo}, killed {strike}, {name}"
        end = world.do("end", job_id=JOB, undo=undo)
        assert not end.error, f"{story}: {end}"
        assert end.told["outcome"] in ("undone" if undo else "finished", "nothing", "no trace"), f"{story}: {end}"
        world.judge_end(story, end.told, new=not undo, unsaved=world.unsaved(before), next_job=False)

    judge_each(f"{world.kind}: a recovery asks {len(asked)} times", moments(asked), judge, chance, RECOVERIES, every)


@pytest.mark.timeout(3600)
def test_a_lost_request_or_answer_never_makes_two_ends_of_a_job(
    world: AskedWorld, chance: random.Random, every: bool
) -> None:
    """The connection is reset at one request, before it arrives or when it was carried out. The job commits, or says in
    plain words that it has not; and what it says is so."""
    world.measure()
    failed: list[str] = []

    def judge(strike: Strike) -> None:
        world.begin_anew()
        end, asked = world.lose(strike, **world.job())
        seen = world.look()
        story = f"{world.kind}: reset {strike}, {asked}: {end}"
        if end.error:
            failed.append(story)
            assert not seen.committed or end.error in MAY_HAVE_COMMITTED, story
        else:
            assert seen.committed, story
        world.end_and_judge(story, seen, undo=not seen.committed, next_job=False)

    judge_each(asking(world), strikes(world), judge, chance, LOST, every)
    print(*failed, sep="\n")


def asking(world: AskedWorld) -> str:
    changing = {strike.at for (strike,) in strikes(world)}
    return f"{world.kind}: the job asks {len(world.asked)} times, to change something {len(changing)} times"


def strikes(world: AskedWorld) -> list[tuple[Strike]]:
    """Every moment of a job's requests at which something may be as at no other."""
    return moments(world.asked)

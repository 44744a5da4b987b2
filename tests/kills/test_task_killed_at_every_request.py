"""A task attempt is killed at each request that it makes to a remote store, and its driver lives: it does what the
protocol's page says, and the job is what another attempt has written, whole, or is refused and leaves nothing."""

from __future__ import annotations

import random

import pytest
from asked_kinds import NEW
from asked_worlds import JOB, AskedWorld, Strike, judge_each, moments

TRIES = 2


@pytest.mark.timeout(3600)
def test_a_task_attempt_killed_at_any_request_is_replaced_by_another_or_its_job_is_aborted(
    world: AskedWorld, chance: random.Random, every: bool
) -> None:
    again = {path: f"{text} again" for path, text in NEW.items()}
    whole = world.kind.early != "written" or not world.kind.leaves_dead_attempts
    told = {"url": world.store.url, "job_id": JOB}
    direct = world.options(through=False)
    world.begin_anew()
    end = world.drivers.do("set_up", options=direct, **told)
    assert not end.error, end
    set_up = world.store.keep()
    end, asked = world.count("attempt", **told, files=NEW, number=0)
    assert not end.error, end
    world.store.bring_back(set_up)
    receipt = world.drivers.do("attempt", options=direct, **told, files=again, number=1)
    end = world.drivers.do("commit", options=direct, **told, receipts=[receipt.told["receipt"]])
    assert not end.error, end
    world.new = world.look().visible

    def judge(strike: Strike) -> None:
        world.store.bring_back(set_up)
        _, name = world.kill(strike, "attempt", **told, files=NEW, number=0)
        story = f"{world.kind}: an attempt killed {strike}, {name}"
        # With direct, v2 and emrfs who knows that the first is dead aborts it.
        dead = [0] if world.kind.protocol in ("direct", "v2", "emrfs") else []
        second = world.drivers.do("attempt", options=direct, **told, files=again, number=1, aborts=dead)
        if second.error:
            assert not whole, f"{story}: {second}"
            assert second.error == "FileExists", f"{story}: {second}"
        else:
            end = world.drivers.do("commit", options=direct, **told, receipts=[second.told["receipt"]])
            assert not end.error, f"{story}: {end}"
        seen = world.look()
        # Nothing of the job counts before its commit, and what `direct` has left of the first is nobody's.
        assert seen.committed is not bool(second.error), story
        world.end_and_judge(story, seen, undo=False, next_job=chance.random() < 0.3)

    judge_each(f"{world.kind}: an attempt asks {len(asked)} times", moments(asked), judge, chance, TRIES, every)

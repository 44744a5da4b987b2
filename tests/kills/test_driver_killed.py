"""Resumable: a driver killed in the middle of its commit, or at a random moment of it, is finished, or undone, by a
fresh process."""

from __future__ import annotations

import random
import signal
import time

import pytest
from destinations import PHASES, Destination, Files
from lockgate.model.layout import is_aside


@pytest.mark.timeout(1800)
def test_resumable_after_sigkill_at_random_moments(destination: Destination, chance: random.Random, kills: int) -> None:
    old = destination.table("v0")
    seconds = commit_seconds(destination, old)
    first_undone = chance.randrange(2)
    outcomes: dict[str, int] = {}
    for number in range(kills):
        policy, order = chance.choice(["replace", "replace-partitions"]), chance.choice(["old-first", "new-first"])
        new = destination.table(f"v{number + 1}")
        # The first in the middle of its commit, however fast or slow this machine is; the others at any moment of it.
        phase = "" if number else chance.choice(PHASES)
        driver = destination.driver(new, slow=0.004, stops_in=phase, conflict=policy, replace_order=order)
        driver.wait_until_committing()
        if phase:
            driver.wait_until_stopped()
        else:
            time.sleep(seconds * (number + chance.random()) / kills)
        driver.process.send_signal(signal.SIGKILL)
        driver.end()
        undo = (number + first_undone) % 2 == 0
        story = f"kill {number}, {phase or 'at any moment'}, {policy}, {order}, undo={undo}"
        found = destination.recover(driver.job_id, undo=undo)
        assert not phase or found == ("undone" if undo else "finished"), f"{story}: {found}"
        outcomes[found] = outcomes.get(found, 0) + 1
        state = destination.read()
        expected = {"finished": [new], "undone": [old], "nothing": [old, new], "too late": [new]}[found]
        assert state in expected, f"{story}: {found}, {sorted(state)[:5]}"
        if state == new:
            assert destination.lockgate("verify", destination.url)["findings"] == [], story
        if found == "nothing" and state == old:
            destination.lockgate("abort", destination.url, driver.job_id, "--force")
        # What a store had uploaded aside, to rename it into place, is nobody's in particular: gc takes it.
        assert [path for path in destination.left_over() if not is_aside(path)] == [], story
        old = state
    destination.lockgate("gc", destination.url, "-o", "alive_seconds=0")
    assert destination.left_over() == []
    print(f"a commit takes {seconds:.2f} s;", outcomes)


def commit_seconds(destination: Destination, files: Files) -> float:
    """How long these commits take here, by the first one, which replaces what another has written."""
    destination.write(destination.table("before"))
    driver = destination.driver(files, slow=0.004, conflict="replace")
    driver.wait_until_committing()
    began = time.monotonic()
    driver.wait_until_committed()
    seconds = time.monotonic() - began
    driver.end()
    return seconds

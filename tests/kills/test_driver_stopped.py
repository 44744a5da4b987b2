"""Fenced: a driver that was only asleep finds that it was succeeded, and none of its files appear."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from destinations import PHASES, Destination, Driver, table


@pytest.mark.timeout(2700)
@pytest.mark.parametrize("undo", [True, False], ids=["undone", "finished"])
def test_fenced_a_driver_stopped_in_mid_commit_is_succeeded_then_continues(
    local_destination: Destination, chance: random.Random, undo: bool
) -> None:
    old = table("v0", partitions=4)
    local_destination.write(old)
    for number in range(5):
        new = table(f"v{number + 1}", partitions=4)
        # The first in the middle of its commit, however fast or slow this machine is; the others at any moment of it.
        phase = "" if number else chance.choice(PHASES)
        driver = local_destination.driver(new, slow=0.02, stops_in=phase, conflict="replace-partitions")
        driver.wait_until_committing()
        if phase:
            driver.wait_until_stopped()
        else:
            wait_until_claimed(local_destination, driver)
            time.sleep(chance.uniform(0.0, 1.0))
            os.kill(driver.process.pid, signal.SIGSTOP)
        arguments = ["recover", local_destination.url, driver.job_id, "--force", *(["--undo"] if undo else [])]
        try:
            outcome = local_destination.lockgate(*arguments)[driver.job_id]["outcome"]
        except AssertionError as error:
            # It was stopped too late, as on a busy machine.
            assert undo and not phase and "is committed and cannot be undone" in str(error), error
            outcome = "committed"
        after = local_destination.read()
        os.kill(driver.process.pid, signal.SIGCONT)
        status, told = driver.end()
        assert local_destination.read() == after, "what it did after it woke up changed nothing"
        if outcome == "undone":
            assert after == old
            assert status == 1, told
            assert "restored" not in told, "it was fenced; the recoverer restored"
        else:
            assert after == new
        assert not phase or outcome == ("undone" if undo else "finished"), phase
        if outcome == "undone":
            # What it noted as it woke up, before it asked whether the job is still its own, is nobody's: gc takes it.
            local_destination.lockgate("gc", local_destination.url, "-o", "alive_seconds=0")
            assert local_destination.read() == after
        assert local_destination.left_over() == []
        old = after


def test_fenced_a_second_driver_of_the_same_job_is_told_who_holds_it(local_destination: Destination) -> None:
    driver = local_destination.driver(table("v1"), slow=0.02)
    driver.wait_until_committing()
    wait_until_claimed(local_destination, driver)
    # It stands still meanwhile, or it could be done before the second has even started.
    os.kill(driver.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(AssertionError, match=f"process {driver.process.pid}"):
            local_destination.lockgate("commit", local_destination.url, driver.job_id)
    finally:
        os.kill(driver.process.pid, signal.SIGCONT)
    assert driver.end()[0] == 0
    assert local_destination.read() == table("v1")


def wait_until_claimed(destination: Destination, driver: Driver) -> None:
    """Until the record of its commit is there, or was."""
    while driver.process.poll() is None and not list(Path(destination.url).glob("_lockgate/jobs/*/commit.json")):
        time.sleep(0.01)

"""Fenced: a driver that was only asleep finds that it was succeeded, and none of its files appear."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from destinations import Destination, table


@pytest.mark.timeout(2700)
@pytest.mark.parametrize("undo", [True, False], ids=["undone", "finished"])
def test_fenced_a_driver_stopped_in_mid_commit_is_succeeded_then_continues(
    local_destination: Destination, chance: random.Random, undo: bool
) -> None:
    old = table("v0", partitions=4)
    local_destination.write(old)
    succeeded = 0
    for number in range(5):
        new = table(f"v{number + 1}", partitions=4)
        driver = local_destination.driver(new, slow=0.02, conflict="replace-partitions")
        driver.wait_until_committing()
        time.sleep(chance.uniform(0.05, 1.0))
        os.kill(driver.process.pid, signal.SIGSTOP)
        arguments = ["recover", local_destination.url, driver.job_id, "--force", *(["--undo"] if undo else [])]
        try:
            outcome = local_destination.lockgate(*arguments)[driver.job_id]["outcome"]
        except AssertionError as error:
            # It was stopped too late, as on a busy machine.
            assert undo and "is committed and cannot be undone" in str(error), error
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
        succeeded += outcome != "committed"
        assert local_destination.left_over() == []
        old = after
    assert succeeded, "all five were stopped too late"


def test_fenced_a_second_driver_of_the_same_job_is_told_who_holds_it(local_destination: Destination) -> None:
    driver = local_destination.driver(table("v1"), slow=0.02)
    driver.wait_until_committing()
    while not list(Path(local_destination.url).glob("_lockgate/jobs/*/commit.json")):
        time.sleep(0.01)
    # It stands still meanwhile, or it could be done before the second has even started.
    os.kill(driver.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(AssertionError, match=f"process {driver.process.pid}"):
            local_destination.lockgate("commit", local_destination.url, driver.job_id)
    finally:
        os.kill(driver.process.pid, signal.SIGCONT)
    assert driver.end()[0] == 0
    assert local_destination.read() == table("v1")

"""Resumable, where each task commit completes its uploads: a driver, with its tasks, is killed at a random moment from
its setup on, by `emrfs` on stores of uploads; a fresh process finishes or undoes it, or aborts what never began."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from destinations import Destination, Files
from emulated_stores import destination_on

EMRFS = {"protocol": "emrfs", "accept_unsafe": "true"}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("store", ["gcs", "s3"])
def test_resumable_after_sigkill_from_the_first_task_on(
    store: str, tmp_path: Path, chance: random.Random, kills: int
) -> None:
    with destination_on(store, tmp_path, latency_ms=5) as (url, options):
        destination = Destination(url, files=2, **options)
        state = destination.table("v0")
        of_tasks, of_commit = seconds_of(destination, state)
        outcomes: dict[str, int] = {}
        for number in range(max(2, kills // 3)):
            new = destination.table(f"v{number + 1}")
            driver = destination.driver(new, tells_setup=True, **EMRFS)
            driver.wait_until_set_up()
            if number % 2:
                driver.wait_until_committing()
            time.sleep(chance.uniform(0, of_commit if number % 2 else of_tasks))
            driver.process.send_signal(signal.SIGKILL)
            driver.end()
            undo = chance.random() < 0.5
            seen = files_of(destination)
            assert seen in (state.keys(), (state | new).keys()), f"kill {number}: readers see {sorted(seen)}"
            found = destination.recover(driver.job_id, undo=undo)
            outcomes[found] = outcomes.get(found, 0) + 1
            if found == "nothing" and seen == state.keys():
                destination.lockgate_any("abort", destination.url, driver.job_id, "--force", statuses=(0, 1))
            story = f"kill {number}, undo={undo}: {found}"
            expected = {"finished": [state | new], "undone": [state], "too late": [state | new]}
            left = destination.read()
            assert left in expected.get(found, [state, state | new]), f"{story}: {sorted(left)}"
            assert left == state | new or seen == state.keys(), story
            state = left
        destination.lockgate("gc", destination.url, "-o", "alive_seconds=0")
        assert destination.left_over() == []
        assert destination.read() == state
        print(f"tasks take {of_tasks:.2f} s, the job commit {of_commit:.2f} s;", outcomes)


def seconds_of(destination: Destination, files: Files) -> tuple[float, float]:
    """How long the tasks of a job take here, and its commit."""
    driver = destination.driver(files, tells_setup=True, **EMRFS)
    driver.wait_until_set_up()
    began = time.monotonic()
    driver.wait_until_committing()
    committing = time.monotonic()
    driver.wait_until_committed()
    ended = time.monotonic()
    driver.end()
    return committing - began, ended - committing


def files_of(destination: Destination) -> set[str]:
    """What `lockgate files` tells a reader to read."""
    told = destination.lockgate_any("files", destination.url)
    return {file["path"] for file in told["files"]}

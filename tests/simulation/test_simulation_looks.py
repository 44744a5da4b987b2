"""A store that carries a request out late, which has no answer however often it is asked for: while its sender looks
what has become of it, of two files after the one and before the other; or once its sender has given it up."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
from lockgate.model.errors import OutcomeUnknown
from lockgate.model.files import Rename
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate.plugins.builtin.v2_protocol import V2
from lockgate.protocols.manifest import publish
from lockgate.protocols.v2 import task_commit
from simworld.history import render
from simworld.scenario import Scenario
from simworld.store import EVERY_STORE, profile_of
from simworld.systematic import (
    all_of_them,
    every_answer_lost_and_done_in_a_look,
    every_crash_and_answer_lost_in_a_look,
    every_request_that_is_done_at_last,
    every_request_that_is_done_at_last_of_one_that_died,
    small_job,
    some_of_them,
    two_attempts,
)
from simworld.world import by_protocol

REMOTE = [store for store in EVERY_STORE if profile_of(store).remote]


def _cases() -> Iterator[tuple[str, Scenario]]:
    for store in REMOTE:
        for policy in ("append", "replace-partitions"):
            for undo in (False, True):
                yield f"{store}-{policy}-{'undo' if undo else 'finish'}", small_job(store, policy, undo=undo)
        for protocol in (V1, V2):
            if protocol.needs <= profile_of(store).capabilities:
                yield f"{store}-{protocol.name}", by_protocol(small_job(store, "append"), protocol)
                yield f"{store}-{protocol.name}-undo", by_protocol(small_job(store, "append", undo=True), protocol)


CASES = dict(_cases())


@pytest.mark.parametrize("case", CASES)
def test_every_guarantee_holds_where_a_request_is_carried_out_in_a_look(case: str) -> None:
    count = 0
    for history in every_answer_lost_and_done_in_a_look(CASES[case]):
        count += 1
        assert not history.violations, render(history)
    assert count > 40


@pytest.mark.parametrize("case", CASES)
def test_resumable_and_undoable_where_a_recoverers_request_is_carried_out_in_a_look(case: str) -> None:
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={seed}")
    # Pairs of moments are many; all of them in `nox -s long`.
    sample = all_of_them if os.environ.get("TEST_EVERY_PAIR") else some_of_them(random.Random(seed), share=0.2, most=1)
    for history in every_crash_and_answer_lost_in_a_look(CASES[case], sample):
        assert not history.violations, render(history)


def _tried_again(store: str) -> Scenario:
    """A task whose second attempt comes after all that the first may do."""
    scenario = two_attempts(store, with_receipts=True)
    (job,) = scenario.jobs
    first, second = job.attempts
    return replace(scenario, jobs=(replace(job, attempts=(first, replace(second, start=60.0))),))


def _tried_again_cases() -> Iterator[tuple[str, Scenario]]:
    for store in REMOTE:
        yield store, _tried_again(store)
        for protocol in (V1, V2):
            if protocol.needs <= profile_of(store).capabilities:
                yield f"{store}-{protocol.name}", by_protocol(_tried_again(store), protocol)


TRIED_AGAIN = dict(_tried_again_cases())


@pytest.mark.parametrize("case", TRIED_AGAIN)
def test_every_guarantee_holds_where_a_request_is_carried_out_that_was_given_up(case: str) -> None:
    for seconds in (1.0, 40.0, 80.0):
        for history in every_request_that_is_done_at_last(TRIED_AGAIN[case], seconds):
            assert not history.violations, render(history)
        for history in every_request_that_is_done_at_last_of_one_that_died(TRIED_AGAIN[case], seconds):
            assert not history.violations, render(history)


def test_the_mutant_is_found_that_leaves_what_may_still_be_moved() -> None:
    async def nothing(run, paths):
        return None

    scenario = TRIED_AGAIN["tree-v2"]
    with patch.object(task_commit, "delete_trees", nothing):
        assert any(
            history.violations for history in every_request_that_is_done_at_last_of_one_that_died(scenario, 40.0)
        )


def test_the_mutant_is_found_that_looks_at_both_ends_of_a_revocation_at_once() -> None:
    async def revoke(run, nonce):
        source, revoked = run.layout.summary_temporary(nonce), run.layout.summary_revoked(nonce)
        for _ in range(publish.PUBLISH_TRIES):
            await run.store.rename_files([Rename(source, revoked, replace=True)])
            waiting, gone = await run.store.stat_files([source, revoked])
            if waiting is None:
                return gone is not None
            await asyncio.sleep(0.1)
        raise OutcomeUnknown("cannot tell whether it was committed")

    with patch.object(publish, "revoke", revoke):
        histories = every_crash_and_answer_lost_in_a_look(CASES["tree-append-undo"])
        assert any(history.violations for history in histories)

"""What can be wrong with the movers of a driver, and with the driver that has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lockgate.engine.renames import move_files, move_share
from lockgate.model.shares import shares_of
from mutants import mutant
from simworld.faults import Kind
from simworld.scenario import Scenario, Visitor
from simworld.systematic import small_job


def _with_movers(scenario: Scenario) -> Scenario:
    return replace(scenario, movers=2)


def _undone_while_a_mover_sleeps(scenario: Scenario) -> Scenario:
    small = small_job(scenario.store, "replace-partitions")
    job = small.jobs[0]
    return replace(
        small,
        movers=2,
        # What is left until cleanup stays, so that a mover that comes late has its manifests.
        jobs=(replace(job, options=job.options.replace(cleanup_skip=True, alive_seconds=900.0)),),
        visitors=(Visitor("undo", 0, 20.0),),
        fault_rate=0.02,
        faults_max=1,
        fault_kinds=(Kind.SLEEP_BEFORE,),
        sleep_seconds_max=5_000.0,
    )


@mutant("fenced", shape=_undone_while_a_mover_sleeps)
def a_mover_does_not_look_at_the_record() -> Iterator[None]:
    """A mover renames its share whatever has become of the job since its driver gave that out."""

    async def nothing(run: Any, holder: str) -> None:
        pass

    with patch.object(move_share, "refuse_unless_moving", nothing):
        yield


@mutant("complete", "new-first", shape=_with_movers)
def the_driver_does_not_wait_for_its_movers() -> Iterator[None]:
    """The driver goes on to publish before all shares have been moved."""

    async def move(run: Any, movers: Any, plan: Any, count: int) -> bool:
        shares = shares_of(run.held_as, plan.by_manifest(), plan.files, count)
        asyncio.ensure_future(movers.move(shares)).add_done_callback(
            lambda moved: moved.cancelled() or moved.exception()
        )
        return True

    with patch.object(move_files, "_renamed_by_movers", move):
        yield


@mutant("complete", shape=_with_movers)
def a_share_that_nobody_moved_is_not_missed() -> Iterator[None]:
    """The driver does not count what its movers answer for."""

    async def move(run: Any, movers: Any, plan: Any, count: int) -> bool:
        shares = shares_of(run.held_as, plan.by_manifest(), plan.files, count)
        await movers.move(shares[:-1] if len(shares) > 1 else shares)
        return True

    with patch.object(move_files, "_renamed_by_movers", move):
        yield

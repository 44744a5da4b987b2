"""Concurrent: jobs that replace overlapping partitions at once have the result of some serial order."""

from __future__ import annotations

import random
from graphlib import TopologicalSorter

import pytest
from destinations import Destination


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("when_jobs_meet", ["wait", "fail"])
def test_concurrent_jobs_have_a_serial_result(
    local_destination: Destination, chance: random.Random, when_jobs_meet: str
) -> None:
    for number in range(4):
        processes = chance.choice([2, 3, 5, 8])
        wants = [sorted(chance.sample(range(8), chance.randint(1, 5))) for _ in range(processes)]
        before = local_destination.read()
        drivers = []
        for at, partitions in enumerate(wants):
            files = {f"p={p}/round{number}-job{at}-{n}": f"{number}.{at}" for p in partitions for n in range(6)}
            options = {"conflict": "replace-partitions", "when_jobs_meet": when_jobs_meet}
            drivers.append(local_destination.driver(files, slow=0.005, **options))
        ends = [driver.end() for driver in drivers]
        won = [at for at, (status, _) in enumerate(ends) if status == 0]
        story = f"round {number}: {processes} jobs on {wants}, committed {won}"
        assert won, story
        if when_jobs_meet == "wait":
            assert len(won) == processes, f"{story}\n{ends}"
        for at, (status, told) in enumerate(ends):
            assert status == 0 or "came first" in told, f"{story}\njob {at}: {told}"
        check_serial(number, wants, won, before, local_destination.read(), story)


def check_serial(
    number: int, wants: list[list[int]], won: list[int], before: dict[str, str], after: dict[str, str], story: str
) -> None:
    """Each partition is whole and of one job, and the last writers of all of them fit one order of the jobs."""
    order: TopologicalSorter[int] = TopologicalSorter({at: set() for at in won})
    for partition in range(8):
        writers = [at for at in won if partition in wants[at]]
        found = {path: text for path, text in after.items() if path.startswith(f"p={partition}/")}
        if not writers:
            assert found == {path: text for path, text in before.items() if path.startswith(f"p={partition}/")}, story
            continue
        versions = set(found.values())
        assert len(versions) == 1, f"{story}: partition {partition} is a mixture of {versions}"
        last = int(versions.pop().partition(".")[2])
        assert last in writers, story
        assert sorted(found) == sorted(f"p={partition}/round{number}-job{last}-{n}" for n in range(6)), story
        order.add(last, *(at for at in writers if at != last))
    order.prepare()  # raises CycleError where no serial order leads to this

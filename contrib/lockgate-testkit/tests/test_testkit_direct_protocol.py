"""Spark's direct committer keeps what its attributes promise, which is little, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.model.undone import Undone
from lockgate.plugins.builtin.direct_protocol import DIRECT
from lockgate.protocols.direct import DirectProtocol
from lockgate_testkit import GUARANTEES, ProtocolContract, StoreFactory, local_places, try_guarantee


class TestDirectProtocol(ProtocolContract):
    protocol = DIRECT

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)


class Lie(DirectProtocol):
    name = "lie"


class LeavesWhatAnAttemptHasWritten(Lie):
    async def abort_task(self, run, attempt, written=None):
        pass


class LeavesWhatTheJobHasWritten(Lie):
    async def discard(self, run, record):
        return Undone()


class NeverAnnounces(Lie):
    async def conclude(self, run, summary, record):
        return summary


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (LeavesWhatAnAttemptHasWritten, "an_aborted_attempt_leaves_nothing"),
        (LeavesWhatTheJobHasWritten, "an_aborted_job_leaves_nothing"),
        (LeavesWhatTheJobHasWritten, "a_dead_drivers_job_can_be_undone"),
        (NeverAnnounces, "a_dead_drivers_job_is_ended_by_anybody"),
    ],
)
def test_a_lie_is_found(lie: type[Lie], name: str, tmp_path: Path) -> None:
    (guarantee,) = (each for each in GUARANTEES if each.name == name)
    with pytest.raises(Exception) as found:  # in a group, where moments are tried side by side
        try_guarantee(guarantee, lie(), local_places(tmp_path), moments_max=4)
    assert "the guarantee: " in "".join(getattr(found.value, "__notes__", []))

"""IBM's Stocator keeps what its attributes promise, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.model.undone import Undone
from lockgate.plugins.builtin.stocator_protocol import STOCATOR
from lockgate.protocols.in_place.protocol import InPlaceProtocol
from lockgate.protocols.stocator import StocatorProtocol
from lockgate_testkit import GUARANTEES, ProtocolContract, StoreFactory, local_places, try_guarantee


class TestStocatorProtocol(ProtocolContract):
    protocol = STOCATOR

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)


class Lie(StocatorProtocol):
    name = "lie"


class LeavesLosers(Lie):
    async def conclude(self, run, summary, record):
        return await InPlaceProtocol.conclude(self, run, summary, record)


class NamesNobody(Lie):
    def final_path(self, run, path):
        return path

    async def load_plan(self, run, pins):
        return await InPlaceProtocol.load_plan(self, run, pins)


class LeavesWhatTheJobHasWritten(Lie):
    async def discard(self, run, record):
        return Undone()


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (LeavesLosers, "the_attempt_whose_receipt_is_held_is_committed"),
        (NamesNobody, "the_attempt_whose_receipt_is_held_is_committed"),
        (LeavesWhatTheJobHasWritten, "an_aborted_job_leaves_nothing"),
        (LeavesWhatTheJobHasWritten, "a_dead_drivers_job_can_be_undone"),
    ],
)
def test_a_lie_is_found(lie: type[Lie], name: str, tmp_path: Path) -> None:
    (guarantee,) = (each for each in GUARANTEES if each.name == name)
    with pytest.raises(Exception) as found:  # in a group, where moments are tried side by side
        try_guarantee(guarantee, lie(), local_places(tmp_path), moments_max=4)
    assert "the guarantee: " in "".join(getattr(found.value, "__notes__", []))

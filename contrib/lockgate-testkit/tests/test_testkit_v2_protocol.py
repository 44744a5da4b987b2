"""Hadoop's second algorithm keeps what its attributes promise, which is less, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.model.undone import Undone
from lockgate.plugins.builtin.v2_protocol import V2
from lockgate.protocols.v2 import V2Protocol
from lockgate_testkit import GUARANTEES, ProtocolContract, StoreFactory, local_places, try_guarantee


class TestV2Protocol(ProtocolContract):
    protocol = V2

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)


class Lie(V2Protocol):
    name = "lie"


class LeavesWhatAnAttemptHasMoved(Lie):
    async def abort_task(self, run, attempt, written=None):
        pass


class LeavesWhatTheJobHasMoved(Lie):
    async def discard(self, run, record):
        return Undone()


class OpensInPlace(Lie):
    def open_file(self, run, ordinal, path, nonce):
        return run.store.open_output(path.replace("/", "-"))


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (LeavesWhatAnAttemptHasMoved, "an_aborted_attempt_leaves_nothing"),
        (LeavesWhatTheJobHasMoved, "an_aborted_job_leaves_nothing"),
        (LeavesWhatTheJobHasMoved, "a_dead_drivers_job_can_be_undone"),
        (OpensInPlace, "nothing_of_an_uncommitted_attempt_is_seen"),
    ],
)
def test_a_lie_is_found(lie: type[Lie], name: str, tmp_path: Path) -> None:
    (guarantee,) = (each for each in GUARANTEES if each.name == name)
    with pytest.raises(Exception) as found:  # in a group, where moments are tried side by side
        try_guarantee(guarantee, lie(), local_places(tmp_path), moments_max=4)
    assert "the guarantee: " in "".join(getattr(found.value, "__notes__", []))

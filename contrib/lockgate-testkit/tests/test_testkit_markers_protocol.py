"""Hudi's markers keep what their attributes promise, on the local store: direct ones, and a timeline server's."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.marker_server import MarkerServer
from lockgate.model.hudi_markers import Marker
from lockgate.model.undone import Undone
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.protocols.markers import MarkersProtocol
from lockgate.protocols.markers.batches import MarkerBatches
from lockgate_testkit import GUARANTEES, ProtocolContract, StoreFactory, local_places, try_guarantee


class Server(MarkerServer):
    """A driver's, in the process of its tasks: without HTTP between."""

    def __init__(self, run: JobRun) -> None:
        self._batches = MarkerBatches(run)

    async def create(self, marker: Marker) -> None:
        await self._batches.create(marker)


class ByServer(MarkersProtocol):
    """The markers of each job by a server of its own."""

    name = "markers-by-server"

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}

    async def set_up_task(self, run: JobRun) -> None:
        await super().set_up_task(run)
        options = run.options.replace(markers_batch_interval_ms=1, markers_batch_threads=2)
        run.options = options
        if run.marker not in self._servers:
            self._servers[run.marker] = Server(run)
        run.marker_server = self._servers[run.marker]


class TestDirectMarkers(ProtocolContract):
    protocol = MARKERS

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)


class TestMarkersOfATimelineServer(ProtocolContract):
    protocol = ByServer()

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)


class Lie(MarkersProtocol):
    name = "lie"


class LeavesWhatDoesNotCount(Lie):
    async def perform(self, run, plan, aside, *, again=False):
        pass

    async def release(self, run):
        pass


class LeavesWhatTheJobHasWritten(Lie):
    async def discard(self, run, record):
        return Undone()

    async def release(self, run):
        pass


class DeletesWhatCounts(Lie):
    async def perform(self, run, plan, aside, *, again=False):
        await run.store.delete_files([entry.target for batch in plan.batches() for entry in batch])


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (LeavesWhatDoesNotCount, "the_attempt_whose_receipt_is_held_is_committed"),
        (LeavesWhatTheJobHasWritten, "an_aborted_job_leaves_nothing"),
        (LeavesWhatTheJobHasWritten, "a_dead_drivers_job_can_be_undone"),
        (DeletesWhatCounts, "all_of_all_tasks_is_committed"),
    ],
)
def test_a_lie_is_found(lie: type[Lie], name: str, tmp_path: Path) -> None:
    (guarantee,) = (each for each in GUARANTEES if each.name == name)
    with pytest.raises(Exception) as found:  # in a group, where moments are tried side by side
        try_guarantee(guarantee, lie(), local_places(tmp_path), moments_max=4)
    assert "the guarantee: " in "".join(getattr(found.value, "__notes__", []))

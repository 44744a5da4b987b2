"""Who makes markers for task attempts, many at a time: asked in the place of the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from lockgate.model.hudi_markers import Marker

if TYPE_CHECKING:
    from lockgate.engine.run.job_run import JobRun
    from lockgate.engine.run.protocol import Protocol

WITHOUT = frozenset({"hdfs", "webhdfs"})
"""Stores on which markers are direct whatever is asked for, as Hudi's are (`WriteMarkersFactory`)."""


def has_marker_server(run: JobRun, protocol: Protocol) -> bool:
    """Whether a server announces the files of a job by this protocol, as the run's options and its store have it."""
    return protocol.asks_for_marker_server(run) and run.store.name not in WITHOUT


class MarkerServer(ABC):
    """The timeline server of one job, as a task attempt sees it."""

    finds_conflicts: bool = True
    """Whether it looks itself for other writers of the same files, where the job asks for that."""

    @abstractmethod
    async def create(self, marker: Marker) -> None:
        """Have a marker made: it is there, and durable, by this request or an earlier one.

        Raises:
            FileMissing: the job is over, or is being committed.
            PathError: the server takes no such marker.
            DestinationConflict: another job at work writes the file, or to its file group.
            StoreUnavailable: no answer came.
            StoreError: it could not be made.
        """

"""Who makes markers for task attempts, many at a time: asked in the place of the store."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lockgate.model.hudi_markers import Marker


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

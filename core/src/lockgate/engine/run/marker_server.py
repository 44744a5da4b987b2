"""Who makes markers for task attempts, many at a time, in the driver: asked in the place of the store."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lockgate.model.hudi_markers import Marker


class MarkerServer(ABC):
    """The timeline server of one job, as a task attempt sees it."""

    @abstractmethod
    async def create(self, marker: Marker) -> bool:
        """Have a marker made. True: it is there, and durable, by this request or an earlier one. False: it was refused,
        since the job is over.

        Raises:
            StoreUnavailable: no answer came.
            StoreError: it could not be made.
        """

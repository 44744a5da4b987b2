"""Movers of a driver: where a job has many files, others may rename their shares of them. The driver keeps the fence,
the record, what is set aside, the directories and the commit point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lockgate.model.shares import Moved, Share


class Movers(Protocol):
    """Has shares moved, each by `lockgate.engine.renames.move_share` in another process."""

    def wanted(self, files: int) -> int:
        """How many movers a job of so many files gets; below 2 its driver renames them itself."""

    async def move(self, shares: Sequence[Share]) -> Sequence[Moved] | None:
        """Each share moved, by one mover or by several, one after the other or at once: what they do is done once.
        None: they were not, or not all, for want of movers; their driver then renames all files itself.

        Cancelled, or failing, it ends the movers as far as it can. One that it cannot reach does no more than a driver
        that sleeps: its files are gone once the job is undone or committed.

        Raises:
            LockgateError: a share cannot be moved: the error of its mover.
        """

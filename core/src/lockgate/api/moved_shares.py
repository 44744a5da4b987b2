"""A share of a job's renames, moved in another process than its driver's."""

from __future__ import annotations

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job import Job
from lockgate.engine.renames.move_share import move_share
from lockgate.model.shares import Moved, Share


def moved(job: Job, share: Share) -> Moved:
    """Rename the files of a share for the driver of the job, which has been unpickled here. May be repeated.

    Raises:
        LockgateError: as `move_share`.
    """
    return IO_LOOP.run(move_share(job._run(), share))

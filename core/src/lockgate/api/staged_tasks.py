"""The commit of a job whose tasks were written by another program: Spark's own writers."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job import Job
from lockgate.engine.manifests.staged_elsewhere import StagedTask, save_manifests
from lockgate.model.receipt import Receipt


def receipts_of(job: Job, tasks: Sequence[StagedTask]) -> list[Receipt]:
    """Save the manifests of task attempts whose files others have staged, and return their receipts, for
    `job.commit`.

    Raises:
        CommitFailed: a file is gone, or has another length than its task has told; nothing was moved.
        DuplicateTarget: an attempt tells of two files for one path.
        JobNotFound: the job is over.
    """
    return IO_LOOP.run(save_manifests(job._run(), tasks, job._run))

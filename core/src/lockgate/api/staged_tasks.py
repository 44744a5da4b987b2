"""A job whose tasks are written by another program, Spark's own writers: its commit, and its sign of life."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job import Job
from lockgate.api.sign_of_life import shown_while
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


def keep_alive(job: Job) -> None:
    """Renew the driver's sign of life of a job that another process has set up, until it is over, or nobody holds it
    any more. Of a job that is over already none is left."""
    job._sign = job._sign or shown_while(job, job._run(), "driver")

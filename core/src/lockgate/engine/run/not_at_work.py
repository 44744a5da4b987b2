"""The error of a task attempt whose job is not there."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import JobNotFound


def not_at_work(run: JobRun, at: str = "") -> JobNotFound:
    """The error, by the path below the destination that would be there if the job were at work: the directory of its
    attempt, if no other."""
    return JobNotFound(
        f"job {run.layout.job_id} is not at work: it is not set up, or over, or somebody has deleted its directory",
        where=run.url(at or run.layout.attempt_directory),
        next_step="nothing of this task attempt is committed; unless the job was ended on purpose, run the whole write "
        "again (a program that drives jobs by itself calls setup() on the job before its tasks start)",
    )

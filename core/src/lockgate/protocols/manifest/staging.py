"""Where a job of the manifest protocol has its manifests and its staged files: below the job attempt's directory."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing


async def set_up_job(run: JobRun) -> None:
    """Make the directories, where directories are real."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([run.layout.manifests, run.layout.tasks])


async def set_up_task(run: JobRun) -> None:
    """Make a task attempt's working directory.

    Raises:
        JobNotFound: the job is not set up, or is over: a late attempt must not bring its directories back.
    """
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    try:
        await run.store.make_directories([run.layout.task_directory(run.task_attempt_id)], within=run.layout.tasks)
    except FileMissing as error:
        raise not_at_work(run, run.layout.tasks) from error

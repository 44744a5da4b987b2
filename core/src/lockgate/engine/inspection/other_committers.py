"""Jobs of Hadoop's `FileOutputCommitter`, version 1 and 2: seen, never touched.

Its paths (Hadoop `FileOutputCommitter`, `getJobAttemptPath` and those after it), relative to the destination:

    _temporary/{application attempt}/_temporary/{task attempt id}/     a task attempt at work
    _temporary/{application attempt}/{task id}/                        a task that has committed, version 1 only

The job's id is in neither, but in the ids of its tasks: `attempt_202411211721_0003_m_000001_0` is of the job
`job_202411211721_0003` (Hadoop `TaskAttemptID`, `JobID`). Several jobs may share one application attempt, since Spark
numbers them all 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.engine.run.job_run import JobRun
from lockgate.model.layout import TEMPORARY

_ATTEMPT_DIRECTORY = re.compile(rf"{TEMPORARY}/[0-9]+")
_TASK = re.compile(r"(attempt|task)_([A-Za-z0-9]+_[0-9]{4,})_[a-zA-Z]_[0-9]{6,}(?:_[0-9]+)?")


@dataclass
class OtherJob:
    """One job of another committer. `directory` is the application attempt's, which it may share."""

    job_id: str
    directory: str
    last_seen: float = 0.0
    tasks_committed: int = 0


async def list_other_jobs(run: JobRun) -> list[OtherJob]:
    """Every job of Hadoop's `FileOutputCommitter` that is at work below the destination, or was left there."""
    found: list[OtherJob] = []
    async for page in run.store.list_directory(TEMPORARY):
        for status in page:
            if status.is_directory and _ATTEMPT_DIRECTORY.fullmatch(status.path):
                found += await _jobs_in(run, status.path, status.modified)
    return found


async def _jobs_in(run: JobRun, directory: str, modified: float) -> list[OtherJob]:
    jobs: dict[str, OtherJob] = {}
    is_other = True
    for place in (directory, f"{directory}/{TEMPORARY}"):
        async for page in run.store.list_directory(place):
            for status in page:
                name = status.path.rpartition("/")[2]
                match = _TASK.fullmatch(name)
                if match is None:
                    # A job of Hadoop's manifest committer could be named by a number too: its attempts are numbers.
                    is_other &= not re.fullmatch(r"[0-9]{2,4}", name)
                    continue
                job = jobs.setdefault(match[2], OtherJob(f"job_{match[2]}", directory))
                job.last_seen = max(job.last_seen, status.modified)
                job.tasks_committed += match[1] == "task"
    if not jobs and is_other:
        # Set up, and no task at work yet; or its tasks went into the destination at once (version 2).
        return [OtherJob(f"unknown-{directory.rpartition('/')[2]}", directory, modified)]
    return list(jobs.values())

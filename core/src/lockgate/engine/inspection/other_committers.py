"""Jobs of Hadoop's `FileOutputCommitter`, version 1 and 2, that Hadoop has set up: seen, not touched.

Their paths are in `lockgate.model.file_output`. Jobs of ours by these protocols are left out.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.file_output import job_ids_of, parse_job_attempt, parse_task, parse_task_attempt
from lockgate.model.layout import JOBS, TEMPORARY


@dataclass
class OtherJob:
    """One job of another committer. `directory` is the application attempt's, which it may share; `job_attempt` its
    number, where tasks of the job are known; `committed` the names of its tasks' directories."""

    job_id: str
    directory: str
    last_seen: float = 0.0
    committed: set[str] = field(default_factory=set)
    job_attempt: int | None = None


UNKNOWN = "unknown-"
"""What the id of a job begins with of which nothing is there but its directory."""


def is_unknown(job_id: str) -> bool:
    """Whether this is no id, but says that none is known."""
    return job_id.startswith(UNKNOWN)


async def list_other_jobs(run: JobRun) -> list[OtherJob]:
    """Every job of Hadoop's `FileOutputCommitter` that is at work below the destination, or was left there."""
    found: list[OtherJob] = []
    async for page in run.store.list_directory(TEMPORARY):
        for status in page:
            if status.is_directory and parse_job_attempt(status.path) is not None:
                found += await _jobs_in(run, status.path, status.modified)
    if not found:
        return []
    ours = {status.path.rpartition("/")[2] for status in await list_all(run.store, JOBS)}
    newest: dict[str, OtherJob] = {}
    committed: dict[str, set[str]] = {}
    for job in found:
        committed.setdefault(job.job_id, set()).update(job.committed)
        if job.job_attempt is not None and ours.intersection(job_ids_of(job.job_id.removeprefix("job_"))):
            continue
        known = newest.get(job.job_id)
        if known is None or (known.job_attempt or 0) < (job.job_attempt or 0):
            newest[job.job_id] = job
    # Who commits the newest attempt takes what tasks have committed at earlier ones, too (Hadoop's `recoverTask`).
    return [dataclasses.replace(job, committed=committed[job.job_id]) for job in newest.values()]


async def _jobs_in(run: JobRun, directory: str, modified: float) -> list[OtherJob]:
    jobs: dict[str, OtherJob] = {}
    is_other = True
    for place in (directory, f"{directory}/{TEMPORARY}"):
        async for page in run.store.list_directory(place):
            for status in page:
                name = status.path.rpartition("/")[2]
                task = parse_task(name)
                owner = task or parse_task_attempt(name)
                if owner is None:
                    # A job of Hadoop's manifest committer could be named by a number too: its attempts are numbers.
                    is_other &= not re.fullmatch(r"[0-9]{2,4}", name)
                    continue
                number = parse_job_attempt(directory)
                job = jobs.setdefault(owner.job, OtherJob(f"job_{owner.job}", directory, job_attempt=number))
                job.last_seen = max(job.last_seen, status.modified)
                if task is not None:
                    job.committed.add(name)
    if not jobs and is_other:
        # Set up, and no task at work yet; or its tasks went into the destination at once (version 2).
        return [OtherJob(f"{UNKNOWN}{directory.rpartition('/')[2]}", directory, modified)]
    return list(jobs.values())

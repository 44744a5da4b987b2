"""Which jobs there are below a destination, and how each stands. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lockgate.engine.job_run import JobRun
from lockgate.engine.neighbours import job_layouts
from lockgate.engine.publish import read_summary
from lockgate.engine.record_log import read_record
from lockgate.engine.setup import read_marker_of
from lockgate.model.errors import JobNotFound, LockgateError
from lockgate.model.layout import JOB_PREFIX, MANIFEST_SUFFIX, SUCCESS, TEMPORARY, JobLayout
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord


class JobStatus(StrEnum):
    """What an operator wants to know of a job."""

    RUNNING = "running"
    COMMITTING = "committing"
    CRASHED = "crashed"
    ABANDONED = "abandoned"
    REFUSED = "refused"
    LEFT_BEHIND = "left behind"
    COMMITTED = "committed"
    UNREADABLE = "unreadable"


STATUS_MEANING: dict[JobStatus, str] = {
    JobStatus.RUNNING: "its tasks are at work, or were a short while ago",
    JobStatus.COMMITTING: "its driver is in job commit, or was a short while ago",
    JobStatus.CRASHED: "its driver died in job commit: `lockgate recover` finishes or undoes it",
    JobStatus.ABANDONED: "it never came to job commit: `lockgate gc` or `lockgate abort` deletes it",
    JobStatus.REFUSED: "its commit was refused before anything moved; it can be committed again, or aborted",
    JobStatus.LEFT_BEHIND: "it is over, and its directory was not cleaned up: `lockgate gc` does",
    JobStatus.COMMITTED: "the last job that was committed here",
    JobStatus.UNREADABLE: "its commit record cannot be read: another version's, or damaged",
}


@dataclass(frozen=True)
class JobState:
    """One job. Times in seconds since 1970; `last_seen` is its latest sign of life that a look from above shows."""

    layout: JobLayout
    status: JobStatus
    phase: Phase | None = None
    record: CommitRecord | None = None
    last_seen: float = 0.0
    tasks_committed: int = 0
    driver: str = ""
    problem: str = ""

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.layout.job_id


async def list_jobs(run: JobRun) -> list[JobState]:
    """Every job attempt that left a trace, the last committed one included; the latest first."""
    found = [await job_state(run, layout) async for layout in job_layouts(run)]
    finished = await _finished(run, {state.job_id for state in found})
    return sorted([*found, *finished], key=lambda state: -state.last_seen)


async def job_state(run: JobRun, layout: JobLayout) -> JobState:
    """How one job attempt stands."""
    manifests, newest = 0, 0.0
    for directory in (layout.attempt_directory, layout.manifests, layout.tasks):
        async for page in run.store.list_directory(directory):
            newest = max([newest, *(status.modified for status in page)])
            if directory == layout.manifests:
                manifests += sum(status.path.endswith(MANIFEST_SUFFIX) for status in page)
    marker = await read_marker_of(run, layout)
    driver = "" if marker is None else f"{marker.user}@{marker.host}"
    newest = max(newest, marker.created if marker else 0.0)
    try:
        record = await read_record(run, layout)
    except LockgateError as error:
        return JobState(layout, JobStatus.UNREADABLE, None, None, newest, manifests, driver, problem=str(error))
    last_seen = max(newest, record.updated if record else 0.0)
    status = _status(run, record, last_seen)
    if record is not None:
        driver = str(record.holder)
    return JobState(layout, status, record.phase if record else None, record, last_seen, manifests, driver)


def _status(run: JobRun, record: CommitRecord | None, last_seen: float) -> JobStatus:
    recent = run.runtime.wall() - last_seen < run.options.alive_seconds
    if record is None:
        return JobStatus.RUNNING if recent else JobStatus.ABANDONED
    if record.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
        return JobStatus.LEFT_BEHIND
    if record.phase is Phase.REFUSED:
        return JobStatus.REFUSED
    return JobStatus.COMMITTING if recent and not run.runtime.is_gone(record.holder) else JobStatus.CRASHED


async def _finished(run: JobRun, seen: set[str]) -> list[JobState]:
    try:
        summary = await read_summary(run, SUCCESS)
    except LockgateError:  # an empty `_SUCCESS` of another committer names no job
        return []
    if summary is None or not summary.success or summary.job_id in seen:
        return []
    try:
        layout = JobLayout(summary.job_id)
    except LockgateError:
        return []
    attempts = summary.lockgate.attempts if summary.lockgate else 0
    seconds = summary.timestamp / 1000
    state = JobState(layout, JobStatus.COMMITTED, Phase.COMMITTED, None, seconds, attempts, summary.hostname)
    return [state]


async def find_job(run: JobRun, job_id: str) -> JobLayout:
    """The newest attempt of the job of this id, ours or Hadoop's.

    Raises:
        JobNotFound: there is none; the error names those there are.
    """
    layouts = [layout async for layout in job_layouts(run)]
    ours = [layout for layout in layouts if layout.job_id == job_id]
    if not ours:
        others = ", ".join(sorted({layout.job_id for layout in layouts}))
        raise JobNotFound(
            f"there is no job {job_id} below the destination",
            where=f"{run.url(TEMPORARY)}\nthere: {others or 'none'}",
            next_step=f"lockgate jobs {run.store.url}",
        )
    return max(ours, key=lambda layout: (layout.job_attempt, layout.prefix == JOB_PREFIX))

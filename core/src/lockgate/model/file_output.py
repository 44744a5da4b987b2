"""Every path of Hadoop's `FileOutputCommitter`, both algorithms, and the names in them.

Relative to the destination, as Hadoop 3.4 and 3.5 have them (`FileOutputCommitter.getJobAttemptPath` and those after
it; `JobID`, `TaskID`, `TaskAttemptID` for the names):

    _temporary/{job attempt}/_temporary/attempt_{job}_m_{task}_{attempt}/   a task attempt at work
    _temporary/{job attempt}/task_{job}_m_{task}/                           a task that has committed, version 1 only

`{job}` is `{tracker}_{number}`: what `JobID` shows behind `job_`. Hadoop has no other name for a job there, and Spark's
attempts at a job are all 0, so jobs share `_temporary/0` and are told apart by the names of their tasks alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.model.errors import OptionError
from lockgate.model.layout import TEMPORARY

_HADOOPS_JOB = re.compile(r"job_([A-Za-z0-9.\-]+_[0-9]{4,})")
_PLAIN_JOB = re.compile(r"[A-Za-z0-9.\-]+")
_TASK = re.compile(r"task_([A-Za-z0-9.\-]+_[0-9]{4,})_([a-zA-Z])_([0-9]{6,})")
_ATTEMPT = re.compile(r"attempt_([A-Za-z0-9.\-]+_[0-9]{4,})_([a-zA-Z])_([0-9]{6,})_([0-9]+)")
_JOB_ATTEMPT = re.compile(rf"{TEMPORARY}/(0|[1-9][0-9]{{0,3}})")

PROTOCOL = "v1"
"""The protocol of Lockgate's that commits what tasks of such a job have left: those of version 2 leave nothing."""

MAP = "m"
"""The kind of tasks that write a table: Spark's are all of it."""

FOUND = "found"
"""What stands in the name of a task attempt of Hadoop's that has committed, for the number that its directory does not
say."""


@dataclass(frozen=True, slots=True)
class TaskName:
    """Whose directory a name is: of a job, by the part of its id that is in the name, and a task. `task` is the task's
    id as Lockgate has it (`task_000003`; of another kind than map `task_r_000003`)."""

    job: str
    task: str


def job_part(job_id: str) -> str:
    """What of a job's id is in the names of its tasks. A job of Hadoop's is `job_{tracker}_{number}`; any other id is a
    tracker's, and its number 0.

    Raises:
        OptionError: it has an underscore, which Hadoop's names cannot hold.
    """
    if match := _HADOOPS_JOB.fullmatch(job_id):
        return match[1]
    if _PLAIN_JOB.fullmatch(job_id):
        return f"{job_id}_0000"
    raise OptionError(
        "Hadoop's names of tasks cannot hold this job id: it has an underscore",
        where=repr(job_id),
        next_step="leave job_id out and one is made; or give one without underscores, or in Hadoop's form "
        "job_202411211721_0003",
    )


def job_ids_of(part: str) -> tuple[str, ...]:
    """The job ids that have this part in the names of their tasks."""
    tracker, _, number = part.rpartition("_")
    return (f"job_{part}", tracker) if number == "0000" else (f"job_{part}",)


@dataclass(frozen=True, slots=True)
class FileOutputLayout:
    """The paths of one attempt at one job. `job` is `job_part` of its id."""

    job: str
    job_attempt: int = 0

    @property
    def attempt_directory(self) -> str:
        """The job attempt directory, which other jobs may share."""
        return f"{TEMPORARY}/{self.job_attempt}"

    @property
    def pending(self) -> str:
        """Where task attempts work, of other jobs too."""
        return f"{self.attempt_directory}/{TEMPORARY}"

    def task_attempt(self, task_attempt_id: str) -> str:
        """The working directory of the task attempt that Lockgate calls so."""
        return f"{self.pending}/attempt_{self.job}_{_with_kind(task_attempt_id.removeprefix('attempt_'))}"

    def task(self, task_id: str) -> str:
        """Where the output of a committed task is, of the task that Lockgate calls so."""
        return f"{self.attempt_directory}/task_{self.job}_{_with_kind(task_id.removeprefix('task_'))}"


def _with_kind(rest: str) -> str:
    return rest if rest[:1].isalpha() else f"{MAP}_{rest}"


def parse_task(name: str) -> TaskName | None:
    """Whose output a directory of this name in a job attempt directory is; None: no committed task's."""
    match = _TASK.fullmatch(name)
    return None if match is None else TaskName(match[1], _task_id(match[2], match[3]))


def parse_task_attempt(name: str) -> TaskName | None:
    """Whose working directory this name is of; None: no task attempt's."""
    match = _ATTEMPT.fullmatch(name)
    return None if match is None else TaskName(match[1], _task_id(match[2], match[3]))


def _task_id(kind: str, number: str) -> str:
    return f"task_{number}" if kind == MAP else f"task_{kind}_{number}"


def parse_job_attempt(path: str) -> int | None:
    """The number of the job attempt directory that `path` is; None for any other."""
    match = _JOB_ATTEMPT.fullmatch(path)
    return None if match is None else int(match[1])


def displaced_attempt_id(task_id: str, nonce: str) -> str:
    """What an attempt is called whose output of this task is displaced by another's, and that nobody knows."""
    return f"attempt_{task_id.removeprefix('task_')}_x{nonce[:8]}"


def task_of_attempt(task_attempt_id: str) -> str | None:
    """The task of an attempt by its name, those above included; None: that is no attempt's."""
    match = re.fullmatch(r"attempt_(.+)_[^_]+", task_attempt_id)
    return None if match is None else f"task_{match[1]}"


def found_attempt_id(task_id: str) -> str:
    """What an attempt is called that committed this task, and that nobody knows."""
    return f"attempt_{task_id.removeprefix('task_')}_{FOUND}"

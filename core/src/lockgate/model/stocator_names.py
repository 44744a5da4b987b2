"""Stocator's names: a file's own name with the task attempt that wrote it in it, before the extension.

    year=2024/part-00003.c000.parquet
    year=2024/part-00003-attempt_lg0123456789abcdef_0000_m_000003_0.c000.parquet

Source: Stocator's `StocatorPath.parseHadoopOutputCommitter`, which puts the attempt before the first dot of the name,
and `nameWithoutTaskID`, by which its readers tell what two attempts wrote of one file. What it takes for an attempt
Hadoop's `TaskAttemptID.forName` must take. Where that has the time at which a job's tracker began, there is a tag here
that no other attempt at a job has, so that nobody's file is ever taken for a job's of the same id.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from lockgate.model.errors import PathError

MARK = "-attempt_"
"""What Stocator's readers look for in a name."""

_ATTEMPT = re.compile(r"-attempt_(lg[0-9a-f]{16})_0000_m_([0-9]{6,})_([0-9]+)(?:\.|\Z)")


class AttemptName(NamedTuple):
    """Which attempt at which job a file's name says that it is of: the job's tag, and the task attempt's id."""

    tag: str
    task_attempt_id: str


def tag_of_job(job_id: str, job_attempt: int, nonce: str) -> str:
    """What stands for one attempt at one job in the names of its files; `nonce` is its marker's."""
    return f"lg{hashlib.sha256(f'{job_id}/{job_attempt}/{nonce}'.encode()).hexdigest()[:16]}"


def named(path: str, tag: str, task_attempt_id: str) -> str:
    """The path that a task attempt's file `path` has.

    Raises:
        PathError: the path holds what readers would take for another attempt.
    """
    if MARK in path:
        raise PathError(
            f"{MARK!r} in a path is what the protocol stocator tells task attempts by, and its readers would be misled",
            where=path,
            next_step="give the file, and its directories, other names",
        )
    directory, slash, name = path.rpartition("/")
    dot = name.find(".", 1)
    stem, extension = (name, "") if dot < 0 else (name[:dot], name[dot:])
    return f"{directory}{slash}{stem}{MARK}{tag}_0000_m_{task_attempt_id.removeprefix('attempt_')}{extension}"


def parse_name(path: str) -> AttemptName | None:
    """Which attempt a path is of; None: it does not say, or is none of Lockgate's, as one that Stocator itself has
    written."""
    found = _ATTEMPT.search(path.rpartition("/")[2])
    return None if found is None else AttemptName(found[1], f"attempt_{found[2]}_{found[3]}")

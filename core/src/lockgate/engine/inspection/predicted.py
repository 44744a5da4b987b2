"""What a job takes by its protocol: of `lockgate plan` and of `lockgate advise`, so that both say the same."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Set as AbstractSet
from typing import Literal

from lockgate.engine.run.protocol import Protocol
from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import (
    Operations,
    Work,
    operations_asked,
    operations_of_job,
    renames,
    requests_of,
    together,
)

READ_A_BATCH = 2
"""Requests of a marker server for one batch of markers: it reads the job's marker, and writes a file of many."""


def operations_of_plan(
    plan: CommitPlan, protocol: Protocol, options: JobOptions, capabilities: AbstractSet[Capability], *, served: bool
) -> list[Operations]:
    """What committing `plan` takes from here, by the job's own options. `served`: a server announces its files."""
    whole = plan.whole
    work = Work(
        how="in place" if plan.in_place else "uploads" if plan.completes_uploads else "renames",
        tasks=len(plan.pins),
        files=plan.files,
        directories=len(plan.directories),
        missing_directories=len(plan.missing_directories),
        task_directories=plan.task_directories,
        replaced=sum(aside.path not in whole for aside in plan.set_aside) if whole else len(plan.set_aside),
        replaced_directories=len(plan.aside_directories),
        adopted_directories=plan.adopted_directories,
        beneath=sum(bool(aside.version) for aside in plan.set_aside),
        looks_in_place=plan.looks_in_place,
    )
    return job_commit(protocol, work, options, capabilities, served=served)


def job_commit(
    protocol: Protocol, work: Work, options: JobOptions, capabilities: AbstractSet[Capability], *, served: bool
) -> list[Operations]:
    """What the job commit takes."""
    rows = operations_of_job(_with_markers(work, protocol, options, served), protocol.costs, options, capabilities)
    if "delete_losers" in protocol.own_options and options.delete_losers:
        rows.append(Operations("list the destination", max(1, work.directories)))
    return rows


def attempts(
    protocol: Protocol, work: Work, options: JobOptions, capabilities: AbstractSet[Capability], *, served: bool
) -> list[Operations]:
    """What task attempts ask when they are set up, and while they write, beside the files themselves: their
    directories, and the announcing of their files. A server takes the markers of one file of each task in one batch at
    best: a task opens its files one after another."""
    rows = operations_asked(protocol.costs.attempts, work, capabilities)
    if protocol.announces_files and not served:
        rows.append(Operations("make markers", requests_of("write", capabilities) * work.files))
    elif protocol.announces_files:
        rows.append(Operations("write markers in batches", READ_A_BATCH * _batches(work), in_series=True))
    return together(rows)


def task_commits(
    protocol: Protocol,
    work: Work,
    options: JobOptions,
    capabilities: AbstractSet[Capability],
    *,
    at_once: Literal["renames", "uploads", ""],
) -> list[Operations]:
    """What all task commits take together. `at_once`: how they make files visible, where they do."""
    rows = operations_asked(protocol.costs.task_commits, work, capabilities)
    rows.append(Operations("look at files", protocol.looks_at_task_commit * work.files))
    if at_once == "renames":
        each = renames(math.ceil(work.files / work.tasks), options, capabilities)
        rows.append(Operations("rename files", min(each * work.tasks, work.files), calls=work.files))
    elif at_once:
        rows.append(Operations("complete uploads", work.files))
    return together(rows)


def _batches(work: Work) -> int:
    return math.ceil(work.files / work.tasks)


def _with_markers(work: Work, protocol: Protocol, options: JobOptions, served: bool) -> Work:
    """With the markers that are there at the job commit: one for each file, or files of many; and what reads them."""
    if not protocol.announces_files or not work.tasks:
        return work
    if not served:
        return dataclasses.replace(work, markers=work.files, markers_read=3 + 2 * work.directories)
    of_many = min(_batches(work), options.markers_batch_threads)
    return dataclasses.replace(work, markers=of_many, markers_read=3 * of_many)

"""What a commit will cost: store operations by kind, and the time for a given latency and rate."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan

BULK = 1000
"""Files in one bulk deletion, where a store has them."""
BULK_RENAMES = 100
"""Files in one bulk rename, where a store has them: what Cloud Storage takes."""


@dataclass(frozen=True)
class Operations:
    """Store operations of one kind; `in_series` of them wait for one another."""

    kind: str
    count: int
    in_series: bool = False
    calls: int = 0
    """What they count as where the store limits a rate, if more than themselves: a bulk rename counts as its files."""


@dataclass(frozen=True)
class Work:
    """What a job commit has to do, in numbers: of a plan, or of a job that is only thought of."""

    tasks: int
    files: int
    directories: int = 0
    missing_directories: int = 0
    replaced: int = 0
    """Files that are set aside by themselves, or deleted afterwards."""
    replaced_directories: int = 0
    """Directories that are set aside whole."""
    adopted_directories: int = 0
    """Directories of tasks that are renamed into the job's own first."""
    beneath: int = 0
    """Files in whose place files of the same names come, and which stay beneath."""
    looks_in_place: int = 2
    """How often a job commit looks at each file that is in place already."""
    markers: int = 0
    """Markers of files, or files of many, that are deleted at the end."""


def predict_operations(
    plan: CommitPlan, options: JobOptions, capabilities: AbstractSet[Capability]
) -> list[Operations]:
    """The operations that committing `plan` takes from here, retries left out."""
    whole = plan.whole
    work = Work(
        tasks=len(plan.pins),
        files=plan.files,
        directories=len(plan.directories),
        missing_directories=len(plan.missing_directories),
        replaced=sum(aside.path not in whole for aside in plan.set_aside) if whole else len(plan.set_aside),
        replaced_directories=len(plan.aside_directories),
        adopted_directories=plan.adopted_directories,
        beneath=sum(bool(aside.version) for aside in plan.set_aside),
        looks_in_place=plan.looks_in_place,
    )
    if plan.in_place:
        return operations_in_place(work, options, capabilities)
    if completes_uploads(plan):
        return operations_of_uploads(work, options, capabilities)
    return operations_of_renames(work, options, capabilities)


def operations_of_renames(work: Work, options: JobOptions, capabilities: AbstractSet[Capability]) -> list[Operations]:
    """Those of a job commit that renames its files."""
    real = Capability.REAL_DIRECTORIES in capabilities
    bulk = BULK_RENAMES if Capability.BULK_RENAME in capabilities else 1
    rows = [
        Operations("read manifests", work.tasks),
        Operations("rename directories of tasks", work.adopted_directories),
        Operations("probe directories", work.directories if real else 0),
        Operations("make directories", work.missing_directories if real else 0),
        Operations("set directories aside", work.replaced_directories),
        Operations("set files aside", math.ceil(work.replaced / bulk), calls=work.replaced),
        Operations("rename files", math.ceil(work.files / bulk), calls=work.files),
        Operations("check files", work.files if options.validate_output else 0),
        Operations("write commit record", 5, in_series=True),
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        # What was staged is renamed away by then: manifests and what is beside them is left.
        Operations("clean up", 0 if options.cleanup_skip else _deletions(2 * work.tasks, capabilities)),
    ]
    return [row for row in rows if row.count]


def _deletions(files: int, capabilities: AbstractSet[Capability]) -> int:
    """By how many operations a directory goes that has so many files."""
    if Capability.CONSTANT_TIME_DIRECTORY_DELETE in capabilities:
        return min(files, 1)
    return math.ceil(files / (BULK if Capability.BULK_DELETE in capabilities else 1))


def operations_in_place(work: Work, options: JobOptions, capabilities: AbstractSet[Capability]) -> list[Operations]:
    """Those of a job commit whose files are in place: how often each is looked at the protocol says, and all are looked
    at in the commit where they are validated. What it deletes of other attempts is not known."""
    looks = max(2, work.looks_in_place) if options.validate_output else work.looks_in_place
    rows = [
        Operations("read manifests", work.tasks),
        Operations("look for jobs that replace", 2 * work.directories),
        Operations("look at files in place", looks * work.files),
        Operations("write commit record", 5, in_series=True),
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        Operations("delete markers", 0 if options.cleanup_skip else _deletions(work.markers, capabilities)),
        Operations("clean up", 0 if options.cleanup_skip else _deletions(2 * work.tasks, capabilities)),
    ]
    return [row for row in rows if row.count]


def completes_uploads(plan: CommitPlan) -> bool:
    """Whether the files of a plan appear by uploads that are completed, and not by renames."""
    return any(entry.upload for entry in next(iter(plan.batches(1)), ()))


def operations_of_uploads(work: Work, options: JobOptions, capabilities: AbstractSet[Capability]) -> list[Operations]:
    """Those of a job commit that completes its uploads."""
    bulk = BULK if Capability.BULK_DELETE in capabilities else 1
    rows = [
        Operations("read manifests", work.tasks),
        Operations("look at versions that files of the same names replace", work.beneath),
        Operations("complete uploads", work.files),
        Operations("check files", work.files if options.validate_output else 0),
        Operations("write commit record", 5, in_series=True),
        Operations("delete replaced files", work.replaced - work.beneath),  # one by one, each only if it is unchanged
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        Operations("clean up", 0 if options.cleanup_skip else math.ceil(2 * work.tasks / bulk)),
    ]
    return [row for row in rows if row.count]


def at_once(allowed: int, made: int | None) -> int:
    """How many operations are under way beside one another: so many are `allowed` by `requests_in_flight`, and `made`
    by the store (None: as many)."""
    return allowed if made is None else min(allowed, made)


def told_at_once(in_flight: int) -> str:
    """As people read it."""
    return "one after another" if in_flight == 1 else f"up to {in_flight} in flight"


def predict_seconds(operations: list[Operations], *, latency: float, rate: float, in_flight: int) -> float:
    """How long they take, with `latency` seconds an operation, at most `rate` a second, `in_flight` at once.

    A lower bound: stores throttle, and tails are long.
    """
    total = 0.0
    for row in operations:
        each = latency if row.in_series else latency / in_flight
        total += max(row.count * each, max(row.count, row.calls) / rate if rate else 0.0, latency)
    return total

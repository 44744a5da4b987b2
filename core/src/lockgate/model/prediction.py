"""What a commit will cost: store operations by kind, and the time for a given latency and rate."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan

BULK = 1000
"""Files in one bulk request, where a store has them."""


@dataclass(frozen=True)
class Operations:
    """Store operations of one kind; `in_series` of them wait for one another."""

    kind: str
    count: int
    in_series: bool = False


def predict_operations(
    plan: CommitPlan, options: JobOptions, capabilities: AbstractSet[Capability]
) -> list[Operations]:
    """The operations that committing `plan` takes from here, retries left out."""
    if plan.in_place:
        return _of_files_in_place(plan, options)
    if completes_uploads(plan):
        return _of_uploads(plan, options, capabilities)
    real = Capability.REAL_DIRECTORIES in capabilities
    renames = plan.files + len(plan.set_aside)
    bulk = BULK if Capability.BULK_RENAME in capabilities else 1
    whole = plan.whole
    alone = sum(aside.path not in whole for aside in plan.set_aside) if whole else len(plan.set_aside)
    deletes = 1 if Capability.CONSTANT_TIME_DIRECTORY_DELETE in capabilities else plan.files + 2 * len(plan.pins)
    rows = [
        Operations("read manifests", len(plan.pins)),
        Operations("probe directories", len(plan.directories) if real else 0),
        Operations("make directories", len(plan.missing_directories) if real else 0),
        Operations("set directories aside", len(plan.aside_directories)),
        Operations("set files aside", math.ceil(alone / bulk)),
        Operations("rename files", math.ceil((renames - len(plan.set_aside)) / bulk)),
        Operations("check files", plan.files if options.validate_output else 0),
        Operations("write commit record", 5, in_series=True),
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        Operations("clean up", 0 if options.cleanup_skip else deletes),
    ]
    return [row for row in rows if row.count]


def _of_files_in_place(plan: CommitPlan, options: JobOptions) -> list[Operations]:
    """Each file is looked at before the commit, and in it. What the protocol deletes of other attempts is not known."""
    rows = [
        Operations("read manifests", len(plan.pins)),
        Operations("look at files in place", 2 * plan.files),
        Operations("write commit record", 5, in_series=True),
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        Operations("clean up", 0 if options.cleanup_skip else 2 * len(plan.pins)),
    ]
    return [row for row in rows if row.count]


def completes_uploads(plan: CommitPlan) -> bool:
    """Whether the files of a plan appear by uploads that are completed, and not by renames."""
    return any(entry.upload for entry in next(iter(plan.batches(1)), ()))


def _of_uploads(plan: CommitPlan, options: JobOptions, capabilities: AbstractSet[Capability]) -> list[Operations]:
    bulk = BULK if Capability.BULK_DELETE in capabilities else 1
    beneath = sum(bool(aside.version) for aside in plan.set_aside)
    rows = [
        Operations("read manifests", len(plan.pins)),
        Operations("look at versions that files of the same names replace", beneath),
        Operations("complete uploads", plan.files),
        Operations("check files", plan.files if options.validate_output else 0),
        Operations("write commit record", 5, in_series=True),
        Operations("delete replaced files", len(plan.set_aside) - beneath),  # one by one, each only if it is unchanged
        Operations("write and publish the summary", 2 if options.mark_success else 0, in_series=True),
        Operations("clean up", 0 if options.cleanup_skip else math.ceil(2 * len(plan.pins) / bulk)),
    ]
    return [row for row in rows if row.count]


def predict_seconds(operations: list[Operations], *, latency: float, rate: float, in_flight: int) -> float:
    """How long they take, with `latency` seconds an operation, at most `rate` a second, `in_flight` at once.

    A lower bound: stores throttle, and tails are long.
    """
    total = 0.0
    for row in operations:
        each = latency if row.in_series else latency / in_flight
        total += max(row.count * each, row.count / rate if rate else 0.0, latency)
    return total

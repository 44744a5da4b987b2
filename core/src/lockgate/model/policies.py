"""The built-in conflict policies, as pure functions: a plan and what the destination holds in, a plan out.

Spark's save modes map onto them: append, errorifexists (`fail`), overwrite (`replace`), and overwrite with
dynamic partitions (`replace-partitions`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from lockgate.model.errors import DestinationConflict
from lockgate.model.files import FileStatus
from lockgate.model.plan import CommitPlan, Survey

Resolution = CommitPlan | Survey
"""A policy's answer: the plan to perform, or how much of the destination it must see first."""

Existing = Sequence[FileStatus] | None
"""The files of the destination that a survey found, reserved paths left out; None before any survey. As many as there
are files: those of a large destination are kept on disk, and each pass reads them anew."""


def append(plan: CommitPlan, existing: Existing) -> Resolution:
    """Add to what is there. An existing file of a new file's name is met at its rename, which then fails."""
    return plan


def append_over_targets(plan: CommitPlan, existing: Existing) -> Resolution:
    """Add to what is there; files of the same names are set aside (Hadoop's `delete.target.files`)."""
    if existing is None:
        return Survey.LEAF_DIRECTORIES
    hits = plan.writes_each(status.path for status in existing)
    return plan.replacing(status for status, hit in zip(existing, hits, strict=True) if hit)


def fail(plan: CommitPlan, existing: Existing) -> Resolution:
    """Commit only to a destination that holds no file.

    Raises:
        DestinationConflict: it holds one. Checked at job setup and again at job commit, since another job may
            have committed in between.
    """
    if existing is None:
        return Survey.ANY_FILE
    if existing:
        raise DestinationConflict(
            "the destination holds data, and the conflict policy is `fail` (Spark's modes error and ignore)",
            where=f"found {existing[0].path}",
            next_step="write elsewhere, or choose the policy append, replace or replace-partitions; of a Spark write, "
            "the mode append or overwrite",
        )
    return plan


def fail_partitions(plan: CommitPlan, existing: Existing) -> Resolution:
    """Commit only to leaf directories that hold no file; every other partition may hold what it will.

    Raises:
        DestinationConflict: one that this job writes to holds a file.
    """
    if existing is None:
        return Survey.LEAF_DIRECTORIES
    if existing:
        raise DestinationConflict(
            "a partition that the job writes holds data, and the conflict policy is `fail-partitions`",
            where=f"found {existing[0].path}",
            next_step="write other partitions, or choose the policy append or replace-partitions",
        )
    return plan


def replace(plan: CommitPlan, existing: Existing) -> Resolution:
    """Replace everything that the destination holds."""
    if existing is None:
        return Survey.WHOLE_DESTINATION
    return dataclasses.replace(plan.replacing(existing), clears_the_way=True)


def replace_partitions(plan: CommitPlan, existing: Existing) -> Resolution:
    """Replace what is in the leaf directories that this job writes to, and what stands in their way; leave every
    other partition untouched."""
    if existing is None:
        return Survey.LEAF_DIRECTORIES
    return dataclasses.replace(plan.replacing(existing), clears_the_way=True)


def replace_below(plan: CommitPlan, existing: Existing) -> Resolution:
    """Replace what is below the directories that the option `replace_below` names; leave all else untouched."""
    if existing is None:
        return Survey.CHOSEN_DIRECTORIES
    return dataclasses.replace(plan.replacing(existing), clears_the_way=True)


KEEPING = ("append", "fail", "fail-partitions")
"""The policies that leave alone what they find."""

POLICIES: dict[str, Callable[[CommitPlan, Existing], Resolution]] = {
    "append": append,
    "fail": fail,
    "fail-partitions": fail_partitions,
    "replace": replace,
    "replace-partitions": replace_partitions,
    "replace-below": replace_below,
}

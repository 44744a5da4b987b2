"""The policies append, fail, fail-partitions, replace, replace-partitions and replace-below."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.model.files import FileStatus
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.policies import POLICIES, append_over_targets
from lockgate.plugins.hookspecs import hookimpl


@hookimpl
def lockgate_conflict_policies() -> Sequence[str]:
    """Their names."""
    return tuple(POLICIES)


@hookimpl(trylast=True)
def lockgate_resolve_conflicts(
    plan: CommitPlan, options: JobOptions, existing: Sequence[FileStatus] | None
) -> CommitPlan | Survey | None:
    """Apply one of them; None for another's."""
    if options.conflict == "append" and options.delete_target_files:
        return append_over_targets(plan, existing)
    policy = POLICIES.get(options.conflict)
    return None if policy is None else policy(plan, existing)

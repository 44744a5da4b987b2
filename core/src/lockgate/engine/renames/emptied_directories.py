"""The directories that an overwrite has left empty: partitions that were there before, and have no file any more.

Spark deletes them with what is in them, before its write. Left behind, `MSCK REPAIR TABLE` and others who list
directories would take them for partitions.
"""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import StoreError
from lockgate.model.plan import CommitPlan
from lockgate.model.urls import ancestors_of, parent_of


async def delete_emptied_directories(run: JobRun, plan: CommitPlan) -> None:
    """Delete the directories of replaced files that have no new ones, and those above that are empty then: with the
    policy `replace` up to the destination, which stays, with `replace-below` no higher than what was named.

    Called once the job is committed. Only what is empty goes, and another job whose file comes to such a directory
    makes it again (`rename_all`, `make_parents`). That it cannot be done is told, and fails nothing; nor does whoever
    concludes a dead driver's job do it, who has no plan.
    """
    policy, below = run.options.conflict, run.options.replace_below
    if policy not in ("replace", "replace-below") or Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    parents = {parent_of(aside.path) for aside in plan.set_aside} - {""}
    found = parents.union(*map(ancestors_of, parents)).difference(plan.directories)
    if policy == "replace-below":
        found = {path for path in found if not {path, *ancestors_of(path)}.isdisjoint(below)}
    if not found:
        return
    try:
        await run.store.delete_empty_directories(sorted(found, key=lambda path: (-path.count("/"), path)))
    except StoreError as error:
        run.log.info("directories that are empty now stay", error=str(error))

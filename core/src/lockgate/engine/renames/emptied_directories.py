"""The directories that an overwrite has left empty: partitions that were there before, and have no file any more.

Spark deletes them with what is in them, before its write. Left behind, `MSCK REPAIR TABLE` and others who list
directories would take them for partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lockgate.engine.record.replaced_lists import kept_lists
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import LockgateError, StoreError
from lockgate.model.plan import CommitPlan
from lockgate.model.replaced import SetAside
from lockgate.model.urls import ancestors_of, parent_of


async def delete_emptied_directories(run: JobRun, plan: CommitPlan) -> None:
    """Delete the directories of replaced files that have no new ones, and those above that are empty then: with the
    policy `replace` up to the destination, which stays, with `replace-below` no higher than what was named.

    Called once the job is committed. Only what is empty goes, and another job whose file comes to such a directory
    makes it again (`rename_all`, `make_parents`). That it cannot be done is told, and fails nothing.
    """
    await _delete(run, plan.set_aside, plan.directories, run.options.conflict)


async def delete_directories_emptied_before(run: JobRun) -> None:
    """The same for who ends the job of a dead driver, by the lists of what it has replaced, before these go."""
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    try:
        lists = await kept_lists(run, run.layout.job_id)
    except LockgateError as error:
        run.log.info("directories that may be empty now stay", error=str(error))
        return
    for kept in lists:
        await _delete(run, kept.replaced.files, (), kept.replaced.policy)


async def _delete(run: JobRun, replaced: Iterable[SetAside], new: Collection[str], policy: str) -> None:
    policies = ("replace", "replace-below")
    if policy not in policies or Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    parents = {parent_of(aside.path) for aside in replaced} - {""}
    found = parents.union(*map(ancestors_of, parents)).difference(new)
    if policy == "replace-below":
        # Where the record is lost, and what was named with it, files were replaced in what was named, or below.
        named = run.options.replace_below
        found = {path for path in found if path in parents or not {path, *ancestors_of(path)}.isdisjoint(named)}
    if not found:
        return
    try:
        await run.store.delete_empty_directories(sorted(found, key=lambda path: (-path.count("/"), path)))
    except StoreError as error:
        run.log.info("directories that are empty now stay", error=str(error))

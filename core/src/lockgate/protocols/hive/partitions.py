"""Partitions in which Hive gives directories of their own to the branches of a union, and to frequent values.

`replace-partitions` and `fail-partitions` look at the directories that a job writes to, and at no others. In such a
partition these are not all that hold its rows, and Hive's `INSERT OVERWRITE` replaces all of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Collection, Sequence

from lockgate.engine.job.conflicts import is_hidden
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import DestinationConflict
from lockgate.model.hive_output import DEFAULT_LIST_BUCKET, is_branch, is_partition
from lockgate.model.layout import is_reserved
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.urls import ancestors_of, parent_of

NAMED = 5
PARTITIONS_IN_COMMAND = 20
"""The most partitions that a command names which somebody is to type."""


async def refuse_rows_beside(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that a policy which looks at the directories that the job writes to has seen all rows of its
    partitions.

    Raises:
        DestinationConflict: a partition has rows in other directories.
    """
    if run.options.conflict == "append":
        return
    if run.hooks.resolve_conflicts(plan, run.options, None) is not Survey.LEAF_DIRECTORIES:
        return
    leaves = {*plan.leaf_directories, *([""] if plan.writes_to_root else [])}
    bucketed = await _bucketed(run, leaves)
    branches = {leaf.partition("/")[0] for leaf in leaves if is_branch(leaf.partition("/")[0])} | await _branches(run)
    partitions: set[str] = set()
    for leaf in leaves:
        partition = _partition_of(leaf, bucketed)
        # Who knows a branch by a directory above its partitions has the rows of one in several places.
        partitions |= {partition, *(f"{branch}/{partition}" for branch in branches if partition)}
    beside = {path: found for path in sorted(partitions) if (found := await _beside(run, path, leaves, bucketed))}
    if beside:
        raise DestinationConflict(
            "a partition that the job writes has rows in directories that the job does not write to, and the conflict "
            f"policy `{run.options.conflict}` looks at no such",
            where="\n".join(f"found {run.url(found)}" for found in list(beside.values())[:NAMED]),
            next_step="Hive makes directories inside a partition for the branches of a union, and for frequent values. "
            f"To replace all that is there, {_how_to_replace(run, [] if '' in beside else sorted(partitions - {''}))}",
        )


def _how_to_replace(run: JobRun, partitions: Sequence[str]) -> str:
    """The commit that replaces all that these partitions hold; of none, the whole destination."""
    if len(partitions) > PARTITIONS_IN_COMMAND:
        return (
            "commit it with -o conflict=replace-below and -o replace_below=… that names the "
            f"{len(partitions):,} partitions which {found_command(run, 'plan', run.layout)} shows"
        )
    conflict = "replace-below" if partitions else "replace"
    options = run.options.replace(conflict=conflict, replace_below=tuple(partitions))
    return found_command(dataclasses.replace(run, options=options), "commit", run.layout)


async def _bucketed(run: JobRun, leaves: Collection[str]) -> set[str]:
    """The directories in which each frequent value has one: those that hold the one for all other values, whether the
    job writes that or an earlier one has."""
    above = sorted({"", *(path for leaf in leaves for path in ancestors_of(leaf))})
    others = [f"{path}/{DEFAULT_LIST_BUCKET}".lstrip("/") for path in above]
    written = {path for leaf in leaves for path in (leaf, *ancestors_of(leaf))}
    found = await run.store.stat_files(others)
    return {path for path, other, status in zip(above, others, found, strict=True) if status or other in written}


def _partition_of(leaf: str, bucketed: Collection[str]) -> str:
    """The partition that a directory is of: without what Hive has made inside, and without a branch above."""
    inside = leaf
    for path in reversed([leaf, *ancestors_of(leaf)]):
        if parent_of(path) in bucketed:
            inside = parent_of(path)
            break
    return "/".join(name for name in inside.split("/") if not is_branch(name))


async def _branches(run: JobRun) -> set[str]:
    """The directories of branches that are right below the destination."""
    found: set[str] = set()
    async for page in run.store.list_directory(""):
        found |= {status.path for status in page if status.is_directory and is_branch(status.path)}
    return found


async def _beside(run: JobRun, partition: str, leaves: Collection[str], bucketed: Collection[str]) -> str:
    """A file of the partition, as readers see it, that is in no directory which the job writes to; empty: none."""
    async for path in _files_of(run, partition, bucketed):
        inside = path[len(partition) + 1 :] if partition else path
        if parent_of(path) not in leaves and not is_reserved(path) and not is_hidden(inside):
            return path
    return ""


async def _files_of(run: JobRun, partition: str, bucketed: Collection[str]) -> AsyncIterator[str]:
    """Of a partition all. Where the destination has none, or is one itself, what is in it, and in the directories that
    Hive makes inside a partition: others are of other partitions."""
    trees = [partition] if partition else []
    if not partition:
        async for page in run.store.list_directory(""):
            for status in page:
                if not status.is_directory:
                    yield status.path
                elif is_branch(status.path) or ("" in bucketed and is_partition(status.path)):
                    trees.append(status.path)
    for tree in trees:
        async for page in run.store.list_tree(tree):
            for status in page:
                if not status.is_directory:
                    yield status.path

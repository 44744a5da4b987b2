"""Where the plan meets what the destination holds: surveys the policy asks for, and its resolution."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence

from lockgate.engine.job_run import JobRun
from lockgate.engine.spool import MemorySpool
from lockgate.model.capabilities import Capability
from lockgate.model.errors import UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import SUCCESS, is_reserved
from lockgate.model.plan import CommitPlan, Survey


async def resolve(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan after its conflict policy has seen as much of the destination as it asked for.

    Raises:
        DestinationConflict: the policy does not allow what is there.
    """
    answer = run.hooks.resolve_conflicts(plan, run.options, None)
    if isinstance(answer, CommitPlan):
        return answer
    existing = await survey(run, plan, answer)
    answer = run.hooks.resolve_conflicts(plan, run.options, existing)
    if isinstance(answer, Survey):
        raise UsageError(
            f"the conflict policy {run.options.conflict!r} asked for a second survey",
            next_step="a policy answers with a plan once it has been given the files it asked for",
        )
    return answer


async def refuse_early(run: JobRun) -> None:
    """Ask the policy at job setup, when refusing costs nothing: only policies that look for any file at all can
    answer before there is a plan."""
    empty = CommitPlan(entries=MemorySpool(), policy=run.options.conflict)
    answer = run.hooks.resolve_conflicts(empty, run.options, None)
    if answer is Survey.ANY_FILE:
        run.hooks.resolve_conflicts(empty, run.options, await survey(run, empty, Survey.ANY_FILE))


async def survey(run: JobRun, plan: CommitPlan, scope: Survey) -> list[FileStatus]:
    """The destination's files in `scope`, reserved paths left out, in order of path."""
    found: list[FileStatus] = []
    if scope is Survey.LEAF_DIRECTORIES:
        for directory in [*plan.leaf_directories, *([""] if plan.writes_to_root else [])]:
            async for page in run.store.list_directory(directory):
                found += _files(page)
    else:
        async for page in list_visible(run, any_file=scope is Survey.ANY_FILE):
            found += page
    found.sort(key=lambda status: status.path)
    return found


async def list_visible(run: JobRun, *, any_file: bool = False) -> AsyncIterator[list[FileStatus]]:
    """Pages of the destination's own files, however deep; `any_file`: stop at the first page that has one.

    The root is listed first and the trees below it one by one, so that `_temporary`, which may be large, is never
    walked.
    """
    trees: list[str] = []
    async for page in run.store.list_directory(""):
        files = _files(page)
        trees += [status.path for status in page if status.is_directory and not is_reserved(status.path)]
        if files:
            yield files
            if any_file:
                return
    for tree in sorted(trees):
        async for page in run.store.list_tree(tree):
            files = _files(page)
            if files:
                yield files
                if any_file:
                    return


def _files(page: Sequence[FileStatus]) -> list[FileStatus]:
    return [status for status in page if not status.is_directory and not is_reserved(status.path)]


async def meet_directories(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan after its directories were probed, leaf first: what exists needs no look at what is above it."""
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return dataclasses.replace(plan, missing_directories=())
    statuses: dict[str, FileStatus | None] = {}
    known: set[str] = set()
    by_depth: dict[int, list[str]] = {}
    for path in plan.directories:
        by_depth.setdefault(path.count("/"), []).append(path)
    for depth in sorted(by_depth, reverse=True):
        asked = [path for path in by_depth[depth] if path not in known]
        for path, status in zip(asked, await run.store.stat_files(asked), strict=True):
            statuses[path] = status
            if status is not None and status.is_directory:
                above = path
                while above := above.rpartition("/")[0]:
                    if above in known:
                        break
                    known.add(above)
                    statuses[above] = FileStatus(above, is_directory=True)
    return plan.meeting(statuses)


async def old_summary(run: JobRun) -> FileStatus | None:
    """The `_SUCCESS` that an earlier job left, if any."""
    (status,) = await run.store.stat_files([SUCCESS])
    return status

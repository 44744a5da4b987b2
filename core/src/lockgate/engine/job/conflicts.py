"""Where the plan meets what the destination holds: surveys the policy asks for, and its resolution."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from lockgate.engine.job.tables_with_logs import why_not_a_plain_table
from lockgate.engine.job.whole import Shown, may_go_whole
from lockgate.engine.record.nested import refuse_jobs_beside, refuse_jobs_inside
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.engine.run.spool import MemorySpool
from lockgate.model.capabilities import Capability
from lockgate.model.errors import DestinationConflict, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import SUCCESS, is_reserved
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.spooled import windows

AT_ONCE = 10_000
"""So many of the files that a survey has found are held."""


async def resolve(run: JobRun, plan: CommitPlan, *, whole: bool = False) -> CommitPlan:
    """The plan after its conflict policy has seen as much of the destination as it asked for. `whole`: its protocol can
    set directories aside whole, where the job may.

    Raises:
        DestinationConflict: the policy does not allow what is there, or the job would replace files of a table
            whose format keeps a log of them.
    """
    answer = run.hooks.resolve_conflicts(plan, run.options, None)
    if isinstance(answer, CommitPlan):
        return answer
    shown = Shown() if whole and may_go_whole(run) else None
    existing = await survey(run, plan, answer, shown)
    answer = _answer(run, plan, existing)
    if isinstance(answer, Survey):
        raise UsageError(
            f"the conflict policy {run.options.conflict!r} asked for a second survey",
            next_step="a policy answers with a plan once it has been given the files it asked for",
        )
    if answer.set_aside and (refusal := await why_not_a_plain_table(run)) is not None:
        raise refusal
    if shown is None:
        return answer
    return dataclasses.replace(answer, aside_directories=shown.whole_of(run, answer.set_aside))


async def refuse_early(run: JobRun) -> None:
    """Ask the policy at job setup, when refusing costs nothing: only policies that look for any file at all can
    answer before there is a plan."""
    empty = CommitPlan(entries=MemorySpool(), policy=run.options.conflict)
    answer = run.hooks.resolve_conflicts(empty, run.options, None)
    if answer is Survey.ANY_FILE:
        _answer(run, empty, await survey(run, empty, Survey.ANY_FILE))


def _answer(run: JobRun, plan: CommitPlan, existing: Sequence[FileStatus]) -> CommitPlan | Survey:
    try:
        return run.hooks.resolve_conflicts(plan, run.options, existing)
    except DestinationConflict as error:
        # A policy knows paths alone, and a program may have many destinations.
        where = f"{run.url('')}\n{error.where}".rstrip()
        raise DestinationConflict(error.what, where=where, next_step=error.next_step) from error


async def survey(run: JobRun, plan: CommitPlan, scope: Survey, shown: Shown | None = None) -> Sequence[FileStatus]:
    """The destination's files in `scope`, in order of path, without reserved paths. Hidden files are left alone,
    unless the plan writes one of their names. However many they are, a window of them is held at a time. `shown` is
    told of everything that was listed."""
    found = Sorter[FileStatus](run.spool, FileStatus, lambda status: status.path)
    if scope is Survey.LEAF_DIRECTORIES:
        await refuse_jobs_beside(run, plan.leaf_directories)
        for directory in [*plan.leaf_directories, *([""] if plan.writes_to_root else [])]:
            async for page in run.store.list_directory(directory):
                if directory:
                    await refuse_jobs_inside(run, page)
                    if shown is not None:
                        shown.holds(directory, page)
                found.add(_files(page))
    elif scope is Survey.CHOSEN_DIRECTORIES:
        chosen = run.options.replace_below
        await refuse_jobs_beside(run, [*plan.leaf_directories, *chosen])
        for directory in chosen:
            async for page in run.store.list_tree(directory):
                await refuse_jobs_inside(run, page)
                if shown is not None:
                    shown.holds(directory, page)
                found.add(_files(page))
    else:
        # Hidden pages too: a job inside stages its files where no reader looks.
        async for page in list_visible(run, hidden=True):
            await refuse_jobs_inside(run, page)
            if shown is not None:
                shown.holds_each(page)
            found.add(page)
            if scope is Survey.ANY_FILE and not all(is_hidden(status.path) for status in page):
                break
    return found.collected(_without_hidden(run, plan, scope, _each_once(found.in_order())))


def _each_once(found: Iterable[FileStatus]) -> Iterator[FileStatus]:
    """What was listed, in order of path, without what was listed before: directories may be inside one another."""
    last: FileStatus | None = None
    for status in found:
        if last is not None and last.path != status.path:
            yield last
        last = status
    if last is not None:
        yield last


def _without_hidden(run: JobRun, plan: CommitPlan, scope: Survey, found: Iterable[FileStatus]) -> Iterator[FileStatus]:
    """Those that readers see, and those whose names the plan writes."""
    for window in windows(found, AT_ONCE):
        hidden = {status.path for status in window if is_hidden(_shown_by(run, status.path, scope))}
        kept = hidden - plan.writes_any_of(hidden) if hidden else hidden
        yield from (status for status in window if status.path not in kept)


def _shown_by(run: JobRun, path: str, scope: Survey) -> str:
    """What of a path tells whether it is hidden."""
    if scope is Survey.CHOSEN_DIRECTORIES or scope is Survey.WHOLE_DESTINATION:
        return _below_chosen(path, run.options.replace_below)
    return _below_leaf(path, scope)


def is_hidden(path: str) -> bool:
    """Whether readers pass a file by, or with a `/` at its end a directory: a part of its path begins with `.` or `_`.

    As Spark's readers have it (`HadoopFSUtils.shouldFilterOutPathName`): `_column=value` is a partition, and the
    summaries `_metadata` and `_common_metadata` are read. A directory `.column=value` is a partition too, and so is
    `column=value._COPYING_`: who lists the table passes it by, but a catalog names it to its readers, so what replaces
    the table has to replace it.
    """
    *directories, name = path.split("/")
    return _is_hidden_name(name) or any(
        _is_hidden_name(directory) and "=" not in directory for directory in directories
    )


def _is_hidden_name(name: str) -> bool:
    return (
        name.startswith(".")
        or name.endswith("._COPYING_")
        or (name.startswith("_") and "=" not in name and not name.startswith(("_metadata", "_common_metadata")))
    )


def _below_leaf(path: str, scope: Survey) -> str:
    """What of a path tells whether it is hidden: where the job itself writes to a directory, only the name does."""
    return path.rpartition("/")[2] if scope is Survey.LEAF_DIRECTORIES else path


def _below_chosen(path: str, chosen: Sequence[str]) -> str:
    """What of a path tells whether it is hidden, below a directory that was named: what is below the innermost such."""
    return min((path[len(each) + 1 :] for each in chosen if path.startswith(f"{each}/")), key=len, default=path)


async def list_visible(run: JobRun, *, any_file: bool = False, hidden: bool = False) -> AsyncIterator[list[FileStatus]]:
    """Pages of the destination's own files, however deep; `any_file`: stop at the first page that has one; `hidden`:
    those too that readers pass by.

    The root is listed first and the trees below it one by one, so that `_lockgate`, which may be large, is never
    walked.
    """
    trees: list[str] = []
    async for page in run.store.list_directory(""):
        files = _files(page, hidden=hidden)
        trees += [
            status.path
            for status in page
            if status.is_directory and not is_reserved(status.path) and (hidden or not is_hidden(f"{status.path}/"))
        ]
        if files:
            yield files
            if any_file:
                return
    for tree in sorted(trees):
        async for page in run.store.list_tree(tree):
            files = _files(page, hidden=hidden)
            if files:
                yield files
                if any_file:
                    return


def _files(page: Sequence[FileStatus], *, hidden: bool = True) -> list[FileStatus]:
    return [
        status
        for status in page
        if not status.is_directory and not is_reserved(status.path) and (hidden or not is_hidden(status.path))
    ]


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

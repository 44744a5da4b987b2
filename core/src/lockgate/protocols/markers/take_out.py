"""Files of the job that do not count, or no more, are deleted: those that manifests name by their identities, and those
that only markers name by the tags in their names, which no file of another job has.

Hudi: `MarkerBasedRollbackStrategy`, and `HoodieTable.reconcileAgainstMarkers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from lockgate.engine.manifests.saved_manifests import saved_and_damaged
from lockgate.engine.record.ended_jobs import is_committed_by_any_sign, listed_by_summary, says_committed
from lockgate.engine.record.record_log import read_record
from lockgate.engine.renames.roll_back import is_ours
from lockgate.engine.run.behind_links import look_in_front_of_links
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import LockgateError, ManifestInvalid, StoreError
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.hudi_markers import TABLE, TEMP, Marker, MarkerLayout
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.spooled import windows
from lockgate.protocols.in_place.visible import changed_since, not_provably_ours, written_by_others
from lockgate.protocols.markers.found import NAMED_MAX, Marked, all_tagged, paths_marked

AT_ONCE = 1_000
"""So many files are deleted by one call."""

UNMARKED = "files_unmarked"
"""Counts those that a commit has found by their names alone, and left."""


async def take_out(run: JobRun, files: Sequence[Entry]) -> list[str]:
    """Delete these, each only if it is the one that was written; the answer: where something else stands."""
    left: list[str] = []
    for some in windows(files, AT_ONCE):
        found = await run.store.stat_files([entry.target for entry in some])
        there = [(entry, status) for entry, status in zip(some, found, strict=True) if status is not None]
        unproved = await not_provably_ours(run, [entry for entry, _ in there])
        ours = [
            status
            for entry, status in there
            if (is_ours(run, entry, status) if entry.identity else entry.target not in unproved)
        ]
        left += sorted({status.path for _, status in there} - {status.path for status in ours})
        if Capability.CONDITIONAL_WRITE in run.store.capabilities:
            outcomes = await run.store.delete_if_same(ours)
            left += [each.path for each, done in zip(ours, outcomes, strict=True) if done is Deleted.CHANGED]
        else:
            await run.store.delete_files([status.path for status in ours])
        run.count("files_taken_out", len(ours))
    return left


async def refuse_unless_marked(run: JobRun, plan: CommitPlan, marked: Marked) -> None:
    """Make sure that every file of the plan has its marker: where one has none, those of files that do not count may
    be gone as well, and nobody could find these.

    Raises:
        ManifestInvalid: one has none; nothing was deleted.
    """
    known = sum(counts for _, counts in _beside(run, plan.batches(), marked))
    if known != plan.files:
        raise ManifestInvalid(
            f"{plan.files - known} of the {plan.files} files that the job commits have no marker: somebody has deleted "
            "markers, and files of attempts that do not count could not be found",
            where=run.url(MarkerLayout(run.layout.job_id).directory),
            next_step="nothing was deleted: run the job again; an abort of this one takes out all that is known of it",
        )


async def refuse_unmarked(run: JobRun, plan: CommitPlan, marked: Marked) -> None:
    """Make sure, where a file of markers was emptied, or is missing, that no file is there which has the job's tag in
    its name and which neither the plan nor a marker names. Where only tasks are left out, such files are logged. None
    is deleted by its name alone: it may be a copy that a person has made, and the part of a tag that is the job's has
    24 bits.

    Raises:
        ManifestInvalid: there are some; nothing was deleted.
    """
    if not (marked.gone or run.left_out):
        return
    found = list(_neither(run, plan, marked, await all_tagged(run)))
    if not found:
        return
    named = "\n".join(run.url(path) for path in found[:NAMED_MAX])
    if not marked.gone:
        run.count(UNMARKED, len(found))
        run.log.warning(
            "files have a tag of this job in their names, and no marker: they stay. Where somebody has deleted "
            "markers, they are of attempts that do not count",
            files=found[:NAMED_MAX],
            count=len(found),
        )
        return
    lines = ", ".join(f"`{Marker(path).name}`" for path in found[:NAMED_MAX])
    raise ManifestInvalid(
        f"a file of markers was emptied or deleted, and {counted(len(found), 'file')} that may be the job's by the "
        "name have no marker: they may be of attempts that do not count",
        where=f"{run.url(marked.gone)}\n{named}",
        next_step="nothing was deleted: for those that are of this job put lines into that file, each with a line end, "
        f"and give the command again, which deletes them: {lines}. If none is, put there a line of a file that the job "
        "commits",
    )


def _neither(run: JobRun, plan: CommitPlan, marked: Marked, tagged: Marked) -> Iterator[str]:
    marks = iter(marked)
    mark = next(marks, None)
    for path, counts in _beside(run, plan.batches(), tagged):
        while mark is not None and mark < path:
            mark = next(marks, None)
        if not counts and mark != path:
            yield path


async def take_out_uncommitted(run: JobRun, plan: CommitPlan, marked: Marked) -> None:
    """Delete what markers name and the plan does not commit. What somebody has changed since an attempt saved its
    manifest stays; these are read only where there is something to delete."""
    number = 0
    written: Mapping[str, Entry] | None = None
    for some in windows((path for path, counts in _beside(run, plan.batches(), marked) if not counts), AT_ONCE):
        written = await written_by_others(run, plan.pins) if written is None else written
        known = [path for path in some if path in written]
        found = await run.store.stat_files(known) if known else []
        changed = changed_since(run, written, [status for status in found if status is not None])
        outcomes = await _delete_marked(run, [path for path in some if path not in changed])
        number += sum(outcome is not Deleted.MISSING for outcome in outcomes)
    run.count("uncommitted_files_deleted", number)


async def _delete_marked(run: JobRun, paths: Sequence[str]) -> Sequence[Deleted]:
    """Delete the files that are there. A directory is none: an attempt that would open a file where one stands has made
    its marker before it is refused. So has one that would open a file behind a symbolic link, and what is behind a link
    is never touched."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities and paths:
        found = await look_in_front_of_links(run, paths)
        paths = [status.path for status in found if not status.is_directory]
    return await run.store.delete_files(paths) if paths else []


def _beside(run: JobRun, files: Iterable[Sequence[Entry]], marked: Marked) -> Iterator[tuple[str, bool]]:
    """Each path that is marked, and whether it is one of the files: both in order, so that one pass over them tells."""
    targets = _targets(run, files)
    target = next(targets, None)
    for path in marked:
        while target is not None and target < path:
            target = next(targets, None)
        yield path, target == path


def _targets(run: JobRun, files: Iterable[Sequence[Entry]]) -> Iterator[str]:
    """Where the files are, each path once, in order."""
    sorter = Sorter[FileStatus](run.spool, FileStatus, lambda status: status.path)
    for batch in files:
        sorter.add([FileStatus(entry.target) for entry in batch])
    return (path for path, _ in groupby(status.path for status in sorter.in_order()))


async def take_out_all(run: JobRun) -> list[str]:
    """Delete all that the job has written; the answer: where something else stands. Of a job that has committed all the
    same, since newer versions of its record are lost, nothing.

    Raises:
        ManifestInvalid: a marker cannot be believed, or a manifest whose files no name tells; nothing was deleted.
    """
    if await is_committed_by_any_sign(run):
        return []
    marked = await paths_marked(run)
    found, damaged = await saved_and_damaged(run)
    manifests = [each.manifest for each in found]
    written = [manifest.files for manifest in manifests]
    unmarked = sum(1 for _ in _targets(run, written)) - sum(counts for _, counts in _beside(run, written, marked))
    if unmarked:
        run.log.warning(
            "files of this job have no marker: somebody has deleted markers; what it has written is looked for by name",
            files=unmarked,
            destination=run.url(""),
        )
    left: list[str] = []
    for manifest in manifests:
        left += await take_out(run, manifest.files)
    # What stands where a manifest's file was is somebody's who has changed it.
    stay = set(left)
    for some in windows(marked, AT_ONCE):
        await _delete_marked(run, [path for path in some if path not in stay])
    if damaged or unmarked or marked.gone:
        # A file may be there that neither a manifest nor a marker names any more.
        for some in windows(await all_tagged(run), AT_ONCE):
            await _delete_marked(run, [path for path in some if path not in stay])
    return sorted(stay)


async def forget(run: JobRun) -> None:
    """At the end of the job: what attempts have written since it was looked is taken out as well, then the markers go,
    and the directories above if they are empty. Markers that cannot be believed stay, and so do their files. What
    counts the pins say, of a record that says that the job has committed, and of no other.

    Raises:
        StoreError: it could not be done.
    """
    layout = MarkerLayout(run.layout.job_id)
    record = await read_record(run)
    if await list_all(run.store, layout.directory):
        try:
            listed = await _listed_without_record(run) if record is None else None
            if listed is not None:
                for some in windows((path for path in await paths_marked(run) if path not in listed), AT_ONCE):
                    await _delete_marked(run, some)
            elif record is None:
                raise ManifestInvalid(
                    "the job's record is gone",
                    where=run.url(run.layout.job_directory),
                    next_step="look whether the job has committed; if not: "
                    + command("abort", run.store.url, layout.job_id),
                )
            elif await says_committed(run, record):
                plan = await run.protocol.load_plan(run, record.pins)
                await take_out_uncommitted(run, plan, await paths_marked(run))
            else:
                await take_out_all(run)
        except StoreError:
            raise
        except LockgateError as error:
            run.log.warning("markers are left, since nobody can tell what they say", error=str(error))
            return
    await delete_trees(run, [layout.directory])
    await run.store.delete_empty_directories([TEMP, TABLE])


async def _listed_without_record(run: JobRun) -> set[str] | None:
    """What a job has committed whose record is lost, by its summary; None: that says nothing of it."""
    return await listed_by_summary(run) if await is_committed_by_any_sign(run) else None

"""Which files of a job count: a list that stays, and the losers, which are deleted.

`_SUCCESS` lists the files of the last job. So that readers can tell winners from losers of those before it too, each
job leaves its own list, `_lockgate/winners/_{job}.{tag}.files`. It is written before the commit point, and counts
unless the job is still there with a record that does not say `committed`: an undoing deletes it. The tag is the one in
the names of the files: a job of an id that was used before takes no other job's list for its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.record.marker import read_marker_of
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.layout import WINNERS, JobLayout
from lockgate.model.plan import CommitPlan
from lockgate.model.stocator_names import parse_name, tag_of_job
from lockgate.model.summary import CommittedFile, decode_lines, encode_file_list


async def write_winners(run: JobRun, plan: CommitPlan) -> None:
    """Leave the list of what the plan commits."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([WINNERS])
    await run.store.write_file(run.layout.winners_of(await own_tag(run)), encode_file_list(_files(plan)))


def _files(plan: CommitPlan) -> Iterator[CommittedFile]:
    for batch in plan.batches():
        for entry in batch:
            yield CommittedFile(entry.target, entry.length, entry.identity)


async def delete_winners(run: JobRun) -> None:
    """Delete the list of a job that is undone."""
    await run.store.delete_files(await _paths(run))
    await run.store.delete_empty_directories([WINNERS])


async def read_winners(run: JobRun) -> set[str] | None:
    """The paths of the run's job's winners; None where there is no list.

    Raises:
        LockgateError: it cannot be read.
    """
    paths = await _paths(run)
    contents = await run.store.read_files(paths, bytes_max=SUMMARY_BYTES_MAX)
    lists = [
        decode_lines(each, name=run.url(path)) for path, each in zip(paths, contents, strict=True) if each is not None
    ]
    return {file.path for lines in lists for file in lines} if lists else None


async def _paths(run: JobRun) -> list[str]:
    """Where the job's list may be: by the tags of its attempts, and that of a run that knows it."""
    tags = await tags_of(run) | {await own_tag(run)}
    return [run.layout.winners_of(tag) for tag in sorted(tags)]


async def own_tag(run: JobRun) -> str:
    """What stands for the run's attempt at the job; empty where its marker is gone, and neither the run nor the job's
    record knows it."""
    return await tag_of_attempt(run, run.layout)


async def tag_of_attempt(run: JobRun, layout: JobLayout) -> str:
    """The same, of any attempt at the job."""
    if run.marker and layout == run.layout:
        return tag_of_job(layout.job_id, layout.job_attempt, run.marker)
    marker = await read_marker_of(run, layout)
    recorded = run.marker_for_parts if layout == run.layout else ""
    nonce = recorded if marker is None else marker.nonce
    return tag_of_job(layout.job_id, layout.job_attempt, nonce) if nonce else ""


async def tags_of(run: JobRun) -> set[str]:
    """What stands for the job in the names of its files, of every attempt at it of which that is known."""
    return {tag for layout in await every_attempt(run) if (tag := await tag_of_attempt(run, layout))}


async def files_of_job(run: JobRun) -> AsyncIterator[list[FileStatus]]:
    """Pages of what is in the destination by the names of the job's task attempts, whoever of them has died. One
    listing of the destination."""
    tags = await tags_of(run)
    if not tags:
        return
    async for page in list_visible(run, hidden=True):
        ours = [each for each in page if (name := parse_name(each.path)) is not None and name.tag in tags]
        if ours:
            yield ours

"""Which files of a destination the lists of committed jobs name: `_SUCCESS` that of the last, the summaries that wait
those of jobs whose drivers died before theirs was in its place, and the lists of winners that `stocator` leaves those
of its jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from lockgate.engine.inspection.list_jobs import JobState
from lockgate.engine.job.conflicts import is_hidden
from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX, files_of, read_summary, success_content
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import SUCCESS, WINNERS, JobLayout, is_unfinished
from lockgate.model.phases import Phase
from lockgate.model.spooled import windows
from lockgate.model.stocator_names import tag_of_job
from lockgate.model.summary import CommittedFile, Summary, decode_lines, decode_summary


async def listed_by_success(run: JobRun, doubts: list[str]) -> tuple[dict[str, CommittedFile], Summary | None]:
    """What `_SUCCESS` lists, and itself."""
    content = await success_content(run)
    if content is None:
        return {}, None
    try:
        summary = decode_summary(content, name=run.url(SUCCESS))
        return await _listed_by(run, summary, doubts, "the last job"), summary
    except StoreError:
        raise
    except LockgateError as error:
        doubts.append(error.what)
        return {}, None


async def listed_by_waiting(
    run: JobRun, states: Iterable[JobState], doubts: list[str]
) -> list[dict[str, CommittedFile]]:
    """What each job lists that has committed by its record, and whose summary has not come to its place."""
    listed: list[dict[str, CommittedFile]] = []
    for state in states:
        if state.phase is not Phase.COMMITTED or state.record is None:
            continue
        try:
            summary = await read_summary(run, state.layout.summary_temporary(state.record.summary_nonce))
            if summary is not None:
                listed.append(await _listed_by(run, summary, doubts, f"job {state.job_id}"))
        except StoreError:
            raise
        except LockgateError as error:
            doubts.append(f"{error.what}: {error.where}")
    return listed


async def _listed_by(run: JobRun, summary: Summary, doubts: list[str], whose: str) -> dict[str, CommittedFile]:
    if summary.lockgate is None:
        return {}
    files = await files_of(run, summary.lockgate.files)
    if files is None:
        doubts.append(f"the list of the files of {whose} is gone: somebody has deleted it")
    return {file.path: file for file in files or ()}


async def listed_winners(run: JobRun, open_jobs: Sequence[JobState], doubts: list[str]) -> dict[str, CommittedFile]:
    """What jobs of `stocator` have committed. A list is written before its job's commit point, and deleted when that is
    undone: it counts unless the job is there, and has not committed. Lists of earlier jobs of the same id count."""
    winners: dict[str, CommittedFile] = {}
    own = {path for state in open_jobs for path in await _lists_of(run, state.layout)}
    paths = [status.path for status in await list_all(run.store, WINNERS)]
    paths = [path for path in paths if path not in own and not is_unfinished(path)]
    for some in windows(paths, run.options.files_read_at_once):
        contents = await run.store.read_files(some, bytes_max=SUMMARY_BYTES_MAX)
        for path, content in zip(some, contents, strict=True):
            try:
                lines = [] if content is None else decode_lines(content, name=run.url(path))
                winners |= {file.path: file for file in lines}
            except LockgateError as error:
                doubts.append(f"{error.what}: {error.where}")
    return winners


async def ask_for_unseen(run: JobRun, found: dict[str, FileStatus], listed: Iterable[str]) -> None:
    """A job may have committed since the destination was listed: what its list has is looked for by name. What was
    deleted since, as by a job that replaces, is gone."""
    unseen = (path for path in listed if path not in found and not is_hidden(path))
    for some in windows(unseen, 1_000):
        statuses = await run.store.stat_files(some)
        found |= {status.path: status for status in statuses if status is not None and not status.is_directory}


def is_as_listed(run: JobRun, status: FileStatus, file: CommittedFile) -> bool:
    """Whether the file that is there is the one that a list names. Of an upload that the job commit has completed a
    list may not know the identity (Azure tells it afterwards): then its length has to do, as for `lockgate verify`."""
    if file.identity:
        return run.store.same_identity(file.identity, status.identity)
    return file.length in (-1, status.length)


def by_what_is_there(
    run: JobRun,
    found: Mapping[str, FileStatus],
    listed: Mapping[str, CommittedFile],
    others: Iterable[Mapping[str, CommittedFile]],
) -> dict[str, CommittedFile]:
    """What is listed, and of paths that other lists name, too, the file that is there: nothing says which of the jobs
    was the last to write there. The dates of their summaries are by the clocks of their drivers, which may be wrong by
    hours, and neither they nor the store's say which job came to its commit point first."""
    answer = dict(listed)
    for path, file in ((path, file) for other in others for path, file in other.items()):
        first, there = answer.setdefault(path, file), found.get(path)
        if there is not None and not is_as_listed(run, there, first) and is_as_listed(run, there, file):
            answer[path] = file
    return answer


async def _lists_of(run: JobRun, layout: JobLayout) -> list[str]:
    """Where this job, of every attempt at it, leaves its list of winners."""
    return [layout.winners_of(tag) for tag in ("", *await tags_of(run, layout))]


async def tags_of(run: JobRun, layout: JobLayout) -> set[str]:
    """What stands for a job in the names of its files, of every attempt at it that has a marker."""
    tags: set[str] = set()
    for each in await every_attempt(dataclasses.replace(run, layout=layout)):
        if (marker := await readable_marker(run, each)) is not None:
            tags.add(tag_of_job(each.job_id, each.job_attempt, marker.nonce))
    return tags

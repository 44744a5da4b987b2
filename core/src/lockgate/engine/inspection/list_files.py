"""Which files of a destination are those of committed jobs: what a reader should read, where a listing shows more.

With the protocols `direct`, `v2`, `emrfs` and `stocator` files are in place before their job commits. What is known of
each file comes from `_SUCCESS`, from the lists of winners that `stocator` leaves, from the manifests of jobs that have
not committed, from the names of `stocator`'s files, of which one counts only if a list says so, and from the tags in
the names of `markers`' files, as long as their job is not over.

The destination is listed first, and what is known is read after it: a file that was seen is judged by what is known
later, and a job that has committed meanwhile is shown with all of its files, since those are asked for by name. Where
no list has them, or a job has been over before what it left out was known, the destination is listed once more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lockgate.engine.inspection.list_jobs import JobState, JobStatus, list_jobs
from lockgate.engine.inspection.listed_files import ask_for_unseen, listed_by_success, listed_winners, tags_of
from lockgate.engine.inspection.open_job_files import (
    has_committed,
    is_of_open_job,
    nonces_of_announced,
    saved_by,
    shows_nothing_yet,
    still_to_be_deleted,
)
from lockgate.engine.job.conflicts import is_hidden, list_visible
from lockgate.engine.run.job_run import JobRun
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.phases import Phase
from lockgate.model.stocator_names import MARK, parse_name
from lockgate.model.summary import CommittedFile

CHANGES = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})

LISTINGS = 4
"""How often the destination is listed at most, while jobs come to their end."""

ENDED_MEANWHILE = (
    f"at each of {LISTINGS} listings a job has committed, or was undone: of such a job a part may be given, or files "
    "of attempts that lost. Ask again when fewer jobs are at work"
)


@dataclass(frozen=True)
class TableFile:
    """A file that counts, as far as it is known. `listed`: a list of a committed job has it, with this length and
    identity; else nobody has left a list of it, or somebody has changed it since."""

    path: str
    url: str
    length: int
    listed: bool


@dataclass(frozen=True)
class TableFiles:
    """The files of the committed jobs, in order of path. `left_out` are those that are there and do not count, each
    with why; `doubts` say what cannot be known, empty if nothing is."""

    files: Sequence[TableFile]
    left_out: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()

    @property
    def urls(self) -> list[str]:
        """Their URLs, for a reader that takes many:
        `spark.read.option("basePath", url).parquet(*lockgate.files(url).urls)`. Without `basePath` Spark leaves out the
        columns of a table that is partitioned by directories."""
        return [file.url for file in self.files]

    def __repr__(self) -> str:
        return f"TableFiles(files={len(self.files)}, left_out={len(self.left_out)}, doubts={list(self.doubts)!r})"


async def list_files(run: JobRun) -> TableFiles:
    """The destination's files that count. All of them are held at once.

    Raises:
        StoreError: the destination cannot be listed.
    """
    with run.stage("list_files"):
        before = await _look_at_jobs(run)
        for _ in range(LISTINGS):
            found = {status.path: status async for page in list_visible(run) for status in page}
            jobs = await _look_at_jobs(run)
            answer = await _judged(run, found, jobs)
            # A job that is open yet has had all that says so, while that was read.
            after = await _look_at_jobs(run) if jobs.open_jobs else jobs
            if not _any_ended(before, jobs) and not _any_ended(jobs, after):
                return answer
            before = after
        return dataclasses.replace(answer, doubts=[*answer.doubts, ENDED_MEANWHILE])


@dataclass(frozen=True)
class _Jobs:
    """What is known of the jobs of a destination: all that left a trace, those of them that have not committed, the
    last that has with `_SUCCESS`, and what that lists; and what could not be told."""

    states: Sequence[JobState]
    open_jobs: Sequence[JobState]
    last: str
    listed: Mapping[str, CommittedFile]
    doubts: Sequence[str]


async def _look_at_jobs(run: JobRun) -> _Jobs:
    doubts: list[str] = []
    states = [state for state in await list_jobs(run) if state.status is not JobStatus.OTHER_COMMITTER]
    listed, last = await listed_by_success(run, doubts)
    open_jobs = [state for state in states if not await has_committed(run, state, last)]
    return _Jobs(states, open_jobs, last.job_id if last is not None else "", listed, doubts)


def _any_ended(before: _Jobs, after: _Jobs) -> bool:
    """Whether a job has committed, or was undone, between two looks; also one that had not begun at the first."""
    still_open = {state.layout.job_directory for state in after.open_jobs}
    return before.last != after.last or any(state.layout.job_directory not in still_open for state in before.open_jobs)


async def _judged(run: JobRun, found: dict[str, FileStatus], jobs: _Jobs) -> TableFiles:
    """Which of the files that were found count, by what is known after that."""
    listed, open_jobs, doubts = dict(jobs.listed), jobs.open_jobs, list(jobs.doubts)
    by_last = [path for path in listed if not is_hidden(path)]
    listed |= await listed_winners(run, open_jobs, doubts)
    await ask_for_unseen(run, found, listed)
    if missing := sum(path not in found for path in by_last):
        doubts.append(
            f"{_counted(missing, 'file', 'files')} of the last job's list, `_SUCCESS`, cannot be found: "
            "`lockgate verify` names what is missing"
        )
    left_out: dict[str, str] = {}
    for state in jobs.states:
        for path in await still_to_be_deleted(run, state, found, doubts):
            left_out[path] = f"job {state.job_id} has committed, and replaces it"
    for state in open_jobs:
        if await shows_nothing_yet(run, state):
            continue
        for path, identity in await saved_by(run, state.layout, doubts):
            if path in found and is_of_open_job(run, found[path], identity, listed.get(path)):
                left_out[path] = f"job {state.job_id} has not committed"
        if state.phase in CHANGES:
            doubts.append(f"job {state.job_id} is in phase {state.phase.value}: files that it replaces may be missing")
        if state.problem:
            doubts.append(f"job {state.job_id} cannot be read: {state.problem}")
    for job_id, nonces in (await nonces_of_announced(run, open_jobs, doubts)).items():
        for path in found:
            if path not in listed and tagged_by(path, nonces):
                left_out[path] = f"job {job_id} has not committed"
    for path in found:
        if parse_name(path) is not None and path not in listed:
            left_out[path] = "its task attempt is not among the winners of a committed job"
    doubts += await _of_unknown_names(run, left_out, listed, open_jobs)
    files = [_table_file(run, found[path], listed.get(path)) for path in sorted(found) if path not in left_out]
    doubts += _of_unlisted(files, open_jobs)
    return TableFiles(files, dict(sorted(left_out.items())), doubts)


def _table_file(run: JobRun, status: FileStatus, file: CommittedFile | None) -> TableFile:
    as_committed = file is not None and run.store.same_identity(file.identity, status.identity)
    return TableFile(status.path, run.url(status.path), status.length, as_committed)


async def _of_unknown_names(
    run: JobRun, left_out: Iterable[str], listed: Iterable[str], open_jobs: Sequence[JobState]
) -> list[str]:
    """Names of attempts at jobs of which nothing is known here. Asked for a part of a table, or for what is above it,
    nobody finds the lists that say which of them count."""
    known = {name.tag for path in listed if (name := parse_name(path)) is not None}
    known |= {tag for state in open_jobs for tag in await tags_of(run, state.layout)}
    unknown = sum((name := parse_name(path)) is not None and name.tag not in known for path in left_out)
    if not unknown:
        return []
    return [
        f"{unknown} of the files left out have names of task attempts at jobs that are not known here: aborted, or "
        "of a table that this is a part of, or holds; ask for that table's own directory, where its lists are"
    ]


def _of_unlisted(files: Iterable[TableFile], open_jobs: Sequence[JobState]) -> list[str]:
    unlisted = [file.path for file in files if not file.listed]
    if not unlisted:
        return []
    in_no_list = _counted(len(unlisted), "file is", "files are")
    told = [
        f"{in_no_list} in no list of a committed job, or changed since: this may be an earlier job's, whose list went "
        "with its `_SUCCESS`, or another program's"
    ]
    if open_jobs:
        open_ones = _counted(len(open_jobs), "job has", "jobs have")
        told.append(
            f"{open_ones} not come to an end: what a task attempt of `direct` has written before it saved its manifest "
            "cannot be told from these"
        )
    if foreign := sum(MARK in path for path in unlisted):
        of_stocator = _counted(foreign, "of them has a name", "of them have names")
        told.append(f"{of_stocator} of Stocator's own attempts, of which some may have failed")
    return told


def _counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"

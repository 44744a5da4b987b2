"""Which files of a destination are those of committed jobs: what a reader should read, where a listing shows more.

With the protocols `direct`, `v2`, `emrfs` and `stocator` files are in place before their job commits. What is known of
each file comes from `_SUCCESS`, from the lists of winners that `stocator` leaves, from the manifests of jobs that have
not committed, from the names of `stocator`'s files, of which one counts only if a list says so, and from the tags in
the names of `markers`' files, as long as their job is not over.

The destination is listed first, and what is known is read after it: a file that was seen is judged by what is known
later, and a job that has committed meanwhile is shown with all of its files, since those are asked for by name.
That holds of the last job alone, and only while what tells of the others is there. So who is at work is looked at
before and after, and where a job has ended in between all is listed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lockgate.engine.inspection.list_jobs import NEEDS_SOMEBODY, JobState, JobStatus, list_jobs
from lockgate.engine.inspection.listed_files import (
    ask_for_unseen,
    by_what_is_there,
    is_as_listed,
    listed_by_success,
    listed_by_waiting,
    listed_winners,
    tags_of,
)
from lockgate.engine.inspection.open_job_files import (
    has_committed,
    is_of_open_job,
    nonces_of_announced,
    saved_by,
    shows_nothing_yet,
    still_to_be_deleted,
)
from lockgate.engine.job.conflicts import is_hidden, list_visible
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.record.summaries import success_content
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.counted import counted
from lockgate.model.errors import LockgateError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.layout import ENDED_SUFFIX, FILE_LISTS, SUCCESS, JobLayout
from lockgate.model.phases import Phase
from lockgate.model.policies import KEEPING
from lockgate.model.stocator_names import MARK, parse_name
from lockgate.model.summary import CommittedFile, Summary, decode_summary

CHANGES = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})
JOBS_HAVE_ENDED = (
    "jobs have ended again and again while this was read: of those some files may be missing, or too many; ask again"
)
LOOKS_MAX = 5
"""How often a destination is listed anew because jobs have ended meanwhile, before the answer says so instead."""


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
    with why; `doubts` say what cannot be known, empty if nothing is; `unfinished` are the jobs in the middle of a
    commit because of which files may be missing, or too many."""

    files: Sequence[TableFile]
    left_out: Mapping[str, str] = field(default_factory=dict)
    doubts: Sequence[str] = ()
    unfinished: Sequence[JobState] = ()

    @property
    def urls(self) -> list[str]:
        """Their URLs, for a reader that takes many:
        `spark.read.option("basePath", url).parquet(*lockgate.files(url).urls)`. Without `basePath` Spark leaves out the
        columns of a table that is partitioned by directories."""
        return [file.url for file in self.files]

    def __repr__(self) -> str:
        return f"TableFiles(files={len(self.files)}, left_out={len(self.left_out)}, doubts={list(self.doubts)!r})"


@dataclass(frozen=True)
class _AtWork:
    """Which jobs are there, each with whether it has committed; and what says which have committed and are gone: the
    notes that they leave, and the content of `_SUCCESS`."""

    jobs: frozenset[tuple[JobLayout, bool]]
    notes: frozenset[str]
    success: bytes | None

    def shows_an_end_since(self, before: _AtWork, between: frozenset[tuple[JobLayout, bool]]) -> bool:
        """Whether a job has come to its end since: one that was there before, or in between, is gone, or has committed;
        or one that was not has committed."""
        was_there = before.jobs | between
        has_committed_since = any(committed for _, committed in (self.jobs | between) - before.jobs)
        is_noted = not self.notes <= before.notes or self.success != before.success
        return not was_there <= self.jobs or has_committed_since or is_noted


async def list_files(run: JobRun) -> TableFiles:
    """The destination's files that count. All of them are held at once.

    Raises:
        StoreError: the destination cannot be listed.
    """
    with run.stage("list_files"):
        before = await _at_work(run)
        for _ in range(LOOKS_MAX):
            answer, between = await _list_once(run)
            after = await _at_work(run)
            if not after.shows_an_end_since(before, between):
                return answer
            before = after
        return replace(answer, doubts=[*answer.doubts, JOBS_HAVE_ENDED])


async def _at_work(run: JobRun) -> _AtWork:
    # What says that a job has ended is there before its directory goes: so it is looked at first.
    content = await success_content(run)
    notes = frozenset(each.path for each in await list_all(run.store, FILE_LISTS) if each.path.endswith(ENDED_SUFFIX))
    try:
        last = None if content is None else decode_summary(content, name=run.url(SUCCESS))
    except LockgateError:
        last = None  # who lists says so
    return _AtWork(await _with_outcome(run, await _our_jobs(run), last), notes, content)


async def _our_jobs(run: JobRun) -> list[JobState]:
    return [state for state in await list_jobs(run) if state.status is not JobStatus.OTHER_COMMITTER]


async def _with_outcome(
    run: JobRun, states: Iterable[JobState], last: Summary | None
) -> frozenset[tuple[JobLayout, bool]]:
    """Of those that are there, and not known by their `_SUCCESS` alone."""
    there = [state for state in states if state.status is not JobStatus.COMMITTED]
    return frozenset([(state.layout, await has_committed(run, state, last)) for state in there])


async def _list_once(run: JobRun) -> tuple[TableFiles, frozenset[tuple[JobLayout, bool]]]:
    """What one listing shows, and the jobs by which it was judged."""
    found = {status.path: status async for page in list_visible(run) for status in page}
    states = await _our_jobs(run)
    doubts: list[str] = []
    listed, last = await listed_by_success(run, doubts)
    by_last = [path for path in listed if not is_hidden(path)]
    open_jobs = [state for state in states if not await has_committed(run, state, last)]
    waiting = await listed_by_waiting(run, states, doubts)
    winners = await listed_winners(run, open_jobs, doubts)
    await ask_for_unseen(run, found, {*listed, *winners}.union(*waiting))
    listed = by_what_is_there(run, found, listed, waiting) | winners
    if missing := sum(path not in found for path in by_last):
        doubts.append(
            f"{counted(missing, 'file')} of the last job's list, `_SUCCESS`, cannot be found: "
            "`lockgate verify` names what is missing"
        )
    left_out: dict[str, str] = {}
    for state in states:
        for path in await still_to_be_deleted(run, state, found, doubts):
            left_out[path] = f"job {state.job_id} has committed, and replaces it"
    unfinished: list[JobState] = []
    for state in open_jobs:
        if await shows_nothing_yet(run, state):
            continue
        of_job: list[str] = []
        for path, identity in await saved_by(run, state.layout, of_job):
            if path in found and is_of_open_job(run, found[path], identity, listed.get(path)):
                left_out[path] = f"job {state.job_id} has not committed"
        if state.phase in CHANGES and _replaces(run, state):
            of_job.append(f"job {state.job_id} is in phase {state.phase.value}: files that it replaces may be missing")
        if state.status is JobStatus.RECORD_LOST:
            of_job.append(f"the record of job {state.job_id} is lost: files that it replaces may be missing")
        if state.problem:
            of_job.append(f"job {state.job_id} cannot be read: {state.problem}")
        doubts += of_job
        # Of one whose record is lost, or cannot be read, nothing says that it has not begun to change the destination.
        if of_job and (state.phase in CHANGES or state.status in NEEDS_SOMEBODY):
            unfinished.append(state)
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
    answer = TableFiles(files, dict(sorted(left_out.items())), doubts, unfinished)
    return answer, await _with_outcome(run, states, last)


def _replaces(run: JobRun, state: JobState) -> bool:
    """Whether a job may set aside what is there: by its policy, or file by file, as it has said."""
    if state.record is None:
        return True
    own = as_recorded(run.options, state.record)
    return state.record.policy not in KEEPING or own.delete_target_files or bool(state.record.set_aside_digest)


def _table_file(run: JobRun, status: FileStatus, file: CommittedFile | None) -> TableFile:
    as_committed = file is not None and is_as_listed(run, status, file)
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
    in_no_list = counted(len(unlisted), "file is", "files are")
    told = [
        f"{in_no_list} in no list of a committed job, or changed since: this may be an earlier job's, whose list went "
        "with its `_SUCCESS`, or another program's"
    ]
    if open_jobs:
        open_ones = counted(len(open_jobs), "job has", "jobs have")
        told.append(
            f"{open_ones} not come to an end: if it is of `direct`, what its task attempts have written before they "
            "saved their manifests cannot be told from these"
        )
    if foreign := sum(MARK in path for path in unlisted):
        of_stocator = counted(foreign, "of them has a name", "of them have names")
        told.append(f"{of_stocator} of Stocator's own attempts, of which some may have failed")
    return told

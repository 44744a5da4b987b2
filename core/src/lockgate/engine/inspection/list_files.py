"""Which files of a destination are those of committed jobs: what a reader should read, where a listing shows more.

With the protocols `direct`, `v2`, `emrfs` and `stocator` files are in place before their job commits. What is known of
each file comes from `_SUCCESS`, from the lists of winners that `stocator` leaves, from the manifests of jobs that have
not committed, from the names of `stocator`'s files, of which one counts only if a list says so, and from the tags in
the names of `markers`' files, as long as their job is not over.

The destination is listed first, and what is known is read after it: a file that was seen is judged by what is known
later, and a job that has committed meanwhile is shown with all of its files, since those are asked for by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lockgate.engine.inspection.list_jobs import JobState, JobStatus, list_jobs
from lockgate.engine.job.conflicts import is_hidden, list_visible
from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.manifests.saved_manifests import saved_contents
from lockgate.engine.record.marker import JobMarker, read_marker_of
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX, success_content
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import LockgateError, OptionError, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.layout import SUCCESS, WINNERS, JobLayout, is_unfinished
from lockgate.model.manifest import peek_manifest
from lockgate.model.phases import Phase
from lockgate.model.spooled import windows
from lockgate.model.stocator_names import MARK, parse_name, tag_of_job
from lockgate.model.summary import CommittedFile, Summary, decode_file_list, decode_lines, decode_summary

CHANGES = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})


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
        """Their URLs, for a reader that takes many: `spark.read.parquet(*lockgate.files(url).urls)`."""
        return [file.url for file in self.files]

    def __repr__(self) -> str:
        return f"TableFiles(files={len(self.files)}, left_out={len(self.left_out)}, doubts={list(self.doubts)!r})"


async def list_files(run: JobRun) -> TableFiles:
    """The destination's files that count. All of them are held at once.

    Raises:
        StoreError: the destination cannot be listed.
    """
    with run.stage("list_files"):
        found = {status.path: status async for page in list_visible(run) for status in page}
        states = [state for state in await list_jobs(run) if state.status is not JobStatus.OTHER_COMMITTER]
        doubts: list[str] = []
        listed, last = await _of_success(run, doubts)
        open_jobs = [state for state in states if not await _has_committed(run, state, last)]
        listed |= await _winners(run, open_jobs, doubts)
        await _ask_for_unseen(run, found, listed)
        left_out: dict[str, str] = {}
        for state in open_jobs:
            if await _shows_nothing_yet(run, state):
                continue
            for path, identity in await _saved_by(run, state.layout, doubts):
                if path in found and _is_of_open_job(run, found[path], identity, listed.get(path)):
                    left_out[path] = f"job {state.job_id} has not committed"
            if state.phase in CHANGES:
                doubts.append(
                    f"job {state.job_id} is in phase {state.phase.value}: files that it replaces may be missing"
                )
            if state.problem:
                doubts.append(f"job {state.job_id} cannot be read: {state.problem}")
        for job_id, nonces in (await _nonces_of_announced(run, open_jobs, doubts)).items():
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


async def _has_committed(run: JobRun, state: JobState, last: Summary | None) -> bool:
    if state.phase is Phase.COMMITTED or state.status is JobStatus.COMMITTED:
        return True
    if last is None or state.job_id != last.job_id:
        return False
    # The id may have been used before, for another transaction.
    marker = await _marker(run, state.layout)
    return marker is None or last.lockgate is None or marker.options.get("txn_id", "") in ("", last.lockgate.txn_id)


async def _marker(run: JobRun, layout: JobLayout) -> JobMarker | None:
    try:
        return await read_marker_of(run, layout)
    except StoreError:
        raise
    except LockgateError:  # damaged
        return None


async def _shows_nothing_yet(run: JobRun, state: JobState) -> bool:
    """Whether readers surely see nothing of a job: its protocol shows nothing before the commit, and that has not begun
    to move files. Then what stands where its files are to be is somebody else's, and may count."""
    if state.phase not in (None, Phase.CLAIMED, Phase.REFUSED) or state.problem:
        return False
    try:
        job = await with_own_protocol(dataclasses.replace(run, layout=state.layout), state.record)
        return bool(job.protocol.attributes.committed_invisible)
    except OptionError:  # no plugin here offers it
        return False


def _is_of_open_job(run: JobRun, status: FileStatus, identity: str, file: CommittedFile | None) -> bool:
    """Whether the file at a path that an uncommitted job's manifest names is that job's, and not what it will replace,
    or a committed job's that was there before. Where the manifest has no identity, nobody can tell, unless a list
    names the file that is there."""
    if file is not None and run.store.same_identity(file.identity, status.identity):
        return False
    return run.store.same_identity(identity, status.identity) if identity else file is None


def _table_file(run: JobRun, status: FileStatus, file: CommittedFile | None) -> TableFile:
    as_committed = file is not None and run.store.same_identity(file.identity, status.identity)
    return TableFile(status.path, run.url(status.path), status.length, as_committed)


async def _of_success(run: JobRun, doubts: list[str]) -> tuple[dict[str, CommittedFile], Summary | None]:
    """What `_SUCCESS` lists, and itself."""
    content = await success_content(run)
    if content is None:
        return {}, None
    try:
        summary = decode_summary(content, name=run.url(SUCCESS))
        if summary.lockgate is None:
            return {}, summary
        files = summary.lockgate.files
        if not files.companion:
            return {file.path: file for file in files.inline}, summary
        (lines,) = await run.store.read_files([files.companion], bytes_max=SUMMARY_BYTES_MAX)
        if lines is None:
            doubts.append("the list of the last job's files is gone: somebody has deleted it")
            return {}, summary
        named = decode_file_list(lines, files, name=run.url(files.companion))
        return {file.path: file for file in named}, summary
    except StoreError:
        raise
    except LockgateError as error:
        doubts.append(error.what)
        return {}, None


async def _winners(run: JobRun, open_jobs: Sequence[JobState], doubts: list[str]) -> dict[str, CommittedFile]:
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


async def _ask_for_unseen(run: JobRun, found: dict[str, FileStatus], listed: Mapping[str, CommittedFile]) -> None:
    """A job may have committed since the destination was listed: what its list has is looked for by name. What was
    deleted since, as by a job that replaces, is gone."""
    unseen = (path for path in listed if path not in found and not is_hidden(path))
    for some in windows(unseen, 1_000):
        statuses = await run.store.stat_files(some)
        found |= {status.path: status for status in statuses if status is not None and not status.is_directory}


async def _lists_of(run: JobRun, layout: JobLayout) -> list[str]:
    """Where this job, of every attempt at it, leaves its list of winners."""
    return [layout.winners_of(tag) for tag in ("", *await _tags_of(run, layout))]


async def _tags_of(run: JobRun, layout: JobLayout) -> set[str]:
    """What stands for a job in the names of its files, of every attempt at it that has a marker."""
    tags: set[str] = set()
    for each in await every_attempt(dataclasses.replace(run, layout=layout)):
        if (marker := await _marker(run, each)) is not None:
            tags.add(tag_of_job(each.job_id, each.job_attempt, marker.nonce))
    return tags


async def _of_unknown_names(
    run: JobRun, left_out: Iterable[str], listed: Iterable[str], open_jobs: Sequence[JobState]
) -> list[str]:
    """Names of attempts at jobs of which nothing is known here. Asked for a part of a table, or for what is above it,
    nobody finds the lists that say which of them count."""
    known = {name.tag for path in listed if (name := parse_name(path)) is not None}
    known |= {tag for state in open_jobs for tag in await _tags_of(run, state.layout)}
    unknown = sum((name := parse_name(path)) is not None and name.tag not in known for path in left_out)
    if not unknown:
        return []
    return [
        f"{unknown} of the files left out have names of task attempts at jobs that are not known here: aborted, or "
        "of a table that this is a part of, or holds; ask for that table's own directory, where its lists are"
    ]


async def _saved_by(run: JobRun, layout: JobLayout, doubts: list[str]) -> set[tuple[str, str]]:
    """The paths and identities of all files that the manifests of a job's task attempts name, of every attempt at
    it."""
    targets: set[tuple[str, str]] = set()
    for each in await every_attempt(dataclasses.replace(run, layout=layout)):
        below = await below_root_of(run, each)
        for path, content in (await saved_contents(run, each)).items():
            if content is None:
                continue
            try:
                files = peek_manifest(content, name=path).files
                targets |= {(below.relative(entry.target), entry.identity) for entry in files}
            except (LockgateError, PathError) as error:
                doubts.append(f"a manifest of job {layout.job_id} cannot be read: {error.what}")
    return targets


async def _nonces_of_announced(run: JobRun, open_jobs: Sequence[JobState], doubts: list[str]) -> dict[str, set[str]]:
    """The nonces of every attempt at those of the jobs whose files are known by their names from the first byte on."""
    found: dict[str, set[str]] = {}
    for state in open_jobs:
        for layout in await every_attempt(dataclasses.replace(run, layout=state.layout)):
            try:
                marker = await read_marker_of(run, layout)
            except StoreError:
                raise
            except LockgateError as error:
                doubts.append(f"the marker of job {state.job_id} cannot be read: {error.what}")
                continue
            protocol = run.hooks.protocols().get(str(marker.options.get("protocol"))) if marker else None
            if marker is not None and protocol is not None and protocol.announces_files:
                found.setdefault(state.job_id, set()).add(marker.nonce)
    return found


def _of_unlisted(files: Iterable[TableFile], open_jobs: Sequence[JobState]) -> list[str]:
    unlisted = [file.path for file in files if not file.listed]
    if not unlisted:
        return []
    told = [
        f"{len(unlisted)} files are in no list of a committed job, or were changed since: they may be an earlier "
        "job's, whose list went with its `_SUCCESS`, or another program's"
    ]
    if open_jobs:
        told.append(
            f"{len(open_jobs)} jobs have not come to their end: what a task attempt of `direct` has written before it "
            "saved its manifest cannot be told from these"
        )
    if foreign := sum(MARK in path for path in unlisted):
        told.append(f"{foreign} of them have names of Stocator's own attempts, of which some may have failed")
    return told

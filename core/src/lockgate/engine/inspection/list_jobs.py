"""Which jobs there are below a destination, and how each stands. Reads only."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockgate.engine.inspection.left_by_hive import jobs_of_hive, left_by_hive
from lockgate.engine.inspection.other_committers import OtherJob, is_unknown, list_other_jobs
from lockgate.engine.manifests.load_manifests import attempts_of
from lockgate.engine.record.ended_jobs import has_committed_unrecorded, has_ended, last_end, says_committed
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.record.marker import JobMarker, is_set_up, read_marker_of
from lockgate.engine.record.neighbours import job_layouts, stands_by_manifests
from lockgate.engine.record.record_log import has_predecessor, read_record, record_in_force, renewed_at
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files, kept_lists
from lockgate.engine.record.signs_of_life import drivers_own, is_recent, why_at_work
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import TasksElsewhere
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError, StoreError, StoreUnavailable
from lockgate.model.file_output import PROTOCOL as HADOOPS
from lockgate.model.file_output import parse_job_attempt
from lockgate.model.files import FileStatus
from lockgate.model.hive_output import PROTOCOL as HIVE
from lockgate.model.layout import (
    JOBS,
    OURS,
    PENDING_SET_SUFFIX,
    SUCCESS,
    TEMPORARY,
    JobLayout,
    found_layout,
    task_of_manifest,
)
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, Holder


class JobStatus(StrEnum):
    """What an operator wants to know of a job."""

    RUNNING = "running"
    COMMITTING = "committing"
    CRASHED = "crashed"
    ABANDONED = "abandoned"
    REFUSED = "refused"
    LEFT_BEHIND = "left behind"
    COMMITTED = "committed"
    UNREADABLE = "unreadable"
    OTHER_COMMITTER = "other committer"
    RECORD_LOST = "record lost"


_NOBODYS = (
    "no task is known there: a job of Hadoop's that has just been set up, or whose tasks commit by the second "
    "algorithm; or an empty directory that a job by v1 or v2 has left, which `lockgate gc` deletes once it has stood "
    "still for a day"
)

NEEDS_SOMEBODY = frozenset({JobStatus.CRASHED, JobStatus.UNREADABLE, JobStatus.RECORD_LOST})
"""Such a job stays as it is, and may keep the destination from what was committed, until somebody looks at it."""

STATUS_MEANING: dict[JobStatus, str] = {
    JobStatus.RUNNING: "its tasks are at work, or were a short while ago",
    JobStatus.COMMITTING: "its driver is in job commit, or was a short while ago",
    JobStatus.CRASHED: "its driver died in job commit, or gave it up: `lockgate recover` finishes or undoes it",
    JobStatus.ABANDONED: "its job commit never began: `lockgate commit` commits what its tasks wrote, `lockgate gc` or "
    "`lockgate abort` deletes it; another program's, `lockgate abort` alone",
    JobStatus.REFUSED: "its commit was refused before anything moved; it can be committed again, or aborted",
    JobStatus.LEFT_BEHIND: "it is over, and its directory was not deleted: `lockgate gc` deletes it. In phase "
    "committed it is committed: do not run it again; in phase rolled-back it was undone. Or tasks of another program's "
    "have left more since then: `problem` says what to do about that",
    JobStatus.COMMITTED: "the last job that was committed here",
    JobStatus.UNREADABLE: "its commit record, its marker or its list of replaced files cannot be read: another "
    "version's, or damaged",
    JobStatus.OTHER_COMMITTER: "a job of Hadoop's FileOutputCommitter: its own driver ends it; or "
    "`lockgate commit` with `--protocol v1`, if it is over and its tasks committed by the first algorithm. Or, as "
    "`problem` says then, a directory in which no task is known, which may be no job",
    JobStatus.RECORD_LOST: "another program deleted its commit record; what it was to replace is kept: "
    "`lockgate recover` with `--undo` brings that back, with `--finish` it lets the new files stay",
}


GONE = ", gone"
"""What stands behind the name of a driver that is known to be dead."""


@dataclass(frozen=True)
class JobState:
    """One job. Times in seconds since 1970; `last_seen` is its latest sign of life that a look from above shows, and
    `tasks_seen` the latest that need not be its driver's."""

    layout: JobLayout
    status: JobStatus
    phase: Phase | None = None
    record: CommitRecord | None = None
    last_seen: float = 0.0
    tasks_committed: int = 0
    driver: str = ""
    problem: str = ""
    elsewhere: str = ""
    tasks_seen: float = 0.0
    protocol: str = ""
    """The name of its commit protocol, as its record, its marker, its summary, or the place where another program has
    set it up says it; empty: nothing says it."""
    driver_gone: bool = False
    """Whether its driver is known to be dead: it ran on this machine, and its process is no more. `driver` says it,
    too."""
    shows_success: bool = False
    """Whether, in phase *publishing*, its `_SUCCESS` is in place already."""
    part_of: str = ""
    """The URL of the destination of the job that this one is a part of; what `lockgate.jobs` returns has it as long as
    that job is not over: it decides, and is ended there for all of its places."""

    @property
    def directory(self) -> str:
        """The job attempt directory; of another program's job that nobody commits here yet, where it is at work."""
        return self.elsewhere or self.layout.attempt_directory

    @property
    def came_late(self) -> bool:
        """Whether its tasks, another program's, have left more since the job was committed: no commit has that, and it
        may be the only place of those rows. `problem` says how it is ended."""
        return self.status is JobStatus.LEFT_BEHIND and bool(self.problem)

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.layout.job_id

    def __repr__(self) -> str:
        phase = f", phase={self.phase.value!r}" if self.phase else ""
        return f"JobState({self.job_id!r}, status={self.status.value!r}{phase})"


async def list_jobs(run: JobRun) -> list[JobState]:
    """Every job that left a trace, the last committed one included, other committers' too; the latest first."""
    found = [await job_state(run, layout) async for layout in job_layouts(run)]
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        # versitygw, where it keeps versions, lists names of directories in which all has been deleted.
        found = [state for state in found if state.last_seen or state.problem]
    found = [state for state in found if not await _has_vanished(run, state)]
    lost = await _without_record(run, {state.job_id for state in found if state.record or state.problem})
    known = {state.job_id for state in lost}
    found = [state for state in found if state.job_id not in known]
    seen = {state.job_id for state in [*found, *lost]}
    others_there = [other for other in await list_other_jobs(run) if other.job_id not in seen]
    late = [state for other in others_there if (state := await late_of_hadoops(run, other)) is not None]
    finished = await _finished(run, seen | {state.job_id for state in late})
    explained = _works_in_temporary(run, [*found, *lost, *finished])
    seen |= {state.job_id for state in late}
    others = [
        JobState(
            JobLayout(other.job_id, parse_job_attempt(other.directory) or 0),
            JobStatus.OTHER_COMMITTER,
            last_seen=other.last_seen,
            tasks_committed=len(other.committed),
            elsewhere=other.directory,
            problem=_NOBODYS if is_unknown(other.job_id) else "",
        )
        for other in others_there
        if other.job_id not in seen and not (other.job_attempt is None and other.directory in explained)
    ]
    return sorted([*found, *lost, *late, *finished, *others], key=lambda state: -state.last_seen)


async def _has_vanished(run: JobRun, state: JobState) -> bool:
    """Whether somebody has ended the job while it was looked at: what is told of it, and what gc does with it, would be
    of the next one of its id."""
    if state.last_seen or state.problem or state.elsewhere or state.layout.prefix != OURS:
        return False
    return not await list_all(run.store, state.layout.job_directory)


async def late_of_hadoops(run: JobRun, other: OtherJob) -> JobState | None:
    """What tasks of a job of Hadoop's have left once that was committed here, as who asks for `v1` is shown it."""
    v1 = run.hooks.protocols().get(HADOOPS)
    if other.job_attempt is None or v1 is None or not v1.needs <= run.store.capabilities:
        return None
    layout = found_layout(HADOOPS, other.job_id, other.job_attempt)
    if not await has_ended(dataclasses.replace(run, layout=layout)):
        return None
    state = await job_state(run, layout)
    return state if state.came_late else None


def _works_in_temporary(run: JobRun, states: Sequence[JobState]) -> set[str]:
    """The directories of `_temporary` in which jobs of ours work, or the last one did, by their protocols. Once the
    directories of its tasks are adopted, nothing in there tells whose it is: it is theirs, and not another job that
    nobody knows."""
    protocols = run.hooks.protocols()
    return {
        f"{TEMPORARY}/{number}"
        for state in states
        if (protocol := protocols.get(state.protocol)) is not None and protocol.works_in_temporary
        for number in range(state.layout.job_attempt + 1)
    }


def driver_may_be_alive(run: JobRun, record: CommitRecord, renewed: float) -> bool:
    """Whether a job commit may be under way: its record was `renewed` in the last `alive_seconds`, and its driver is
    not known to be gone, nor has given it up. What `jobs` shows, and what `recover` goes by."""
    if record.given_up:
        return False
    return is_recent(run, renewed) and not run.runtime.is_gone(record.holder)


async def _without_record(run: JobRun, recorded: set[str]) -> list[JobState]:
    """Jobs that have written down what they replace, and have no commit record; the last committed one is known for
    what it is."""
    found: list[JobState] = []
    for job_id in await jobs_with_replaced_files(run):
        # The job may have begun, or ended, since the others were listed: its record decides, read after its lists.
        try:
            kept = [] if job_id in recorded else await kept_lists(run, job_id)
        except StoreError:
            raise
        except LockgateError as error:
            found.append(JobState(JobLayout(job_id), JobStatus.UNREADABLE, problem=str(error)))
            continue
        if kept and await read_record(run, kept[0].layout) is None:
            created = max(each.replaced.created for each in kept)
            committed = await has_ended(dataclasses.replace(run, layout=kept[0].layout))
            status, phase = (JobStatus.LEFT_BEHIND, Phase.COMMITTED) if committed else (JobStatus.RECORD_LOST, None)
            protocol = kept[0].replaced.protocol
            part_of = kept[0].replaced.part_of
            found.append(JobState(kept[0].layout, status, phase, None, created, protocol=protocol, part_of=part_of))
    return found


async def job_state(run: JobRun, layout: JobLayout) -> JobState:
    """How one job stands: the attempt that its commit record names, or else its newest."""
    try:
        record = await record_in_force(run, layout)
        problem = ""
    except StoreUnavailable:
        raise  # who asks again may hear it: that is no state of the job
    except LockgateError as error:
        record, problem = None, str(error)
    if record is not None and record.phase is not Phase.REFUSED:
        layout = layout.at_attempt(record.job_attempt)
    tasks: set[str] = set()
    newest, tasks_seen = 0.0, 0.0
    own = drivers_own(run, layout)
    for directory in (layout.attempt_directory, layout.manifests, layout.tasks):
        async for page in run.store.list_directory(directory):
            newest = max([newest, *(status.modified for status in page)])
            tasks_seen = max([tasks_seen, *(status.modified for status in page if status.path not in own)])
            if directory == layout.manifests:
                tasks |= _tasks_in(page)
            if directory == layout.attempt_directory:
                names = (status.path.rpartition("/")[2] for status in page)
                tasks |= {name.removesuffix(PENDING_SET_SUFFIX) for name in names if name.endswith(PENDING_SET_SUFFIX)}
    if layout.job_attempt:
        tasks |= await _tasks_of_earlier_attempts(run, layout)
    try:
        marker = await read_marker_of(run, layout)
    except StoreError:
        raise
    except LockgateError as error:
        marker, problem = None, problem or str(error)
    named = "" if marker is None else marker.options.get("protocol", "")
    if layout.prefix != OURS:
        named = named or layout.found_protocol
    elsewhere = await _tasks_elsewhere(run, layout, named or layout.found_protocol)
    tasks |= elsewhere.committed
    # Of a job that another program has set up, nothing is in its own directory before somebody commits it here.
    directory = "" if newest or layout.prefix == OURS else elsewhere.directory
    newest, tasks_seen = max(newest, elsewhere.last_seen), max(tasks_seen, elsewhere.last_seen)
    who = Holder("", marker.host, marker.process, marker.user) if marker else None
    # The store has dated the marker, too; what it says of itself is by its driver's clock, which may be wrong by hours.
    newest = newest or (marker.created if marker else 0.0)
    driver, gone = _named(run, who)
    if problem:
        return JobState(
            layout,
            JobStatus.UNREADABLE,
            None,
            None,
            newest,
            len(tasks),
            driver,
            problem,
            tasks_seen=tasks_seen,
            protocol=named,
            part_of=marker.part_of if marker else "",
            driver_gone=gone,
        )
    renewed = await renewed_at(run, layout, record) if record else 0.0
    last_seen = max(newest, renewed)
    status = _status(run, record, marker, last_seen, tasks_seen, renewed)
    if status is JobStatus.CRASHED and record is not None and not is_set_up(marker, record):
        # What a driver has created that woke up when its job was over has none before it.
        stands = await has_predecessor(run, record, layout) or await stands_by_manifests(run, layout, record)
        status = status if stands else JobStatus.LEFT_BEHIND
    phase = record.phase if record else None
    unrecorded = status is JobStatus.REFUSED or (record is None and bool(newest or elsewhere.directory))
    if unrecorded and await has_committed_unrecorded(dataclasses.replace(run, layout=layout)):
        # Somebody has deleted its record, or came to commit it once more; or a late task attempt has left something,
        # where directories are not real. Nobody is to write its rows again, nor to take them for those of no job.
        status, phase = JobStatus.LEFT_BEHIND, Phase.COMMITTED
        if layout.prefix != OURS and elsewhere.directory:
            directory = elsewhere.directory
            left = f"its tasks have left more since it was committed, in {run.url(directory)}"
            problem = f"{left}: {how_late_output_ends(run, layout)}"
    if record is not None:
        driver, gone = _named(run, record.holder)
    if record is not None and record.phase is Phase.COMMITTED:
        phase = phase if await says_committed(dataclasses.replace(run, layout=layout), record) else None
    named = record.options.get("protocol", named) if record else named
    part_of = record.part_of if record else marker.part_of if marker else ""
    # What the tasks have left goes, or is moved, while the job commits.
    tasks |= {pin.task_id for pin in record.pins} if record else set()
    return JobState(
        layout,
        status,
        phase,
        record,
        last_seen,
        len(tasks),
        driver,
        problem=problem,
        elsewhere=directory,
        tasks_seen=tasks_seen,
        protocol=named,
        part_of=part_of,
        driver_gone=gone,
    )


def how_late_output_ends(run: JobRun, layout: JobLayout) -> str:
    """What is done with what tasks of another program's have left of a job that is committed. An id is used once: to be
    committed, it must be another job's. A directory that was named may be a namesake, and no abort deletes it."""
    protocol = run.hooks.protocols()[layout.found_protocol]
    aborting = f"{found_command(run, 'abort', layout)} deletes it"
    by_hand = f"delete {protocol.found_late} by hand"
    listing = command("jobs", run.store.url, "--protocol", protocol.name)
    return (
        f"if that counts, rename {protocol.found_late}, to make it another job's, which {listing} shows, and commit "
        f"that; else {by_hand if run.options.hive_directory else aborting}"
    )


async def _tasks_elsewhere(run: JobRun, layout: JobLayout, named: str) -> TasksElsewhere:
    protocol = run.hooks.protocols().get(named)  # of one that is not here, whoever has it can tell
    if protocol is None:
        return TasksElsewhere()
    return await protocol.tasks_elsewhere(dataclasses.replace(run, layout=layout))


def _tasks_in(page: Sequence[FileStatus]) -> set[str]:
    names = (status.path.rpartition("/")[2] for status in page)
    return {task for name in names if (task := task_of_manifest(name)) is not None}


async def _tasks_of_earlier_attempts(run: JobRun, layout: JobLayout) -> set[str]:
    """The tasks that committed in earlier attempts at a job: who commits it without receipts takes these as well."""
    tasks: set[str] = set()
    for earlier in await attempts_of(dataclasses.replace(run, layout=layout)):
        async for page in run.store.list_directory(earlier.manifests):
            tasks |= _tasks_in(page)
    return tasks


def _named(run: JobRun, driver: Holder | None) -> tuple[str, bool]:
    """A driver as it is shown, and whether it is known to be gone."""
    if driver is None:
        return "", False
    gone = run.runtime.is_gone(driver)
    return f"{driver.user}@{driver.host}{GONE if gone else ''}", gone


def _status(
    run: JobRun,
    record: CommitRecord | None,
    marker: JobMarker | None,
    last_seen: float,
    tasks_seen: float,
    renewed: float,
) -> JobStatus:
    if record is None:
        at_work = why_at_work(run, marker, last_seen, tasks_seen=tasks_seen)
        return JobStatus.RUNNING if at_work else JobStatus.ABANDONED
    if record.phase in (Phase.COMMITTED, Phase.ROLLED_BACK):
        return JobStatus.LEFT_BEHIND
    if record.phase is Phase.REFUSED:
        return JobStatus.REFUSED
    return JobStatus.COMMITTING if driver_may_be_alive(run, record, renewed) else JobStatus.CRASHED


async def _finished(run: JobRun, seen: set[str]) -> list[JobState]:
    try:
        summary = await read_summary(run, SUCCESS)
    except LockgateError:  # an empty `_SUCCESS` of another committer names no job
        return []
    ended = await last_end(run)
    # Of a job that leaves no `_SUCCESS` the note has the summary; it may have committed beside an older `_SUCCESS`.
    if ended is not None and ended.summary is not None:
        summary = max([ended.summary, *filter(None, [summary])], key=lambda each: each.timestamp)
    if summary is None or not summary.success or summary.job_id in seen:
        return []
    try:
        layout = JobLayout(summary.job_id, summary.lockgate.job_attempt if summary.lockgate else 0)
    except LockgateError:
        return []
    attempts = summary.lockgate.attempts if summary.lockgate else 0
    seconds = summary.timestamp / 1000
    protocol = summary.lockgate.protocol if summary.lockgate else ""
    return [
        JobState(
            layout, JobStatus.COMMITTED, Phase.COMMITTED, None, seconds, attempts, summary.hostname, protocol=protocol
        )
    ]


async def find_job(run: JobRun, job_id: str) -> JobLayout:
    """The job of this id, ours or another program's, at its newest attempt.

    Raises:
        JobNotFound: there is none; the error names those there are.
    """
    layouts = [layout async for layout in job_layouts(run)]
    there = {layout.job_id for layout in layouts}
    layouts += [JobLayout(kept) for kept in await jobs_with_replaced_files(run) if kept not in there]
    ours = [layout for layout in layouts if layout.job_id == job_id]
    if not ours:
        others = ", ".join(sorted({layout.job_id for layout in layouts}))
        raise JobNotFound(
            f"there is no job {job_id} below the destination",
            where=f"{run.url(JOBS)}\nthere: {others or 'none'}",
            next_step=await _where_to_look(run),
        )
    return max(ours, key=lambda layout: (layout.job_attempt, layout.prefix == OURS))


async def _where_to_look(run: JobRun) -> str:
    """What lists the job that was meant: what Hive has left is no job to who does not ask for Hive's."""
    jobs, of_hive = command("jobs", run.store.url), await left_by_hive(run)
    if run.options.protocol == HIVE:
        jobs = jobs_of_hive(run)
    return f"{jobs}; or, {of_hive}" if of_hive else jobs

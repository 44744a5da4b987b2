"""Jobs that meet: two job commits to one destination whose results would depend on their interleaving.

Concurrent: jobs to one destination have a serial result. Appends do not disturb each other, nor do jobs on disjoint
directories. A job that replaces data (or insists that there is none) must not overlap with any other on the same
directories. Each job announces in its commit record what it touches, and only then looks at the others':

- One that is moving, publishing or rolling back came first: this one yields.
- One that has only announced: the older announcement wins. The younger yields at once. The older cannot go on yet,
  since the younger may have looked before the older had announced; it waits until the younger either yields or moves.

So of two that overlap exactly one goes on, and nothing was moved by the other. Which is older is told by
`(since, nonce)`, a total order; clocks need not agree for that.

A job whose commit point is its record is not over with that: it deletes what it replaces, and writes `_SUCCESS`, later.
Until it is known to have ended it has gone on, and others yield; else its late `_SUCCESS` would list what they replace.

A claim on a job that is known to have ended is in nobody's way. A second driver of it, or one that slept, may leave one
and die, where directories are not real and so the job's is not missing. Nobody goes on from it: a driver looks whether
its job has ended once its claim is there, and so does a recoverer. And what that job did was done before the look here,
which comes before the destination is surveyed.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass

from lockgate.engine.record.ended_jobs import has_ended, is_known_committed
from lockgate.engine.record.marker import is_set_up, readable_marker
from lockgate.engine.record.record_log import RecordLog, has_predecessor, read_record
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.run.concurrency import both, together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.commands import command
from lockgate.model.errors import DestinationConflict, LockgateError, OptionError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JOBS, TEMPORARY, JobLayout, parse_attempt_directory, parse_job_directory
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.record import CommitRecord, Ground

POLL_SECONDS = 0.2
"""How often a neighbour's record is looked at; it doubles up to ten times as long."""

HAS_GONE_ON = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})


@dataclass(frozen=True)
class Rival:
    """A job that this one must yield to."""

    layout: JobLayout
    record: CommitRecord


def ground_of(run: JobRun, plan: CommitPlan) -> Ground:
    """What a plan touches, and whether it must be alone there: a policy that asks for a survey replaces, or insists."""
    answer = run.hooks.resolve_conflicts(plan, run.options, None)
    if isinstance(answer, CommitPlan):
        return Ground(directories_of(plan), exclusive=False)
    if answer is Survey.LEAF_DIRECTORIES:
        return Ground(directories_of(plan), exclusive=True)
    if answer is Survey.CHOSEN_DIRECTORIES:
        return Ground(directories_of(plan), exclusive=True, below=run.options.replace_below)
    return Ground((), everything=True, exclusive=True)


async def looks_alone(run: JobRun, mine: CommitRecord) -> bool:
    """Whether one look, once `mine` has announced what it touches, finds nobody else at work there. What cannot be read
    is left to `take_ground`, and so is a claim that has not announced anything yet."""
    if mine.ground == Ground():
        return False
    try:
        async for layout in job_layouts(run, without=run.layout.job_directory):
            if await _in_the_way(run, layout, mine) is not None:
                return False
    except LockgateError:
        return False
    return True


async def take_ground(run: JobRun, log: RecordLog, plan: CommitPlan, alone_with: Ground | None = None) -> None:
    """Announce what the plan touches and make sure that nobody else is at work there, waiting if so configured.
    `alone_with`: this was announced, and `looks_alone` has found nobody since.

    Raises:
        DestinationConflict: another job is, or was for longer than `wait_seconds_max`.
    """
    with run.stage("meet_neighbours"):
        ground = ground_of(run, plan)
        deadline = run.runtime.tick() + run.options.wait_seconds_max
        while True:
            record = log.now
            if record is None or record.ground != ground:
                record = await log.advance(Phase.CLAIMED, ground=ground)
            elif ground == alone_with:
                return
            rival = await _find_rival(run, record)
            if rival is None:
                return
            if run.options.when_jobs_meet != "wait":
                raise _conflict(run, rival, record)
            await log.advance(Phase.CLAIMED, ground=Ground())
            await _wait_for(run, rival, record, deadline)


async def _find_rival(run: JobRun, mine: CommitRecord) -> Rival | None:
    """Somebody to yield to; None once there is nobody."""
    pause = POLL_SECONDS
    seen: dict[str, tuple[int, float]] = {}
    while True:
        waiting_for: Rival | None = None
        async for layout in job_layouts(run, without=run.layout.job_directory):
            theirs = await _in_the_way(run, layout, mine)
            if theirs is None:
                continue
            rival = Rival(layout, theirs)
            if _has_gone_on(theirs) or _age(theirs) < _age(mine):
                return rival
            waiting_for = rival
        if waiting_for is None:
            return None
        if _stands_still(run, waiting_for, seen):
            # It announced and never went on: dead, but its record could still be finished by a recoverer.
            return waiting_for
        await asyncio.sleep(pause)
        pause = min(2 * pause, 10 * POLL_SECONDS)


def _stands_still(run: JobRun, rival: Rival, seen: dict[str, tuple[int, float]]) -> bool:
    """Its process is known to be gone; or by its own clock, which may be wrong, or by ours since we saw its record
    first."""
    if run.runtime.is_gone(rival.record.holder):
        return True
    now, sequence = run.runtime.tick(), rival.record.sequence
    known, since = seen.setdefault(rival.layout.job_directory, (sequence, now))
    if known != sequence:
        seen[rival.layout.job_directory] = (sequence, now)
        return False
    return max(run.runtime.wall() - rival.record.updated, now - since) > run.options.alive_seconds


async def _wait_for(run: JobRun, rival: Rival, mine: CommitRecord, deadline: float) -> None:
    pause = POLL_SECONDS
    run.log.info("waits for another job", other=rival.layout.job_id)
    while run.runtime.tick() < deadline:
        run.emit("waiting", other=rival.layout.job_id)
        if await _in_the_way(run, rival.layout, mine) is None:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, 10 * POLL_SECONDS)
    raise _conflict(run, rival, mine)


async def job_layouts(run: JobRun, *, without: str = "") -> AsyncIterator[JobLayout]:
    """Every job that has a directory below this destination, Hadoop's and those that protocols know of too, but for the
    job `without`; each at its newest attempt."""
    listed, others = await both(_list_jobs(run), _jobs_of_others(run))
    for job in listed:
        if not job.is_directory or job.path == without:
            continue
        newest: JobLayout | None = None
        async for entries in run.store.list_directory(job.path):
            for entry in entries:
                # A record, or what a cleanup that was cut short has left, tells of a job, too.
                layout = parse_attempt_directory(entry.path) if entry.is_directory else None
                layout = layout or parse_job_directory(job.path)
                if layout is not None and (newest is None or layout.job_attempt > newest.job_attempt):
                    newest = layout
        if newest is not None:
            yield newest
    for layout in others:
        if layout.job_directory != without:
            yield layout


async def _list_jobs(run: JobRun) -> list[FileStatus]:
    ours, hadoops = await both(list_all(run.store, JOBS), list_all(run.store, TEMPORARY))
    return ours + hadoops


async def _jobs_of_others(run: JobRun) -> list[JobLayout]:
    found = await together(protocol.jobs_of_others(run) for protocol in run.hooks.protocols().values())
    return [layout for layouts in found for layout in layouts]


async def _record_of(run: JobRun, layout: JobLayout) -> CommitRecord | None:
    try:
        return await read_record(run, layout)
    except LockgateError as error:
        run.log.warning("another job's commit record cannot be read", other=layout.job_id, error=str(error))
        raise


async def _in_the_way(run: JobRun, layout: JobLayout, mine: CommitRecord) -> CommitRecord | None:
    """The record of another job that meets this one, and is at work; None where it does not, or is not."""
    theirs = await _record_of(run, layout)
    if theirs is None or not mine.ground.meets(theirs.ground):
        return None
    return theirs if await is_at_work(run, layout, theirs) else None


async def is_at_work(run: JobRun, layout: JobLayout, theirs: CommitRecord) -> bool:
    """Whether a job whose record says `theirs` may yet change what it touches: it has claimed that, or gone on, and is
    not known to be over."""
    if not (_has_gone_on(theirs) or theirs.phase is Phase.CLAIMED):
        return False
    if not await has_predecessor(run, theirs, layout) and not await _stands(run, layout, theirs):
        return False  # what a driver has created that woke up when its job was over: nobody goes by it
    if theirs.phase is Phase.COMMITTED:
        return not await _has_concluded(run, layout, theirs)
    if theirs.phase is not Phase.CLAIMED or theirs.txn_id:
        # One with a transaction id announces nothing before it knows that nobody has committed that.
        return True
    return not await has_ended(dataclasses.replace(run, layout=layout))


async def _stands(run: JobRun, layout: JobLayout, theirs: CommitRecord) -> bool:
    return is_set_up(await readable_marker(run, layout), theirs) or await stands_by_manifests(run, layout, theirs)


async def stands_by_manifests(run: JobRun, layout: JobLayout, record: CommitRecord) -> bool:
    """Whether a record that names no marker, of a job that another program has set up, or that somebody from outside
    commits, or has aborted, is of one that is not over, though no version before it is there: somebody has deleted
    that. What a driver creates that wakes up when such a job is over finds no manifests any more."""
    if record.marker or record.phase not in (*HAS_GONE_ON, Phase.REFUSED):
        return False
    return bool(await list_all(run.store, layout.manifests))


def _has_gone_on(theirs: CommitRecord) -> bool:
    return theirs.phase in HAS_GONE_ON or theirs.phase is Phase.COMMITTED


async def _has_concluded(run: JobRun, layout: JobLayout, theirs: CommitRecord) -> bool:
    """Whether nothing more is to come of a committed job but its cleanup, as where `_SUCCESS` was its commit point."""
    as_owner = dataclasses.replace(run, layout=layout, options=as_recorded(run.options, theirs))
    try:
        return as_owner.protocol.commits_by_success or await is_known_committed(as_owner)
    except OptionError:  # of a protocol that is not known here nobody can tell: whoever has it ends the job
        return False


def _age(record: CommitRecord) -> tuple[float, str]:
    return (record.holder.since, record.holder.nonce)


def directories_of(plan: CommitPlan) -> tuple[str, ...]:
    """The directories that a plan's files are in; empty for the destination itself."""
    return (*plan.leaf_directories, *([""] if plan.writes_to_root else []))


def _conflict(run: JobRun, rival: Rival, mine: CommitRecord) -> DestinationConflict:
    other = rival.layout.job_id
    came_first = _has_gone_on(rival.record) or _age(rival.record) < _age(mine)
    how = "came first" if came_first else "its driver is gone, or stands still"
    return DestinationConflict(
        f"job {other} is at work on what job {run.layout.job_id} touches, and {how}",
        where=f"{run.url(rival.layout.attempt_directory)}\nheld by {rival.record.holder}, phase {rival.record.phase}",
        next_step="nothing was moved: commit again later, or choose when_jobs_meet=wait; "
        f"if that driver is dead: {command('recover', run.store.url, other)}",
    )

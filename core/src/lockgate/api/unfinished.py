"""Job commits that are under way, or died on their way: why a destination is not as its last summary says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lockgate.engine.inspection.list_jobs import STATUS_MEANING, JobState, JobStatus, list_jobs
from lockgate.engine.job.locations import is_decided_there
from lockgate.engine.record.ended_jobs import has_ended, last_end
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError
from lockgate.model.layout import SUCCESS
from lockgate.model.phases import PHASES, Phase

_CHANGES_THE_DESTINATION = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})


async def unfinished_jobs(run: JobRun) -> list[JobState]:
    """The jobs that have begun to change the destination and have not come to an end."""
    found = []
    for state in await jobs_with_whole(run):
        if (
            state.phase in _CHANGES_THE_DESTINATION
            or state.status in (JobStatus.RECORD_LOST, JobStatus.UNREADABLE)
            or await _is_to_announce(run, state)
        ):
            shows = state.phase is Phase.PUBLISHING and await has_ended(dataclasses.replace(run, layout=state.layout))
            found.append(dataclasses.replace(state, shows_success=shows))
    return found


async def jobs_with_whole(run: JobRun) -> list[JobState]:
    """The jobs that left a trace; which of them are parts of another is told as long as that one is not over."""
    return [
        dataclasses.replace(state, part_of="")
        if state.part_of and not await is_decided_there(dataclasses.replace(run, layout=state.layout), state.part_of)
        else state
        for state in await list_jobs(run)
    ]


async def _is_to_announce(run: JobRun, state: JobState) -> bool:
    """Whether a job is committed by its record, and its `_SUCCESS` is not in place yet: the one that is there, if any,
    is another job's."""
    if state.phase is not Phase.COMMITTED or state.record is None or not state.record.marks_success:
        return False
    protocol = run.hooks.protocols().get(state.protocol)
    if protocol is None or protocol.commits_by_success:
        return False
    return not await has_ended(dataclasses.replace(run, layout=state.layout))


def needs_somebody(state: JobState) -> bool:
    """Whether such a job stays as it is until somebody ends it: nobody is at work at it."""
    return state.status not in (JobStatus.RUNNING, JobStatus.COMMITTING)


def why_elsewhere(state: JobState) -> str:
    """Of a part of another job, where that is, and is ended; empty of any other job."""
    if not state.part_of:
        return ""
    return f"a part of the job of this id at {state.part_of}, which is ended there for all of its locations"


def told(state: JobState) -> str:
    """What is the matter with such a job, in one line."""
    elsewhere = why_elsewhere(state)
    return f"{_told(state)}; it is {elsewhere}" if elsewhere else _told(state)


def _told(state: JobState) -> str:
    if state.phase is None:
        return f"job {state.job_id}: {STATUS_MEANING[state.status]}"
    if state.shows_success:
        return f"job {state.job_id} is committed, and what it has left is not cleaned up yet: do not run it again"
    if state.phase is Phase.COMMITTED:
        return f"job {state.job_id} is committed, and its `_SUCCESS` is not in place yet: do not run it again"
    ended = "crashed" if state.status is JobStatus.CRASHED else "is at work"
    return f"job {state.job_id} {ended} in phase {state.phase.value}: readers see {PHASES[state.phase].readers_see}"


def next_step(url: object, states: Sequence[JobState]) -> str:
    """The command that goes on from there."""
    to_end = [state for state in states if state.status is JobStatus.CRASHED or state.phase is Phase.COMMITTED]
    if to_end:
        # A part of another job is ended where that is, and by its own location it is not.
        return "; ".join(command("recover", where) for where in dict.fromkeys(each.part_of or url for each in to_end))
    for state in states:
        if state.status is JobStatus.RECORD_LOST:
            recover = command("recover", state.part_of or url, state.job_id)
            return f"{recover} --undo brings back what the job replaced, {recover} --finish lets its new files stay"
    return command("jobs", url)


async def no_summary(run: JobRun, states: Sequence[JobState]) -> LockgateError:
    """The error for a destination without `_SUCCESS`, given its unfinished jobs."""
    if states:
        return LockgateError(
            "there is no `_SUCCESS`: a job commit has not come to its end",
            where="\n".join([run.url(SUCCESS), *map(told, states)]),
            next_step=next_step(run.store.url, states),
        )
    keep = "commit with mark_success=true to leave one, or have each summary kept in summary_report_directory"
    ended = await last_end(run)
    if ended is not None and ended.part_of:
        return JobNotFound(
            f"there is no `_SUCCESS`: job {ended.job_id}, the last that committed here, is a part of the job of this "
            f"id at {ended.part_of}, and only that has one",
            where=run.url(SUCCESS),
            next_step=f"{command('show', ended.part_of)} shows that job; of the files here it has the number alone",
        )
    if ended is not None and ended.summary is not None:
        return JobNotFound(
            f"there is no `_SUCCESS`, though job {ended.job_id} committed: with mark_success=false it leaves none",
            where=run.url(SUCCESS),
            next_step=f"without it nothing is known of the single files; {keep}",
        )
    return JobNotFound(
        "there is no `_SUCCESS`: no job was committed here, or only with mark_success=false",
        where=run.url(SUCCESS),
        next_step=f"{command('jobs', run.store.url)} lists the jobs at work: until one commits there is nothing to see "
        f"here; where some have committed, {keep}",
    )

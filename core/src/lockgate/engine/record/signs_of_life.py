"""Whether a job whose commit has not begun is at work.

What a store shows need not tell: an upload is invisible there until it ends, and a driver may wait for hours before its
first task starts. So drivers and task attempts of Lockgate's renew a small file beside the manifests, a third of
`alive_seconds` apart (two small requests each time; none for what takes less, but for a task attempt that begins where
nothing else would show it), and whoever asks looks, in this order:

1. A sign in the last `alive_seconds`: at work. Of a driver that ran on this host and is gone its own signs do not
   count, only those of task attempts, which may be at work on other hosts.
2. The driver's process, as the marker names it, if it ran on this host: its life or death decides.
3. Nothing is known but silence. It counts once it has lasted `SILENCE` times `alive_seconds` (a day, by default), since
   a driver elsewhere, another program's, or one that waits to start its tasks shows none.

With `alive_seconds` 0 nobody is taken for alive.
"""

from __future__ import annotations

import contextlib

from lockgate.engine.record.marker import JobMarker, read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFenced, FileMissing, LockgateError, StoreError
from lockgate.model.layout import OURS, JobLayout, alive_attempt
from lockgate.model.record import Holder

SIGNS_A_TIME = 3
"""How many signs fall into `alive_seconds`."""

AHEAD_SECONDS = 60
"""Files that are dated so far ahead of the clock that reads them were not renewed just now, whatever else is true."""

SILENCE = 96
"""How many times `alive_seconds` a job must be silent of which nothing else is known."""


async def show_life(run: JobRun, who: str) -> bool:
    """Renew the sign of a driver or a task attempt; False: the job is over, and nothing was written."""
    marker = await read_marker(run)
    if marker is None or marker.nonce != run.marker:
        return False
    try:
        await run.store.write_file(run.layout.sign_of_life(who), b"{}")
    except FileMissing:
        return False
    return True


async def show_begin(run: JobRun) -> None:
    """The first sign of a task attempt of which nothing else would show that it has begun.

    Raises:
        StoreError: it cannot be written.
    """
    with contextlib.suppress(FileMissing):  # the job is over, and its directory gone: the attempt's commit finds out
        await run.store.write_file(run.layout.sign_of_life(run.task_attempt_id), b"{}")


async def begun_attempts(run: JobRun) -> set[str]:
    """The task attempts that have ever shown a sign of life at this attempt at the job."""
    found = [alive_attempt(status.path) for status in await list_all(run.store, run.layout.manifests)]
    return {attempt for attempt in found if attempt is not None}


def drivers_own(run: JobRun, layout: JobLayout) -> frozenset[str]:
    """The paths that a driver makes and renews, and that tell nothing of its tasks. None where directories are not
    real: there an attempt shows nothing before its first sign, and what the driver showed last counts for it too."""
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return frozenset()
    return frozenset({layout.job_marker, layout.manifests, layout.tasks, layout.sign_of_life("driver")})


def is_recent(run: JobRun, modified: float) -> bool:
    """Whether what was written at that time (seconds since 1970) may be somebody's who is at work, also where it is
    dated ahead of this host's clock; with `alive_seconds` 0 nothing is."""
    return run.options.alive_seconds > 0 and run.runtime.wall() - modified < run.options.alive_seconds


def why_at_work(
    run: JobRun, marker: JobMarker | None, last_seen: float, *, tasks_seen: float | None = None, silence: int = SILENCE
) -> str:
    """Why a job, last seen at that time (seconds since 1970), may be at work; empty if it surely is not. `tasks_seen`
    is when its task attempts were; without it, what counts is that anybody was."""
    alive_seconds = run.options.alive_seconds
    driver = Holder("", marker.host, marker.process, marker.user, marker.created) if marker else Holder("")
    is_gone = run.runtime.is_gone(driver)
    if tasks_seen is not None and is_gone:
        last_seen = tasks_seen
    idle = run.runtime.wall() - last_seen
    if not alive_seconds:
        return ""
    if idle <= -AHEAD_SECONDS:
        return f"its files are dated {-idle:.0f} s ahead of this host's clock, so nothing tells how old they are"
    if idle < alive_seconds:
        wrote = f"wrote one of its files {max(0.0, idle):.0f} s ago"
        if not is_gone:
            return f"its driver or a task {wrote}"
        # Where directories are not real a driver's own signs count for its tasks, too.
        alone = tasks_seen is not None and Capability.REAL_DIRECTORIES in run.store.capabilities
        who = "a task" if alone else "a task, or the driver before that,"
        return f"its driver, {driver}, is gone, but {who} {wrote}, and a task may be at work elsewhere"
    if run.runtime.is_alive(driver):
        return f"its driver, {driver}, is alive"
    if is_gone or idle >= silence * alive_seconds:
        return ""
    return f"it has been silent for {idle:.0f} s only, and its driver is not one of this host"


async def refuse_if_at_work(run: JobRun, last_seen: float, tasks_seen: float, *, harm: str) -> None:
    """Make sure that a job is over, before somebody else than its driver ends it, which would do this `harm`. The times
    are those that a look from above has shown.

    Raises:
        CommitFenced: its driver or its tasks may be at work.
    """
    own = drivers_own(run, run.layout)
    async for page in run.store.list_tree(run.layout.attempt_directory):
        last_seen = max([last_seen, *(status.modified for status in page)])
        tasks_seen = max([tasks_seen, *(status.modified for status in page if status.path not in own)])
    try:
        marker = await read_marker(run)
    except StoreError:
        raise
    except LockgateError:  # damaged: nothing is known of the driver
        marker = None
    # Jobs of Lockgate's show signs of life; of another program's there is nothing but silence.
    silence = 1 if run.layout.prefix == OURS else SILENCE
    why = why_at_work(run, marker, last_seen, tasks_seen=tasks_seen, silence=silence)
    if why:
        raise CommitFenced(
            f"job {run.layout.job_id} may be at work: {why}",
            where=run.url(run.layout.attempt_directory if run.layout.prefix == OURS else ""),
            next_step=f"{harm}: if it is surely over, add --force to the command",
        )

"""What somebody is told who comes upon a job that may be at work: one text, whichever command tells it."""

from __future__ import annotations

import dataclasses

from lockgate.engine.inspection.list_jobs import GONE, JobState
from lockgate.engine.record.found_commands import found_command, told_of_options, with_first_options
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.counted import counted
from lockgate.model.errors import FileMissing, LockgateError, ReceiptUnmatched, StoreError
from lockgate.model.layout import OURS, saves_manifest_of


def how_many_committed(state: JobState) -> str:
    """How many of the job's tasks are known to have committed."""
    return f"{counted(state.tasks_committed, 'task has', 'tasks have')} committed"


def if_surely_over(run: JobRun, state: JobState, why_not: LockgateError | None = None) -> str:
    """That the job may be at work, and the commands that end it if it is not. `why_not`: what a commit would say, where
    it would be refused."""
    who = state.driver.removesuffix(GONE)
    driver = f"; its driver is {who}" if who else ""
    may = f"it may be at work{driver}; if it is surely over, with its tasks:"
    if state.driver_gone:
        may = f"its driver, {who}, is gone, but its tasks may be at work; if they are surely over:"
    return f"{may} {commands_to_end(run, state, why_not)}"


def commands_to_end(run: JobRun, state: JobState, why_not: LockgateError | None = None) -> str:
    """The commands that end it, whoever may be at work. What another program's tasks have left may be the only place of
    their rows: of such a job `abort` is never named alone. `why_not` as above."""
    if why_not is not None:
        return f"{why_not.what}: {why_not.next_step}"
    run = with_first_options(run, state.layout, state.record)
    aborting = found_command(run, "abort", state.layout, "--force")
    planning = found_command(run, "plan", state.layout)
    if not state.tasks_committed:
        is_ours = state.layout.prefix == OURS
        return aborting if is_ours else f"{planning} says what is there to commit, and {aborting} deletes it"
    committing = found_command(run, "commit", state.layout, "--force")
    if told := told_of_options(run, state.layout, state.record):
        return f"{committing} ({told}; the tasks that it would leave out, too), or {aborting}, which deletes all of it"
    return f"{committing} ({planning} shows which tasks that would leave out), or {aborting}"


async def why_interrupted(run: JobRun, state: JobState) -> ReceiptUnmatched | None:
    """What a commit would say of a job that may be at work where the commit of one of its tasks was interrupted: that
    ends it by other commands. Of all else that it would say, its owner may be about to mend the cause.

    Raises:
        StoreError: the store does not answer.
    """
    manifests = await list_all(run.store, state.layout.manifests)
    if not any(saves_manifest_of(status.path.rpartition("/")[2]) for status in manifests):
        return None
    job = dataclasses.replace(run, layout=state.layout, by_what_is_found=True, counters={}, stage_seconds={})
    try:
        own = await with_own_protocol(job, state.record)
        pins = await own.protocol.find_pins(own)
        if not own.protocol.attributes.committed_invisible:  # of others it is told by their directories alone
            await own.protocol.meet(own, await own.protocol.load_plan(own, pins))
    except ReceiptUnmatched as error:
        return error
    except FileMissing:  # it is at work, or was ended meanwhile
        return None
    except StoreError:
        raise
    except LockgateError:
        return None
    return None

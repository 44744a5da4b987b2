"""What somebody is told who comes upon a job that may be at work: one text, whichever command tells it."""

from __future__ import annotations

from lockgate.engine.inspection.list_jobs import JobState
from lockgate.engine.record.found_commands import found_command, told_of_options, with_first_options
from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import LockgateError
from lockgate.model.layout import OURS


def how_many_committed(state: JobState) -> str:
    """How many of the job's tasks are known to have committed."""
    return f"{counted(state.tasks_committed, 'task has', 'tasks have')} committed"


def if_surely_over(run: JobRun, state: JobState, why_not: LockgateError | None = None) -> str:
    """That the job may be at work, and the commands that end it if it is not. `why_not`: what a commit would say, where
    it would be refused."""
    driver = f"; its driver is {state.driver}" if state.driver else ""
    ending = commands_to_end(run, state) if why_not is None else f"{why_not.what}: {why_not.next_step}"
    return f"it may be at work{driver}; if it is surely over, with its tasks: {ending}"


def commands_to_end(run: JobRun, state: JobState) -> str:
    """The commands that end it, whoever may be at work. What another program's tasks have left may be the only place of
    their rows: of such a job `abort` is never named alone."""
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

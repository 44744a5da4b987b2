"""What to do about a job id that a job which has not ended has: who hears it may have set that job up himself."""

from __future__ import annotations

from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import UsageError
from lockgate.model.phases import Phase


async def another_has_the_id(run: JobRun) -> UsageError:
    """The refusal of the setup of a job whose id another has."""
    return UsageError(
        f"another job has the id {run.layout.job_id}",
        where=run.url(run.layout.job_marker),
        next_step=await how_to_use_it_again(run),
    )


async def how_to_use_it_again(run: JobRun) -> str:
    """The commands that end the job of this id first. It may be the very job that is set up, whose program has died and
    was started again: who ran it by another id beside the first would have its rows twice once that is ended."""
    url, job = run.store.url, run.layout.job_id
    record = await read_record(run)
    is_claimed = record is not None and record.phase is not Phase.REFUSED
    ends = command("recover", url, job) if is_claimed else f"{command('abort', url, job)} --force"
    return (
        f"{command('jobs', url)} shows how it stands. If it is this very job, and the program that set it up is over: "
        f"{ends} ends it first; do not run it by another id beside it. Else give every job an id of its own: leave "
        "job_id out and one is made"
    )

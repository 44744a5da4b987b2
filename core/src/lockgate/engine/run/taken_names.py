"""What to do where a task's file has a name that is taken, by a protocol that writes over no file."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command


def how_to_free(run: JobRun, otherwise: str) -> str:
    """The next step. `otherwise`: what helps where the name is just taken. A job whose driver died keeps the names that
    its tasks have taken, until it is aborted; who runs the same write again wants the same names. A stream's batch
    cannot choose others; that comes last, since nothing here says that a job is of one."""
    url = run.store.url
    return (
        f"{otherwise}. If a job whose driver died has put it there: {command('jobs', url)} shows that job, and "
        f"{command('abort', url, 'JOB')} --force, if it is surely over, takes its files out; or, if it had begun its "
        f"commit, {command('recover', url, 'JOB')} finishes it. A stream that died in this batch leaves such a job, "
        "and wants the same names: end the job so, or, if it is shown no more, start again"
    )

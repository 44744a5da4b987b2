"""What to do where a task's file has a name that is taken, by a protocol that writes over no file."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command


def how_to_free(run: JobRun, otherwise: str) -> str:
    """The next step. A job whose driver died keeps the names that its tasks have taken, until it is aborted; who runs
    the same write again wants the same names. A stream's batch cannot choose others. `otherwise`: what helps else."""
    url = run.store.url
    return (
        "if a job whose driver died has put it there, as the start of a stream before this one that died in this "
        f"batch: {command('jobs', url)} shows that job, and {command('abort', url, 'JOB')} --force, if it is surely "
        f"over, takes its files out; or, if it had begun its commit, {command('recover', url, 'JOB')} finishes it, and "
        "the batch, started again, is done by that. If it is shown no more, it has been ended meanwhile: start again. "
        f"Else {otherwise}"
    )

"""What to do where a task's file has a name that is taken, by a protocol that writes over no file."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import OutputFile
from lockgate.model.commands import command
from lockgate.model.errors import FileExists
from lockgate.model.files import FileStatus


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


class _NewFile(OutputFile):
    """A file that must not be there: some stores find it when it is opened, others when it is closed. `told` makes the
    error of the store's, with what to do."""

    def __init__(self, output: OutputFile, told: Callable[[FileExists], FileExists]) -> None:
        self._output = output
        self._told = told

    @property
    def stream(self) -> BinaryIO:
        return self._output.stream

    def close(self) -> FileStatus:
        try:
            return self._output.close()
        except FileExists as error:
            raise self._told(error) from error

    def discard(self) -> None:
        self._output.discard()

    def drop(self) -> None:
        self._output.drop()


def open_new(open_file: Callable[[], OutputFile], told: Callable[[FileExists], FileExists]) -> OutputFile:
    """Open a file that must not be there.

    Raises:
        FileExists: as `told` makes it.
    """
    try:
        return _NewFile(open_file(), told)
    except FileExists as error:
        raise told(error) from error


def left_by_an_earlier_run(run: JobRun, error: FileExists) -> FileExists:
    """The error where a task attempt finds a file of its own name where only attempts of its number write: the task
    was run before under this number, or this run opens one path twice."""
    attempt, job = run.task_attempt_id, run.layout.job_id
    abort = command("abort", run.store.url, job, "--force")
    return FileExists(
        f"{error.what}: an earlier run of {attempt} of job {job} has left it, or this run has opened this path before",
        where=error.where,
        next_step=f"let the task be tried again as attempt {int(attempt.rpartition('_')[2]) + 1}, or a later one: what "
        "the earlier run has left is in no commit then, unless it has committed, and goes when the job ends. Where the "
        f"whole program was started again, and no other run of it is at work: {abort} deletes what the first one has "
        "left; then start it once more. Where this run has opened the path before: choose another name",
    )

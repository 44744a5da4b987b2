"""The protocol as the engine asks it: files stand at their final names from the moment that they are opened."""

from __future__ import annotations

from typing import ClassVar

from lockgate.engine.manifests.load_manifests import aborted_in, every_attempt
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes
from lockgate.engine.run.store import OutputFile, list_all
from lockgate.engine.run.taken_names import how_to_free, open_new
from lockgate.model.commands import command
from lockgate.model.errors import FileExists
from lockgate.model.layout import alive_attempt, saves_manifest_of, task_of
from lockgate.model.plan import CommitPlan
from lockgate.protocols.in_place.protocol import InPlaceProtocol


class DirectProtocol(InPlaceProtocol):
    """Nothing is moved, ever. A name belongs to the attempt that created it, so that no file is written over."""

    name: ClassVar[str] = "direct"
    description: ClassVar[str] = (
        "Spark's direct committer: task attempts write at the final names, commits move nothing"
    )
    alternative: ClassVar[str] = "use another store: where manifest or deferred can be had, they show nothing early"
    unsafe: ClassVar[str] = (
        "readers see a task attempt's files while it writes them; one that dies leaves them, and then no other attempt "
        "at that task can write the same names: speculation must be off"
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=False,
        task_commit_repeatable=False,
        uncommitted_invisible=False,
        committed_invisible=False,
        recoverable=True,
        holds_through_partition=False,
    )

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """The file itself, which must not be there: some stores find it when it is opened, others when it is closed."""
        opens = super().open_file
        return open_new(lambda: opens(run, ordinal, path, nonce), lambda error: _taken(run, error))

    async def left_out_stays(self, run: JobRun) -> str:
        """What an attempt at such a task has written that died before it had saved its manifest."""
        told = await _tasks_of_unsaved(run) & set(run.left_out)
        return f"What they wrote {_stays(run)}" if told else ""

    async def left_by_dead_attempts(self, run: JobRun) -> str:
        """The same, of any task."""
        return f"What task attempts wrote that died {_stays(run)}" if await _tasks_of_unsaved(run) else ""

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """All are in place, and of every attempt it can be told which are its files."""
        plan = await super().meet(run, plan)
        await saved(run)  # what cannot be read must be told before anything moves, since it could not be undone then
        return plan


async def _tasks_of_unsaved(run: JobRun) -> set[str]:
    """The tasks of attempts that have begun, and have neither saved a manifest nor been aborted: nothing tells which
    files are theirs."""
    tasks: set[str] = set()
    for layout in {run.layout, *await every_attempt(run)}:
        names = {each.path.rpartition("/")[2] for each in await list_all(run.store, layout.manifests)}
        begun = {each.path.rpartition("/")[2] for each in await list_all(run.store, layout.tasks)}
        begun |= {attempt for name in names if (attempt := alive_attempt(name))}
        ended = {saves_manifest_of(name) for name in names} | await aborted_in(run, layout.job_attempt)
        tasks |= {task for attempt in begun - ended if (task := task_of(attempt))}
    return tasks


def _stays(run: JobRun) -> str:
    listing = command("files", run.store.url)
    return (
        "may be in the destination, and some of it cut short, and readers see it: they have saved no manifest that "
        f"names it. {listing} shows the files that are in no job's list; delete by hand what is theirs: "
        f"of writes by Spark what has {run.layout.job_id} in its name, of others what their tasks are known to write. "
        "Of a stream's batch every run has the same names, also one that has committed: start the query again first, "
        "and delete only what it is refused for."
    )


def _taken(run: JobRun, error: FileExists) -> FileExists:
    abort = command("abort", run.store.url, run.layout.job_id, "--force")
    return FileExists(
        error.what,
        where=error.where,
        next_step=f"{how_to_free(run, 'choose another name')}. Only where it is refused again for this very file, no "
        "such job is shown, and the file is no earlier job's: if an attempt at this task that died has left it, no "
        f"other can take its place. Then end this job, {abort}, delete the file, and run the job again",
    )

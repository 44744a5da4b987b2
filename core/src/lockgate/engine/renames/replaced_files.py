"""What a job replaces: set aside by renames under the numbers of its list, and brought back by a rollback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from lockgate.engine.record.replaced_lists import waiting_files
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.renames.whole_directories import bring_back_whole
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import no_progress
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed
from lockgate.model.files import Rename
from lockgate.model.layout import SUCCESS
from lockgate.model.replaced import SetAside
from lockgate.model.spooled import windows
from lockgate.model.urls import parent_of

ROUNDS = 16
"""How often the place of the replaced files is emptied against somebody who fills it."""

BATCH = 10_000
"""So many files are renamed by one call."""

Numbered = Iterable[tuple[int, SetAside]]
"""Files to set aside, each with its place in the list."""


async def set_aside(run: JobRun, nonce: str, files: Numbered, total: int, *, again: bool) -> None:
    """Set files aside, of which there are `total` at most. Nobody but this job renames to where they wait: what is
    there already has been set aside, though a new file may have taken its old place since.

    `again`: somebody may have begun before, and died. A file that was seen then, and is nowhere now, was deleted by
    somebody since, as by the abort of a job whose files show early: it is as gone as the commit wanted it."""
    batches = windows(files, BATCH)
    first = next(batches, None)
    if first is None:
        return
    with run.stage("set_aside"):
        layout = run.layout
        progress = run.progress(total)
        for batch in chain([first], batches):
            renames = [Rename(a.path, layout.replaced_file(nonce, n), a.length, a.identity) for n, a in batch]
            await rename_all(run, renames, progress, own_target=True, may_be_gone=again)
            run.count("files_set_aside", len(batch))


async def bring_back(run: JobRun, nonce: str, files: Sequence[SetAside], directories: Sequence[str] = ()) -> None:
    """Bring everything back but the old `_SUCCESS`, which goes to a place of its own, until nothing waits and the
    places are deleted: from then on a driver that still sets files, or `directories`, aside is refused.

    Raises:
        CommitFailed: another writer has taken a file's place, or somebody keeps setting files aside. What can come back
            has come back then.
    """
    layout, store = run.layout, run.store
    for _ in range(ROUNDS):
        waiting = await waiting_files(run, nonce)
        places = {parent_of(aside.path) for aside, _ in waiting.of(files) if aside.path != SUCCESS}
        undo = command("recover", run.store.url, layout.job_id, "--undo")
        taken = f"somebody else has written this file since: move it away, then {undo}"
        held = await bring_back_whole(run, nonce, files, directories, taken)
        if places:
            for made in await store.make_directories(sorted(places - {""})):
                if made.state == "blocked":
                    held.append(
                        CommitFailed(
                            "a file stands where a directory was whose files must come back",
                            where=run.url(made.blocked),
                            next_step=taken,
                        )
                    )
        data = (
            Rename(found.path, aside.path, found.length, found.identity)
            for aside, found in waiting.of(files)
            if aside.path != SUCCESS
        )
        for renames in windows(data, BATCH):
            try:
                run.count("files_brought_back", len(await rename_all(run, renames, no_progress, where_taken=taken)))
            except CommitFailed as error:
                held.append(error)
        summary = next((found.path for aside, found in waiting.of(files) if aside.path == SUCCESS), "")
        if summary:
            await store.rename_files([Rename(summary, layout.summary_returning(nonce))])
        if held:
            raise held[0]
        wholes = [layout.replaced_whole(nonce)] if directories else []
        if all(await store.delete_empty_directories([layout.replaced_files(nonce), *wholes])):
            return
    raise CommitFailed(
        "the replaced files keep being set aside by somebody else",
        where=run.url(layout.replaced_files(nonce)),
        next_step=f"stop the driver that is still at work, then {command('recover', run.store.url, layout.job_id)}",
    )

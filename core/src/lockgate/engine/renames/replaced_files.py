"""What a job replaces: set aside by renames under the numbers of its list, and brought back by a rollback."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.record.replaced_lists import waiting_files
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import no_progress
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed
from lockgate.model.files import Rename
from lockgate.model.layout import SUCCESS
from lockgate.model.replaced import SetAside

ROUNDS = 16
"""How often the place of the replaced files is emptied against somebody who fills it."""

Numbered = Sequence[tuple[int, SetAside]]
"""Files to set aside, each with its place in the list."""


async def set_aside(run: JobRun, nonce: str, files: Numbered) -> None:
    """Set files aside. Nobody but this job renames to where they wait: what is there already has been set aside,
    though a new file may have taken its old place since."""
    if not files:
        return
    with run.stage("set_aside"):
        layout = run.layout
        progress = run.progress(len(files))
        for start in range(0, len(files), 10_000):
            batch = files[start : start + 10_000]
            renames = [Rename(a.path, layout.replaced_file(nonce, n), a.length, a.identity) for n, a in batch]
            await rename_all(run, renames, progress, own_target=True)
        run.count("files_set_aside", len(files))


async def bring_back(run: JobRun, nonce: str, files: Sequence[SetAside]) -> None:
    """Bring everything back but the old `_SUCCESS`, which goes to a place of its own, until nothing waits and the
    directory is deleted: from then on a driver that still sets files aside is refused.

    Raises:
        CommitFailed: another writer has taken a file's place, or somebody keeps setting files aside.
    """
    layout, store = run.layout, run.store
    for _ in range(ROUNDS):
        waiting = await waiting_files(run, nonce)
        renames = [
            Rename(status.path, files[number].path, status.length, status.identity)
            for number, status in sorted(waiting.items())
            if files[number].path != SUCCESS
        ]
        if renames:
            parents = sorted({rename.target.rpartition("/")[0] for rename in renames} - {""})
            undo = command("recover", run.store.url, layout.job_id, "--undo")
            taken = f"somebody else has written this file since: move it away, then {undo}"
            for made in await store.make_directories(parents):
                if made.state == "blocked":
                    raise CommitFailed(
                        "a file stands where a directory was whose files must come back",
                        where=run.url(made.blocked),
                        next_step=taken,
                    )
            await rename_all(run, renames, no_progress, where_taken=taken)
            run.count("files_brought_back", len(renames))
        if len(renames) < len(waiting):
            summaries = [status.path for number, status in waiting.items() if files[number].path == SUCCESS]
            await store.rename_files([Rename(summaries[0], layout.summary_returning(nonce))])
        if all(await store.delete_empty_directories([layout.replaced_files(nonce)])):
            return
    raise CommitFailed(
        "the replaced files keep being set aside by somebody else",
        where=run.url(layout.replaced_files(nonce)),
        next_step=f"stop the driver that is still at work, then {command('recover', run.store.url, layout.job_id)}",
    )

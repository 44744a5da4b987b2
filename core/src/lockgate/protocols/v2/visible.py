"""What task attempts have moved into the destination, by what they have saved: found, and taken out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.renames.roll_back import return_what_is_not_ours, withdraw
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing
from lockgate.model.manifest import TaskManifest

BATCH = 1_000


async def take_out(run: JobRun, manifests: Sequence[TaskManifest]) -> list[str]:
    """Take the files of these manifests out of the destination, each only if it is the one that was moved there; the
    answer: where something else stands. They are renamed into the job's own directory first, so that a file which
    somebody has put there since is found out and brought back.

    Raises:
        CommitFailed: one could not be moved.
    """
    left: list[str] = []
    for manifest in manifests:
        layout = run.layout.at_attempt(manifest.job_attempt)
        place = f"{layout.withdrawn}/{manifest.task_attempt_id}"
        files = [(entry, f"{place}/_{number}") for number, entry in enumerate(manifest.files)]
        if not files:
            continue
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            try:
                await run.store.make_directories([place], within=layout.attempt_directory)
            except FileMissing:  # the job is over
                continue
        for start in range(0, len(files), BATCH):
            left += await withdraw(run, files[start : start + BATCH])
            left += await return_what_is_not_ours(run, files[start : start + BATCH])
        await delete_trees(run, [place])
    return left


async def take_out_all(run: JobRun, but: Collection[str] = ()) -> list[str]:
    """The same, of all that the job's task attempts have saved."""
    return await take_out(run, await saved(run, but))

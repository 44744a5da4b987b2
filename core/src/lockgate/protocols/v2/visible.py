"""What task attempts have moved into the destination, by what they have saved: found, and taken out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.renames.roll_back import return_what_is_not_ours, withdraw
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing
from lockgate.model.layout import MANIFEST_SUFFIX, MANIFEST_TEMPORARY_SUFFIX
from lockgate.model.manifest import TaskManifest, decode_manifest
from lockgate.model.record import digest_of

BATCH = 1_000


async def saved(run: JobRun, but: Collection[str] = ()) -> list[TaskManifest]:
    """What every attempt at every task has committed, or begun to, in all attempts at the job; without those whose
    manifests have these digests.

    Raises:
        ManifestInvalid: one cannot be read.
    """
    found: list[TaskManifest] = []
    for layout in await every_attempt(run):
        paths: list[str] = []
        async for page in run.store.list_directory(layout.manifests):
            endings = (MANIFEST_SUFFIX, MANIFEST_TEMPORARY_SUFFIX)
            paths += [status.path for status in page if status.path.endswith(endings)]
        below = await below_root_of(run, layout)
        window = run.options.files_read_at_once
        for start in range(0, len(paths), window):
            some = paths[start : start + window]
            contents = await run.store.read_files(some, bytes_max=run.options.manifest_bytes_max)
            found += [
                decode_manifest(content, layout, below, name=run.url(path))
                for path, content in zip(some, contents, strict=True)
                if content is not None and digest_of(content) not in but
            ]
    return found


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

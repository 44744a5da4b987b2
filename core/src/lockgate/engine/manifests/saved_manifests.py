"""What the task attempts of a job have saved, whether it counts or not: for protocols with files in place early."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.record.marker import readable_marker, refuse_if_set_up_again
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import ManifestInvalid
from lockgate.model.layout import MANIFEST_SUFFIX, MANIFEST_TEMPORARY_SUFFIX, JobLayout
from lockgate.model.manifest import TaskManifest, decode_manifest
from lockgate.model.record import digest_of
from lockgate.model.urls import Below

READ_TRIES = 8
"""How often what is renamed between a listing and the reading is looked for anew."""


Attempt = tuple[int, str]
"""Which task attempt: the number of the job attempt, and its id there."""


def attempt_of(manifest: TaskManifest) -> Attempt:
    """Whose manifest this is."""
    return manifest.job_attempt, manifest.task_attempt_id


@dataclass(frozen=True)
class Saved:
    """What one task attempt has saved. `committed`: all of its files were moved; else it was to move them."""

    manifest: TaskManifest
    committed: bool


async def saved(run: JobRun, but: Collection[str] = ()) -> list[Saved]:
    """What every attempt at every task has committed, or begun to, in all attempts at the job; without those whose
    manifests have these digests, and those that cannot be read, where names tell which files are the job's.

    Raises:
        ManifestInvalid: one cannot be read, and names do not tell.
    """
    readable, _ = await saved_and_damaged(run, but)
    return readable


async def saved_and_damaged(run: JobRun, but: Collection[str] = ()) -> tuple[list[Saved], list[str]]:
    """The same, and the paths of those that cannot be read.

    Raises:
        ManifestInvalid: one cannot be read, and names do not tell.
        JobNotFound: the job is over, and its id was set up again: these are another's.
    """
    found: list[Saved] = []
    damaged: list[str] = []
    for layout in await every_attempt(run):
        below = await below_root_of(run, layout)
        before = len(found)
        for path, content in (await saved_contents(run, layout)).items():
            if digest_of(content) in but:
                continue
            try:
                found.append(Saved(_decoded(run, content, layout, below, path), path.endswith(MANIFEST_SUFFIX)))
            except ManifestInvalid as error:
                if not await names_tell(run, layout):
                    raise ManifestInvalid(
                        f"{error.what}: which files in the destination are of the attempt that saved it, nobody can "
                        "tell",
                        where=error.where,
                        next_step="nothing was touched: if no task attempt of this job wrote it, move it away, and "
                        "give the command again; else delete its attempt's files by hand first",
                    ) from error
                damaged.append(path)
        if len(found) > before and (marker := await readable_marker(run, layout)) is not None:
            refuse_if_set_up_again(run, layout, marker.nonce)  # after the look at them, which are newer than it
    if damaged:
        run.log.warning("manifests cannot be read: names tell which files are the job's", paths=damaged[:5])
    return found, damaged


async def names_tell(run: JobRun, layout: JobLayout) -> bool:
    """Whether a file of an attempt at the job is known for that by its name: the protocol gives such names, and the
    marker is there that says which they are."""
    return run.protocol.names_tell and await readable_marker(run, layout) is not None


def _decoded(run: JobRun, content: bytes, layout: JobLayout, below: Below, path: str) -> TaskManifest:
    return decode_manifest(content, layout, below, name=run.url(path), deferred=run.protocol.saves_uploads)


async def saved_contents(run: JobRun, layout: JobLayout) -> dict[str, bytes]:
    """What the manifests of one job attempt hold, those not yet committed too, by their paths. One that is renamed
    between the listing and the reading, since its attempt commits, is looked for anew.

    Raises:
        LockgateError: the store does not answer.
    """
    contents: dict[str, bytes] = {}
    for _ in range(READ_TRIES):
        contents, is_whole = await _read_once(run, layout)
        if is_whole:
            break
    return contents


async def _read_once(run: JobRun, layout: JobLayout) -> tuple[dict[str, bytes], bool]:
    paths: list[str] = []
    async for page in run.store.list_directory(layout.manifests):
        endings = (MANIFEST_SUFFIX, MANIFEST_TEMPORARY_SUFFIX)
        paths += [status.path for status in page if status.path.endswith(endings)]
    window = run.options.files_read_at_once
    contents: dict[str, bytes] = {}
    for start in range(0, len(paths), window):
        some = paths[start : start + window]
        read = await run.store.read_files(some, bytes_max=run.options.manifest_bytes_max)
        contents |= {path: content for path, content in zip(some, read, strict=True) if content is not None}
    return contents, len(contents) == len(paths)

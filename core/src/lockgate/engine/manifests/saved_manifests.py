"""What the task attempts of a job have saved, whether it counts or not: for protocols with files in place early."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
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
    manifests have these digests.

    Raises:
        ManifestInvalid: one cannot be read.
    """
    found: list[Saved] = []
    for layout in await every_attempt(run):
        below = await below_root_of(run, layout)
        try:
            found += [
                Saved(_decoded(run, content, layout, below, path), path.endswith(MANIFEST_SUFFIX))
                for path, content in (await saved_contents(run, layout)).items()
                if digest_of(content) not in but
            ]
        except ManifestInvalid as error:
            raise ManifestInvalid(
                f"{error.what}: which files in the destination are of the attempt that saved it, nobody can tell",
                where=error.where,
                next_step="nothing was touched: if no task attempt of this job wrote it, move it away, and give the "
                "command again; else delete its attempt's files by hand first",
            ) from error
    return found


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

"""What the task attempts of a job have saved, whether it counts or not: for protocols with files in place early."""

from __future__ import annotations

from collections.abc import Collection

from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.run.job_run import JobRun
from lockgate.model.layout import MANIFEST_SUFFIX, MANIFEST_TEMPORARY_SUFFIX
from lockgate.model.manifest import TaskManifest, decode_manifest
from lockgate.model.record import digest_of


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

"""What the tasks of earlier attempts at a job have committed, so that the next attempt need not run them again.

Seed: "Job Recovery". Hadoop's manifest committer has no recovery of jobs; its v1 committer moves the earlier attempt's
tasks, here the next attempt's driver commits them where they are.
"""

from __future__ import annotations

from lockgate.engine.manifests.aborted_attempts import owner_of
from lockgate.engine.manifests.load_manifests import aborted_in, attempts_of, below_root_of
from lockgate.engine.run.job_run import JobRun
from lockgate.model.layout import ABORTED_SUFFIX, MANIFEST_SUFFIX, JobLayout
from lockgate.model.manifest import decode_manifest
from lockgate.model.receipt import Receipt


async def committed_tasks(run: JobRun, *, deferred: bool = False) -> list[Receipt]:
    """The receipts of the tasks that committed in earlier attempts at this job, in order of task; the newest of each.

    Raises:
        ManifestInvalid: one of their manifests is not acceptable.
    """
    found: dict[str, Receipt] = {}
    for layout in await attempts_of(run):
        if layout.job_attempt == run.layout.job_attempt:
            continue
        found.update({receipt.task_id: receipt for receipt in await _of_attempt(run, layout, deferred)})
    # A task may have been aborted while the manifests were read: its tombstone comes before its files go.
    aborted = {attempt: await aborted_in(run, attempt) for attempt in {each.job_attempt for each in found.values()}}
    offered = [each for each in found.values() if each.task_attempt_id not in aborted[each.job_attempt]]
    return sorted(offered, key=lambda receipt: receipt.task_id)


async def _of_attempt(run: JobRun, layout: JobLayout, deferred: bool) -> list[Receipt]:
    paths: list[str] = []
    aborted: set[str] = set()
    async for page in run.store.list_directory(layout.manifests):
        for status in page:
            name = status.path.rpartition("/")[2]
            if name.endswith(ABORTED_SUFFIX):
                aborted.add(name.removesuffix(ABORTED_SUFFIX))
            elif name.endswith(MANIFEST_SUFFIX):
                paths.append(status.path)
    below = await below_root_of(run, layout)
    found: list[Receipt] = []
    window = run.options.files_read_at_once
    for start in range(0, len(paths), window):
        some = paths[start : start + window]
        contents = await run.store.read_files(some, bytes_max=run.options.manifest_bytes_max)
        for path, content in zip(some, contents, strict=True):
            if content is None or owner_of(content) in aborted:
                continue
            manifest = decode_manifest(content, layout, below, name=run.url(path), deferred=deferred)
            found.append(manifest.receipt(content))
    return found

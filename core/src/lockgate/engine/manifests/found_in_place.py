"""Files of a job that are in place already, by what its task attempts have saved and by nothing else."""

from __future__ import annotations

from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import ManifestInvalid

BATCH = 1_000


async def found_in_place(run: JobRun) -> list[str]:
    """The targets of what the job's task attempts have saved at which files of their identity stand.

    Raises:
        StoreError: the store does not answer.
    """
    try:
        known = await saved(run)
    except ManifestInvalid:  # an abort deletes it whatever it holds
        return []
    entries = [entry for each in known for entry in each.manifest.files if entry.identity]
    found: set[str] = set()
    for start in range(0, len(entries), BATCH):
        some = entries[start : start + BATCH]
        there = await run.store.stat_files([entry.target for entry in some])
        found |= {
            entry.target
            for entry, status in zip(some, there, strict=True)
            if status is not None and run.store.same_identity(entry.identity, status.identity)
        }
    return sorted(found)

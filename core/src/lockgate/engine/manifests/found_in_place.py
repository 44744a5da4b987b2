"""Files of a job that are in place already, by what its task attempts have saved and by nothing else."""

from __future__ import annotations

from lockgate.engine.manifests.load_manifests import aborted_in, every_attempt
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.counted import counted
from lockgate.model.errors import LockgateError, ManifestInvalid, StoreError

BATCH = 1_000


async def found_in_place(run: JobRun) -> list[str]:
    """The targets of what the job's task attempts have saved at which files of their identity stand, and whose staged
    files are gone: another job's file may be equal, and its identity the same. (Of uploads nobody can tell it so.)

    Raises:
        StoreError: the store does not answer.
    """
    try:
        known = await saved(run)
    except StoreError:
        raise
    except LockgateError:  # a manifest, or the marker, is damaged: an abort deletes it whatever it holds
        return []
    staged: set[str] = set()
    aborted: set[tuple[int, str]] = set()  # whose staged files are gone for that
    for layout in await every_attempt(run):
        number = layout.job_attempt
        aborted |= {(number, attempt) for attempt in await aborted_in(run, number)}
        async for page in run.store.list_tree(layout.tasks):
            staged |= {status.path for status in page}
    manifests = [each.manifest for each in known]
    manifests = [each for each in manifests if (each.job_attempt, each.task_attempt_id) not in aborted]
    entries = [entry for each in manifests for entry in each.files if entry.identity and entry.source]
    entries = [entry for entry in entries if entry.source not in staged]
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


async def refuse_what_is_in_place(run: JobRun, error: ManifestInvalid) -> None:
    """Staged files are gone, as `error` says: say so where they are in place, since whoever runs the job again would
    write them once more. Where equal files have one identity, nobody can tell.

    Raises:
        ManifestInvalid: some are.
    """
    if Capability.UNIQUE_IDENTITY not in run.store.capabilities or not (there := await found_in_place(run)):
        return
    raise ManifestInvalid(
        f"{error.what}: {counted(len(there), 'file')} of the job are in place, so that its commit had begun, and "
        "somebody has deleted its commit record",
        where="\n".join(run.url(path) for path in there[:5]),
        next_step="do not run the job again before these are seen to: their rows would be there twice. "
        f"{found_command(run, 'abort', run.layout, '--force')} names all of them, and how the job is ended",
    ) from error

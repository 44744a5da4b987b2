"""What a mover does: it renames its share of a job's files, for the driver that holds the job.

Continuity: a mover may be late, sleep, or be one of two at one share. It is to the job what a driver is that sleeps in
`moving`, or two that recover it at once: a rename that has taken place is found out by identity, and the undoing of a
job deletes the staged files before it takes anything back, so that nothing is left that a late mover could rename. And
it looks at the record before its first rename, and again while it renames: one that begins, or goes on, once its driver
has lost the job touches nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from lockgate.engine.manifests.load_manifests import below_root_of, pinned_manifests
from lockgate.engine.record.record_log import read_record
from lockgate.engine.renames.rename_files import rename_all
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import no_progress
from lockgate.model.errors import CommitFailed
from lockgate.model.files import Rename
from lockgate.model.phases import Phase
from lockgate.model.shares import Moved, Share
from lockgate.model.spooled import windows
from lockgate.model.urls import Below

BATCH = 1_000
LOOK_SECONDS = 5.0
"""A mover looks at the record this often, between two batches."""


async def move_share(run: JobRun, share: Share) -> Moved:
    """Rename the files of a share. It can be repeated after any failure, and by two at once.

    Raises:
        CommitFailed: the driver that gave it out does not move the job any more; or as `rename_all`.
        CommitRefused: a manifest is not there, or not as pinned.
        OutcomeUnknown: as `rename_all`.
    """
    looked: float | None = None
    moved = 0
    with run.stage("move_share"):
        async for renames in _batches(run, share):
            now = run.runtime.tick()
            if looked is None or now - looked >= LOOK_SECONDS:
                await refuse_unless_moving(run, share.holder)
                looked = now
            began = run.runtime.tick()
            await rename_all(run, renames, no_progress, make_parents=True)
            run.statistics.took("commit_file_rename", run.runtime.tick() - began, len(renames))
            moved += len(renames)
    return Moved(moved, run.counted(), run.statistics.now())


async def refuse_unless_moving(run: JobRun, holder: str) -> None:
    """Make sure that a driver holds the job still, and moves its files.

    Raises:
        CommitFailed: it does not; nothing was touched.
    """
    record = await read_record(run)
    if record is None or record.phase is not Phase.MOVING or record.holder.nonce != holder or record.given_up:
        found = "it has no record here" if record is None else f"phase {record.phase.value}, {record.holder}"
        raise CommitFailed(
            f"a mover finds that its driver does not move job {run.layout.job_id} any more",
            where=f"{run.url(run.layout.job_directory)}\n{found}",
            next_step="it has touched nothing; where there is no record, its store is not the driver's",
        )


async def _batches(run: JobRun, share: Share) -> AsyncIterator[list[Rename]]:
    """The renames of a share; so many manifests are read at once as a driver reads."""
    below: dict[int, Below] = {}
    batch: list[Rename] = []
    for parts in windows(share.parts, run.options.files_read_at_once):
        for part in parts:
            if part.pin.job_attempt not in below:
                below[part.pin.job_attempt] = await below_root_of(run, run.layout.at_attempt(part.pin.job_attempt))
        manifests = await pinned_manifests(run, [part.pin for part in parts], below)
        for part, manifest in zip(parts, manifests, strict=True):
            for entry in manifest.files[part.begin : part.end]:
                batch.append(Rename(entry.source, entry.target, entry.length, entry.identity))
                if len(batch) == BATCH:
                    yield batch
                    batch = []
    if batch:
        yield batch

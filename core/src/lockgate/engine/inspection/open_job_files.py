"""Which files of a destination are those of jobs that have not committed: by their manifests, and by tags in names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from lockgate.engine.inspection.list_jobs import JobState, JobStatus
from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.manifests.saved_manifests import saved_contents
from lockgate.engine.record.marker import read_marker_of, readable_marker
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import LockgateError, OptionError, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout
from lockgate.model.manifest import peek_manifest
from lockgate.model.phases import Phase
from lockgate.model.summary import CommittedFile, Summary


async def has_committed(run: JobRun, state: JobState, last: Summary | None) -> bool:
    """Whether a job has committed, by its record or by the last `_SUCCESS`."""
    if state.phase is Phase.COMMITTED or state.status is JobStatus.COMMITTED:
        return True
    if last is None or state.job_id != last.job_id:
        return False
    # The id may have been used before, for another transaction.
    marker = await readable_marker(run, state.layout)
    return marker is None or last.lockgate is None or marker.options.get("txn_id", "") in ("", last.lockgate.txn_id)


async def shows_nothing_yet(run: JobRun, state: JobState) -> bool:
    """Whether readers surely see nothing of a job: its protocol shows nothing before the commit, and that has not begun
    to move files. Then what stands where its files are to be is somebody else's, and may count."""
    if state.phase not in (None, Phase.CLAIMED, Phase.REFUSED) or state.problem:
        return False
    try:
        job = await with_own_protocol(dataclasses.replace(run, layout=state.layout), state.record)
        return bool(job.protocol.attributes.committed_invisible)
    except OptionError:  # no plugin here offers it
        return False


def is_of_open_job(run: JobRun, status: FileStatus, identity: str, file: CommittedFile | None) -> bool:
    """Whether the file at a path that an uncommitted job's manifest names is that job's, and not what it will replace,
    or a committed job's that was there before. Where the manifest has no identity, nobody can tell, unless a list
    names the file that is there."""
    if file is not None and run.store.same_identity(file.identity, status.identity):
        return False
    return run.store.same_identity(identity, status.identity) if identity else file is None


async def saved_by(run: JobRun, layout: JobLayout, doubts: list[str]) -> set[tuple[str, str]]:
    """The paths and identities of all files that the manifests of a job's task attempts name, of every attempt at
    it."""
    targets: set[tuple[str, str]] = set()
    for each in await every_attempt(dataclasses.replace(run, layout=layout)):
        below = await below_root_of(run, each)
        for path, content in (await saved_contents(run, each)).items():
            if content is None:
                continue
            try:
                files = peek_manifest(content, name=path).files
                targets |= {(below.relative(entry.target), entry.identity) for entry in files}
            except (LockgateError, PathError) as error:
                doubts.append(f"a manifest of job {layout.job_id} cannot be read: {error.what}")
    return targets


async def nonces_of_announced(run: JobRun, open_jobs: Sequence[JobState], doubts: list[str]) -> dict[str, set[str]]:
    """The nonces of every attempt at those of the jobs whose files are known by their names from the first byte on."""
    found: dict[str, set[str]] = {}
    for state in open_jobs:
        for layout in await every_attempt(dataclasses.replace(run, layout=state.layout)):
            try:
                marker = await read_marker_of(run, layout)
            except StoreError:
                raise
            except LockgateError as error:
                doubts.append(f"the marker of job {state.job_id} cannot be read: {error.what}")
                continue
            protocol = run.hooks.protocols().get(str(marker.options.get("protocol"))) if marker else None
            if marker is not None and protocol is not None and protocol.announces_files:
                found.setdefault(state.job_id, set()).add(marker.nonce)
    return found

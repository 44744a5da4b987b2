"""Which files of a destination are those of jobs that have not committed: by their manifests, and by tags in names. And
which are there no more but by name: those that a committed job replaces, and has not come to delete."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

from lockgate.engine.inspection.list_jobs import JobState, JobStatus
from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.manifests.saved_manifests import saved_contents
from lockgate.engine.record.ended_jobs import is_known_committed
from lockgate.engine.record.marker import read_marker_of, readable_marker
from lockgate.engine.record.own_protocol import with_own_protocol
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.recorded_options import as_recorded
from lockgate.engine.record.replaced_lists import read_replaced
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import LockgateError, OptionError, OutcomeUnknown, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout
from lockgate.model.manifest import peek_manifest
from lockgate.model.phases import Phase
from lockgate.model.record import digest_of
from lockgate.model.summary import CommittedFile, Summary


async def has_committed(run: JobRun, state: JobState, last: Summary | None) -> bool:
    """Whether a job has committed, by its record, by the last `_SUCCESS`, or by what shows that its own was there."""
    if state.phase is Phase.COMMITTED or state.status is JobStatus.COMMITTED:
        return True
    if last is None or state.job_id != last.job_id:
        return await _has_published(run, state)
    # The id may have been used before, for another transaction.
    marker = await readable_marker(run, state.layout)
    return marker is None or last.lockgate is None or marker.options.get("txn_id", "") in ("", last.lockgate.txn_id)


async def _has_published(run: JobRun, state: JobState) -> bool:
    """Whether a job has passed its commit point, the rename of `_SUCCESS`, and its record does not say so: its driver
    died in between, or has not come to that. Another job's may stand in the place of that `_SUCCESS` by now."""
    if state.phase is not Phase.PUBLISHING or state.record is None:
        return False
    own = dataclasses.replace(run, layout=state.layout, options=as_recorded(run.options, state.record))
    nonce = state.record.summary_nonce
    try:
        if not own.commits_by_success:
            return False
        if await is_known_committed(own):
            return True
        if await own.protocol.is_waiting(own, nonce) or await own.protocol.is_revoked(own, nonce):
            return False
    except OptionError:  # no plugin here offers its protocol
        return False
    # The record is looked at last: it says that a job was undone before what was revoked is deleted.
    now = await read_record(own)
    if now is None:
        return await is_known_committed(own)
    return now.phase in (Phase.PUBLISHING, Phase.COMMITTED)


async def still_to_be_deleted(
    run: JobRun, state: JobState, found: Mapping[str, FileStatus], doubts: list[str]
) -> Iterable[str]:
    """Of the files that were found, those that a committed job replaces, and has not deleted: where nothing is set
    aside they go after the commit point, and stay where a driver dies before it has come to them. A file of the job's
    own is none of them, though it may have taken the name of one that was equal."""
    record = state.record
    if record is None or state.phase is not Phase.COMMITTED or not record.set_aside_digest:
        return ()
    of_job = dataclasses.replace(run, layout=state.layout, options=as_recorded(run.options, record))
    try:
        replaced = (await read_replaced(of_job, record.set_aside_nonce, record.set_aside_digest)).files
    except OutcomeUnknown:
        # The list goes once all that it names is gone.
        if not await is_known_committed(of_job) and await read_record(of_job) is not None:
            doubts.append(
                f"job {state.job_id} has committed, and the list of what it replaces is gone: somebody has deleted it, "
                "and some of that may be there still"
            )
        return ()
    # Only of attempts that count: an old file whose name another attempt was to give goes all the same.
    counted = {pin.digest for pin in record.pins}
    own = {path for path, _ in await saved_by(run, state.layout, doubts, counted)}
    return [
        aside.path
        for aside in replaced
        if (there := found.get(aside.path)) is not None
        and aside.path not in own
        and run.store.same_identity(aside.identity, there.identity)
    ]


async def shows_nothing_yet(run: JobRun, state: JobState) -> bool:
    """Whether readers surely see nothing of a job: its protocol shows nothing before the commit, and that has not begun
    to move files. Then what stands where its files are to be is somebody else's, and may count."""
    if state.status is JobStatus.RECORD_LOST or state.problem:
        return False  # it has no phase because nothing can be read that says it
    if state.phase not in (None, Phase.CLAIMED, Phase.REFUSED):
        return False
    try:
        job = await with_own_protocol(dataclasses.replace(run, layout=state.layout), state.record)
        return bool(job.protocol.attributes.committed_invisible)
    except OptionError:  # no plugin here offers it
        return False


def is_of_open_job(run: JobRun, status: FileStatus, identity: str, file: CommittedFile | None) -> bool:
    """Whether the file at a path that an uncommitted job's manifest names is that job's, and not what it will replace,
    or a committed job's that was there before. Where the manifest has no identity, it is taken for that job's, unless a
    list names the very file that is there."""
    if file is not None and run.store.same_identity(file.identity, status.identity):
        return False
    return run.store.same_identity(identity, status.identity) if identity else True


async def saved_by(
    run: JobRun, layout: JobLayout, doubts: list[str], counted: Collection[str] | None = None
) -> set[tuple[str, str]]:
    """The paths and identities of all files that the manifests of a job's task attempts name, of every attempt at
    it; or, where they are given, the manifests of these digests only."""
    targets: set[tuple[str, str]] = set()
    for each in await every_attempt(dataclasses.replace(run, layout=layout)):
        below = await below_root_of(run, each)
        for path, content in (await saved_contents(run, each)).items():
            if counted is not None and digest_of(content) not in counted:
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

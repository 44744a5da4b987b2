"""Task attempts that were aborted: each has a tombstone, and its manifest never counts."""

from __future__ import annotations

from typing import Any

import msgspec

from lockgate.engine.record.ended_jobs import is_committed_by_any_sign, says_committed
from lockgate.engine.record.marker import is_anothers, read_marker, read_marker_of
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import CommitFenced, FileMissing
from lockgate.model.layout import TaskAttempt
from lockgate.model.manifest import MARKER
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord
from lockgate.model.undecodable import UNDECODABLE

HOLDS_ITS_PINS = frozenset({Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})
"""The phases in which it counts what became of a pinned attempt's staged files."""


async def bury(run: JobRun, attempt: TaskAttempt) -> bool:
    """Leave the tombstone of an attempt. It is written before the record is read, and a driver looks for tombstones
    once its claim is written: of the two, one sees the other. A job that is over needs none: it would be a file that
    brings the job's directory back. False: another job of its id has been set up since, and what is there under the
    attempt's names is not the attempt's.

    Raises:
        CommitFenced: a job commit that has not ended has pinned the attempt.
    """
    tombstone = run.layout.aborted(attempt.task_attempt_id)
    marker = await read_marker_of(run, run.layout)
    if marker is not None and is_anothers(run, marker.nonce):
        return False
    await _refuse_if_pinned(run, attempt)
    if marker is None:
        return True
    try:
        await run.store.write_file(tombstone, attempt.task_id.encode())
        marker, _ = await both(read_marker(run), _refuse_if_pinned(run, attempt))
    except FileMissing:
        return True
    except CommitFenced:
        await run.store.delete_files([tombstone])
        raise
    if marker is None:
        await run.store.delete_files([tombstone])
    return True


async def _refuse_if_pinned(run: JobRun, attempt: TaskAttempt) -> None:
    record = await read_record(run)
    if record is not None and record.phase in HOLDS_ITS_PINS and is_pinned(run, record, attempt):
        raise CommitFenced(
            f"{attempt.task_attempt_id} is part of a job commit, and cannot be aborted: job {record.job_id} is held by "
            f"{record.holder}, in phase {record.phase.value}",
            where=run.url(run.layout.task_directory(attempt.task_attempt_id)),
            next_step="nothing of the attempt was deleted; it ends with its job",
        )


def is_pinned(run: JobRun, record: CommitRecord, attempt: TaskAttempt) -> bool:
    """Whether that job commit counts this attempt: by its receipt, or since it has found its manifest."""
    return any(
        pin.job_attempt == run.layout.job_attempt
        and pin.task_id == attempt.task_id
        and pin.task_attempt_id in ("", attempt.task_attempt_id)
        for pin in record.pins
    )


async def may_count(run: JobRun, attempt: TaskAttempt) -> bool:
    """Whether the job has committed with this attempt, or may have: then nothing that it wrote is to be taken out.
    Asked by protocols whose files are in place before the job commits."""
    record = await read_record(run)
    if record is None:
        return await read_marker(run) is None and await is_committed_by_any_sign(run)
    return is_pinned(run, record, attempt) and await says_committed(run, record)


class _Owner(msgspec.Struct):
    taskAttemptID: str = ""
    extraData: dict[str, Any] | None = None


def owner_of(content: bytes) -> str | None:
    """The task attempt that wrote a manifest, None where that cannot be read."""
    try:
        return msgspec.json.decode(content, type=_Owner).taskAttemptID or None
    except UNDECODABLE:
        return None


def marker_in(content: bytes) -> str:
    """The nonce of the job that a manifest is of, empty where nothing says it."""
    try:
        return str((msgspec.json.decode(content, type=_Owner).extraData or {}).get(MARKER, ""))
    except UNDECODABLE:
        return ""

"""The commit record on the store: claim, advance, take over.

Fenced: every version is created if absent, so of two drivers exactly one gets each version, and a driver that has
lost the job finds out at its next step, before it does anything that its phase did not allow.
"""

from __future__ import annotations

import asyncio
from typing import Any

from lockgate.engine.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, CommitFenced, FileExists, FileMissing, JobNotFound
from lockgate.model.layout import JobLayout, record_sequence
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, decode_record, encode_record

RECORD_BYTES_MAX = 256 << 20

CREATE_TRIES = 5
CREATE_RETRY_SECONDS = 0.1
"""How often a version is created, and the wait between, while its answers are lost."""


async def read_record(run: JobRun, layout: JobLayout | None = None) -> CommitRecord | None:
    """The newest version of the record, None where the job commit has not begun; of `layout`'s job, or of this."""
    layout = layout or run.layout
    newest = await _newest(run, layout)
    return None if newest is None else await _read(run, layout, newest)


async def _newest(run: JobRun, layout: JobLayout) -> int | None:
    found: list[int] = []
    async for page in run.store.list_directory(layout.attempt_directory):
        sequences = (record_sequence(status.path.rpartition("/")[2]) for status in page)
        found += [sequence for sequence in sequences if sequence is not None]
    return max(found, default=None)


async def _read(run: JobRun, layout: JobLayout, sequence: int) -> CommitRecord | None:
    path = layout.commit_record(sequence)
    (content,) = await run.store.read_files([path], bytes_max=RECORD_BYTES_MAX)
    return None if content is None else decode_record(content, name=run.url(path))


_AS_ONE_ACT = frozenset({Capability.REAL_DIRECTORIES, Capability.CONSTANT_TIME_DIRECTORY_DELETE})
"""Where a job's directory goes with all its records at once."""


async def has_predecessor(run: JobRun, record: CommitRecord) -> bool:
    """Whether the version before this one is there: only the cleanup of a job that is over deletes it."""
    return record.sequence == 0 or await _read(run, run.layout, record.sequence - 1) is not None


class RecordLog:
    """One driver's hold on the record. `now` is the version that it created last; `is_past_commit_point` says that
    the job is committed for certain, even if no version could say so."""

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self._holder = run.runtime.holder()
        self.now: CommitRecord | None = None
        self.is_past_commit_point = False

    @property
    def nonce(self) -> str:
        """What tells this driver from every other."""
        return self._holder.nonce

    @property
    def phase(self) -> Phase | None:
        """The phase of the version that this driver created last; None before it holds any."""
        return None if self.now is None else self.now.phase

    async def claim(self, phase: Phase, earlier: CommitRecord | None, **fields: Any) -> CommitRecord:
        """Create the record, or, where an earlier commit was refused before it moved anything, its next version.

        `earlier` is the newest version as `read_record` has found it.

        Raises:
            CommitFenced: somebody else holds the job; the error names them.
            JobNotFound: the job's directory is gone.
        """
        run = self._run
        if earlier is not None:
            if earlier.phase is not Phase.REFUSED:
                raise fenced(run, earlier)
            return await self._succeed(earlier, phase, **fields)
        return await self._create(
            CommitRecord(
                run.layout.job_id,
                run.layout.job_attempt,
                0,
                phase,
                self._holder,
                run.runtime.wall(),
                **fields,
            ),
            None,
        )

    async def take_over(self, record: CommitRecord) -> CommitRecord:
        """Succeed another holder in the same phase.

        Raises:
            CommitFenced: the record has moved on since it was read.
        """
        return await self._succeed(record, record.phase)

    async def advance(self, phase: Phase, **changes: Any) -> CommitRecord:
        """Go on to the next phase.

        Raises:
            CommitFenced: somebody took the job over; this driver must not touch the destination any more.
        """
        assert self.now is not None, "advance follows claim or take_over"
        return await self._succeed(self.now, phase, **changes)

    async def _succeed(self, before: CommitRecord, phase: Phase, **changes: Any) -> CommitRecord:
        return await self._create(before.succeeded_by(phase, self._holder, self._run.runtime.wall(), **changes), before)

    async def _create(self, record: CommitRecord, predecessor: CommitRecord | None) -> CommitRecord:
        run = self._run
        path = run.layout.commit_record(record.sequence)
        try:
            await self._create_once(path, record)
        except FileMissing as error:
            raise JobNotFound(
                f"job {run.layout.job_id} is over: its directory is gone",
                where=run.url(run.layout.attempt_directory),
                next_step="it was aborted, or finished, by somebody else; nothing was touched by this driver",
            ) from error
        before, self.now = self.now, record
        try:
            await self._check_head(record, predecessor)
        except CommitFenced:
            self.now = before
            raise
        run.emit("phase", phase=record.phase.value)
        run.log.info("commit record", phase=record.phase.value, sequence=record.sequence)
        return record

    async def _create_once(self, path: str, record: CommitRecord) -> None:
        run = self._run
        for _ in range(CREATE_TRIES):
            try:
                await run.store.create_file(path, encode_record(record))
                return
            except FileExists:
                found = await _read(run, run.layout, record.sequence)
                if not _is(found, record):
                    raise fenced(run, found) from None
                return
            except AnswerLost as error:
                # It may be created yet. Our own next try either creates it or finds who did.
                lost = error
                await asyncio.sleep(CREATE_RETRY_SECONDS)
        raise lost

    async def _check_head(self, record: CommitRecord, predecessor: CommitRecord | None) -> None:
        # A driver that slept until its job was cleaned up could still create a version: where directories are not
        # real, or a late task attempt's data has brought them back, or where a directory does not go as one act. Then
        # the version before it is gone, or is that of another late driver, which has begun a record of its own there.
        # Where records go one by one, the newest goes last, so either that is a later one, or the one before is gone;
        # as long as the one before is there, so is the newest: hence the listing comes first.
        run = self._run
        newest: int | None = record.sequence
        if not run.store.capabilities >= _AS_ONE_ACT:
            newest = await _newest(run, run.layout)
        if predecessor is not None:
            found = await _read(run, run.layout, predecessor.sequence)
            if found is None:
                await run.store.delete_files([run.layout.commit_record(record.sequence)])
            if not _is(found, predecessor):
                raise fenced(run, found)
        if newest != record.sequence:
            raise fenced(run, await read_record(run))


def _is(found: CommitRecord | None, version: CommitRecord) -> bool:
    return found is not None and found.holder.nonce == version.holder.nonce and found.phase is version.phase


def fenced(run: JobRun, record: CommitRecord | None) -> CommitFenced:
    """The error of a driver that does not, or does no longer, hold the job."""
    if record is None:
        return CommitFenced(
            f"job {run.layout.job_id} was ended by somebody else", where=run.url(run.layout.attempt_directory)
        )
    return CommitFenced(
        f"job {run.layout.job_id} is held by {record.holder}, in phase {record.phase.value}",
        where=run.url(run.layout.commit_record(record.sequence)),
        next_step=f"if that driver is dead: lockgate recover {run.store.url} {run.layout.job_id}",
    )

"""The commit record on the store: claim, advance, take over.

Fenced: every version is created if absent, so of two drivers exactly one gets each version, and a driver that has
lost the job finds out at its next step, before it does anything that its phase did not allow.

Every version names the one that it follows. A driver that slept while its job was undone, and set up again, may create
a version between those of the driver that holds the job now: it follows none of them, so nobody goes by it, and who
holds the job takes the next number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import msgspec

from lockgate.engine.record.marker import is_marker_of, readable_marker
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    CommitFenced,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout, parse_attempt_directory, record_sequence
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, decode_record, encode_record

T = TypeVar("T")

RECORD_BYTES_MAX = 256 << 20

RENEWED = frozenset({Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK})
"""The phases in which a driver is at work, so that its record is renewed."""

RENEWALS_PER_ALIVE = 4
"""How often a driver renews the record in `alive_seconds`, the time after which others may think it dead."""

RENEW_SECONDS_MIN = 5.0

STEPS = frozenset({Phase.MOVING, Phase.PUBLISHING, Phase.COMMITTED})
"""What a driver that holds its job goes on to. These versions are created in as few requests as the store has for it,
although one that was asleep until its job was over may bring the job's directory back by it: the look at the version
before tells it that nobody goes by what it has created."""

CREATE_TRIES = 5
CREATE_RETRY_SECONDS = 0.1
"""How often a version is created, and the wait between, while its answers are lost."""


async def read_record(run: JobRun, layout: JobLayout | None = None) -> CommitRecord | None:
    """The newest version of the record, None where the job commit has not begun; of `layout`'s job, or of this."""
    return (await look_at_job(run, layout))[0]


async def record_in_force(run: JobRun, layout: JobLayout | None = None) -> CommitRecord | None:
    """The same; None also where that is of an earlier setup of the id (`is_of_earlier_setup`)."""
    record = await read_record(run, layout)
    return None if record is None or await is_of_earlier_setup(run, record, layout) else record


async def renewed_at(run: JobRun, layout: JobLayout, record: CommitRecord) -> float:
    """When a job's record was last renewed, in seconds since 1970: as the store dates its newest version, like every
    other sign of life. The clock of the driver that wrote it may be wrong by hours, and counts only where the store
    does not tell."""
    (status,) = await run.store.stat_files([layout.commit_record(record.sequence)])
    return status.modified if status is not None and status.modified else record.updated


async def look_at_job(run: JobRun, layout: JobLayout | None = None) -> tuple[CommitRecord | None, int]:
    """The newest version of the record, and the number of the newest attempt at the job, -1 where there is none."""
    layout = layout or run.layout
    sequences, attempt = await _versions(run, layout)
    return await _head(run, layout, sequences), attempt


def refuse_superseded(run: JobRun, newest_attempt: int) -> None:
    """Make sure that no later attempt at the job has begun: it alone ends the job.

    Raises:
        CommitFenced: one has.
    """
    if newest_attempt > run.layout.job_attempt:
        raise CommitFenced(
            f"attempt {run.layout.job_attempt} at job {run.layout.job_id} is over: attempt {newest_attempt} has begun",
            where=run.url(run.layout.job_directory),
            next_step=f"attempt {newest_attempt} commits or aborts the job; it can take over what this one's tasks "
            "committed (Job.committed)",
        )


async def _versions(run: JobRun, layout: JobLayout) -> tuple[list[int], int]:
    records: list[int] = []
    attempts: list[int] = []
    async for page in run.store.list_directory(layout.job_directory):
        for status in page:
            sequence = record_sequence(status.path.rpartition("/")[2])
            attempt = parse_attempt_directory(status.path)
            if sequence is not None:
                records.append(sequence)
            elif attempt is not None:
                attempts.append(attempt.job_attempt)
    return sorted(records), max(attempts, default=-1)


async def _head(run: JobRun, layout: JobLayout, sequences: Sequence[int]) -> CommitRecord | None:
    """The newest version that follows another; of those that are there."""
    for index in range(len(sequences) - 1, -1, -1):
        sequence, older = sequences[index], sequences[:index]
        paths = [layout.commit_record(each) for each in (sequence, *older[-1:])]
        contents = await run.store.read_files(paths, bytes_max=RECORD_BYTES_MAX)
        if contents[0] is None:
            continue
        record = decode_record(contents[0], name=run.url(paths[0]))
        if await _follows(run, layout, record, older, contents[-1]):
            return record
    return None


async def _follows(
    run: JobRun, layout: JobLayout, record: CommitRecord, older: Sequence[int], nearest: bytes | None
) -> bool:
    """Whether a version belongs to the record. `nearest` is the newest of the `older` ones. If none is there, cleanup
    has deleted them, and the newest goes last; and where only the one that it names is gone, the others were begun by
    the same holder, or it is another record that is there."""
    if record.follows is None or not older:
        return True
    if record.follows.sequence in older[:-1]:
        path = layout.commit_record(record.follows.sequence)
        (nearest,) = await run.store.read_files([path], bytes_max=RECORD_BYTES_MAX)
    if nearest is None:  # cleanup is under way
        return True
    try:
        found = decode_record(nearest, name="")
    except LockgateError:  # damaged: then nothing speaks against it
        return True
    if found.sequence != record.follows.sequence:
        return found.begun_by == record.begun_by
    return found.holder.nonce == record.follows.nonce


async def _read(run: JobRun, layout: JobLayout, sequence: int) -> CommitRecord | None:
    path = layout.commit_record(sequence)
    (content,) = await run.store.read_files([path], bytes_max=RECORD_BYTES_MAX)
    return None if content is None else decode_record(content, name=run.url(path))


_AS_ONE_ACT = frozenset({Capability.REAL_DIRECTORIES, Capability.CONSTANT_TIME_DIRECTORY_DELETE})
"""Where a job's directory goes with all its records at once."""


async def has_predecessor(run: JobRun, record: CommitRecord, layout: JobLayout | None = None) -> bool:
    """Whether the version before this one is there: only the cleanup of a job that is over deletes it. Of `layout`'s
    job, or of this."""
    return record.follows is None or await _read(run, layout or run.layout, record.follows.sequence) is not None


async def is_of_earlier_setup(run: JobRun, record: CommitRecord, layout: JobLayout | None = None) -> bool:
    """Whether a record is of a driver that slept while its job was ended, and has woken where the id is set up again:
    the marker there is another, and the record has moved nothing, being only claimed, or refused, or following no
    version that is there. (The other may be at another attempt at the job: then there is no marker at this one's.) Of
    `layout`'s job, or of this. Nobody ends the job by it: its directory is the other's, who goes on from it."""
    if not record.marker or record.part_of:
        return False
    layout = (layout or run.layout).at_attempt(record.job_attempt)
    marker = await readable_marker(run, layout)
    if marker is None:
        _, newest = await _versions(run, layout)
        marker = (
            await readable_marker(run, layout.at_attempt(newest)) if newest not in (-1, record.job_attempt) else None
        )
    if marker is None or not marker.nonce or is_marker_of(marker, record):
        return False
    return record.phase in (Phase.CLAIMED, Phase.REFUSED) or not await has_predecessor(run, record, layout)


def is_begun_anew(record: CommitRecord | None) -> bool:
    """Whether the record of a job that is over, without having committed, says that somebody is at work: the id was run
    again, while the one who asks slept."""
    return record is not None and record.phase in (Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING)


async def was_alone(run: JobRun, record: CommitRecord) -> bool:
    """Whether nobody can have come to what a job touches since it had begun: none that must be alone there has lost its
    record for a while, which shows by its first version. Versions stay until the job is over."""
    if not record.ground.exclusive:
        return True
    try:
        first = await _read(run, run.layout, 0)
    except StoreError:
        raise
    except LockgateError:  # damaged: it is there, but nobody knows whether it is the first of these
        return False
    return first is not None and first.begun_by == record.begun_by


def is_under_way(run: JobRun, record: CommitRecord) -> bool:
    """Whether files may be on their way by a version of which somebody has deleted the one before: its job attempt is
    still the one that is there, whose marker a cleanup deletes first."""
    return bool(record.marker) and record.marker == run.marker and record.phase in (Phase.MOVING, Phase.PUBLISHING)


async def holders_of(run: JobRun, record: CommitRecord) -> set[str]:
    """The nonces, as they are in names, of all that have held this record."""
    holders = {record.holder.nonce[:16]}
    version: CommitRecord | None = record
    while version is not None and version.follows is not None:
        version = await _read(run, run.layout, version.follows.sequence)
        if version is not None:
            holders.add(version.holder.nonce[:16])
    return holders


class RecordLog:
    """One driver's hold on the record. `now` is the version that it created last; `is_past_commit_point` says that
    the job is committed for certain, even if no version could say so; `is_in_doubt`, that nobody can tell whether the
    version after `now` was created."""

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self._holder = run.runtime.holder()
        self._turn = asyncio.Lock()
        self.now: CommitRecord | None = None
        self.is_past_commit_point = False
        self.is_in_doubt = False
        self._is_committing = False
        self._is_checked = True
        self._before: CommitRecord | None = None

    @property
    def nonce(self) -> str:
        """What tells this driver from every other."""
        return self._holder.nonce

    @property
    def phase(self) -> Phase | None:
        """The phase of the version that this driver created last; None before it holds any."""
        return None if self.now is None else self.now.phase

    async def is_held(self) -> bool:
        """Whether the newest version on the store is this driver's, and no remainder: one that it has created after
        its job was over, being cancelled before it could look, has no predecessor.

        Raises:
            LockgateError: it cannot be read.
        """
        found = await read_record(self._run)
        return found is not None and found.holder.nonce == self.nonce and await has_predecessor(self._run, found)

    async def refuse_unless_here(self) -> None:
        """Make sure that the newest version on the store is the one that this driver created last, and that the one
        before it is there: then nobody has ended the job, and deleted its directory, before this was asked.

        Raises:
            CommitFenced: it is not so.
            LockgateError: it cannot be read.
        """
        async with self._turn:
            now = self.now
            assert now is not None, "it follows claim or take_over"
            found, is_followed = await both(read_record(self._run), has_predecessor(self._run, now))
        if not is_followed or not _is(found, now):
            raise fenced(self._run, found)

    async def claim(
        self, phase: Phase, earlier: CommitRecord | None, *, marker_seen: bool = False, **fields: Any
    ) -> CommitRecord:
        """Create the record, or, where an earlier commit was refused before it moved anything, its next version.

        `earlier` is the newest version as `read_record` has found it. `marker_seen`: the job was there just now, and
        the caller looks afterwards whether it still is (`check_marker`).

        Raises:
            CommitFenced: somebody else holds the job; the error names them.
            JobNotFound: the job's directory is gone.
        """
        run = self._run
        # One that follows nothing that is there is what a late driver has created after the job was over, or undone.
        if earlier is not None and await has_predecessor(run, earlier):
            anew = await is_of_earlier_setup(run, earlier)
            if not anew and earlier.phase is not Phase.REFUSED:
                raise fenced(run, earlier)
            return await self._succeed(earlier, phase, anew=anew, job_attempt=run.layout.job_attempt, **fields)
        if earlier is not None and is_under_way(run, earlier) and not await is_of_earlier_setup(run, earlier):
            raise fenced(run, earlier)
        return await self._create(
            CommitRecord(
                run.layout.job_id,
                run.layout.job_attempt,
                0,
                phase,
                self._holder,
                run.runtime.wall(),
                begun_by=self.nonce,
                **fields,
            ),
            None,
            in_few=marker_seen,
        )

    async def take_over(self, record: CommitRecord) -> CommitRecord:
        """Succeed another holder in the same phase.

        Raises:
            CommitFenced: the record has moved on since it was read.
        """
        return await self._succeed(record, record.phase)

    async def advance(self, phase: Phase, *, look: bool = True, **changes: Any) -> CommitRecord:
        """Go on to the next phase. Without `look` it is left to the next version to look whether this one belongs to
        the record: only where nothing depends on it that another act does not decide.

        Raises:
            CommitFenced: somebody took the job over; this driver must not touch the destination any more.
        """
        # A renewal that is refused would end the work, while that finds out whether the commit point was passed.
        self._is_committing = phase is Phase.COMMITTED
        async with self._turn:
            assert self.now is not None, "advance follows claim or take_over"
            return await self._succeed(self.now, phase, look=look, **changes)

    async def while_renewing(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work of a job that this driver holds, and renew the record meanwhile, so that others see that its
        driver lives, however long the work takes.

        Raises:
            CommitFenced, JobNotFound: somebody has taken the job over; the work was cancelled.
        """
        body, renewal = asyncio.ensure_future(work), asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait([body, renewal], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _cancel(body, renewal)
            raise
        if body.done():
            await _cancel(renewal)
            return body.result()
        await _cancel(body)
        renewal.result()
        raise AssertionError("renewal ends by an error only")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(max(RENEW_SECONDS_MIN, self._run.options.alive_seconds / RENEWALS_PER_ALIVE))
            async with self._turn:
                before = self.now
                over = self._is_committing or self.is_past_commit_point
                if before is None or over or before.phase not in RENEWED:
                    continue
                try:
                    await self._succeed(before, before.phase)
                except StoreError as error:
                    self._run.log.info("the commit record could not be renewed", error=str(error))

    async def _succeed(
        self, before: CommitRecord, phase: Phase, *, look: bool = True, anew: bool = False, **changes: Any
    ) -> CommitRecord:
        if not self._is_checked and (look or phase is not Phase.COMMITTED):
            # This driver has not looked, or could not, when it had created `now`; nor may it go on from there unseen.
            assert self.now is not None
            await self._check_head(self.now, self._before)
            self._is_checked = True
        skipped = 0
        while True:
            taken_over = _nothing_but_its_number(before) if anew else before
            record = taken_over.succeeded_by(phase, self._holder, self._run.runtime.wall(), **changes)
            record = msgspec.structs.replace(record, sequence=record.sequence + skipped)
            in_few = phase in STEPS and phase is not before.phase
            try:
                return await self._create(record, before, in_few=in_few, look=look)
            except _OwnVersion as own:
                # A step of ours that was cancelled after its request had gone out, and before it could look.
                if own.record.follows != record.follows:
                    raise fenced(self._run, own.record) from None
                await self._check_head(own.record, before)
                before, skipped = own.record, 0
                self.now = before
            except _Taken as taken:
                # By one who follows another version than the newest, which is still what this driver goes on from?
                if not _is(await _read(self._run, self._run.layout, before.sequence), before):
                    raise fenced(self._run, taken.version) from None
                skipped += 1

    async def _create(
        self, record: CommitRecord, predecessor: CommitRecord | None, *, in_few: bool = False, look: bool = True
    ) -> CommitRecord:
        run = self._run
        path = run.layout.commit_record(record.sequence)
        try:
            await self._create_once(path, record, in_few=in_few)
        except FileMissing as error:
            raise JobNotFound(
                f"job {run.layout.job_id} is over: its directory is gone",
                where=run.url(run.layout.attempt_directory),
                next_step="it was aborted, or finished, by somebody else; nothing was touched by this driver",
            ) from error
        before, self.now = self.now, record
        self._is_checked, self._before = False, predecessor
        if look:
            try:
                await self._check_head(record, predecessor)
            except CommitFenced:
                self.now = before
                raise
            self._is_checked = True
        run.emit("phase", phase=record.phase.value)
        run.log.info("commit record", phase=record.phase.value, sequence=record.sequence)
        return record

    async def _create_once(self, path: str, record: CommitRecord, *, in_few: bool) -> None:
        run = self._run
        create = run.store.create_then_look if in_few else run.store.create_file
        lost: AnswerLost | None = None
        for _ in range(CREATE_TRIES):
            try:
                await self._create_or_tell(create, path, record)
                return
            except AnswerLost as error:
                # It may be created yet. Our own next try either creates it or finds who did.
                lost = error
                await asyncio.sleep(CREATE_RETRY_SECONDS)
            except StoreUnavailable as error:
                # This try has surely not created it; one before may have.
                if lost is None:
                    raise
                self.is_in_doubt = True
                raise lost from error
        assert lost is not None
        self.is_in_doubt = True
        raise lost

    async def _create_or_tell(
        self, create: Callable[[str, bytes], Awaitable[FileStatus]], path: str, record: CommitRecord
    ) -> None:
        run = self._run
        try:
            await create(path, encode_record(record))
        except FileExists:
            found = await _read(run, run.layout, record.sequence)
            if _is(found, record):
                return
            if found is not None and found.holder.nonce == self.nonce:
                raise _OwnVersion(found) from None
            if found is not None and record.follows is not None and found.follows != record.follows:
                raise _Taken(found) from None
            raise fenced(run, found) from None

    async def _check_head(self, record: CommitRecord, predecessor: CommitRecord | None) -> None:
        # A driver that slept until its job was cleaned up could still create a version: where directories are not
        # real, or a late task attempt's data has brought them back, or where a directory does not go as one act. Then
        # the version before it is gone, or is that of another late driver, which has begun a record of its own there.
        # Where records go one by one, the newest goes last, so either that is a later one, or the one before is gone;
        # as long as the one before is there, so is the newest: hence the listing comes first.
        run = self._run
        # What was created is left: a number that is free again could be had twice.
        sequences = [record.sequence]
        if not run.store.capabilities >= _AS_ONE_ACT:
            sequences, _ = await _versions(run, run.layout)
        if predecessor is not None:
            found = await _read(run, run.layout, predecessor.sequence)
            if not _is(found, predecessor):
                raise fenced(run, found)
        if sequences[-1:] != [record.sequence] and not _is(newest := await read_record(run), record):
            raise fenced(run, newest)


async def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _nothing_but_its_number(record: CommitRecord) -> CommitRecord:
    """A version to go on from, of which nothing is taken over. Its driver finds the next number taken, if it lives."""
    return CommitRecord(
        record.job_id,
        record.job_attempt,
        record.sequence,
        record.phase,
        record.holder,
        record.updated,
        follows=record.follows,
        begun_by=record.begun_by,
    )


def _is(found: CommitRecord | None, version: CommitRecord) -> bool:
    return found is not None and encode_record(found) == encode_record(version)


class _Taken(Exception):
    """The number is taken by a version that follows another than this driver's does."""

    def __init__(self, version: CommitRecord) -> None:
        super().__init__()
        self.version = version


class _OwnVersion(Exception):
    """The version is taken by this driver itself."""

    def __init__(self, record: CommitRecord) -> None:
        super().__init__()
        self.record = record


def fenced(run: JobRun, record: CommitRecord | None) -> CommitFenced:
    """The error of a driver that does not, or does no longer, hold the job."""
    if record is None:
        return CommitFenced(
            f"job {run.layout.job_id} was ended by somebody else",
            where=run.url(run.layout.attempt_directory),
            next_step=f"{command('jobs', run.store.url)} shows what is there; if it was not committed, run it again",
        )
    if record.phase is Phase.COMMITTED:
        return CommitFenced(
            f"job {run.layout.job_id} has committed, by {record.holder}",
            where=run.url(run.layout.commit_record(record.sequence)),
            next_step=f"{command('recover', run.store.url, run.layout.job_id)} cleans up after a driver that is dead",
        )
    recover = command("recover", run.store.url, run.layout.job_id)
    if record.given_up and record.phase is Phase.ROLLING_BACK:
        return CommitFenced(
            f"job {run.layout.job_id} waits to be recovered: an undoing of it, or an abort, has failed, and "
            f"{record.holder} has given it up",
            where=run.url(run.layout.commit_record(record.sequence)),
            next_step=f"once what it failed for is mended, {recover} goes on",
        )
    if record.given_up:
        return CommitFenced(
            f"job {run.layout.job_id} waits to be recovered: its commit has failed in phase {record.phase.value}, and "
            f"{record.holder} has given it up",
            where=run.url(run.layout.commit_record(record.sequence)),
            next_step=f"{recover} --undo restores the destination; {recover} finishes the job, where that is possible",
        )
    return CommitFenced(
        f"job {run.layout.job_id} is held by {record.holder}, in phase {record.phase.value}",
        where=run.url(run.layout.commit_record(record.sequence)),
        next_step=f"if that driver is dead: {recover}; if it lives, and its commit has failed: "
        f"{recover} --undo --force",
    )

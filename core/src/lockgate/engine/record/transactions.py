"""Exactly once by transaction id: of all jobs that are given one id, one takes effect.

A workflow that retries, or a stream that restarts, writes its output again as another job with the same id. The
second finds either the outcome of the first (its summary, kept in `_lockgate/txn/`), or a claim that names the
first's job. A job moves nothing before the newest claim names it, and a claim is succeeded only when the claimed job
has not committed and never will:

- Its commit record is `rolled-back`, or gone with its directory and no outcome was left (the outcome is written before
  the directory goes, so it is looked for after the record): nothing can follow either.
- It was refused. It may be committed again, so that is no end: whoever comes next rolls it back first, by its record,
  which of the two drivers one gets. The other finds that it was ended, or waits.
- It died on its way: whoever comes second finishes it.

Ids of the form `series/number`, as a stream's batches have, can be forgotten: a file then says up to which number the
series is done, before the outcomes go. So a job that was claimed long ago, and is only now recovered, is known as one
of the past. The outcome is looked for before that file.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX, read_summary, success_content
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    FileExists,
    LockgateError,
    StoreError,
)
from lockgate.model.layout import (
    OUTCOME_SUFFIX,
    SUCCESS,
    TRANSACTIONS,
    JobLayout,
    claim_sequence,
    forgotten_number,
    transaction_claim,
    transaction_outcome,
    transactions_forgotten,
)
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.summary import LockgateSummary, Summary, decode_summary, encode_summary
from lockgate.model.undecodable import UNDECODABLE
from lockgate.model.undone import Undone

POLL_SECONDS = 0.2
FINISH_AFTER_SECONDS = 10.0
"""A job of the same transaction id whose record has not moved for so long is finished by the one that waits for it.
That is safe even if its driver lives: it will find that it was fenced, and return the same summary."""

FORGOTTEN_AT_ONCE_MAX = 10_000
"""So many outcomes before the newest one to forget are looked for; each was forgotten in its turn before."""

End = Callable[[JobLayout], Awaitable[Undone]]
"""Ends another job: finishes it, or its undoing; one that was refused is rolled back. Handed in by recovery. The
answer: what an undoing could not make as it was."""

_NUMBERED = re.compile(r"(.+)/(0|[1-9][0-9]{0,17})", re.DOTALL)
"""A number as `forget_outcomes` writes it: `07` and digits of other scripts are other ids, of no series."""


class Claim(Struct, frozen=True):
    """Which job attempt is to commit a transaction id."""

    txn_id: str
    job_id: str
    job_attempt: int
    prefix: str
    nonce: str

    @property
    def layout(self) -> JobLayout:
        """The claiming job's paths."""
        return JobLayout(self.job_id, self.job_attempt, self.prefix)


def digest_of_transaction(txn_id: str) -> str:
    """The SHA-256 under which a transaction id is kept: an id may hold any characters."""
    return digest_of(txn_id.encode())


async def known_outcome(run: JobRun) -> Summary | None:
    """The first summary of this run's transaction id, None where it has none or has not been committed.

    A driver that died after its commit point may not have kept it, and another committer may have deleted how a
    recoverer would know: then `_SUCCESS` says it, until the next commit. So it is kept now.
    """
    found, is_kept = await _told_outcome(run)
    if found is not None and not is_kept:
        await keep_outcome(run, found)
    return found


async def seen_outcome(run: JobRun) -> Summary | None:
    """The same for who only looks; of an id that was forgotten, too, a summary of a few words. Nothing is written."""
    if not run.options.txn_id:
        return None
    return (await _told_outcome(run))[0] or await _forgotten_outcome(run)


async def _told_outcome(run: JobRun) -> tuple[Summary | None, bool]:
    """The first summary, and whether it is kept."""
    if not run.options.txn_id:
        return None, False
    path = transaction_outcome(digest_of_transaction(run.options.txn_id))
    (outcome,), last = await both(run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX), success_content(run))
    if outcome is not None:
        return decode_summary(outcome, name=run.url(path)), True
    try:
        found = None if last is None else decode_summary(last, name=run.url(SUCCESS))
    except LockgateError:  # the empty `_SUCCESS` of another committer
        return None, False
    if found is None or found.lockgate is None or found.lockgate.txn_id != run.options.txn_id:
        return None, False
    return found, False


async def remember_outcome(run: JobRun) -> None:
    """Keep the outcome that `_SUCCESS` shows of this run's transaction id, unless it is kept, or was forgotten."""
    try:
        if await _forgotten_outcome(run) is None:
            await known_outcome(run)
    except StoreError:
        raise
    except LockgateError as error:  # damaged, which stops those who have this id, and nobody else
        run.log.warning("another job's outcome cannot be read", error=str(error))


async def has_outcome(run: JobRun) -> bool:
    """Whether an outcome is kept that says that this job has committed, of whatever transaction id."""
    for name in [name async for name in _names(run) if name.endswith(OUTCOME_SUFFIX)]:
        summary = await read_summary(run, f"{TRANSACTIONS}/{name}")
        if summary is not None and summary.job_id == run.layout.job_id:
            return True
    return False


async def has_begun(run: JobRun) -> bool:
    """Whether some job has committed this run's transaction id, or has claimed it."""
    if not run.options.txn_id:
        return False
    if await _claims(run, digest_of_transaction(run.options.txn_id)):
        return True
    return await known_outcome(run) is not None or await _forgotten_outcome(run) is not None


async def claim_transaction(run: JobRun, end: End) -> Summary | None:
    """Make this job the one that commits its transaction id; a summary: another job has, and this one must not.

    Raises:
        CommitFenced: another job of the same id is at work, and neither ended nor could be finished in
            `wait_seconds_max`.
        CommitRefused: another job of the same id was undone, and not all is as it was before it.
    """
    if not run.options.txn_id:
        return None
    digest = digest_of_transaction(run.options.txn_id)
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([TRANSACTIONS])
    deadline = run.runtime.tick() + run.options.wait_seconds_max
    while True:
        sequence, claim = await _newest_claim(run, digest)
        ours = claim is not None and _is_ours(run, claim)
        if claim is not None and not ours:
            outcome = await _await_end(run, claim, end, deadline)
            if outcome is not None:
                return outcome
        if not ours and not await _create_claim(run, digest, sequence + 1):
            continue
        # Claims are deleted once there is an outcome: it may have come, and been forgotten, between the look for
        # claims and our own.
        outcome = await known_outcome(run) or await _forgotten_outcome(run)
        if outcome is not None:
            await _delete_claims(run, digest)
        return outcome


def _is_ours(run: JobRun, claim: Claim) -> bool:
    """A job has one commit record, whichever of its attempts is committed."""
    return claim.layout.job_directory == run.layout.job_directory


async def keep_outcome(run: JobRun, summary: Summary) -> None:
    """Keep the first summary. Called after the commit point and before cleanup, by driver and recoverer alike."""
    txn_id = summary.lockgate.txn_id if summary.lockgate else ""
    if not txn_id:
        return
    digest = digest_of_transaction(txn_id)
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([TRANSACTIONS])
    try:
        await run.store.create_file(transaction_outcome(digest), encode_summary(summary))
    except FileExists:
        return
    await _delete_claims(run, digest)


async def forget_outcomes(run: JobRun, series: str, up_to: int) -> None:
    """Let go of the outcomes of `series/0` to `series/{up_to}`, such as those of a stream's batches long past. A job
    with one of these ids changes nothing from now on, whether it was committed or not."""
    digest = digest_of_transaction(series)
    names = {name async for name in _names(run)}
    marks = sorted(number for name in names if (number := forgotten_number(name, digest)) is not None)
    newest = marks[-1] if marks else -1
    if newest >= up_to:
        return
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([TRANSACTIONS])
    # Created, never replaced, and the highest counts: a driver that wakes up late cannot take it back.
    with contextlib.suppress(FileExists):
        await run.store.create_file(transactions_forgotten(digest, up_to), b"{}")
    numbers = range(max(newest + 1, up_to - FORGOTTEN_AT_ONCE_MAX), up_to + 1)
    outcomes = [transaction_outcome(digest_of_transaction(f"{series}/{number}")) for number in numbers]
    there = [path for path in outcomes if path.rpartition("/")[2] in names]
    for start in range(0, len(there), run.options.files_read_at_once):
        some = there[start : start + run.options.files_read_at_once]
        # The notes first: nothing else says which they are.
        await run.store.delete_files(await _notes_of(run, some))
        await run.store.delete_files(some)
    await run.store.delete_files([transactions_forgotten(digest, number) for number in marks])


async def _notes_of(run: JobRun, outcomes: Sequence[str]) -> list[str]:
    """Where the jobs that have committed with these outcomes have noted it. What cannot be read leaves its note to gc,
    which deletes it when it is old."""
    notes: list[str] = []
    contents = await run.store.read_files(outcomes, bytes_max=SUMMARY_BYTES_MAX)
    for path, content in zip(outcomes, contents, strict=True):
        with contextlib.suppress(LockgateError):
            if content is not None:
                notes.append(JobLayout(decode_summary(content, name=run.url(path)).job_id).ended)
    return notes


async def _forgotten_outcome(run: JobRun) -> Summary | None:
    """A summary of a few words, if the outcome of this run's transaction id has been forgotten."""
    numbered = _NUMBERED.fullmatch(run.options.txn_id)
    if numbered is None:
        return None
    series, number = numbered.group(1), int(numbered.group(2))
    digest = digest_of_transaction(series)
    async for name in _names(run):
        mark = forgotten_number(name, digest)
        if mark is not None and number <= mark:
            return Summary(
                timestamp=int(run.runtime.wall() * 1000),
                success=True,
                description=f"committed earlier: of {series} all up to {mark} are done, and their summaries forgotten",
                lockgate=LockgateSummary(destination=run.store.url.uri, txn_id=run.options.txn_id),
            )
    return None


async def save_for_outcome(run: JobRun, summary: Summary, nonce: str) -> None:
    """Write the summary where a recoverer finds it, before the commit point."""
    if run.options.txn_id:
        await run.store.write_file(run.layout.transaction_summary(nonce), encode_summary(summary))


async def saved_for_outcome(run: JobRun, record: CommitRecord) -> Summary | None:
    """What `save_for_outcome` wrote."""
    return await read_summary(run, run.layout.transaction_summary(record.summary_nonce))


async def _names(run: JobRun) -> AsyncIterator[str]:
    async for page in run.store.list_directory(TRANSACTIONS):
        for status in page:
            yield status.path.rpartition("/")[2]


async def _claims(run: JobRun, digest: str) -> list[int]:
    sequences = [claim_sequence(name, digest) async for name in _names(run)]
    return sorted(sequence for sequence in sequences if sequence is not None)


async def _delete_claims(run: JobRun, digest: str) -> None:
    claims = [transaction_claim(digest, sequence) for sequence in await _claims(run, digest)]
    await run.store.delete_files(claims)


async def _newest_claim(run: JobRun, digest: str) -> tuple[int, Claim | None]:
    claims = await _claims(run, digest)
    if not claims:
        return -1, None
    (content,) = await run.store.read_files([transaction_claim(digest, claims[-1])], bytes_max=1 << 16)
    if content is None:
        return await _newest_claim(run, digest)
    return claims[-1], _decode_claim(run, transaction_claim(digest, claims[-1]), content)


def _decode_claim(run: JobRun, path: str, content: bytes) -> Claim:
    try:
        return msgspec.json.decode(content, type=Claim)
    except UNDECODABLE as error:
        raise LockgateError(
            f"the claim on a transaction id cannot be read: {error}",
            where=run.url(path),
            next_step="it was changed, or written by another version: which job holds the id cannot be told; once no "
            "job with this id is left unfinished, delete the file",
        ) from error


async def _create_claim(run: JobRun, digest: str, sequence: int) -> bool:
    layout = run.layout
    claim = Claim(run.options.txn_id, layout.job_id, layout.job_attempt, layout.prefix, run.runtime.nonce())
    path = transaction_claim(digest, sequence)
    try:
        await run.store.create_file(path, msgspec.json.encode(claim))
    except (FileExists, AnswerLost):
        (content,) = await run.store.read_files([path], bytes_max=1 << 16)
        return content is not None and _decode_claim(run, path, content).nonce == claim.nonce
    return True


async def _await_end(run: JobRun, claim: Claim, end: End, deadline: float) -> Summary | None:
    """Wait until the claiming job has ended, ending it if it was refused or stands still: its summary, or None if it
    never committed and never will."""
    seen: CommitRecord | None = None
    since = run.runtime.tick()
    pause = POLL_SECONDS
    tried = -1
    while True:
        record = await read_record(run, claim.layout)
        outcome = await read_summary(run, transaction_outcome(digest_of_transaction(claim.txn_id)))
        if outcome is not None:
            return outcome
        if record is None or record.phase is Phase.ROLLED_BACK:
            return None
        now = run.runtime.tick()
        stands = False
        if seen is None or seen.sequence != record.sequence:
            seen, since = record, now
        elif now - since >= FINISH_AFTER_SECONDS or run.runtime.is_gone(record.holder):
            stands, since = True, now
            run.log.info("finishes the job that holds the same transaction id", other=claim.job_id)
        if record.phase is Phase.REFUSED or stands:
            await _end(run, claim, end)
            if tried != record.sequence:  # what became of it is looked at at once, but only once
                tried = record.sequence
                continue
        if now >= deadline:
            raise CommitFenced(
                f"job {claim.job_id} holds the same transaction id and does not end",
                where=run.url(claim.layout.attempt_directory),
                next_step=command("abort" if record.phase is Phase.REFUSED else "recover", run.store.url, claim.job_id),
            )
        run.emit("waiting", other=claim.job_id)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 10 * POLL_SECONDS)


async def _end(run: JobRun, claim: Claim, end: End) -> None:
    """End the claiming job, unless its driver, another recoverer, or a later attempt at it was quicker.

    Raises:
        CommitRefused: it was undone, and files that it was to replace are lost, or others were left. Nobody else is
            there to be told. To commit again goes on.
    """
    undone = Undone()
    try:
        undone = await end(claim.layout)
    except CommitFenced:
        return
    except CleanupFailed as error:
        run.log.info("the job of the same transaction id is committed, not cleaned up", error=str(error))
    except (CommitRefused, CommitFailed) as error:
        # What keeps that job from being committed need not keep this one: it counts only if that job cannot end.
        record = await read_record(run, claim.layout)
        if record is not None and record.phase not in (Phase.REFUSED, Phase.ROLLED_BACK):
            raise
        run.log.info("the job of the same transaction id was not committed", other=claim.job_id, error=str(error))
    if undone:
        raise CommitRefused(
            f"job {claim.job_id}, whose driver died and which has the same transaction id, was undone{undone}",
            # All of them: what else says which they are is deleted.
            where="\n".join(run.url(path) for path in [*undone.missing, *undone.stays]),
            next_step=f"{undone.may_stay} Nothing of this job was moved: bring back what is missing and needed, delete "
            "what stays and is not, then commit again".lstrip(),
        )

"""Exactly once by transaction id: of all jobs that are given one id, one takes effect.

A workflow that retries, or a stream that restarts, writes its output again as another job with the same id. The
second finds either the outcome of the first (its summary, kept in `_lockgate/txn/`), or a claim that names the
first's job. A claim can only be succeeded when the claimed job surely has not committed and never will: its commit
record says so, or its directory is gone and no outcome was left (the outcome is written before the directory goes,
so it is looked for after the record). A job that died on its way is finished by whoever comes second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from lockgate.engine.job_run import JobRun
from lockgate.engine.publish import read_summary
from lockgate.engine.record_log import read_record
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, CommitFenced, FileExists
from lockgate.model.layout import TRANSACTIONS, JobLayout, claim_sequence, transaction_claim, transaction_outcome
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.summary import Summary, encode_summary

POLL_SECONDS = 0.2
FINISH_AFTER_SECONDS = 10.0
"""A job of the same transaction id whose record has not moved for so long is finished by the one that waits for it.
That is safe even if its driver lives: it will find that it was fenced, and return the same summary."""

Finish = Callable[[JobLayout], Awaitable[None]]
"""Finishes, or ends the undoing of, another job; the recovery stage, handed in."""


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
    """The first summary of this run's transaction id, None where it has none or has not been committed."""
    if not run.options.txn_id:
        return None
    return await read_summary(run, transaction_outcome(digest_of_transaction(run.options.txn_id)))


async def claim_transaction(run: JobRun, finish: Finish) -> Summary | None:
    """Make this job the one that commits its transaction id; a summary: another job has, and this one must not.

    Raises:
        CommitFenced: another job of the same id is at work, and neither ended nor could be finished in
            `wait_seconds_max`.
    """
    if not run.options.txn_id:
        return None
    digest = digest_of_transaction(run.options.txn_id)
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([TRANSACTIONS])
    deadline = run.runtime.tick() + run.options.wait_seconds_max
    while True:
        sequence, claim = await _newest_claim(run, digest)
        if claim is not None and claim.layout != run.layout:
            outcome = await _await_end(run, claim, finish, deadline)
            if outcome is not None:
                return outcome
        ours = claim is not None and claim.layout == run.layout
        if not ours and not await _create_claim(run, digest, sequence + 1):
            continue
        # Claims are deleted once there is an outcome: it may have come between the look for claims and our own.
        return await known_outcome(run)


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
    claims = [transaction_claim(digest, sequence) for sequence in await _claims(run, digest)]
    await run.store.delete_files(claims)


async def forget_outcome(run: JobRun, txn_id: str) -> None:
    """Let go of an outcome that nobody will ask for again, such as that of a stream's batch long past."""
    await run.store.delete_files([transaction_outcome(digest_of_transaction(txn_id))])


async def save_for_outcome(run: JobRun, summary: Summary, nonce: str) -> None:
    """Write the summary where a recoverer finds it, before the commit point."""
    if run.options.txn_id:
        await run.store.write_file(run.layout.transaction_summary(nonce), encode_summary(summary))


async def saved_for_outcome(run: JobRun, record: CommitRecord) -> Summary | None:
    """What `save_for_outcome` wrote."""
    return await read_summary(run, run.layout.transaction_summary(record.summary_nonce))


async def _claims(run: JobRun, digest: str) -> list[int]:
    found: list[int] = []
    async for page in run.store.list_directory(TRANSACTIONS):
        for status in page:
            sequence = claim_sequence(status.path.rpartition("/")[2], digest)
            if sequence is not None:
                found.append(sequence)
    return sorted(found)


async def _newest_claim(run: JobRun, digest: str) -> tuple[int, Claim | None]:
    claims = await _claims(run, digest)
    if not claims:
        return -1, None
    (content,) = await run.store.read_files([transaction_claim(digest, claims[-1])], bytes_max=1 << 16)
    if content is None:
        return await _newest_claim(run, digest)
    return claims[-1], msgspec.json.decode(content, type=Claim)


async def _create_claim(run: JobRun, digest: str, sequence: int) -> bool:
    layout = run.layout
    claim = Claim(run.options.txn_id, layout.job_id, layout.job_attempt, layout.prefix, run.runtime.nonce())
    path = transaction_claim(digest, sequence)
    try:
        await run.store.create_file(path, msgspec.json.encode(claim))
    except (FileExists, AnswerLost):
        (content,) = await run.store.read_files([path], bytes_max=1 << 16)
        return content is not None and msgspec.json.decode(content, type=Claim).nonce == claim.nonce
    return True


async def _await_end(run: JobRun, claim: Claim, finish: Finish, deadline: float) -> Summary | None:
    """Wait until the claiming job has ended, finishing it if it stands still: its summary, or None if it never
    committed."""
    seen: CommitRecord | None = None
    since = run.runtime.tick()
    pause = POLL_SECONDS
    while True:
        record = await read_record(run, claim.layout)
        outcome = await known_outcome(run)
        if outcome is not None:
            return outcome
        if record is None or record.phase in (Phase.ROLLED_BACK, Phase.REFUSED):
            return None
        now = run.runtime.tick()
        if seen is None or seen.sequence != record.sequence:
            seen, since = record, now
        elif now - since >= FINISH_AFTER_SECONDS or run.runtime.is_gone(record.holder):
            run.log.info("finishes the job that holds the same transaction id", other=claim.job_id)
            try:
                await finish(claim.layout)
            except CommitFenced:
                since = now
            continue
        if now >= deadline:
            raise CommitFenced(
                f"job {claim.job_id} holds the same transaction id and does not end",
                where=run.url(claim.layout.attempt_directory),
                next_step=f"lockgate recover {run.store.url} {claim.job_id}",
            )
        run.emit("waiting", other=claim.job_id)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 10 * POLL_SECONDS)

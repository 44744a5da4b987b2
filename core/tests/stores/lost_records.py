"""The commit record of a job is deleted by somebody while uploads of it are completed, and the job is aborted then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest
from lockgate import Job, Receipt
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.errors import CommitFailed, OutcomeUnknown, StoreError
from lockgate.model.layout import record_sequence
from lockgate.model.plan import CommitPlan
from lockgate.model.uploads import Completed
from lockgate.protocols.deferred import job_commit
from lockgate.protocols.deferred.uploads import upload_of

Seen = Callable[[], Mapping[str, bytes]]


def delete_record(job: Job, *, marker: bool = False) -> None:
    """Delete every version of the job's commit record, and its marker too, as a program that tidies up may."""
    run = job._run()

    async def delete() -> None:
        found = await list_all(run.store, run.layout.job_directory)
        records = [s.path for s in found if record_sequence(s.path.rpartition("/")[2]) is not None]
        assert records
        await run.store.delete_files([*records, *([run.layout.job_marker] if marker else [])])

    asyncio.run(delete())
    job._store = None


def an_abort_takes_out_what_a_dead_driver_completed(
    job: Job, receipts: Sequence[Receipt], seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left those files, and said that the job is aborted."""
    before = dict(seen())
    _die_once_completed(job, receipts, monkeypatch, most=1)
    assert len(seen()) == len(before) + 1
    delete_record(job)
    job.abort()
    assert seen() == before


def an_abort_that_cannot_know_deletes_nothing_and_says_so(
    job: Job, receipts: Sequence[Receipt], seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files are there: the driver may have died right after the commit point."""
    _die_once_completed(job, receipts, monkeypatch)
    there = dict(seen())
    delete_record(job)
    with pytest.raises(OutcomeUnknown, match="they are all there, so that it may have committed"):
        job.abort()
    assert seen() == there


def an_abort_without_the_marker_deletes_nothing_and_says_so(
    job: Job, receipts: Sequence[Receipt], seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job may have committed, and be cleaned up, long ago."""
    _die_once_completed(job, receipts, monkeypatch, most=1)
    there = dict(seen())
    delete_record(job, marker=True)
    with pytest.raises(OutcomeUnknown, match="the job's marker is gone"):
        job.abort()
    assert seen() == there


LOST_RECORDS = (
    an_abort_takes_out_what_a_dead_driver_completed,
    an_abort_that_cannot_know_deletes_nothing_and_says_so,
    an_abort_without_the_marker_deletes_nothing_and_says_so,
)


def _die_once_completed(
    job: Job, receipts: Sequence[Receipt], monkeypatch: pytest.MonkeyPatch, *, most: int | None = None
) -> None:
    """The driver dies when it has completed so many uploads; without `most`, all."""

    async def complete(run: JobRun, plan: CommitPlan) -> None:
        uploads = [upload_of(entry) for batch in plan.batches() for entry in batch]
        assert all(isinstance(each, Completed) for each in await run.store.complete_uploads(uploads[:most]))
        raise StoreError("dies")

    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "complete", complete)
        with pytest.raises(CommitFailed):
            job.commit(receipts)

"""Exactly once by transaction id, in the orders of claims, records, outcomes and forgetting that can go wrong."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

import pytest
from faulty_store import Stop, make_faulty
from interleaved_store import interleave
from lockgate import Job, JobOptions
from lockgate.api.destination import forget_transactions
from lockgate.api.jobs import recover
from lockgate.engine.commit_once import commit_once
from lockgate.engine.record import transactions
from lockgate.engine.run.runtime import Event
from lockgate.errors import CommitFailed, CommitFenced, CommitRefused, LockgateError


def _refused(table, txn: str) -> tuple[Job, object]:
    """A job of this transaction id that was refused once it had claimed it, and can be committed again."""
    job = table.job(txn_id=txn)
    receipt = table.task(job, {"p=1/refused-first": b"x"})
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "stat_files"
    with pytest.raises(Stop):
        job.commit([receipt])
    job._store = None
    return job, receipt


def test_exactly_once_a_refused_job_that_commits_again_while_another_claims_its_transaction(table) -> None:
    """The other has read that the first was refused; then the first is claimed again, finds the transaction still its
    own, and stands before its next step while the other goes on."""
    refused, refused_receipt = _refused(table, "t")
    other = table.job(txn_id="t")
    other_receipt = table.task(other, {"other": b"x"})

    async def history() -> list[object]:
        go_on, stands = asyncio.Event(), asyncio.Event()
        again: list[asyncio.Task[object]] = []
        slow, quick = interleave(refused), interleave(other)
        claims_read = 0

        async def slow_before(name: str, path: object) -> None:
            nonlocal claims_read
            claims_read += name == "read_files" and "claim-" in str(path)
            if name == "create_file" and claims_read:
                stands.set()
                await go_on.wait()

        async def quick_after(name: str, paths: object) -> None:
            if name == "read_files" and refused.job_id in str(paths) and "commit-" in str(paths) and not again:
                again.append(asyncio.ensure_future(commit_once(refused._run(), [refused_receipt])))
                standing = asyncio.ensure_future(stands.wait())
                await asyncio.wait([again[0], standing], return_when=asyncio.FIRST_COMPLETED)
                standing.cancel()

        def told(event: Event) -> None:
            if event.name == "waiting":
                go_on.set()

        slow.before, quick.after = slow_before, quick_after
        run = other._run()
        run = dataclasses.replace(run, runtime=dataclasses.replace(run.runtime, emit=told))
        results: list[object] = []
        try:
            results.append(await commit_once(run, [other_receipt]))
        except LockgateError as error:
            results.append(error)
        go_on.set()
        results += await asyncio.gather(*again, return_exceptions=True)
        return results

    asyncio.run(history())
    assert len(table.read()) == 1, table.read()


def test_exactly_once_a_refused_job_is_ended_before_another_takes_its_transaction_over(table) -> None:
    refused, receipt = _refused(table, "t")
    other = table.job(txn_id="t")
    summary = other.commit([table.task(other, {"other": b"x"})])
    assert refused.commit([receipt]).job_id == summary.job_id
    assert table.read() == {"other": b"x"}
    assert not table.left_over()


def test_a_refused_job_that_a_later_attempt_has_superseded_is_waited_for_until_the_deadline_only(table) -> None:
    """Nobody but the later attempt may end it: whoever waited tried to, without a pause and for ever."""
    refused, _ = _refused(table, "t")
    Job(str(table.root), JobOptions(txn_id="t"), job_id=refused.job_id, job_attempt=1).setup()
    other = table.job(txn_id="t", wait_seconds_max=0.0)
    receipt = table.task(other, {"other": b"x"})
    store = make_faulty(other)
    store.fail_at = lambda name, subject: len(store.calls) > 300
    with pytest.raises(CommitFenced, match="holds the same transaction id and does not end"):
        other.commit([receipt])
    assert table.read() == {}


def test_exactly_once_the_first_is_refused_while_it_is_finished_by_the_second(table) -> None:
    """What refuses a dead job (here its policy) need not refuse the one that comes second."""
    first = table.job(txn_id="t", conflict="fail")
    receipt = table.task(first, {"first": b"x"})
    with contextlib.suppress(Stop):
        _die_before(first, "commit-0001", receipt)
    _as_if_its_driver_had_died(table, first)
    (table.root / "in-the-way").write_bytes(b"old")
    second = table.job(txn_id="t")
    second.commit([table.task(second, {"second": b"x"})])
    assert table.read() == {"in-the-way": b"old", "second": b"x"}


def test_exactly_once_a_batch_that_was_never_admitted_is_recovered_after_it_was_forgotten(table) -> None:
    killed = table.job(txn_id="query/3")
    receipt = table.task(killed, {"batch-3-killed": b"x"})
    with contextlib.suppress(Stop):
        _die_before(killed, "claim-0000", receipt)
    _as_if_its_driver_had_died(table, killed)
    again = table.job(txn_id="query/3")
    again.commit([table.task(again, {"batch-3": b"x"})])
    forget_transactions(str(table.root), "query", 3)
    assert not any(path.endswith(again.layout.summary) for path in table.left_over())
    recover(str(table.root))
    assert table.read() == {"batch-3": b"x"}
    assert not table.left_over()
    late = table.job(txn_id="query/2")
    summary = late.commit([table.task(late, {"batch-2": b"x"})])
    assert (summary.success, summary.job_id) == (True, "")
    assert table.read() == {"batch-3": b"x"}


def test_forgetting_leaves_one_file_and_cannot_be_taken_back(table) -> None:
    for batch in range(6):
        job = table.job(txn_id=f"query/{batch}")
        job.commit([table.task(job, {f"batch-{batch}": b"x"})])
    url = str(table.root)
    for up_to in (1, 4, 2):
        forget_transactions(url, "query", up_to)
    kept = sorted(path.rpartition("/")[2] for path in table.everything() if path.startswith("_lockgate/txn/"))
    assert len(kept) == 2, kept
    assert sum("forgotten-000000000004" in name for name in kept) == 1
    for batch, known in ((4, True), (5, True), (6, False)):
        job = table.job(txn_id=f"query/{batch}")
        job.commit([table.task(job, {f"again-{batch}": b"x"})])
        assert (f"again-{batch}" in table.read()) is not known


@pytest.mark.parametrize("txn_id", ["s/07", "s/+7", "s/٣", "s/7 ", "s/00", "s/-0", "s/7.0"])
def test_exactly_once_forgetting_a_series_leaves_ids_that_only_look_like_its_numbers(table, txn_id) -> None:
    forget_transactions(str(table.root), "s", 100)
    known = table.job(txn_id="s/7")
    known.commit([table.task(known, {"known": b"x"})])
    job = table.job(txn_id=txn_id)
    summary = job.commit([table.task(job, {"new": b"x"})])
    assert summary.job_id == job.job_id
    assert table.read() == {"new": b"x"}


def test_what_a_transaction_leaves_is_its_outcome_only(table) -> None:
    """Also where a job comes late to a transaction that is done: its claim goes again."""
    jobs = [table.job(txn_id="t") for _ in range(2)]
    receipts = [table.task(job, {f"f{n}": b"x"}) for n, job in enumerate(jobs)]
    late = interleave(jobs[1])

    async def history() -> None:
        done: list[object] = []

        async def first_is_committed_meanwhile(name: str, path: object) -> None:
            if name == "create_file" and "claim-" in str(path) and not done:
                done.append(await commit_once(jobs[0]._run(), [receipts[0]]))

        late.before = first_is_committed_meanwhile
        await commit_once(jobs[1]._run(), [receipts[1]])
        assert done

    asyncio.run(history())
    assert table.read() == {"f0": b"x"}
    assert len([path for path in table.everything() if path.startswith("_lockgate/txn/")]) == 1


def _die_before(job: Job, name: str, receipt: object) -> None:
    """Run the job's commit until it is about to create a file of this name; nothing works from then on."""
    store = make_faulty(job)
    dead = False

    def fail_at(call: str, subject: object) -> bool:
        nonlocal dead
        dead = dead or (call == "create_file" and name in str(subject))
        return dead

    store.fail_at = fail_at
    job.commit([receipt])


def _as_if_its_driver_had_died(table, job: Job) -> None:
    for path in (table.root / job.layout.job_directory).rglob("commit*.json"):
        text = path.read_text().replace(f'"process":{job._run().runtime.process}', f'"process":{2**22 - 1}')
        path.write_text(text)


def test_who_ends_another_jobs_undoing_is_told_of_what_it_found_missing_and_may_commit_again(
    table, monkeypatch
) -> None:
    """The first job of the transaction died while it was undone, and somebody has deleted what it was to restore: the
    second ended that, and committed without a word."""
    monkeypatch.setattr(transactions, "FINISH_AFTER_SECONDS", 0.0)
    table.write({"p=1/a": b"a", "p=1/b": b"b"})
    job = table.job(conflict="replace-partitions", txn_id="t")
    receipt = table.task(job, {"p=1/new": b"new"})
    undoing: list[bool] = []

    def fail_at(name: str, subject: object) -> bool:
        undoing.extend([True] * (name == "write_file" and "_SUCCESS" in str(subject)))
        return bool(undoing) and name in ("write_file", "rename_files")

    make_faulty(job).fail_at = fail_at
    with pytest.raises(CommitFailed, match="so did its rollback"):
        job.commit([receipt])
    (aside,) = [path for path in (table.root / job.layout.replaced).rglob("_*") if path.read_bytes() == b"a"]
    aside.unlink()
    other = table.job(txn_id="t")
    receipts = [table.task(other, {"p=2/other": b"x"})]
    with pytest.raises(CommitRefused, match=r"p=1/a(.|\n)*commit again"):
        other.commit(receipts)
    assert table.read() == {"p=1/b": b"b"}
    assert other.commit(receipts).success
    assert table.read() == {"p=1/b": b"b", "p=2/other": b"x"}
    assert not table.left_over()

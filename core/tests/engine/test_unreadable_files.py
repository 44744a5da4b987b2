"""A small file of Lockgate's that somebody has damaged stops the job that it is about, by an error that names it, and
no other job."""

from __future__ import annotations

import pytest
from lockgate import Job, collect_garbage, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.errors import LockgateError
from lockgate.model.layout import JobLayout, transaction_claim, transaction_outcome
from lockgate.model.record import digest_of

BROKEN = [b"", b"[]", b'{"job_id": "\xff"}', b"\xff\xfe"]
FILES = {
    "marker": "_lockgate/jobs/B/00/job.json",
    "record": "_lockgate/jobs/B/commit.json",
    "list": "_lockgate/replaced/B/_0123456789abcdef.list",
}


def _put(table, path: str, content: bytes) -> None:
    (table.root / path).parent.mkdir(parents=True, exist_ok=True)
    (table.root / path).write_bytes(content)


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("what", FILES)
def test_one_damaged_file_makes_one_job_unreadable_and_stops_nothing_else(table, what, content) -> None:
    table.write({"old": b"1"})
    other = table.job()
    _put(table, FILES[what], content)
    if what == "list":
        _put(table, JobLayout("B").replaced_file("0123456789abcdef", 0), b"kept")
    states = {state.job_id: state for state in jobs(str(table.root))}
    assert states["B"].status is JobStatus.UNREADABLE
    assert FILES[what] in states["B"].problem
    assert states[other.job_id].status is JobStatus.RUNNING
    assert recover(str(table.root))["B"].outcome == "failed"
    kept = [each for each in collect_garbage(str(table.root)) if FILES[what] in each.why]
    assert {each.action for each in kept} == {"kept"}
    assert (table.root / FILES[what]).read_bytes() == content
    with pytest.raises(LockgateError, match="cannot be read") as told:
        recover(str(table.root), "B")
    assert FILES[what] in told.value.where
    assert told.value.next_step


@pytest.mark.parametrize("content", BROKEN)
def test_a_damaged_claim_is_named_by_who_finds_it(table, content) -> None:
    job = table.job(txn_id="t")
    receipt = table.task(job, {"new": b"1"})
    _put(table, transaction_claim(digest_of(b"t"), 0), content)
    with pytest.raises(LockgateError, match="the claim on a transaction id cannot be read") as told:
        job.commit([receipt])
    assert "claim-0000" in told.value.where
    assert told.value.next_step
    assert table.read() == {}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"name": "\xff"}'])
def test_a_damaged_outcome_is_named_by_who_finds_it(table, content) -> None:
    table.write({"old": b"1"}, txn_id="t")
    (outcome,) = (table.root / "_lockgate" / "txn").glob("*.outcome")
    outcome.write_bytes(content)
    job: Job = table.job()
    job.options = job.options.replace(txn_id="t")
    with pytest.raises(LockgateError, match=r"a job summary is empty|not a job summary") as told:
        job.commit([table.task(job, {"new": b"2"})])
    assert outcome.name in told.value.where
    assert told.value.next_step


@pytest.mark.parametrize("policy", ["append", "replace"])
@pytest.mark.parametrize("content", BROKEN)
def test_a_damaged_outcome_stops_no_job_of_another_id(table, policy, content) -> None:
    table.write({"old": b"1"}, txn_id="t")
    _put(table, transaction_outcome(digest_of(b"t")), content)
    table.write({"new": b"2"}, conflict=policy)
    assert "new" in table.read()

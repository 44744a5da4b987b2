"""Jobs beside each other, and what is done to several of them: none suffers from another's end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from faulty_store import Stop, make_faulty
from interleaved_store import interleave
from lockgate import Job, collect_garbage, recover
from lockgate.engine.commit_once import commit_once
from lockgate.errors import CommitFailed, DestinationConflict, JobNotFound
from lockgate.model.phases import Phase


def test_concurrent_a_directory_that_anothers_rollback_found_empty_is_made_again(table) -> None:
    first, second = table.job(), table.job()
    receipts = [table.task(first, {"p=1/q=1/first": b"1"}), table.task(second, {"p=1/q=1/second": b"2"})]

    async def history() -> None:
        stores = interleave(first), interleave(second)
        made, planned, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def first_fails(name: str, paths: object) -> None:
            if name == "rename_files" and "first" in str(paths) and "withdrawn" not in str(paths):
                made.set()
                await planned.wait()
                raise CommitFailed("planned")

        async def second_waits(name: str, paths: object) -> None:
            if name == "rename_files" and "second" in str(paths) and not planned.is_set():
                planned.set()
                await gone.wait()

        stores[0].before, stores[1].before = first_fails, second_waits
        failing = asyncio.ensure_future(commit_once(first._run(), [receipts[0]]))
        await made.wait()
        other = asyncio.ensure_future(commit_once(second._run(), [receipts[1]]))
        with pytest.raises(CommitFailed, match="restored"):
            await failing
        assert not (table.root / "p=1").exists()
        gone.set()
        await other

    asyncio.run(history())
    assert table.read() == {"p=1/q=1/second": b"2"}


def _crashed(table, name: str) -> Job:
    """A job that died as it moved its file."""
    job = table.job(on_failure="leave")
    receipt = table.task(job, {name: b"x"})
    store = make_faulty(job)
    store.fail_at = lambda call, subject: call == "rename_files" and name in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        job.commit([receipt])
    for path in (Path(table.root) / job.layout.job_directory).rglob("commit*.json"):
        record = json.loads(path.read_text())
        record["holder"]["process"] = 2**22 - 1
        path.write_text(json.dumps(record))
    return job


def test_a_younger_job_whose_driver_is_known_to_be_gone_is_not_waited_for(table) -> None:
    """The older one waited for `alive_seconds`, and was then told that the other had come first."""
    younger, older = table.job(conflict="replace-partitions"), table.job(conflict="replace-partitions")
    receipts = [table.task(younger, {"p=1/y": b"y"}), table.task(older, {"p=1/o": b"o"})]
    store = make_faulty(younger)
    store.fail_at = lambda call, subject: call == "create_file" and str(subject).endswith("commit-0001.json")
    with pytest.raises((Stop, CommitFailed)):
        younger.commit(receipts[:1])
    (path,) = (Path(table.root) / younger.layout.job_directory).glob("commit.json")
    record = json.loads(path.read_text())
    record["holder"]["process"] = 2**22 - 1
    record["holder"]["since"] += 10_000
    path.write_text(json.dumps(record))
    with pytest.raises(DestinationConflict, match="its driver is gone") as caught:
        older.commit(receipts[1:])
    assert f"lockgate recover file://{table.root} {younger.job_id}" in caught.value.next_step


def test_resumable_one_job_that_cannot_be_recovered_does_not_keep_the_others_from_it(table) -> None:
    jobs = [_crashed(table, f"f{number}") for number in range(3)]
    bad = jobs[1]
    (table.root / "f1").write_bytes(b"somebody else's")
    found = recover(str(table.root))
    assert {job_id: each.outcome for job_id, each in found.items()} == {
        jobs[0].job_id: "finished",
        bad.job_id: "failed",
        jobs[2].job_id: "finished",
    }
    assert found[bad.job_id].phase is Phase.MOVING
    assert "f1" in found[bad.job_id].problem
    assert table.read() == {"f0": b"x", "f1": b"somebody else's", "f2": b"x"}


@pytest.mark.parametrize("ends", ["committed", "aborted"])
def test_gc_deletes_what_a_skipped_cleanup_has_left(table, ends: str) -> None:
    job = table.job(cleanup_skip=True)
    receipt = table.task(job, {"f": b"x"})
    if ends == "committed":
        job.commit([receipt])
    else:
        job.abort()
    assert table.left_over()
    found = collect_garbage(str(table.root))
    assert [each.action for each in found] == ["deleted"]
    assert not table.left_over()


def test_fail_partitions_refuses_only_where_a_partition_of_the_job_holds_data(table) -> None:
    table.write({"p=1/old": b"old", "p=2/old": b"old", "at-the-root": b"old"})
    before = table.read()
    job = table.job(conflict="fail-partitions")
    receipts = [table.task(job, {"p=2/new": b"new"}, 0), table.task(job, {"p=3/new": b"new"}, 1)]
    with pytest.raises(DestinationConflict, match=r"fail-partitions[\s\S]*p=2/old"):
        job.commit(receipts)
    assert table.read() == before
    job.abort()
    table.write({"p=3/new": b"new", "p=4/q=1/new": b"new"}, conflict="fail-partitions")
    assert table.read() == before | {"p=3/new": b"new", "p=4/q=1/new": b"new"}


def test_fail_partitions_of_two_jobs_on_one_partition_one_goes_on(table) -> None:
    jobs = [table.job(conflict="fail-partitions") for _ in range(2)]
    receipts = [table.task(job, {f"p=1/{job.job_id}": b"x"}) for job in jobs]
    jobs[1].commit([receipts[1]])
    with pytest.raises(DestinationConflict):
        jobs[0].commit([receipts[0]])
    assert list(table.read()) == [f"p=1/{jobs[1].job_id}"]


def test_success_is_deleted_at_setup_where_the_options_say_so(table) -> None:
    table.write({"f": b"x"})
    success = table.root / "_SUCCESS"
    assert table.job().setup() is None
    assert success.exists()
    job = table.job(delete_success_at_setup=True)
    assert not success.exists()
    job.commit([table.task(job, {"g": b"x"})])
    assert success.exists()
    with pytest.raises(JobNotFound, match="committed already"):
        job.setup()  # as a task does that comes late
    assert success.exists()
    table.job(delete_success_at_setup=True).abort()
    assert not success.exists()


def test_success_is_not_deleted_at_setup_by_a_repetition_of_a_transaction(table) -> None:
    table.write({"f": b"x"}, txn_id="t")
    again = table.job(txn_id="t", delete_success_at_setup=True)
    again.commit([table.task(again, {"g": b"x"})])
    assert (table.root / "_SUCCESS").exists()
    assert table.read() == {"f": b"x"}

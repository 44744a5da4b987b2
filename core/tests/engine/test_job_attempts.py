"""Several attempts at one job: one fence for all of them, and what the tasks of a dead one left is not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, collect_garbage, jobs, recover
from lockgate.errors import CommitFailed, CommitFenced, DestinationConflict, JobNotFound, LockgateError, UsageError


def attempt_at(table, number: int, **options: object) -> Job:
    """Another attempt at the job `nightly`."""
    job = Job(str(table.root), JobOptions(**options), job_id="nightly", job_attempt=number)
    job.setup()
    return job


def die_in_moving(job: Job, receipts: list) -> None:
    """Commit, and die once the replaced files are set aside."""
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and "/tasks/" in subject[0].source
    with pytest.raises(CommitFailed) as caught:
        job.commit(receipts)
    assert isinstance(caught.value.__cause__, Stop)


def test_fenced_a_second_attempt_cannot_commit_over_one_that_died_in_moving(table) -> None:
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="replace", on_failure="leave")
    die_in_moving(first, [table.task(first, {"p=1/new": b"first"})])
    with pytest.raises(CommitFenced):
        attempt_at(table, 1, conflict="replace")
    recover(str(table.root), "nightly", undo=True, force=True)
    assert table.read() == {"p=1/old": b"old"}
    assert not table.left_over()


def test_fenced_of_two_live_attempts_one_commits(table) -> None:
    first, second = attempt_at(table, 0), attempt_at(table, 1)
    receipts = [table.task(first, {"first": b"1"})], [table.task(second, {"second": b"2"})]
    with pytest.raises(CommitFenced, match="attempt 1 has begun"):
        first.commit(receipts[0])
    second.commit(receipts[1])
    assert table.read() == {"second": b"2"}
    assert not table.left_over()


def test_fenced_an_attempt_that_began_before_another_committed_cannot_commit(table) -> None:
    first = attempt_at(table, 0)
    receipt = table.task(first, {"first": b"1"})
    second = Job(str(table.root), JobOptions(), job_id="nightly", job_attempt=1)
    first.commit([receipt])
    with pytest.raises(JobNotFound, match="committed already"):
        second.setup()
    assert table.read() == {"first": b"1"}


def test_a_second_attempt_commits_what_the_dead_one_left_beside_its_own(table) -> None:
    first = attempt_at(table, 0)
    for task in range(3):
        table.task(first, {f"first-{task}": b"1"}, task, rows=1)
    first.task_attempt(2).abort()
    second = attempt_at(table, 1)
    earlier = second.committed()
    assert [(receipt.task_id, receipt.job_attempt) for receipt in earlier] == [("task_000000", 0), ("task_000001", 0)]
    summary = second.commit([*earlier, table.task(second, {"second-2": b"2"}, 2, rows=5)])
    assert set(table.read()) == {"first-0", "first-1", "second-2"}
    assert summary.counters["rows"] == 7
    assert not table.left_over()


def test_a_second_attempt_that_dies_is_recovered_with_what_it_took_from_the_first(table) -> None:
    table.write({"old": b"old"})
    first = attempt_at(table, 0)
    table.task(first, {"first-0": b"1"}, 0)
    second = attempt_at(table, 1, conflict="replace", on_failure="leave")
    die_in_moving(second, [*second.committed(), table.task(second, {"second-1": b"2"}, 1)])
    (recovery,) = recover(str(table.root), force=True).values()
    assert recovery.outcome == "finished"
    assert set(table.read()) == {"first-0", "second-1"}
    assert not table.left_over()


def test_a_zombie_of_the_first_attempt_that_commits_its_task_again_is_not_taken(table) -> None:
    first = attempt_at(table, 0)
    table.task(first, {"first-0": b"1"}, 0, attempt=0)
    second = attempt_at(table, 1)
    earlier = second.committed()
    table.task(first, {"zombie-0": b"z"}, 0, attempt=1)
    second.commit(earlier)
    assert set(table.read()) == {"first-0"}


def test_an_attempt_cannot_abort_what_a_later_one_commits(table) -> None:
    first = attempt_at(table, 0)
    table.task(first, {"first-0": b"1"}, 0)
    second = attempt_at(table, 1)
    receipts = [*second.committed(), table.task(second, {"second-1": b"2"}, 1)]
    with pytest.raises(LockgateError):
        first.abort()
    second.commit(receipts)
    assert set(table.read()) == {"first-0", "second-1"}


def test_a_second_attempt_claims_what_the_first_was_refused_and_is_recovered_as_itself(table) -> None:
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="fail-partitions")
    receipt = table.task(first, {"p=1/first": b"1"})
    with pytest.raises(DestinationConflict):
        first.commit([receipt])
    second = attempt_at(table, 1, conflict="replace", on_failure="leave")
    die_in_moving(second, [table.task(second, {"p=1/second": b"2"})])
    (recovery,) = recover(str(table.root), force=True).values()
    assert recovery.outcome == "finished"
    assert table.read() == {"p=1/second": b"2"}
    assert not table.left_over()


def test_a_transaction_is_not_held_for_ever_by_a_job_of_which_two_attempts_were_refused(table) -> None:
    """Its claim names the first attempt, which may not end the job any more: the next job waited for an hour."""
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="fail-partitions", txn_id="X")
    with pytest.raises(DestinationConflict):
        first.commit([table.task(first, {"p=1/first": b"1"})])
    second = attempt_at(table, 1, conflict="fail-partitions", txn_id="X")
    with pytest.raises(DestinationConflict):
        second.commit(second.committed())
    other = table.job(txn_id="X", wait_seconds_max=0.0)
    other.commit([table.task(other, {"p=1/other": b"2"})])
    assert table.read() == {"p=1/old": b"old", "p=1/other": b"2"}
    assert not table.left_over()


def test_a_transaction_is_not_held_for_ever_by_a_refused_job_whose_next_attempt_has_died(table) -> None:
    """Only the newest attempt may end a job, and it had begun, and gone."""
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="fail-partitions", txn_id="X")
    with pytest.raises(DestinationConflict):
        first.commit([table.task(first, {"p=1/first": b"1"})])
    attempt_at(table, 1, conflict="fail-partitions", txn_id="X")
    other = table.job(txn_id="X", wait_seconds_max=0.0, alive_seconds=0.0)
    other.commit([table.task(other, {"p=1/other": b"2"})])
    assert table.read() == {"p=1/old": b"old", "p=1/other": b"2"}
    assert not table.left_over()


def test_what_a_driver_has_left_that_woke_up_after_its_end_is_taken_by_gc(table) -> None:
    """On a store without real directories it could still create one more version of its record; then every later job
    that replaces was refused, until somebody typed `lockgate recover`."""
    job = table.job(job_id="nightly", on_failure="leave")
    receipt = table.task(job, {"p=1/a": b"1"})
    die_in_moving(job, [receipt])
    newest = max((table.root / job.layout.job_directory).glob("commit-*.json"))
    late = newest.read_bytes()
    assert recover(str(table.root), "nightly", force=True)["nightly"].outcome == "finished"
    newest.parent.mkdir(parents=True)
    newest.write_bytes(late)
    collect_garbage(str(table.root), options=JobOptions(alive_seconds=0.0))
    table.write({"p=1/b": b"2"}, conflict="replace")
    assert table.read() == {"p=1/b": b"2"}


def test_what_earlier_attempts_committed_is_counted_where_a_job_waits_for_somebody_to_end_it(table) -> None:
    """Who was told of no task, and of abort only, would have deleted what can be committed."""
    first = attempt_at(table, 0)
    table.task(first, {"p=1/first": b"1"})
    attempt_at(table, 1)
    assert [state.tasks_committed for state in jobs(str(table.root))] == [1]
    problem = recover(str(table.root), "nightly", force=True)["nightly"].problem
    assert "1 task has committed" in problem
    assert "lockgate commit" in problem


@pytest.mark.parametrize(
    ("first", "second"),
    [("v2", "manifest"), ("markers", "hive"), ("v1", "manifest"), ("manifest", "v1"), ("manifest", "direct")],
)
def test_another_attempt_at_a_job_is_by_the_protocol_of_the_first(tmp_path: Path, first: str, second: str) -> None:
    """By another, what the first has written would not be found: it would be lost, or left to be seen."""
    job = Job(tmp_path, job_id="j", protocol=first, accept_unsafe=True)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"part-0-{attempt.tag}") as file:
        file.write(b"first")
    attempt.commit()
    for number in (1, 2):
        with pytest.raises(UsageError, match=f"an earlier attempt at job j is by the protocol {first}"):
            Job(tmp_path, job_id="j", job_attempt=number, protocol=second, accept_unsafe=True).setup()
    again = Job(tmp_path, job_id="j", job_attempt=1, protocol=first, accept_unsafe=True)
    again.setup()
    assert [each.task_id for each in again.committed()] == ["task_000000"]
    again.abort()
    assert list(tmp_path.rglob("part-0*")) == []

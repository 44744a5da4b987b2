"""The guarantees, one by one, on the real local store. Spark's part of them is in tests/spark."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions
from lockgate.api.job_runs import registry_of
from lockgate.errors import (
    CapabilityMissing,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DuplicateTarget,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
    ReceiptUnmatched,
    UsageError,
)
from lockgate.model.capabilities import Capability
from lockgate.model.files import Rename, RenameOutcome
from lockgate.stores.local import LocalStore

NAMES = ["a b.parquet", "50%.csv", "x+y#z?.json", "ü/日本.orc", "t=10%3A00/p.parquet", "n" * 200, "quote'\"\\.x"]


def test_complete_all_files_of_all_committed_tasks_are_in_place(table) -> None:
    job = table.job()
    receipts = [table.task(job, {f"{name}-{task}": name.encode() for name in NAMES}, task) for task in range(5)]
    summary = job.commit(receipts)
    assert table.read() == {f"{name}-{task}": name.encode() for name in NAMES for task in range(5)}
    assert (summary.files, summary.success) == (5 * len(NAMES), True)
    assert not table.left_over()


def test_complete_without_receipts_the_manifests_that_are_found_are_committed(table) -> None:
    job = table.job()
    for task in range(3):
        table.task(job, {f"f{task}": b"x"}, task)
    job.commit()
    assert set(table.read()) == {"f0", "f1", "f2"}


def test_complete_a_directory_filled_by_somebody_else_is_scanned(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    work = Path(attempt.working_directory.removeprefix("file://"))
    (work / "p=1").mkdir()
    (work / "p=1" / "part 0").write_bytes(b"theirs")
    job.commit([attempt.commit()])
    assert table.read() == {"p=1/part 0": b"theirs"}


def test_exclusive_nothing_of_a_failed_or_uncommitted_attempt_is_in_the_output(table) -> None:
    job = table.job()
    failed = job.task_attempt(0, 0)
    failed.setup()
    with failed.open("failed") as file:
        file.write(b"x")
    failed.abort()
    silent = job.task_attempt(1, 0)
    silent.setup()
    with silent.open("silent") as file:
        file.write(b"x")
    receipts = [table.task(job, {"good-0": b"x"}, 0, attempt=1), table.task(job, {"good-1": b"x"}, 1, attempt=1)]
    job.commit(receipts)
    assert set(table.read()) == {"good-0", "good-1"}


def test_exclusive_of_two_committed_attempts_of_a_task_one_is_in_the_output(table) -> None:
    job = table.job()
    table.task(job, {"first": b"x"}, 0, attempt=0)
    table.task(job, {"second": b"x"}, 0, attempt=1)
    job.commit()
    assert set(table.read()) == {"second"}


@pytest.mark.parametrize("pinned", [0, 1])
def test_pinned_the_attempt_whose_receipt_is_held_is_committed_whoever_came_last(table, pinned: int) -> None:
    job = table.job()
    receipts = [table.task(job, {f"attempt-{attempt}": b"x"}, 0, attempt=attempt) for attempt in (0, 1)]
    job.commit([receipts[pinned]])
    assert set(table.read()) == {f"attempt-{pinned}"}


def test_pinned_a_manifest_that_a_zombie_adds_is_ignored(table) -> None:
    job = table.job()
    receipt = table.task(job, {"mine": b"x"}, 0)
    table.task(job, {"zombie": b"x"}, 7)
    job.commit([receipt])
    assert set(table.read()) == {"mine"}


def test_pinned_a_receipt_whose_manifest_is_gone_stops_the_job_before_anything_moves(table) -> None:
    job = table.job()
    receipts = [table.task(job, {"a": b"x"}, 0), table.task(job, {"b": b"x"}, 1)]
    job.task_attempt(1).abort()
    with pytest.raises(ReceiptUnmatched, match="attempt_000001_0"):
        job.commit(receipts)
    assert table.read() == {}


def test_task_commit_is_idempotent_and_a_rivals_earlier_commit_is_no_failure(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    with attempt.open("f") as file:
        file.write(b"x")
    first = attempt.commit()
    assert attempt.commit() == first
    rival = table.task(job, {"g": b"x"}, 0, attempt=1)
    assert attempt.commit() == first
    job.commit([rival])
    assert set(table.read()) == {"g"}


def test_concurrent_tasks_commit_in_parallel(table) -> None:
    job = table.job()
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda task: table.task(job, {f"p={task % 3}/f{task}": b"x"}, task), range(40)))
    job.commit(receipts)
    assert len(table.read()) == 40


def test_concurrent_two_jobs_append_to_one_destination_at_once(table) -> None:
    barrier = threading.Barrier(2)

    def run(number: int) -> None:
        job = table.job()
        receipts = [table.task(job, {f"p={task}/j{number}-t{task}": b"x"}, task) for task in range(10)]
        barrier.wait()
        job.commit(receipts)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(2)))
    assert set(table.read()) == {f"p={t}/j{j}-t{t}" for j in range(2) for t in range(10)}
    assert not table.left_over()


def test_concurrent_a_finished_job_leaves_the_directories_of_one_at_work_alone(table) -> None:
    slow = table.job(job_id="job10")
    receipt = table.task(slow, {"slow": b"x"})
    quick = table.job(job_id="job1")
    quick.commit([table.task(quick, {"quick": b"x"})])
    slow.commit([receipt])
    assert set(table.read()) == {"slow", "quick"}


def test_abortable_an_abort_before_job_commit_leaves_nothing(table) -> None:
    table.write({"old": b"old"})
    before = table.everything()
    for stage in ("setup", "written", "committed"):
        job = table.job()
        if stage != "setup":
            attempt = job.task_attempt(0)
            attempt.setup()
            with attempt.open("new") as file:
                file.write(b"x")
            if stage == "committed":
                attempt.commit()
        job.abort()
        job.abort()
        assert table.everything() == before


def test_abortable_a_job_that_is_being_committed_or_is_committed_is_not_aborted(table) -> None:
    job = table.job(cleanup_skip=True)
    job.commit([table.task(job, {"f": b"x"})])
    with pytest.raises(CommitFenced):
        job.abort()
    assert set(table.read()) == {"f"}


def test_continuity_a_late_attempt_adds_nothing_after_job_commit(table) -> None:
    job = table.job()
    zombie = job.task_attempt(0, 0)
    zombie.setup()
    late = zombie.open("late-open")
    with zombie.open("late") as file:
        file.write(b"x")
    job.commit([table.task(job, {"good": b"x"}, 0, attempt=1)])
    after = table.everything()
    late.write(b"more")
    with pytest.raises(LockgateError):
        zombie.open("later")
    with pytest.raises(JobNotFound):
        zombie.setup()
    late.discard()
    with pytest.raises(JobNotFound):
        zombie.commit()
    assert table.everything() == after


def test_fenced_a_second_driver_gets_an_error_that_names_the_first(table) -> None:
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"f": b"x"})
    twin = pickle.loads(pickle.dumps(job))
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    with pytest.raises(CommitFenced, match=f"process {os.getpid()}"):
        twin.commit([receipt])
    assert table.read() == {}


def test_fenced_of_drivers_that_commit_one_job_at_once_exactly_one_succeeds(table) -> None:
    for _ in range(10):
        job = table.job()
        receipt = table.task(job, {f"f-{job.job_id}": b"x"})
        barrier = threading.Barrier(4)

        def commit(driver: Job, receipt=receipt, barrier=barrier) -> bool:
            barrier.wait()
            try:
                return driver.commit([receipt]).success
            except (CommitRefused, UsageError):
                return False

        drivers = [pickle.loads(pickle.dumps(job)) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(commit, drivers)) == 1


def test_fenced_a_second_job_of_the_same_id_is_refused_at_setup(table) -> None:
    table.job(job_id="20261121_0001")
    with pytest.raises(UsageError, match="another job has the id"):
        table.job(job_id="20261121_0001")


def test_fenced_a_driver_whose_job_was_aborted_commits_nothing(table) -> None:
    table.write({"old": b"old"})
    job = table.job(conflict="replace")
    pickle.loads(pickle.dumps(job)).abort()
    with pytest.raises(JobNotFound):
        job.commit()
    assert table.read() == {"old": b"old"}


def test_undoable_a_failure_restores_what_was_replaced(table) -> None:
    for policy in ("replace", "replace-partitions", "append"):
        for order in ("old-first", "new-first"):
            for path in list(table.everything()):
                (table.root / path).unlink()
            table.write({"p=1/old": b"1", "p=2/old": b"2", "blocked": b"file"}, conflict="replace")
            before = table.everything()
            for wanted in ("p=3/new", "p=1/new"):
                job = table.job(conflict=policy, replace_order=order)
                # An append would be refused before it moves anything: a file stands in the way of a directory.
                blocked = {} if policy == "append" else {"blocked/new": b"n"}
                receipt = table.task(job, {"p=1/new": b"n", "p=3/new": b"n", **blocked})
                make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
                with pytest.raises(CommitFailed, match="restored"):
                    job.commit([receipt])
                assert table.read() == {k: v for k, v in before.items() if not k.startswith("_")}, (
                    policy,
                    order,
                    wanted,
                )
                assert table.everything()["_SUCCESS"] == before["_SUCCESS"]
                assert not (table.root / "p=3").exists()
                job.abort()
                assert table.everything() == before


def test_undoable_every_call_of_a_job_commit_may_fail(table) -> None:
    """Each store call in turn raises once; afterwards the destination is as before, or as committed."""
    table.write({"p=1/old": b"1", "p=2/old": b"2"})
    before = table.read()
    for number in range(200):
        job = table.job(conflict="replace-partitions", validate_output=True)
        receipt = table.task(job, {"p=1/new": b"n", "p=3/new": b"n"})
        store = make_faulty(job)
        count = 0

        def fail_at(name: str, subject: object, number: int = number) -> bool:
            nonlocal count
            count += 1
            return count == number + 1

        store.fail_at = fail_at
        try:
            job.commit([receipt])
        except (LockgateError, Stop):
            after = table.read()
            if "p=1/new" in after:
                assert after == {"p=1/new": b"n", "p=2/old": b"2", "p=3/new": b"n"}
                assert number > 15, "only the very last calls may fail after the commit point"
                break
            assert after == before, (number, store.calls[-1])
            store.fail_at = lambda name, subject: False
            job.abort()
            continue
        pytest.fail(f"call {number} was not made")
    assert number > 15


def test_undoable_replaced_data_is_not_deleted_before_the_commit_point(table) -> None:
    table.write({"p=1/old": b"1"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"p=1/new": b"n"})
    store = make_faulty(job)

    def before(name: str, subject: object) -> None:
        committed = (table.root / "_SUCCESS").exists() and job.job_id.encode() in (table.root / "_SUCCESS").read_bytes()
        if not committed:
            assert b"1" in table.everything().values(), (name, subject)

    store.before = before
    job.commit([receipt])
    assert table.read() == {"p=1/new": b"n"}


def test_the_commit_point_is_the_last_thing_before_cleanup(table) -> None:
    job = table.job(validate_output=True)
    receipt = table.task(job, {"p=1/new": b"n"})
    store = make_faulty(job)

    def before(name: str, subject: object) -> None:
        if name == "rename_files" and subject[0].target == "_SUCCESS":
            assert table.read() == {"p=1/new": b"n"}
        else:
            assert not (table.root / "_SUCCESS").exists() or name in (
                "create_file",
                "make_directories",
                "read_files",
                "delete_directories",
                "delete_files",
                "delete_empty_directories",
            )

    store.before = before
    job.commit([receipt])


def test_a_lost_answer_of_a_rename_is_found_out_by_identity(table) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1", "b": b"2"})
    make_faulty(job).lose = lambda target: target == "a"
    summary = job.commit([receipt])
    assert table.read() == {"a": b"1", "b": b"2"}
    assert summary.lockgate.renames_recovered == 1


def test_contained_a_symbolic_link_that_leads_out_stops_the_job_before_anything_moves(table, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    table.root.mkdir()
    (table.root / "p=1").symlink_to(outside)
    job = table.job()
    receipts = [table.task(job, {"ok": b"x"}, 0), table.task(job, {"p=1/new": b"x"}, 1)]
    with pytest.raises(LockgateError, match="leads out"):
        job.commit(receipts)
    assert sorted(os.listdir(outside)) == ["secret"]
    assert "ok" not in os.listdir(table.root)


def test_contained_a_link_that_comes_during_the_commit_is_not_written_through(
    table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody moves a partition to another disk, and leaves a link, after the commit has looked for links."""
    outside = tmp_path / "outside"
    table.write({"p=1/old": b"x"})
    job = table.job()
    receipts = [table.task(job, {"p=1/new": b"y"})]
    rename = LocalStore.rename_files

    async def once_it_is_moved(store: LocalStore, renames: Sequence[Rename], *more: Any) -> list[RenameOutcome]:
        if not outside.exists() and any(each.target == "p=1/new" for each in renames):
            (table.root / "p=1").rename(outside)
            (table.root / "p=1").symlink_to(outside)
        return await rename(store, renames, *more)

    monkeypatch.setattr(LocalStore, "rename_files", once_it_is_moved)
    with pytest.raises(LockgateError, match="leads out of the destination"):
        job.commit(receipts)
    assert sorted(os.listdir(outside)) == ["old"]


def test_contained_a_staged_file_that_is_a_link_is_not_committed(table, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    work = Path(attempt.working_directory.removeprefix("file://"))
    (work / "leak").symlink_to(tmp_path / "secret")
    receipt = attempt.commit()
    with pytest.raises(ManifestInvalid, match="not a regular file"):
        job.commit([receipt])
    assert table.read() == {}


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_contained_a_replace_never_follows_a_link(table, tmp_path: Path, policy: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    table.write({"p=1/old": b"x"})
    (table.root / "link").symlink_to(outside)
    table.write({"p=1/new": b"y"}, conflict=policy)
    assert (outside / "precious").read_bytes() == b"x"


def test_two_tasks_that_write_one_path_stop_the_job_before_anything_moves(table) -> None:
    job = table.job()
    receipts = [table.task(job, {"same": b"x", f"own-{task}": b"x"}, task) for task in range(2)]
    with pytest.raises(DuplicateTarget, match="same"):
        job.commit(receipts)
    assert table.read() == {}


def test_a_refused_commit_may_be_mended_and_committed_again(table) -> None:
    job = table.job()
    receipts = [table.task(job, {"f": b"x"}, task) for task in range(2)]
    with pytest.raises(DuplicateTarget):
        job.commit(receipts)
    job.commit(receipts[:1])
    assert table.read() == {"f": b"x"}


def test_declared_a_store_without_a_needed_capability_is_refused_by_name(table, monkeypatch) -> None:
    reduced = frozenset({Capability.ATOMIC_WRITE})
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda self: reduced))
    with pytest.raises(CapabilityMissing) as caught:
        registry_of(JobOptions()).open_destination(str(table.root), JobOptions())
    assert "create-if-absent" in str(caught.value)
    assert "Next:" in str(caught.value)


def test_undoable_when_success_cannot_be_put_in_place(table) -> None:
    table.write({"p=1/old": b"1"})
    before = table.read()
    (table.root / "_SUCCESS").unlink()
    (table.root / "_SUCCESS" / "in the way").mkdir(parents=True)
    job = table.job(conflict="replace")
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([table.task(job, {"p=1/new": b"2"})])
    assert table.read() == before
    assert table.left_over() == []


@pytest.mark.parametrize("name", ["n" * 256, "p=1/" + "\u00fc" * 128 + "/f"])
def test_abortable_a_name_that_is_too_long_is_refused_before_anything_moves(table, name) -> None:
    table.write({"p=1/old": b"old"})
    before = table.everything()
    job = table.job(conflict="replace")
    with pytest.raises(ManifestInvalid, match="longer than 255 bytes"):
        table.task(job, {"p=1/new": b"new", name: b"new"})
    job.abort()
    assert table.everything() == before

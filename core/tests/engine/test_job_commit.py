"""What a job commit does by its options: policies, cleanup, reports, transactions, and jobs that meet."""

from __future__ import annotations

import contextlib
import json
import pickle
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions
from lockgate.api.job import Job as ApiJob
from lockgate.cli.main import app
from lockgate.errors import (
    CleanupFailed,
    CommitFailed,
    DestinationConflict,
    FileExists,
    LockgateError,
    PathError,
    StoreError,
    UsageError,
)
from lockgate.model.phases import Phase
from lockgate.model.summary import FileList, decode_file_list, decode_summary
from typer.testing import CliRunner


def test_append_adds(table) -> None:
    table.write({"p=1/a": b"1"})
    table.write({"p=1/b": b"2"})
    assert table.read() == {"p=1/a": b"1", "p=1/b": b"2"}


def test_append_of_a_name_that_exists_fails_and_restores(table) -> None:
    table.write({"a": b"1"})
    with pytest.raises(CommitFailed, match="target exists"):
        table.write({"b": b"2", "a": b"2"})
    assert table.read() == {"a": b"1"}


def test_delete_target_files_replaces_a_file_of_the_same_name_only(table) -> None:
    table.write({"a": b"1", "b": b"1"})
    table.write({"a": b"2"}, delete_target_files=True)
    assert table.read() == {"a": b"2", "b": b"1"}


def test_fail_refuses_a_destination_with_data_at_setup_and_again_at_commit(table) -> None:
    early = table.job(conflict="fail")
    receipt = table.task(early, {"early": b"x"})
    table.write({"a": b"1"})
    with pytest.raises(DestinationConflict):
        table.job(conflict="fail")
    with pytest.raises(DestinationConflict):
        early.commit([receipt])
    assert table.read() == {"a": b"1"}


@pytest.mark.parametrize("order", ["old-first", "new-first"])
def test_replace_replaces_the_destination(table, order: str) -> None:
    table.write({"p=1/a": b"1", "p=2/a": b"1", "top": b"1"})
    table.write({"p=1/a": b"2", "p=3/n": b"2"}, conflict="replace", replace_order=order)
    assert table.read() == {"p=1/a": b"2", "p=3/n": b"2"}


@pytest.mark.parametrize("order", ["old-first", "new-first"])
def test_replace_partitions_replaces_the_leaf_directories_it_writes(table, order: str) -> None:
    table.write({"p=1/a": b"1", "p=2/a": b"1", "top": b"1"})
    table.write({"p=1/n": b"2", "p=3/n": b"2"}, conflict="replace-partitions", replace_order=order)
    assert table.read() == {"p=1/n": b"2", "p=2/a": b"1", "p=3/n": b"2", "top": b"1"}


def test_an_empty_replace_empties_the_destination(table) -> None:
    table.write({"a": b"1"})
    job = table.job(conflict="replace")
    job.commit([])
    assert table.read() == {}


def test_a_file_where_a_directory_must_be_gives_way_to_a_job_that_replaces(table) -> None:
    for name, policy in (("a", "replace"), ("d", "replace-partitions")):
        table.write({name: b"file"}, conflict="replace")
        table.write({f"{name}/b/c": b"x"}, conflict=policy)
        assert table.read() == {f"{name}/b/c": b"x"}


def test_cleanup_is_skipped_by_option(table) -> None:
    table.write({"a": b"1"}, cleanup_skip=True)
    assert table.left_over()


def test_cleanup_failures_are_ignored_by_option_only(table) -> None:
    for ignore in (True, False):
        job = table.job(cleanup_ignore_failures=ignore)
        receipt = table.task(job, {f"f-{ignore}": b"x"})
        store = make_faulty(job)

        def refuse(name: str, subject: object) -> None:
            if name == "delete_directories":
                raise StoreError("planned")

        store.before = refuse
        if ignore:
            assert job.commit([receipt]).success
        else:
            with pytest.raises(CleanupFailed, match="is committed"):
                job.commit([receipt])
    assert set(table.read()) == {"f-True", "f-False"}, "a failing cleanup never undoes a commit"


def test_resumable_a_job_that_can_change_nothing_after_its_commit_point_is_ended_by_the_command_that_is_told(
    table,
) -> None:
    """`gc` and `recover` took its driver for alive, and named one another."""
    job = table.job()
    receipt = table.task(job, {"a": b"x"})
    store = make_faulty(job)

    def refuse(name: str, subject: object) -> None:
        if (table.root / "_SUCCESS").exists() and name in ("create_file", "write_file", "delete_directories"):
            raise StoreError("planned")

    store.before = refuse
    with pytest.raises(CleanupFailed, match="is committed") as caught:
        job.commit([receipt])
    words = shlex.split(caught.value.next_step.partition("changes again, ")[2].partition(" cleans up")[0])
    assert words[:2] == ["lockgate", "recover"]
    assert CliRunner().invoke(app, words[1:]).exit_code == 0
    assert not table.left_over()
    table.write({"b": b"1"})


def test_success_is_marked_unless_switched_off(table) -> None:
    table.write({"a": b"1"}, mark_success=False)
    assert "_SUCCESS" not in table.everything()
    table.write({"b": b"1"})
    assert decode_summary(table.everything()["_SUCCESS"], name="x").files == 1


def test_the_directory_of_jobs_goes_when_it_is_empty_and_stays_when_it_is_not(table) -> None:
    other = table.job()
    table.write({"a": b"1"})
    assert (table.root / "_lockgate/jobs").exists()
    other.abort()
    assert not (table.root / "_lockgate/jobs").exists()


def test_the_summary_lists_every_file_with_length_and_identity(table) -> None:
    job = table.job()
    summary = job.commit([table.task(job, {f"f{n}": b"x" * n for n in range(5)}, rows_written=9)])
    on_disk = decode_summary((table.root / "_SUCCESS").read_bytes(), name="x")
    assert on_disk.lockgate.files == summary.lockgate.files
    for file in on_disk.lockgate.files.inline:
        found = (table.root / file.path).stat()
        assert (file.length, file.identity) == (
            found.st_size,
            f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}",
        ) or file.length == found.st_size
    assert on_disk.counters["rows_written"] == 9
    assert on_disk.bytes == 10


def test_a_long_list_of_files_goes_to_a_companion_that_the_summary_names(table) -> None:
    job = table.job(file_list_inline_max=10)
    summary = job.commit([table.task(job, {f"f{n:03d}": b"x" for n in range(150)})])
    files: FileList = summary.lockgate.files
    assert (files.count, len(files.inline), len(summary.filenames)) == (150, 0, 100)
    listed = list(decode_file_list((table.root / files.companion).read_bytes(), files, name="x"))
    assert [file.path for file in listed] == [f"f{n:03d}" for n in range(150)]


def test_the_summary_is_reported_elsewhere_on_success_and_on_failure(table, tmp_path) -> None:
    reports = f"file://{tmp_path}/reports"
    good = table.write({"a": b"1"}, summary_report_directory=reports)
    bad = table.job(summary_report_directory=reports)
    with pytest.raises(CommitFailed):
        bad.commit([table.task(bad, {"a": b"2"})])
    report = json.loads((tmp_path / "reports" / f"summary-{good.job_id}.json").read_bytes())
    assert report["success"] is True
    report = json.loads((tmp_path / "reports" / f"summary-{bad.job_id}.json").read_bytes())
    assert report["success"] is False
    assert "target exists" in report["lockgate"]["error"]
    assert report["diagnostics"]["stage"] == "rename_files"


def test_manifests_are_kept_elsewhere(table, tmp_path) -> None:
    job = table.write({"a": b"1"}, diagnostics_manifest_directory=str(tmp_path / "kept"))
    assert [path.name for path in (tmp_path / "kept" / job.job_id).iterdir()] == ["task_000000-manifest.json"]


def test_a_report_that_cannot_be_written_does_not_fail_the_job(table, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    table.write({"a": b"1"}, summary_report_directory=str(tmp_path / "file" / "x"))
    assert table.read() == {"a": b"1"}


def test_saving_the_manifest_is_retried(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("f") as file:
        file.write(b"x")
    store = make_faulty(job)
    calls = count()

    def flaky(name: str, subject: object) -> None:
        if name == "write_file" and next(calls) < 3:
            from lockgate.errors import StoreUnavailable

            raise StoreUnavailable("planned")

    store.before = flaky
    job.commit([attempt.commit()])
    assert table.read() == {"f": b"x"}


def test_task_commit_lists_nothing_when_the_attempt_wrote_through_lockgate(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/f") as file:
        file.write(b"x")
    store = make_faulty(job)
    attempt.commit()
    assert [name for name, _ in store.calls] == ["write_file", "rename_files"]


def test_a_task_attempt_refuses_wrong_use(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path in ("", "/abs", "a/../b", "a//b", "."):
        with pytest.raises(PathError):
            attempt.open(path)
    file = attempt.open("f")
    with pytest.raises(FileExists):
        attempt.open("f")
    with pytest.raises(UsageError, match="still open"):
        attempt.commit()
    file.close()
    with pytest.raises(FileExists):
        attempt.open("f")
    with pytest.raises(ValueError, match="planned"), attempt.open("g") as file:
        file.write(b"half")
        raise ValueError("planned")
    job.commit([attempt.commit()])
    assert table.read() == {"f": b""}


def test_the_same_transaction_id_takes_effect_once(table) -> None:
    first = table.job(txn_id="batch 7/ü")
    summary = first.commit([table.task(first, {"a": b"1"})])
    again = table.job(txn_id="batch 7/ü")
    assert again.commit([table.task(again, {"b": b"2"})]).job_id == summary.job_id
    assert first.commit([]).job_id == summary.job_id
    other = table.job(txn_id="batch 8")
    other.commit([table.task(other, {"c": b"3"})])
    assert table.read() == {"a": b"1", "c": b"3"}
    assert not table.left_over()


def test_a_transaction_whose_first_driver_died_is_finished_by_the_second(table) -> None:
    """Whatever call the first driver died before, exactly one of the two jobs takes effect."""
    for number in range(100):
        txn = f"t{number}"
        first = table.job(txn_id=txn, on_failure="leave")
        receipt = table.task(first, {f"{txn}/first": b"1"})
        store = make_faulty(first)
        calls = count()
        store.fail_at = lambda name, subject, calls=calls, number=number: next(calls) >= number
        try:
            first.commit([receipt])
            died = False
        except Exception:
            died = True
        second = table.job(txn_id=txn)
        second_receipt = table.task(second, {f"{txn}/second": b"2"})
        _as_if_gone(first)
        summary = second.commit([second_receipt])
        found = [path for path in table.read() if path.startswith(f"{txn}/")]
        assert len(found) == 1, (number, found)
        assert summary.lockgate.txn_id == txn
        for job in (first, second):
            if (table.root / job.layout.job_directory).exists():
                with contextlib.suppress(LockgateError, Stop):
                    job.abort()
        if not died:
            break
    assert number > 15


def _as_if_gone(job: Job) -> None:
    """Rewrite the holder's process in the record to one that does not run."""
    for path in (Path(job.url.removeprefix("file://")) / job.layout.job_directory).glob("commit*"):
        record = json.loads(path.read_text())
        record["holder"]["process"] = 2**22 - 1
        path.write_text(json.dumps(record))


def test_commits_of_one_transaction_id_at_once_take_effect_once(table) -> None:
    jobs = [table.job(txn_id="same") for _ in range(4)]
    receipts = [table.task(job, {f"f{n}": b"x"}) for n, job in enumerate(jobs)]
    with ThreadPoolExecutor(4) as pool:
        summaries = list(pool.map(lambda pair: pair[0].commit([pair[1]]), zip(jobs, receipts, strict=True)))
    assert len({summary.job_id for summary in summaries}) == 1
    assert len(table.read()) == 1


@pytest.mark.parametrize("policy", ["replace", "replace-partitions", "fail"])
def test_of_jobs_that_meet_one_goes_on_and_the_others_move_nothing(table, policy: str) -> None:
    for _ in range(5):
        jobs = [table.job(conflict=policy) for _ in range(3)] if policy != "fail" or not table.read() else []
        receipts = [table.task(job, {f"p=1/{job.job_id}": b"x"}) for job in jobs]
        barrier = threading.Barrier(max(len(jobs), 1))

        def commit(pair, barrier=barrier) -> str | None:
            barrier.wait()
            try:
                return pair[0].commit([pair[1]]).job_id
            except DestinationConflict:
                pair[0].abort()
                return None

        with ThreadPoolExecutor(3) as pool:
            won = [job for job in pool.map(commit, zip(jobs, receipts, strict=True)) if job]
        if jobs:
            assert won
            assert len(table.read()) == 1


def test_a_job_that_has_yielded_and_is_being_aborted_is_in_nobodys_way(table) -> None:
    """Who waited for it to yield took it for one that had gone on: of three that met, none committed."""
    yields, goes_on = table.job(conflict="fail"), table.job(conflict="replace")
    table.write({"p=1/old": b"old"})
    with pytest.raises(DestinationConflict):
        yields.commit([table.task(yields, {"p=1/a": b"a"})])
    make_faulty(yields).fail_at = lambda name, subject: name.startswith("delete")
    with contextlib.suppress(Stop):
        yields.abort()
    (state,) = [each for each in lockgate.jobs(str(table.root)) if each.job_id == yields.job_id]
    assert state.phase is Phase.ROLLING_BACK
    goes_on.commit([table.task(goes_on, {"p=1/b": b"b"})])
    assert set(table.read()) == {"p=1/b"}


def test_jobs_that_meet_go_one_after_the_other_if_asked_to_wait(table) -> None:
    jobs = [table.job(conflict="replace", when_jobs_meet="wait") for _ in range(4)]
    receipts = [table.task(job, {f"p=1/{n}": b"x", f"p=2/{n}": b"x"}) for n, job in enumerate(jobs)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda pair: pair[0].commit([pair[1]]), zip(jobs, receipts, strict=True)))
    found = {path.rpartition("/")[2] for path in table.read()}
    assert len(found) == 1, "the result is that of some serial order"
    assert len(table.read()) == 2


def test_jobs_on_disjoint_partitions_never_disturb_each_other(table) -> None:
    jobs = [table.job(conflict="replace-partitions") for _ in range(6)]
    receipts = [table.task(job, {f"p={n}/f": b"x"}) for n, job in enumerate(jobs)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda pair: pair[0].commit([pair[1]]), zip(jobs, receipts, strict=True)))
    assert set(table.read()) == {f"p={n}/f" for n in range(6)}


def test_a_job_is_picklable_and_keeps_its_options_and_id(table) -> None:
    job = table.job(conflict="replace")
    twin: ApiJob = pickle.loads(pickle.dumps(job))
    assert (twin.job_id, twin.options, twin.url) == (job.job_id, job.options, job.url)


def test_a_job_is_made_with_keywords_too(tmp_path) -> None:
    assert Job(str(tmp_path), conflict="replace").options == JobOptions(conflict="replace")
    with pytest.raises(UsageError, match="did you mean conflict"):
        Job(str(tmp_path), conflikt="replace")


def test_on_failure_leave_keeps_everything_for_recovery(table) -> None:
    table.write({"p=1/old": b"1"})
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"2"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed, match="lockgate recover") as caught:
        job.commit([receipt])
    assert isinstance(caught.value.__cause__, Stop)
    assert any(path.endswith("/_0") and job.layout.replaced in path for path in table.left_over())

"""`Job` and `TaskAttempt` as Python users meet them: where they write, what they say when used wrongly."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import lockgate
import pytest
from faulty_store import make_faulty
from lockgate import Job
from lockgate.api.outside import real_runtime
from lockgate.errors import (
    CommitFailed,
    DestinationConflict,
    DuplicateTarget,
    JobNotFound,
    LockgateError,
    PathError,
    UsageError,
)
from lockgate.model.record import Holder


def test_a_scan_commits_opened_files_under_the_paths_they_were_opened_for(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("year=2024/part-0.parquet") as file:
        file.write(b"opened")
    found = Path(attempt.working_directory.removeprefix("file://")) / "year=2025"
    found.mkdir()
    (found / "part-1.parquet").write_bytes(b"found")
    job.commit([attempt.commit(scan=True)])
    assert table.read() == {"year=2024/part-0.parquet": b"opened", "year=2025/part-1.parquet": b"found"}


def test_a_found_file_with_the_path_of_an_opened_one_is_refused(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("a.bin") as file:
        file.write(b"opened")
    (Path(attempt.working_directory.removeprefix("file://")) / "a.bin").write_bytes(b"found")
    with pytest.raises(DuplicateTarget, match=r"a\.bin"):
        attempt.commit(scan=True)


def test_files_that_another_object_opened_are_not_committed_under_other_names(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("year=2024/part-0.parquet") as file:
        file.write(b"opened")
    for scan in (None, True):
        with pytest.raises(UsageError, match="opened by its path elsewhere"):
            job.task_attempt(0).commit(scan=scan)
    job.commit([pickle.loads(pickle.dumps(attempt)).commit()])
    assert table.read() == {"year=2024/part-0.parquet": b"opened"}


def test_an_open_file_is_never_committed(table) -> None:
    attempt = table.job().task_attempt(0)
    attempt.setup()
    with attempt.open("a.bin"):
        for scan in (None, True, False):
            with pytest.raises(UsageError, match="still open"):
                attempt.commit(scan=scan)


def test_an_attempt_that_discarded_all_it_opened_commits_nothing(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    attempt.open("a.bin").discard()
    (Path(attempt.working_directory.removeprefix("file://")) / "_0-bin-1f2e3d_").write_bytes(
        b"left by a discard that failed"
    )
    assert attempt.commit().files == 0


def test_an_attempt_can_be_pickled_with_what_it_wrote(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("year=2024/part-0.parquet") as file:
        file.write(b"1")
    job.commit([pickle.loads(pickle.dumps(attempt)).commit()])
    assert table.read() == {"year=2024/part-0.parquet": b"1"}


def test_an_aborted_attempt_takes_no_file_and_commits_nothing(table) -> None:
    attempt = table.job().task_attempt(0)
    attempt.setup()
    with attempt.open("a.bin") as file:
        file.write(b"1")
    attempt.abort()
    for act in (attempt.commit, lambda: attempt.commit(scan=True), lambda: attempt.open("b.bin"), attempt.setup):
        with pytest.raises(UsageError, match="was aborted"):
            act()


@pytest.mark.parametrize("form", [Path, str])
def test_a_relative_path_is_taken_from_where_the_job_is_made(tmp_path, monkeypatch, form) -> None:
    monkeypatch.chdir(tmp_path)
    job = Job(form("data/events"))
    assert job.url == f"file://{tmp_path}/data/events"
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(job))
    again.setup()
    again.commit([])
    assert (tmp_path / "data/events/_SUCCESS").exists()
    monkeypatch.chdir(tmp_path)
    assert [state.job_id for state in lockgate.jobs(form("data/events"))] == [job.job_id]
    assert lockgate.verify(form("data/../data/events")).checked == 0


@pytest.mark.parametrize("form", [Path, str])
def test_a_tilde_is_refused_where_a_home_directory_would_be_meant(tmp_path, monkeypatch, form) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("~", "~/events"):
        with pytest.raises(PathError, match="~ is not taken for a home directory"):
            Job(form(text))
    assert Job("~x").url == f"file://{tmp_path}/~x"
    assert Job("./~/x").url == f"file://{tmp_path}/~/x"


@pytest.mark.parametrize("wrong", [None, 7, b"/data"])
def test_what_is_no_path_is_told(wrong) -> None:
    with pytest.raises(PathError, match="a destination is a URL or a path"):
        Job(wrong)


def test_a_block_sets_up_and_commits(table) -> None:
    with Job(table.root) as job:
        job.commit([table.task(job, {"a": b"1"})])
    assert table.read() == {"a": b"1"}
    assert table.left_over() == []


def test_a_block_left_by_an_exception_aborts(table) -> None:
    with pytest.raises(ZeroDivisionError), Job(table.root) as job:
        table.task(job, {"a": b"1"})
        raise ZeroDivisionError
    assert table.everything() == {}


def test_a_block_left_without_a_commit_aborts_and_says_so(table) -> None:
    with pytest.raises(UsageError, match="ended without a commit"), Job(table.root) as job:
        table.task(job, {"a": b"1"})
    assert table.everything() == {}
    with Job(table.root) as job:
        job.abort()


def test_a_block_whose_commit_was_refused_leaves_nothing(table) -> None:
    table.write({"a": b"old"})
    job = Job(table.root)
    with pytest.raises(DestinationConflict), job:
        receipt = table.task(job, {"b": b"new"})
        job.options = job.options.replace(conflict="fail")
        job.commit([receipt])
    assert table.read() == {"a": b"old"}
    assert table.left_over() == []


def test_a_block_leaves_what_its_commit_left_for_recovery(table, monkeypatch) -> None:
    with pytest.raises(CommitFailed) as caught, Job(table.root, on_failure="leave") as job:
        receipt = table.task(job, {"a": b"1"})
        (table.root / "a").write_bytes(b"somebody else's")
        job.commit([receipt])
    assert any("was not aborted" in note for note in caught.value.__notes__)
    assert [state.phase for state in lockgate.jobs(table.root)] == ["moving"]


def test_a_forgotten_setup_of_the_job_says_so(table) -> None:
    job = Job(table.root)
    for act in (job.plan, job.commit, lambda: job.plan([]), lambda: job.commit([])):
        with pytest.raises(JobNotFound, match="is not set up") as caught:
            act()
        assert "call setup() on the job" in caught.value.next_step
    with pytest.raises(JobNotFound, match="not set up"):
        job.task_attempt(0).setup()
    assert not table.root.exists()


def test_a_forgotten_setup_of_an_attempt_says_so(table) -> None:
    attempt = table.job().task_attempt(3)
    with pytest.raises(UsageError, match="attempt_000003_0 is not set up") as caught:
        attempt.open("a")
    assert "call setup() on the task attempt" in caught.value.next_step
    with pytest.raises(UsageError, match="attempt_000003_0 is not set up"):
        attempt.commit()


def test_a_second_commit_says_that_it_is_done_already(table) -> None:
    job = table.job()
    elsewhere = pickle.loads(pickle.dumps(job))
    receipt = table.task(job, {"a": b"1"})
    job.commit([receipt])
    for each in (job, elsewhere, pickle.loads(pickle.dumps(job))):
        with pytest.raises(JobNotFound, match="is committed already"):
            each.commit([receipt])
        with pytest.raises(JobNotFound, match="is committed already"):
            each.plan([receipt])
    table.write({"b": b"1"})
    with pytest.raises(JobNotFound, match="is committed already"):
        job.commit([receipt])
    with pytest.raises(JobNotFound, match="committed already"):
        elsewhere.commit([receipt])
    aborted = table.job()
    aborted.abort()
    with pytest.raises(JobNotFound, match="is aborted already"):
        aborted.commit([])


def test_the_summary_and_its_file_tell_the_version(table) -> None:
    job = table.job()
    summary = job.commit([table.task(job, {"a": b"1"})])
    assert summary.lockgate is not None
    assert summary.lockgate.version == lockgate.__version__ != ""


def test_reprs_are_one_short_line(table) -> None:
    job = table.job()
    receipt = table.task(job, {f"p={n}/a": b"12" for n in range(200)}, rows=5)
    plan = job.plan([receipt])
    (running,) = lockgate.jobs(table.root)
    summary = job.commit([receipt])
    attempt = job.task_attempt(0)
    shown = [job, job.options, attempt, receipt, plan, running, summary, lockgate.verify(table.root)]
    assert {type(each).__name__: len(repr(each)) for each in shown if len(repr(each)) > 160} == {}
    assert repr(receipt) == f"Receipt('attempt_000000_0', job_id={job.job_id!r}, files=200, bytes=400)"
    assert repr(summary) == f"Summary(job_id={job.job_id!r}, success=True, files=200, bytes=400)"
    assert repr(plan) == "CommitPlan(policy='append', task_attempts=1, files=200, bytes=400, set_aside=0)"


def test_doctor_has_a_name_in_python(tmp_path) -> None:
    assert {probe.verdict for probe in lockgate.doctor(tmp_path / "new")} <= {"ok", "absent", "not probed", "unclaimed"}


def test_a_driver_that_has_ended_is_gone_even_while_its_parent_has_not_asked() -> None:
    runtime = real_runtime(lambda event: None)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = Holder("nonce", runtime.host, child.pid)
    assert not runtime.is_gone(holder)
    assert child.stdin is not None
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert runtime.is_gone(holder)
    child.wait()
    assert runtime.is_gone(holder)


def test_an_empty_destination_is_not_the_current_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(PathError, match="the destination is empty"):
        Job("", conflict="replace")
    assert Job(Path(), conflict="replace").url == Job(".").url == f"file://{tmp_path}"


@pytest.mark.parametrize("below", ["_temporary/x", "_lockgate", "a/_temporary/b/c"])
def test_no_destination_is_where_committers_delete(tmp_path, below) -> None:
    with pytest.raises(PathError, match="a name that committers keep for themselves"):
        Job(tmp_path / below)


def test_a_setup_that_is_repeated_with_other_options_corrects_the_marker(table) -> None:
    """Who sets a job up first may not know all of its options, as Spark's planner does not."""
    table.write({"p=0/old": b"old", "p=1/old": b"old"})
    first = Job(table.root, conflict="replace", nonce="same", job_id="job")
    first.setup()
    knows_more = Job(table.root, conflict="replace-partitions", nonce="same", job_id="job")
    knows_more.setup()
    table.task(knows_more, {"p=1/new": b"new"})
    lockgate.commit(str(table.root), "job", force=True)
    assert table.read() == {"p=0/old": b"old", "p=1/new": b"new"}


def test_a_job_of_the_same_id_and_another_nonce_corrects_nothing(table) -> None:
    job = table.job("job", conflict="append")
    before = table.everything()
    with pytest.raises(UsageError, match="another job has the id"):
        Job(table.root, conflict="replace", job_id="job").setup()
    assert table.everything() == before
    job.abort()


def test_a_late_setup_does_not_delete_the_success_of_its_own_committed_job(table) -> None:
    """A task that sets its job up again looks at the old `_SUCCESS`, and sleeps until the job has committed."""
    table.write({"old": b"old"})
    job = table.job(delete_success_at_setup=True)
    (table.root / "_SUCCESS").write_bytes(b"")  # another committer's, come since
    late = pickle.loads(pickle.dumps(job))
    store = make_faulty(late)
    told = pickle.dumps((job, table.task(job, {"new": b"new"})))

    def commit_meanwhile(name: str, subject: object) -> None:
        if name == "rename_files":
            store.before = lambda name, subject: None
            subprocess.run([sys.executable, "-c", COMMIT], input=told, check=True)

    store.before = commit_meanwhile
    with contextlib.suppress(LockgateError):
        late.setup()
    assert lockgate.verify(table.root).findings == []
    assert table.read() == {"old": b"old", "new": b"new"}


COMMIT = "import pickle, sys; job, receipt = pickle.load(sys.stdin.buffer); job.commit([receipt])"

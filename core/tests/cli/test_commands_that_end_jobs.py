"""Who ends a job from outside is told what that would lose, and is not sent in a circle."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys

import lockgate
import pytest
from command_line import crashed, run
from faulty_store import Stop, make_faulty
from local_acts import CHANGES, Died, before_act, dies
from lockgate import Job, JobOptions, jobs, recover, verify
from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.record.ended_jobs import is_known_committed
from lockgate.errors import CommitFailed, CommitRefused, LockgateError, OptionError

DEAD = """
import sys
from lockgate import Job
job = Job(sys.argv[1], conflict=sys.argv[2])
job.setup()
receipts = []
for task in range(int(sys.argv[3])):
    attempt = job.task_attempt(task)
    attempt.setup()
    with attempt.open(f"p={task}/new") as file:
        file.write(b"new")
    if task == 0:
        receipts.append(attempt.commit())
    else:
        attempt.open(f"p={task}/open")
print(job.job_id, flush=True)
if len(sys.argv) > 4:
    try:
        job.commit(receipts)
    except Exception as error:
        print(type(error).__name__)
import os
os._exit(9)
"""


def dead(table, policy: str, tasks: int, *more: str) -> str:
    """The id of a job of a driver on this machine that is gone; the first of its tasks has committed."""
    done = subprocess.run(
        [sys.executable, "-c", DEAD, str(table.root), policy, str(tasks), *more], stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 9
    return done.stdout.split()[0]


@pytest.mark.parametrize("policy", ["append", "replace"])
def test_commit_does_not_leave_out_tasks_that_have_begun_without_a_word(table, policy) -> None:
    """One of three tasks had committed, and its file replaced the whole table, status 0."""
    table.write({"p=0/old": b"old"})
    job_id = dead(table, policy, 3)
    options = ("-o", "alive_seconds=0")
    status, _, err = run("commit", str(table.root), job_id, *options)
    assert status == 1
    assert "2 tasks of job" in err
    assert "task_000001, task_000002" in err
    assert "p=0/old" in table.read()
    assert run("commit", str(table.root), job_id, "--force")[0] == 0
    assert "p=0/new" in table.read()


def test_recover_does_not_name_commit_for_a_job_of_which_no_task_has_committed(table) -> None:
    job_id = dead(table, "replace", 0)
    for more in ([], ["--force"], ["-o", "alive_seconds=0"]):
        status, out, err = run("recover", str(table.root), job_id, *more)
        assert status == 1
        assert "lockgate abort" in out + err
        assert "lockgate commit" not in out + err


def test_a_refused_job_whose_driver_is_gone_is_committed_once_the_reason_is_gone(table) -> None:
    table.root.mkdir()
    (table.root / "p=0").mkdir()
    (table.root / "p=0/new").write_bytes(b"in the way")
    job_id = dead(table, "fail-partitions", 1, "commits")
    assert [state.status.value for state in jobs(str(table.root))] == ["refused"]
    (table.root / "p=0/new").unlink()
    assert run("commit", str(table.root), job_id)[0] == 0
    assert table.read() == {"p=0/new": b"new"}


@pytest.mark.parametrize(("on_failure", "undo"), [("leave", False), ("leave", True), ("rollback", None)])
def test_a_commit_that_its_living_driver_has_given_up_can_be_recovered_at_once(table, undo, on_failure) -> None:
    """The error named `lockgate recover`, which said that the driver may be at work, until its process had ended."""
    table.write({"p=0/old": b"old"})
    job = table.job(conflict="replace", on_failure=on_failure)
    receipt = table.task(job, {"p=0/new": b"new"})
    failed: list[str] = []

    def at_the_summary_and_while_it_rolls_back(name: str, subject: object) -> bool:
        if name == "write_file" and "_SUCCESS" in str(subject):
            failed.append(name)
            return True
        return bool(failed) and on_failure == "rollback" and name in ("delete_directories", "rename_files")

    make_faulty(job).fail_at = at_the_summary_and_while_it_rolls_back
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    assert [state.status.value for state in jobs(str(table.root))] == ["crashed"]
    # A rollback that has begun can only be gone on with.
    outcome = "finished" if undo is False else "undone"
    assert recover(str(table.root), job.job_id, undo=undo)[job.job_id].outcome == outcome
    assert table.read() == ({"p=0/new": b"new"} if outcome == "finished" else {"p=0/old": b"old"})


def test_where_recovery_cannot_finish_it_names_the_undo(table) -> None:
    job_id = crashed(table)
    for path in (table.root / "p=1").glob("*"):
        path.unlink()
    with pytest.raises(LockgateError) as caught:
        recover(str(table.root), job_id, force=True)
    assert "--undo" in caught.value.next_step


def test_a_directory_in_the_place_of_a_file_is_called_one(table) -> None:
    (table.root / "p=1/new").mkdir(parents=True)
    with pytest.raises(CommitFailed, match="found a directory") as caught:
        table.write({"p=1/new": b"new"})
    assert "move it away" in caught.value.next_step


def test_a_file_that_was_moved_is_no_other_commits_file(table) -> None:
    table.write({"p=1/a": b"1"})
    os.rename(table.root / "p=1/a", table.root / "p=1/z")
    found = verify(str(table.root))
    assert [(finding.fault, finding.path) for finding in found.findings] == [("moved", "p=1/a")]
    assert found.others == 0


@pytest.mark.parametrize("name", ["summary_report_directory", "diagnostics_manifest_directory"])
def test_a_directory_for_reports_is_checked_where_the_job_is_made(table, tmp_path, monkeypatch, name) -> None:
    with pytest.raises(OptionError, match=name):
        Job(str(table.root), JobOptions(**{name: "nonsense://bucket/reports"}))
    monkeypatch.chdir(tmp_path)
    table.write({"a": b"1"}, **{name: "reports"})
    assert list((tmp_path / "reports").iterdir())


def test_a_damaged_marker_says_how_the_job_is_ended(table) -> None:
    job = table.job()
    marker = table.root / "_lockgate/jobs" / job.job_id / "00/job.json"
    marker.write_text("{")
    status, out, err = run("jobs", str(table.root))
    assert status == 1
    assert f"{job.job_id} --force deletes the job" in out + err
    assert run("abort", str(table.root), job.job_id, "--force")[0] == 0
    assert lockgate.jobs(str(table.root)) == []


@pytest.mark.parametrize("refused", ["0", "nonsense"])
def test_a_bad_value_says_where_it_was_given(table, monkeypatch, refused) -> None:
    table.root.mkdir()
    monkeypatch.setenv("LOCKGATE_REQUESTS_IN_FLIGHT", refused)
    status, _, err = run("jobs", str(table.root))
    assert status == 2
    assert "given as an environment variable" in err


def test_a_job_without_a_committed_task_is_not_emptied_by_force(table) -> None:
    table.write({"p=0/old": b"old"})
    with pytest.raises(CommitRefused):
        lockgate.commit(str(table.root), dead(table, "replace", 0), force=True)
    assert table.read() == {"p=0/old": b"old"}


def test_an_abort_does_not_say_that_nothing_is_left_where_a_dead_attempt_has_saved_nothing(tmp_path) -> None:
    job = Job(tmp_path, protocol="direct", accept_unsafe=True, job_id="j")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/part") as file:
        file.write(b"of an attempt that died")
    status, out, err = run("abort", str(tmp_path), "j", "--force")
    assert status == 1
    assert (tmp_path / "p=1/part").exists()
    assert "nothing is left" not in out + err
    assert "What task attempts wrote that died may be in the destination" in " ".join(out.split())


@pytest.mark.parametrize("asked", ["abort", "commit"])
def test_a_committed_job_of_which_directories_are_left_is_told_as_committed(table, asked: str) -> None:
    job = table.job()
    job.commit([table.task(job, {"p=1/new": b"new"})])
    (table.root / f"_lockgate/jobs/{job.job_id}/00").mkdir(parents=True)  # a cleanup was killed
    status, out, error = run(asked, str(table.root), job.job_id, "--force")
    assert (status, out) == (2, "")
    assert "committed already" in error
    assert "again" not in error
    assert (table.root / "p=1/new").read_bytes() == b"new"


@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"protocol": "direct", "accept_unsafe": True}])
def test_undo_of_a_committed_job_is_refused_however_far_its_cleanup_has_come(tables, monkeypatch, options) -> None:
    """It was success, and "nothing to do", from where the job's marker is gone: a script ran the job once more."""
    died_after_the_commit = 0
    for number in range(1, 60):
        table = tables(str(number))
        table.write({"p=1/old": b"old"})
        job = table.job(**options)
        receipt = table.task(job, {"p=1/new": b"new"})
        with monkeypatch.context() as patch:
            done = before_act(patch, number, CHANGES, dies)
            with contextlib.suppress(Died):
                job.commit([receipt])
        if not IO_LOOP.run(is_known_committed(job._run())):
            continue
        died_after_the_commit += len(done) >= number
        status, out, err = run("recover", str(table.root), job.job_id, "--undo", "--force")
        assert status != 0, f"{number}: {out}"
        assert "is committed and cannot be undone" in err, f"{number}: {err}"
        assert table.read().keys() == {"p=1/old", receipt_path(table)}
        assert run("recover", str(table.root), job.job_id)[0] == 0
        if len(done) < number:
            break
    assert died_after_the_commit > 2
    assert number < 59


def receipt_path(table) -> str:
    return next(path for path in table.read() if path != "p=1/old")


def test_a_job_of_which_a_task_commit_was_cut_short_is_told_a_command_that_ends_it(table) -> None:
    """It lacked the --force that it needs."""
    job = table.job(protocol="v2", accept_unsafe=True)
    table.task(job, {"p=1/whole": b"1"}, task=0)
    attempt = job.task_attempt(1)
    attempt.setup()
    with attempt.open("p=1/part") as file:
        file.write(b"2")
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "manifest" in subject[0].source
    with pytest.raises(Stop):
        attempt.commit()
    status, _, err = run("commit", str(table.root), job.job_id, "--force")
    assert (status, "was interrupted" in err) == (1, True), err
    typed = err[err.index("lockgate abort") :].splitlines()[0]
    assert run(*shlex.split(typed)[1:])[0] == 0
    assert table.left_over() == []

"""A job whose transaction id was committed before commits nothing: `plan` and `commit` say so, and by which job; nobody
is told to move away what that job has committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run, run_json
from lockgate import Job, JobOptions, jobs, plan
from lockgate.engine import commit_once

DEAD = """
import sys
from lockgate import Job
job = Job(sys.argv[1], job_id=sys.argv[2], txn_id=sys.argv[3])
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
with attempt.open("p=1/part-0.bin") as file:
    file.write(b"x")
attempt.commit()
"""
"""A driver that dies before its commit."""


def dead(root: Path, job_id: str, txn_id: str = "t") -> None:
    subprocess.run([sys.executable, "-c", DEAD, str(root), job_id, txn_id], check=True, env=dict(os.environ))


def commit(root: Path, job_id: str, txn_id: str = "t") -> None:
    job = Job(str(root), job_id=job_id, txn_id=txn_id)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/part-0.bin") as file:
        file.write(b"x")
    job.commit([attempt.commit()])


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("job_id", ["load", "other"], ids=["an earlier run", "another job"])
@pytest.mark.parametrize("asked", [("plan",), ("commit", "--plan")])
def test_a_plan_of_a_job_whose_transaction_is_committed_says_so_and_touches_nothing(
    tmp_path: Path, job_id: str, asked: tuple[str, ...]
) -> None:
    commit(tmp_path, "load")
    dead(tmp_path, job_id)
    there = everything(tmp_path)
    status, _, told = run(*asked, str(tmp_path), job_id)
    assert status == 0
    by = "by an earlier run of job load" if job_id == "load" else "by job load"
    assert "A commit would do nothing but print the summary of an earlier one" in told
    assert f"the transaction 't' was committed before, {by}" in told
    _, document = run_json(*asked, str(tmp_path), job_id)
    assert document["committed_before"] == {"txn_id": "t", "job_id": "load"}
    assert (document["files"], document["renames"]) == (0, [])
    made = plan(tmp_path, job_id)
    assert (made.files, made.committed_before.job_id) == (0, "load")
    assert everything(tmp_path) == there


@pytest.mark.parametrize("job_id", ["load", "other"], ids=["an earlier run", "another job"])
def test_a_commit_of_a_job_whose_transaction_is_committed_says_by_which_and_lets_go_of_what_is_staged(
    tmp_path: Path, job_id: str
) -> None:
    commit(tmp_path, "load")
    committed = everything(tmp_path)
    dead(tmp_path, job_id)
    status, _, told = run("commit", str(tmp_path), job_id, "--force")
    assert status == 0
    assert f"Nothing of job {job_id} was committed now: the transaction 't' was committed before, by " in told
    assert "What its tasks had staged is deleted." in told
    assert everything(tmp_path) == committed
    dead(tmp_path, job_id)
    status, document = run_json("commit", str(tmp_path), job_id, "--force")
    assert (status, document["jobId"]) == (0, "load")
    assert document["committed_before"] == {"txn_id": "t", "job_id": "load", "stays": ""}
    assert everything(tmp_path) == committed
    assert [(state.job_id, state.status.value) for state in jobs(tmp_path)] == [("load", "committed")]


def test_a_commit_says_what_of_the_job_could_not_be_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tmp_path, "load")
    dead(tmp_path, "other")

    async def refused(*arguments: object, **named: object) -> None:
        raise commit_once.CommitFenced("job other is held by somebody", next_step="lockgate recover it")

    monkeypatch.setattr(commit_once, "abort_job", refused)
    status, _, told = run("commit", str(tmp_path), "other", "--force")
    assert status == 0
    assert "What this job's tasks have left was not all deleted: job other is held by somebody" in told


def test_a_job_that_commits_is_not_told_that_another_had(tmp_path: Path) -> None:
    dead(tmp_path, "load")
    status, document = run_json("commit", str(tmp_path), "load", "--force")
    assert status == 0
    assert "committed_before" not in document


def test_a_plan_in_the_driver_sees_that_the_transaction_is_committed(tmp_path: Path) -> None:
    job = Job(str(tmp_path), JobOptions(txn_id="t"), job_id="other")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/part-0.bin") as file:
        file.write(b"x")
    receipt = attempt.commit()
    assert job.plan([receipt]).files == 1
    commit(tmp_path, "load")
    before = job.plan([receipt]).committed_before
    assert before is not None
    assert (before.job_id, before.is_own) == ("load", False)


def test_recover_does_not_name_commit_for_a_job_whose_transaction_is_committed(tmp_path: Path) -> None:
    commit(tmp_path, "load")
    dead(tmp_path, "other")
    _, out, err = run("recover", str(tmp_path), "other", "-o", "alive_seconds=0")
    told = out + err
    assert "the transaction 't' was committed before, by job load" in told
    assert "lockgate commit" not in told
    assert "lockgate abort" in told

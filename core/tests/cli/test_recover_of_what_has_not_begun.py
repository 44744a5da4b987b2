"""A job whose driver died before its commit is nothing to recover, and `recover` says what can be done with it."""

from __future__ import annotations

import json
import shutil

import lockgate
import pytest
from command_line import crashed, run, run_json
from lockgate.errors import DestinationConflict, LockgateError

NO_LIFE = ("-o", "alive_seconds=0")


def test_recover_says_what_to_do_with_a_job_that_died_before_its_commit(table) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    status, out, _ = run("recover", str(table.root), job.job_id, *NO_LIFE)
    assert status == 1, "what was asked for could not be done"
    assert "its commit has not begun, and 1 task has committed" in out
    for command in ("commit", "abort"):
        assert f"lockgate {command} file://{table.root} {job.job_id}" in out
    status, out, _ = run("recover", str(table.root), *NO_LIFE)
    assert status == 0, "nothing crashed in its commit"
    assert "its commit has not begun" in out
    found = lockgate.recover(table.root, job.job_id)[job.job_id]
    assert (found.outcome, found.problem.endswith(found.next_step), bool(found.next_step)) == ("not begun", True, True)
    assert table.read() == {}


def test_recover_of_a_job_at_work_says_that_it_may_be(table) -> None:
    job = table.job()
    status, out, _ = run("recover", str(table.root), job.job_id)
    assert status == 1
    assert "it may be at work" in out
    status, out, err = run("recover", str(table.root))
    assert (status, err) == (0, ""), "a job at work is no problem"
    assert f"{job.job_id}: nothing to recover: its commit has not begun" in out
    assert f"lockgate abort file://{table.root} {job.job_id} --force" in out


def test_recover_of_all_says_which_commits_it_passed_over(table) -> None:
    dead = crashed(table)
    for record in (table.root / "_lockgate/jobs").rglob("commit*.json"):
        content = json.loads(record.read_text())
        content["holder"]["host"] = "another"
        record.write_text(json.dumps(content))
    status, out, _ = run("recover", str(table.root))
    assert status == 0
    assert f"{dead}: passed over (it was in phase moving): its driver, " in out
    assert f"lockgate recover file://{table.root} {dead} --force" in out
    passed_over = run_json("recover", str(table.root))[1][dead]
    assert (passed_over["outcome"], passed_over["next_step"]) == (
        "at work",
        f"lockgate recover file://{table.root} {dead} --force",
    )
    assert run_json("recover", str(table.root), "--force")[1][dead]["outcome"] == "finished"


def test_recover_of_a_refused_job_says_what_to_do(table) -> None:
    table.write({"a": b"1"})
    job = table.job()
    receipt = table.task(job, {"b": b"1"})
    job.options = job.options.replace(conflict="fail")
    with pytest.raises(DestinationConflict):
        job.commit([receipt])
    status, found = run_json("recover", str(table.root), job.job_id)
    assert (status, found[job.job_id]["phase"]) == (1, "refused")
    assert "lockgate abort" in found[job.job_id]["problem"]


def lost(table) -> str:
    """The id of a job whose record another program has deleted, in the middle of its commit."""
    table.write({"p=1/old": b"1"})
    dead = crashed(table, conflict="replace")
    shutil.rmtree(table.root / "_lockgate/jobs")
    return dead


def test_every_command_says_how_to_end_a_job_whose_record_is_lost(table) -> None:
    dead = lost(table)
    for command in ("verify", "show"):
        _, out, err = run(command, str(table.root))
        assert f"lockgate recover file://{table.root} {dead} --undo" in out + err
    for command in ("plan", "commit", "abort"):
        status, out, err = run(command, str(table.root), dead)
        assert status == 1, command
        assert f"lockgate recover file://{table.root} {dead} --undo" in out + err
    (kept,) = run_json("gc", str(table.root))[1]
    assert kept["action"] == "kept"
    assert (table.root / kept["path"]).is_dir()
    assert "--undo or --finish" in kept["why"]


def test_a_damaged_marker_is_told_with_its_place(table) -> None:
    job = table.job()
    marker = table.root / job.layout.job_marker
    marker.write_text(json.dumps({"job_id": 1}))
    (shown,) = run_json("jobs", str(table.root))[1]
    assert (shown["job_id"], shown["status"]) == (job.job_id, "unreadable")
    assert job.layout.job_marker in shown["problem"]
    with pytest.raises(LockgateError) as caught:
        lockgate.commit(table.root, job.job_id)
    assert job.layout.job_marker in caught.value.where
    assert run_json("gc", str(table.root))[1][0]["action"] == "kept"

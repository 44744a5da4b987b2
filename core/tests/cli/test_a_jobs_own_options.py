"""Whoever ends a job that another has set up does so by the options that its owner chose."""

from __future__ import annotations

import json
from unittest.mock import ANY

import lockgate
import pytest
from command_line import crashed, run, run_json
from lockgate import Job, JobOptions
from lockgate.errors import OptionError, UsageError

CHOSEN = {
    "conflict": "replace-partitions",
    "txn_id": "t-1",
    "replace_order": "new-first",
    "mark_success": False,
    "delete_target_files": True,
    "cleanup_skip": True,
}


def forget_options(table, job: Job) -> None:
    """Make the marker one of an earlier version."""
    marker = table.root / job.layout.job_marker
    marker.write_text(json.dumps({k: v for k, v in json.loads(marker.read_text()).items() if k != "options"}))


def test_a_job_committed_from_outside_keeps_its_conflict_policy(table) -> None:
    table.write({"p=1/old": b"1", "p=2/old": b"1"})
    job = table.job(conflict="replace-partitions")
    table.task(job, {"p=1/new": b"2"})
    assert run_json("plan", str(table.root), job.job_id)[1]["policy"] == "replace-partitions"
    status, found = run_json("commit", str(table.root), job.job_id, "--force")
    assert status == 0
    assert found["lockgate"]["policy"] == "replace-partitions"
    assert table.read() == {"p=1/new": b"2", "p=2/old": b"1"}


def test_a_job_committed_from_outside_keeps_its_transaction_id(table) -> None:
    table.write({"a": b"1"}, txn_id="t-1")
    again = table.job(txn_id="t-1")
    table.task(again, {"b": b"2"})
    assert lockgate.commit(table.root, again.job_id, force=True).lockgate.txn_id == "t-1"
    assert table.read() == {"a": b"1"}


def test_all_that_a_job_chose_is_kept(table) -> None:
    job = table.job(**CHOSEN)
    table.task(job, {"p=1/new": b"2"})
    lockgate.commit(table.root, job.job_id, force=True)
    record = max((table.root / job.layout.job_directory).glob("commit-*"))
    found = run_json("show", str(record))[1]
    assert (found["policy"], found["txn_id"], found["marks_success"]) == ("replace-partitions", "t-1", False)
    assert found["options"]["replace_order"] == "new-first"
    assert found["options"]["delete_target_files"] == "True"
    assert not (table.root / "_SUCCESS").exists()


def test_the_environment_of_whoever_commits_does_not_change_a_job(table, monkeypatch) -> None:
    table.write({"a": b"1"})
    job = table.job()
    table.task(job, {"b": b"2"})
    monkeypatch.setenv("LOCKGATE_CONFLICT", "replace")
    assert run("commit", str(table.root), job.job_id, "--force")[0] == 0
    assert table.read() == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize(
    "option", ["conflict=append", "conflict=replace", "lockgate.txn-id=t-2", "replace_order=new-first"]
)
def test_an_option_that_contradicts_the_job_is_refused(table, option) -> None:
    job = table.job(conflict="replace-partitions", txn_id="t-1")
    table.task(job, {"p=1/a": b"1"})
    for command in ("plan", "commit"):
        status, _, err = run(command, str(table.root), job.job_id, "-o", option)
        assert status == 2
        assert "contradicts the job" in err
        assert job.layout.job_marker in err
    with pytest.raises(UsageError, match="conflict='replace-partitions'"):
        lockgate.commit(table.root, job.job_id, options=JobOptions(conflict="fail"), force=True)
    assert run("commit", str(table.root), job.job_id, "--force", "-o", "conflict=replace-partitions")[0] == 0


@pytest.mark.parametrize("own", ["manifest", "v1", "v2", "direct", "stocator", "markers"])
@pytest.mark.parametrize("command", ["plan", "commit", "abort"])
def test_the_jobs_own_protocol_is_accepted_and_another_refused(table, own: str, command: str) -> None:
    """The right name was asked for accept_unsafe, and a wrong one that is safe was silently ignored."""
    job = table.job(protocol=own, accept_unsafe=True)
    work = job.task_attempt(0)
    work.setup()
    with work.open(f"p=1/part-{work.tag}") as file:
        file.write(b"1")
    work.commit()
    force = () if command == "plan" else ("--force",)
    for wrong in sorted({"hive", "v1", "v2", "manifest"} - {own}):
        status, _, err = run(command, str(table.root), job.job_id, *force, "--protocol", wrong)
        assert status == 2, wrong
        assert f"protocol='{wrong}' contradicts the job" in err
        assert f"protocol='{own}'" in err
    assert run(command, str(table.root), job.job_id, *force, "--protocol", own)[0] == 0
    assert list(table.read().values()) == ([] if command == "abort" else [b"1"] if command == "commit" else ANY)


def test_a_protocol_that_is_left_to_the_store_contradicts_no_job(table) -> None:
    job = table.job(protocol="v2", accept_unsafe=True)
    table.task(job, {"a": b"1"})
    assert run("commit", str(table.root), job.job_id, "--force", "-o", "protocol=auto")[0] == 0
    assert table.read() == {"a": b"1"}


def test_an_option_that_contradicts_the_record_is_refused_by_recover(table) -> None:
    table.write({"p=1/old": b"1"})
    dead = crashed(table, conflict="replace")
    for job in ([dead], []):
        status, out, err = run("recover", str(table.root), *job, "-o", "conflict=append")
        assert status in (1, 2)
        assert "contradicts the job" in out + err
    assert run("recover", str(table.root), dead, "-o", "conflict=replace")[0] == 0


def test_a_marker_of_an_earlier_version_is_still_read(table) -> None:
    table.write({"a": b"1"})
    job = table.job(conflict="replace")
    table.task(job, {"b": b"2"})
    forget_options(table, job)
    assert run_json("plan", str(table.root), job.job_id)[1]["policy"] == "append"
    assert run("commit", str(table.root), job.job_id, "--force", "-o", "conflict=replace")[0] == 0
    assert table.read() == {"b": b"2"}


def test_a_policy_whose_plugin_is_not_here_is_refused_by_name(table) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    marker = table.root / job.layout.job_marker
    found = json.loads(marker.read_text())
    found["options"]["conflict"] = "of-a-plugin"
    marker.write_text(json.dumps(found))
    for act in (lockgate.plan, lockgate.commit):
        with pytest.raises(OptionError, match="of-a-plugin"):
            act(table.root, job.job_id)

"""What `gc` and `recover` tell to type for a job that may be at work: the same, and nothing that loses what its tasks
have committed without naming what keeps it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lockgate
import pytest
from command_line import crashed, run, run_json
from faulty_store import Stop, make_faulty
from hive_left import HIVE
from local_acts import Died, before_act, dies
from lockgate import Job
from lockgate.engine.inspection.how_to_end import if_surely_over
from lockgate.engine.inspection.list_jobs import JobState, JobStatus
from lockgate.errors import DestinationConflict, ReceiptUnmatched
from lockgate.model.layout import found_layout

JOB = "hive-staging_hive_1.-ext-10000"


def told(root: Path, job_id: str, *more: str) -> list[str]:
    """What each of both says of the job."""
    status, recovering, _ = run("recover", str(root), job_id, *more)
    assert status == 1
    _, collecting, _ = run("gc", str(root), *more)
    return [recovering, collecting]


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "direct", "stocator", "markers"])
def test_gc_names_commit_beside_abort_where_tasks_have_committed(table, protocol) -> None:
    """It named `abort` alone, which deleted what all tasks had committed."""
    job = table.job(protocol=protocol, accept_unsafe=True)
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"a-{attempt.tag}") as file:
        file.write(b"1")
    attempt.commit()
    for text in told(table.root, job.job_id):
        assert "1 task has committed: it may be at work" in text
        for command in ("commit", "abort"):
            assert f"lockgate {command} file://{table.root} {job.job_id} --force" in text


def test_gc_names_abort_where_no_task_has_committed(table) -> None:
    job = table.job()
    for text in told(table.root, job.job_id):
        assert f"lockgate abort file://{table.root} {job.job_id} --force" in text
        assert "lockgate commit" not in text


def test_gc_names_commit_beside_abort_for_a_refused_job_whose_driver_may_be_alive(table) -> None:
    table.write({"a": b"1"})
    job = table.job()
    receipt = table.task(job, {"b": b"1"})
    job.options = job.options.replace(conflict="fail")
    with pytest.raises(DestinationConflict):
        job.commit([receipt])
    _, out, _ = run("gc", str(table.root))
    for command in ("commit", "abort"):
        assert f"lockgate {command} file://{table.root} {job.job_id} --force" in out


def test_gc_of_what_hive_has_left_names_the_commit_that_keeps_it_once_one_has_died_before_its_claim(
    tmp_path, monkeypatch
) -> None:
    """It named `abort` alone, which deleted the only output of a query."""
    left = tmp_path / ".hive-staging_hive_1/_tmp.-ext-10000/000000_0"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    with monkeypatch.context() as patch:
        before_act(patch, 1, ["create_file"], dies)
        with pytest.raises(Died):
            lockgate.commit(tmp_path, JOB, options=HIVE, force=True)
    for protocol in ([], ["--protocol", "hive"]):
        for text in told(tmp_path, JOB, *protocol):
            for command in ("commit", "abort"):
                assert f"lockgate {command} file://{tmp_path} {JOB} --protocol hive --force" in text
    assert left.exists()


def test_of_what_another_program_has_left_abort_is_not_named_alone(tmp_path) -> None:
    run_of = Job(tmp_path, protocol="hive", job_id="j")._run()
    layout = found_layout("hive", JOB)
    state = JobState(layout, JobStatus.RUNNING)
    text = if_surely_over(run_of, state)
    for command in ("plan", "abort"):
        assert f"lockgate {command} file://{tmp_path} {JOB} --protocol hive" in text


def interrupted(table, protocol: str) -> Job:
    """A task has committed; the commit of another was interrupted, and the job has a driver that lives."""
    job = table.job(protocol=protocol, accept_unsafe=True)
    table.task(job, {"a": b"1"}, task=0)
    attempt = job.task_attempt(1)
    attempt.setup()
    with attempt.open("b") as file:
        file.write(b"2")
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "manifest" in subject[0].source
    with pytest.raises(Stop):
        attempt.commit()
    job._store = None
    return job


@pytest.mark.parametrize("refused", [False, True], ids=["", "refused"])
@pytest.mark.parametrize("by", ["recover", "recover of a silent one", "gc"])
def test_who_meets_a_job_is_told_what_works_where_a_task_commit_was_interrupted(table, by, refused) -> None:
    """Both named `commit --force`, which was refused."""
    job = interrupted(table, "v2")
    if refused:
        with pytest.raises(ReceiptUnmatched):
            job.commit()
    silent = ["-o", "alive_seconds=0"] if "silent" in by else []
    words = ["recover", str(table.root), job.job_id, *silent] if "recover" in by else ["gc", str(table.root)]
    status, out, _ = run(*words)
    assert ("recover" not in by or status == 1, "lockgate commit" in out) == (True, False), out
    line = re.search(r"Job\(.*?\)\.task_attempt\([0-9, ]+\)\.abort\(\)", out)
    assert line is not None
    assert f"lockgate abort file://{table.root} {job.job_id} --force" in out
    exec(f"from lockgate import Job; {line[0]}")
    assert run("commit", str(table.root), job.job_id, "--force")[0] == 0
    assert table.read() == {"a": b"1"}


def test_a_program_is_told_by_a_key_that_a_driver_is_gone(table) -> None:
    """It stood in the name of the driver, in a form that nothing told."""
    at_work = table.job()
    _, (found,) = run_json("jobs", str(table.root))
    assert (found["job_id"], found["driver_gone"]) == (at_work.job_id, False)
    dead = crashed(table)
    _, jobs = run_json("jobs", str(table.root))
    assert {each["job_id"]: each["driver_gone"] for each in jobs} == {at_work.job_id: False, dead: True}


def test_of_a_driver_that_is_gone_it_is_not_said_that_it_may_be_at_work(table) -> None:
    job = f"job = Job({str(table.root)!r}, job_id='j')"
    code = f"from lockgate import Job; {job}; job.setup(); job.task_attempt(0).setup()"
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 0
    (state,) = lockgate.jobs(table.root)
    assert (state.status, state.driver_gone) == ("running", True)
    for text in told(table.root, "j"):
        assert f"its driver, {state.driver.removesuffix(', gone')}, is gone, but its tasks may be at work" in text
        assert "may be at work; its driver" not in text

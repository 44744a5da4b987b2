"""Whoever ends a job hears what may be in the destination all the same: nothing else says it once the job is gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import lockgate
import pytest
from killed_at_a_request import Died, at_request
from local_acts import Died as ActDied
from local_acts import before_act
from local_acts import dies as act_dies
from lockgate import Job, JobOptions
from lockgate.cli.main import app
from lockgate.engine.inspection.list_jobs import STATUS_MEANING
from lockgate.errors import CommitRefused, LockgateError
from typer.testing import CliRunner

SILENT = JobOptions(alive_seconds=0.0)

DIES = """
import os, sys
from lockgate import Job
job = Job(sys.argv[1], protocol=sys.argv[2], accept_unsafe=True, job_id="j", durable=False)
job.setup()
committed, dies = job.task_attempt(0), job.task_attempt(1)
for attempt in (committed, dies):
    attempt.setup()
    file = attempt.open(f"part-{attempt.tag}")
    file.write(b"x" * 2_000_000)
    if attempt is committed:
        file.close()
        attempt.commit()
os._exit(9)
"""


def a_dead_attempt(root: Path, protocol: str) -> None:
    """A driver dies while the second of its tasks writes."""
    done = subprocess.run([sys.executable, "-c", DIES, str(root), protocol], check=False, timeout=120)
    assert done.returncode == 9


def data(root: Path) -> list[str]:
    return [path.name for path in root.rglob("part-*") if "_lockgate" not in str(path) and ".hoodie" not in str(path)]


@pytest.mark.parametrize("end", ["abort", "gc"])
@pytest.mark.parametrize("protocol", ["direct", "v2", "stocator", "markers"])
def test_what_a_dead_attempt_may_have_left_is_told(tmp_path: Path, protocol: str, end: str) -> None:
    """Of `direct` a part of a file stayed among the data, and `abort` said that all was deleted."""
    a_dead_attempt(tmp_path, protocol)
    if end == "abort":
        done = CliRunner().invoke(app, ["abort", str(tmp_path), "j", "--force", "--json"])
        told, status = json.loads(done.stdout)["may_stay"], done.exit_code
        assert json.loads(done.stdout)["left"] == []
    else:
        collect = partial(lockgate.collect_garbage, tmp_path, options=SILENT)
        (foretold,) = (each for each in collect(dry_run=True) if each.path.endswith("/j"))
        (found,) = (each for each in collect() if each.path.endswith("/j"))
        assert (foretold.action, found.action) == ("would delete", "deleted")
        assert foretold.why == found.why
        told, status = found.why.removeprefix("abandoned").removeprefix(". "), int(found.needs_somebody)
    assert len(data(tmp_path)) == (1 if protocol == "direct" else 0)
    if protocol == "direct":
        assert told.startswith("What task attempts wrote that died may be in the destination")
        assert f"lockgate files {tmp_path.as_uri()}" in told
    else:
        assert told == ""
    assert status == bool(told)


def test_nothing_is_told_of_an_aborted_attempt_whose_files_are_gone(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="direct", accept_unsafe=True, job_id="j", durable=False)
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"part-{attempt.tag}") as file:
            file.write(b"x")
        attempt.abort() if number else attempt.commit()
    done = CliRunner().invoke(app, ["abort", str(tmp_path), "j", "--force", "--json"])
    assert json.loads(done.stdout)["may_stay"] == ""
    assert done.exit_code == 0
    assert data(tmp_path) == []


@pytest.mark.parametrize("by_the_second", [False, True], ids=["first", "second"])
def test_of_a_job_of_hadoops_without_a_committed_task_it_is_told_that_it_may_have_been_by_the_second_algorithm(
    tmp_path: Path, by_the_second: bool
) -> None:
    """Two files of its four tasks were in the destination already, and the operator heard that all was deleted."""
    attempt = tmp_path / "_temporary/0/_temporary/attempt_202611270000000000000_0001_m_000001_0"
    attempt.mkdir(parents=True)
    (attempt / "part-1").write_bytes(b"half")
    committed = tmp_path if by_the_second else tmp_path / "_temporary/0/task_202611270000000000000_0001_m_000000"
    committed.mkdir(exist_ok=True)
    (committed / "part-0").write_bytes(b"x")
    job_id = "job_202611270000000000000_0001"
    done = CliRunner().invoke(app, ["abort", str(tmp_path), job_id, "--protocol", "v1", "--force", "--json"])
    told = json.loads(done.stdout)["may_stay"]
    assert ("second algorithm" in told) == by_the_second
    assert done.exit_code == int(by_the_second)
    assert data(tmp_path) == (["part-0"] if by_the_second else [])


def test_who_undoes_a_commit_of_a_job_of_hadoops_first_algorithm_is_not_told_of_the_second(
    tmp_path: Path, monkeypatch
) -> None:
    """Its tasks' directories were adopted by then, and the answer was as if there had been none, with status 1."""
    job_id = "job_202611270000000000000_0001"
    for task in range(2):
        committed = tmp_path / f"_temporary/0/task_202611270000000000000_0001_m_00000{task}"
        committed.mkdir(parents=True)
        (committed / f"part-{task}").write_bytes(b"x")
    with monkeypatch.context() as patch:
        before_act(patch, 1, ["rename_files"], act_dies)
        with pytest.raises(ActDied):
            lockgate.commit(tmp_path, job_id, options=JobOptions(protocol="v1"), force=True)
    (state,) = lockgate.jobs(tmp_path)
    assert state.phase is not None and state.phase.value == "moving"
    done = CliRunner().invoke(app, ["recover", str(tmp_path), job_id, "--undo", "--force", "--json"])
    told = json.loads(done.stdout)[job_id]
    assert (done.exit_code, told["outcome"], told["may_stay"]) == (0, "undone", ""), done.stdout
    assert data(tmp_path) == []


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive", "direct", "stocator", "markers"])
def test_complete_a_commit_from_outside_misses_a_task_whose_only_attempt_was_aborted(
    tmp_path: Path, protocol: str
) -> None:
    """By protocols that delete the attempt's directory it committed without that task, and said nothing."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="j", durable=False)
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"part-{number}-{attempt.tag}") as file:
            file.write(b"x")
        attempt.abort() if number else attempt.commit()
    job._show_life_no_more()
    assert lockgate.plan(tmp_path, "j", SILENT).left_out == ["task_000001"]
    with pytest.raises(CommitRefused, match="1 task of job j has begun and not committed: task_000001"):
        lockgate.commit(tmp_path, "j", options=SILENT)
    summary = lockgate.commit(tmp_path, "j", options=SILENT, force=True)
    assert summary.lockgate is not None and summary.lockgate.left_out == ["task_000001"]


def test_an_empty_directory_that_a_job_has_left_is_told_as_what_it_may_be(tmp_path: Path) -> None:
    """`jobs` showed another committer's job, which no command could end."""
    job = Job(tmp_path, protocol="v1", durable=False)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    attempt.commit()
    job.abort()
    (state,) = lockgate.jobs(tmp_path)
    assert state.job_id == "unknown-0"
    assert "an empty directory that a job by v1 or v2 has left" in state.problem
    assert "which `lockgate gc` deletes" in state.problem
    assert "a directory in which no task is known, which may be no job" in STATUS_MEANING[state.status]
    shutil.rmtree(tmp_path / "_temporary")


@pytest.mark.parametrize("by", ["abort", "recover", "gc"])
def test_what_a_dead_attempt_may_have_left_is_told_after_an_abort_that_was_killed_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It was found by what the abort deletes first, so whoever went on said that nothing stays."""
    a_dead_attempt(tmp_path / "made", "direct")
    for number in range(1, 1_000):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "made", root, symlinks=True)
        with monkeypatch.context() as patched:
            at_request(patched, number, dies)
            try:
                lockgate.abort(root, "j", force=True)
                break
            except Died:
                pass
        told = end(root, by)
        if (root / "_lockgate/jobs/j").exists():
            told += end(root, "abort")
        # Once only the last version of the record is left to delete, nobody but the dead one knows of the job.
        assert "What task attempts wrote that died" in told or "there is no job j" in told, (number, told)
    assert number >= 20


def end(root: Path, by: str) -> str:
    """What somebody is told who goes on."""
    if by == "gc":
        return str(lockgate.collect_garbage(root, options=SILENT))
    done = CliRunner().invoke(app, [by, str(root), "j", "--force"])
    told = " ".join((done.stdout + done.stderr).split())
    return told if "lockgate recover" not in told or by == "recover" else told + end(root, "recover")


def test_a_killed_abort_of_a_job_of_hadoops_first_algorithm_is_not_told_as_one_of_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directories of its committed tasks, by which it is known for one of the first, were gone by then."""
    job_id = "job_202611270000000000000_0001"
    for number in range(1, 1_000):
        root = tmp_path / str(number)
        task = root / "_temporary/0/task_202611270000000000000_0001_m_000000"
        task.mkdir(parents=True)
        (task / "part-0").write_bytes(b"x")
        with monkeypatch.context() as patched:
            at_request(patched, number, dies)
            try:
                lockgate.abort(root, job_id, JobOptions(protocol="v1"), force=True)
                break
            except Died:
                pass
        done = CliRunner().invoke(app, ["abort", str(root), job_id, "--protocol", "v1", "--force"])
        if done.exit_code == 1:
            done = CliRunner().invoke(app, ["recover", str(root), job_id, "--undo", "--force"])
        assert "second algorithm" not in done.stdout + done.stderr, number
        assert data(root) == []
    assert number > 10


def dies() -> None:
    raise Died


@pytest.mark.parametrize("protocol", ["v2", "direct", "stocator", "markers"])
def test_a_job_of_the_same_transaction_that_ends_a_refused_one_says_what_stays(tmp_path: Path, protocol: str) -> None:
    """It committed, and the file of the other stayed beside its own: nobody ever said so."""
    first = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="a", txn_id="t", durable=False)
    first.setup()
    attempt = first.task_attempt(0)
    attempt.setup()
    for name in ("part-0", "part-1"):
        with attempt.open(f"{name}-{attempt.tag}") as file:
            file.write(b"x")
    receipt = attempt.commit()
    gone, changed = sorted(tmp_path.glob("part-*"))
    gone.unlink()
    with pytest.raises(LockgateError):
        first.commit([receipt])
    changed.unlink()
    changed.write_bytes(b"written back")
    second = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="b", txn_id="t", durable=False)
    second.setup()
    attempt = second.task_attempt(0)
    attempt.setup()
    with attempt.open(f"part-{attempt.tag}") as file:
        file.write(b"y")
    receipt = attempt.commit()
    with pytest.raises(CommitRefused, match="was undone") as refused:
        second.commit([receipt])
    assert changed.name in str(refused.value)
    assert second.commit([receipt]).success


def test_a_job_of_the_same_transaction_that_ends_a_refused_one_says_what_dead_attempts_may_have_left(
    tmp_path: Path,
) -> None:
    """It was refused, and the error named nothing at all."""
    first = Job(tmp_path, protocol="direct", accept_unsafe=True, job_id="a", txn_id="t", durable=False)
    first.setup()
    attempts = [first.task_attempt(number) for number in range(2)]
    for attempt in attempts:
        attempt.setup()
        with attempt.open(f"part-{attempt.tag}") as file:
            file.write(b"x")
    receipt = attempts[0].commit()
    (tmp_path / f"part-{attempts[0].tag}").unlink()
    with pytest.raises(LockgateError):
        first.commit([receipt])
    second = Job(tmp_path, protocol="direct", accept_unsafe=True, job_id="b", txn_id="t", durable=False)
    second.setup()
    with pytest.raises(CommitRefused, match="was undone") as refused:
        second.commit([])
    assert refused.value.next_step.startswith("What task attempts wrote that died may be in the destination")
    assert data(tmp_path) == [f"part-{attempts[1].tag}"]

"""What tasks of another program's leave once their job was committed here: no commit has it, and it may be the only
place of those rows. Who does not say that the job is over deletes none of it, nor says so."""

from __future__ import annotations

import re
from pathlib import Path

import lockgate
import pytest
from hive_left import JOB as HIVES_JOB
from hive_left import OUTPUT, STAGING
from killed_at_a_request import Died, at_request
from lockgate import JobOptions
from lockgate.errors import CommitFenced, JobNotFound, UsageError
from lockgate.stores.local import LocalStore

HADOOPS_JOB = "job_202411211721_0003"
TASK = "_temporary/0/task_202411211721_0003_m_00000"
JOBS = {"v1": (HADOOPS_JOB, f"{TASK}{{0}}/p{{0}}"), "hive": (HIVES_JOB, f"{OUTPUT}/00000{{0}}_0")}
RENAMED = {"v1": ("_0003_m_", "_0004_m_"), "hive": (STAGING, f"{STAGING}2")}


def leave(table: Path, protocol: str, task: int) -> Path:
    path = table / JOBS[protocol][1].format(task)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"%d" % task)
    return path


@pytest.fixture(params=JOBS)
def late(request, tmp_path: Path) -> tuple[Path, str, JobOptions, Path]:
    """A table with a committed job, its id, the options that find it, and what a task of it has left since."""
    options = JobOptions(protocol=request.param, alive_seconds=0.0)
    leave(tmp_path, request.param, 1)
    lockgate.commit(tmp_path, JOBS[request.param][0], options=options, force=True)
    return tmp_path, JOBS[request.param][0], options, leave(tmp_path, request.param, 2)


@pytest.mark.parametrize("what", [lockgate.commit, lockgate.plan])
def test_what_tasks_leave_after_their_jobs_commit_is_told_and_not_touched(late, what) -> None:
    table, job_id, options, left = late
    with pytest.raises(JobNotFound, match="is committed already, and its tasks have left more since") as caught:
        what(table, job_id, options=options)
    assert (
        "nothing was touched" in caught.value.next_step and f"lockgate abort {table.as_uri()}" in caught.value.next_step
    )
    assert left.exists()


def test_an_abort_of_a_committed_job_looks_for_life_and_tells_that_what_came_late_is_deleted(late) -> None:
    """It deleted that without a look for life, and said no more than that the job was committed."""
    table, job_id, options, left = late
    with pytest.raises(CommitFenced, match="may be at work"):
        lockgate.abort(table, job_id, options=options.replace(alive_seconds=900.0))
    assert left.exists()
    with pytest.raises(CommitFenced, match="has committed, and stays so; what its tasks had left since is deleted"):
        lockgate.abort(table, job_id, options=options)
    assert not left.exists()
    assert [each.status for each in lockgate.jobs(table, options)] == ["committed"]
    with pytest.raises(JobNotFound, match="is committed already\n"):
        lockgate.abort(table, job_id, options=options, force=True)


def test_an_abort_leaves_a_directory_that_is_named_for_it_may_be_a_namesake(tmp_path: Path) -> None:
    table, options = tmp_path / "table", JobOptions(protocol="hive")
    leave(table, "hive", 1)
    lockgate.commit(table, HIVES_JOB, options=options, force=True)
    left = leave(tmp_path / "backup", "hive", 2)
    named = options.replace(hive_directory=left.parent.as_uri())
    with pytest.raises(JobNotFound, match="its tasks have left more since") as caught:
        lockgate.abort(table, HIVES_JOB, options=named, force=True)
    assert "delete that directory by hand" in caught.value.next_step
    assert left.exists()


def test_gc_says_deleted_of_nothing_that_stays(late) -> None:
    table, _, options, left = late
    for dry_run in (True, False):
        (found,) = lockgate.collect_garbage(table, dry_run=dry_run, options=options)
        assert (found.action, found.needs_somebody) == ("kept", True)
        assert left.parent.relative_to(table).as_posix().startswith(found.path)
    assert left.exists()


def test_recover_tells_of_it_and_leaves_it(late) -> None:
    table, job_id, options, left = late
    for named in (job_id, None):
        recovery = lockgate.recover(table, named, options=options)[job_id]
        assert (recovery.outcome, "have left more since" in recovery.problem) == ("nothing", True)
    with pytest.raises(UsageError, match="cannot be undone"):
        lockgate.recover(table, job_id, undo=True, options=options)
    assert left.exists()


def test_renamed_as_it_is_told_it_is_committed_as_another_job(late) -> None:
    table, _, options, left = late
    old, new = RENAMED[options.protocol]
    above = table / STAGING if options.protocol == "hive" else left.parent
    above.rename(table / above.relative_to(table).as_posix().replace(old, new))
    (job,) = [each for each in lockgate.jobs(table, options) if each.status != "committed"]
    lockgate.commit(table, job.job_id, options=options, force=True)
    assert sorted(path.read_bytes() for path in table.iterdir() if re.match("[p0]", path.name)) == [b"1", b"2"]
    assert [each.status for each in lockgate.jobs(table, options)] == ["committed"]


def test_a_job_of_hadoops_is_shown_in_one_way_whoever_asks(tmp_path: Path) -> None:
    """Without the protocol it was shown twice: as committed, and as another committer's whose own driver ends it."""
    named = JobOptions(protocol="v1")
    leave(tmp_path, "v1", 1)
    lockgate.commit(tmp_path, HADOOPS_JOB, options=named, force=True)
    leave(tmp_path, "v1", 2)
    assert lockgate.jobs(tmp_path) == lockgate.jobs(tmp_path, named)
    (state,) = lockgate.jobs(tmp_path)
    assert (state.status, state.phase) == ("left behind", "committed")
    assert state.problem in [each.why for each in lockgate.collect_garbage(tmp_path)]


def test_of_a_committed_job_of_hadoops_every_command_says_so_also_to_who_does_not_name_its_protocol(
    tmp_path: Path,
) -> None:
    """They said that it was another committer's, and named a commit that is refused."""
    leave(tmp_path, "v1", 1)
    lockgate.commit(tmp_path, HADOOPS_JOB, options=JobOptions(protocol="v1"), force=True)
    left = leave(tmp_path, "v1", 2)
    for ask in (
        lambda: lockgate.plan(tmp_path, HADOOPS_JOB),
        *[lambda each=each: lockgate.commit(tmp_path, HADOOPS_JOB, force=each) for each in (False, True)],
        *[lambda each=each: lockgate.abort(tmp_path, HADOOPS_JOB, force=each) for each in (False, True)],
    ):
        with pytest.raises(JobNotFound, match="is committed already, and its tasks have left more since") as caught:
            ask()
        assert f"lockgate abort {tmp_path.as_uri()} {HADOOPS_JOB} --protocol v1" in caught.value.next_step
    with pytest.raises(UsageError, match="cannot be undone"):
        lockgate.recover(tmp_path, HADOOPS_JOB, undo=True)
    named = lockgate.recover(tmp_path, HADOOPS_JOB, options=JobOptions(protocol="v1"))
    assert lockgate.recover(tmp_path, HADOOPS_JOB) == named
    assert named[HADOOPS_JOB].outcome == "nothing"
    assert left.exists()


def _everything(table: Path) -> list[bytes]:
    return [path.read_bytes() for path in table.rglob("*") if path.is_file()]


@pytest.mark.parametrize("request_number", range(8, 38))
def test_what_a_task_commits_while_its_job_is_committed_is_in_the_table_or_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_number: int
) -> None:
    """The cleanup deleted every directory of the job's, also those that no commit has."""
    options = JobOptions(protocol="v1", alive_seconds=0.0)
    leave(tmp_path, "v1", 1)
    with monkeypatch.context() as patched:
        made = at_request(patched, request_number, lambda: leave(tmp_path, "v1", 2))
        lockgate.commit(tmp_path, HADOOPS_JOB, options=options, force=True)
    assert len(made) >= request_number, "the commit makes fewer requests now"
    assert sorted(each for each in _everything(tmp_path) if each in (b"1", b"2")) == [b"1", b"2"]
    in_table = any(path.read_bytes() == b"2" for path in tmp_path.iterdir() if path.is_file())
    assert in_table or [state for state in lockgate.jobs(tmp_path, options) if state.came_late]


@pytest.mark.parametrize("phase", ["claimed", "moving", "publishing", "committed"])
@pytest.mark.parametrize("by", ["recover", "recover all", "gc"])
def test_what_a_task_commits_when_the_driver_of_its_jobs_commit_has_died_is_kept_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, by: str
) -> None:
    options = JobOptions(protocol="v1", alive_seconds=0.0)
    leave(tmp_path, "v1", 1)
    create = LocalStore.create_file

    async def die(store, path, content, **named):
        created = await create(store, path, content, **named)
        if path.rpartition("/")[2].startswith("commit") and f'"phase":"{phase}"'.encode() in content:
            raise Died
        return created

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(LocalStore, "create_file", die)
        lockgate.commit(tmp_path, HADOOPS_JOB, options=options, force=True)
    left = leave(tmp_path, "v1", 2)
    if by == "gc":
        lockgate.collect_garbage(tmp_path, options=options)
    if by != "gc" or phase != "committed":
        recovery = lockgate.recover(tmp_path, None if by == "recover all" else HADOOPS_JOB, options=options)
        assert recovery[HADOOPS_JOB].outcome == "finished"
        assert "have left more since" in recovery[HADOOPS_JOB].problem
    assert left.exists()
    (state,) = lockgate.jobs(tmp_path, options)
    assert state.came_late
    with pytest.raises(CommitFenced, match="what its tasks had left since is deleted"):
        lockgate.abort(tmp_path, HADOOPS_JOB, options=options)
    assert not left.exists()
    assert (tmp_path / "p1").read_bytes() == b"1"

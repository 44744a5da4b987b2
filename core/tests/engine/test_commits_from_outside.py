"""`lockgate.commit` by somebody who has no receipts, and cannot run the tasks of the job again."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hive_left
import lockgate
import pytest
from local_acts import CHANGES, Died, before_act, dies
from lockgate import Job, JobOptions
from lockgate.api.unfinished import told as tell
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.model.errors import (
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    JobNotFound,
    StoreUnavailable,
)
from lockgate.model.files import Rename
from lockgate.model.phases import Phase
from lockgate.stores.local import LocalStore

NOBODY_LIVES = JobOptions(alive_seconds=0.0)
HADOOPS = "job_202411211721_0003"


def _begun(job: Job, path: str, task: int) -> lockgate.TaskAttempt:
    attempt = job.task_attempt(task)
    attempt.setup()
    with attempt.open(path.replace("TAG", attempt.tag)) as file:
        file.write(b"new")
    return attempt


def _files(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(found.items()) if name[0] != "_"}


@pytest.mark.parametrize("protocol", ["manifest", "hive", "v1", "v2", "direct", "stocator", "markers"])
def test_complete_a_task_that_has_begun_at_an_earlier_attempt_at_the_job_is_missed(
    tmp_path: Path, protocol: str
) -> None:
    job = Job(tmp_path, NOBODY_LIVES, job_id="j", protocol=protocol, accept_unsafe=True)
    job.setup()
    _begun(job, "part-0-TAG", 0).commit()
    _begun(job, "part-1-TAG", 1)
    again = Job(tmp_path, NOBODY_LIVES, job_id="j", job_attempt=1, protocol=protocol, accept_unsafe=True)
    again.setup()
    assert lockgate.plan(tmp_path, "j", NOBODY_LIVES).left_out == ["task_000001"]
    with pytest.raises(CommitRefused, match="begun and not committed: task_000001"):
        lockgate.commit(tmp_path, "j", options=NOBODY_LIVES)
    lockgate.commit(tmp_path, "j", options=NOBODY_LIVES, force=True)
    assert b"new" in _files(tmp_path).values()


@pytest.mark.parametrize("protocol", ["manifest", "v1"])
def test_complete_a_name_that_is_taken_costs_an_abandoned_job_none_of_its_files(tmp_path: Path, protocol: str) -> None:
    """The rename would refuse it: then all is undone, and what the tasks have written goes."""
    (tmp_path / "part-0").write_bytes(b"old")
    job = Job(tmp_path, NOBODY_LIVES, job_id="j", protocol=protocol)
    job.setup()
    _begun(job, "part-0", 0).commit()
    _begun(job, "part-1", 1).commit()
    for _ in range(2):
        with pytest.raises(DestinationConflict, match="1 name that the job gives its files is taken") as caught:
            lockgate.plan(tmp_path, "j", NOBODY_LIVES)
        assert (tmp_path / "part-0").as_uri() in caught.value.where
        with pytest.raises(DestinationConflict, match="1 name that the job gives its files is taken"):
            lockgate.commit(tmp_path, "j", options=NOBODY_LIVES)
    (tmp_path / "part-0").rename(tmp_path / "old")
    lockgate.commit(tmp_path, "j", options=NOBODY_LIVES)
    assert _files(tmp_path) == {"old": b"old", "part-0": b"new", "part-1": b"new"}


def test_complete_a_name_that_is_taken_costs_a_job_of_hadoops_none_of_its_files(tmp_path: Path) -> None:
    tasks = tmp_path / "_temporary/0/task_202411211721_0003_m_000000"
    tasks.mkdir(parents=True)
    (tasks / "part-0").write_bytes(b"new")
    (tasks / "part-1").write_bytes(b"new")
    (tmp_path / "part-0").write_bytes(b"old")
    options = NOBODY_LIVES.replace(protocol="v1")
    with pytest.raises(DestinationConflict, match="is taken"):
        lockgate.plan(tmp_path, HADOOPS, options)
    with pytest.raises(DestinationConflict, match="is taken") as caught:
        lockgate.commit(tmp_path, HADOOPS, options=options, force=True)
    assert "-o delete_target_files=true" in caught.value.next_step
    lockgate.commit(tmp_path, HADOOPS, options=options.replace(delete_target_files=True), force=True)
    assert _files(tmp_path) == {"part-0": b"new", "part-1": b"new"}


@pytest.mark.parametrize("protocol", ["manifest", "v1", "hadoop's v1"])
def test_complete_a_name_that_is_taken_amid_the_renames_costs_no_file(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undone by the failing commit, it was: what the tasks had written was all that there was."""
    options = NOBODY_LIVES.replace(protocol=protocol.split()[-1])
    if protocol == "hadoop's v1":
        job_id = HADOOPS
        for number in range(2):
            task = tmp_path / f"_temporary/0/task_202411211721_0003_m_00000{number}"
            task.mkdir(parents=True)
            (task / f"part-{number}").write_bytes(b"new")
    else:
        job = Job(tmp_path, options, job_id="j")
        job_id = "j"
        job.setup()
        for number in range(2):
            _begun(job, f"part-{number}", number).commit()
    renames = LocalStore.rename_files

    async def beside(store: LocalStore, files: Sequence[Rename], *progress: Any) -> Any:
        if any(file.target == "part-1" for file in files):
            (tmp_path / "part-1").write_bytes(b"another's")
        return await renames(store, files, *progress)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "rename_files", beside)
        with pytest.raises(CommitFailed, match="was left as it is") as caught:
            lockgate.commit(tmp_path, job_id, options=options, force=True)
    assert "recover" in caught.value.next_step
    (tmp_path / "part-1").rename(tmp_path / "another")
    assert lockgate.recover(tmp_path, job_id, options=options)[job_id].outcome == "finished"
    assert _files(tmp_path) == {"another": b"another's", "part-0": b"new", "part-1": b"new"}


@pytest.mark.parametrize("undo", [None, True])
@pytest.mark.parametrize("by_link_first", [True, False])
@pytest.mark.parametrize("protocol", ["v1", "hive"])
def test_resumable_by_another_name_of_the_destination(
    tmp_path: Path, protocol: str, by_link_first: bool, undo: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No marker gives a name for a job of Hadoop's or Hive's, and its manifests were made with the committer's."""
    root, link, options = tmp_path / "t", tmp_path / "link", NOBODY_LIVES.replace(protocol=protocol)
    if protocol == "v1":
        job_id, target = HADOOPS, "part-1"
        left = {f"_temporary/0/task_202411211721_0003_m_00000{number}/part-{number}": b"new" for number in range(2)}
    else:
        job_id, target = hive_left.JOB, "000001_0"
        left = {f"{hive_left.OUTPUT}/00000{number}_0": b"new" for number in range(2)}
    hive_left.leave(root, left, ".")
    link.symlink_to(root)
    first, second = (link, root) if by_link_first else (root, link)
    renames = LocalStore.rename_files

    async def fails(store: LocalStore, files: Sequence[Rename], *progress: Any) -> Any:
        if any(file.target == target for file in files):
            raise StoreUnavailable("planned", where=target)
        return await renames(store, files, *progress)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "rename_files", fails)
        with pytest.raises(CommitFailed, match="was left as it is"):
            lockgate.commit(first, job_id, options=options.replace(on_failure="leave"), force=True)
    ended = lockgate.recover(second, job_id, undo=undo, options=NOBODY_LIVES)[job_id]
    assert ended.outcome == ("undone" if undo else "finished")
    assert len([path for path in hive_left.seen(root) if path[0] not in "._"]) == (0 if undo else 2)


@pytest.mark.parametrize("protocol", ["v1", "hive"])
def test_a_commit_by_one_name_is_planned_and_committed_by_another_when_it_was_refused(
    tmp_path: Path, protocol: str
) -> None:
    root, link, options = tmp_path / "t", tmp_path / "link", NOBODY_LIVES.replace(protocol=protocol)
    left = {"_temporary/0/task_202411211721_0003_m_000000/part-0": b"new"}
    hive_left.leave(root, left if protocol == "v1" else {f"{hive_left.OUTPUT}/000000_0": b"new"}, ".")
    job_id = HADOOPS if protocol == "v1" else hive_left.JOB
    link.symlink_to(root)
    (root / "data").write_bytes(b"old")
    refused = options.replace(conflict="fail")
    with pytest.raises(DestinationConflict):
        lockgate.commit(link, job_id, options=refused, force=True)
    (root / "data").unlink()
    assert lockgate.plan(root, job_id, refused).files == 1
    assert lockgate.commit(root, job_id, options=refused, force=True).files == 1


@pytest.mark.parametrize("replaces", [False, True])
def test_complete_a_directory_of_the_name_of_a_file_costs_a_job_of_hadoops_none_of_its_files(
    tmp_path: Path, *, replaces: bool
) -> None:
    tasks = tmp_path / "_temporary/0/task_202411211721_0003_m_000000"
    tasks.mkdir(parents=True)
    (tasks / "part-0").write_bytes(b"new")
    (tmp_path / "part-0/inside").mkdir(parents=True)
    options = NOBODY_LIVES.replace(protocol="v1", delete_target_files=replaces)
    for _ in range(2):
        with pytest.raises(DestinationConflict, match="is taken"):
            lockgate.commit(tmp_path, HADOOPS, options=options, force=True)
    shutil.rmtree(tmp_path / "part-0")
    lockgate.commit(tmp_path, HADOOPS, options=options, force=True)
    assert _files(tmp_path) == {"part-0": b"new"}


@pytest.mark.parametrize("protocol", ["v1", "hive"])
@pytest.mark.parametrize(("hours", "may"), [(1, False), (30, True)])
def test_complete_a_job_of_another_program_is_over_once_it_has_been_silent_for_a_day(
    tmp_path: Path, protocol: str, hours: int, may: bool
) -> None:
    """`jobs` said that it is at work, and `commit` committed what half of its tasks had written."""
    v1 = {"_temporary/0/task_202411211721_0003_m_000000/part-0": b"new"}
    hive_left.leave(tmp_path, v1 if protocol == "v1" else {f"{hive_left.OUTPUT}/000000_0": b"new"}, ".")
    job_id = HADOOPS if protocol == "v1" else hive_left.JOB
    then = time.time() - hours * 3600
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.utime(path, (then, then))
    options = JobOptions(protocol=protocol)
    (state,) = lockgate.jobs(tmp_path, options)
    assert (state.status is JobStatus.RUNNING) is not may
    if may:
        assert lockgate.commit(tmp_path, job_id, options=options).files == 1
    else:
        for end in (lockgate.commit, lockgate.abort):
            with pytest.raises(CommitFenced, match="may be at work"):
                end(tmp_path, job_id, options=options)


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "direct", "stocator", "markers"])
def test_repeatable_a_commit_of_a_job_that_has_committed_is_never_told_that_it_has_not(
    tmp_path: Path, protocol: str
) -> None:
    """Its driver dies at each change. After that the job had no manifest any more, or no marker: "no task has
    committed", and "run the job again", which would have written its rows twice. What `jobs`, `show` and `verify` say
    agrees."""
    told: dict[str, int] = {}
    for number in range(1, 100):
        root = tmp_path / str(number)
        job = Job(root, NOBODY_LIVES, job_id="j", protocol=protocol, accept_unsafe=True)
        job.setup()
        receipts = [_begun(job, f"part-{task}-TAG", task).commit() for task in range(2)]
        with pytest.MonkeyPatch.context() as patch:
            acts = before_act(patch, number, CHANGES, dies)
            with contextlib.suppress(Died):
                job.commit(receipts)
        if len(acts) < number:
            break
        (state,) = lockgate.jobs(root, NOBODY_LIVES)
        success = (root / "_SUCCESS").exists()
        if success or state.phase is Phase.COMMITTED:
            assert state.tasks_committed == 2, f"change {number}: {state}"
            with pytest.raises(
                (JobNotFound, CommitFenced), match=r"committed already|has committed|in phase publishing"
            ) as refused:
                lockgate.commit(root, "j", options=NOBODY_LIVES, force=True)
            told[type(refused.value).__name__] = told.get(type(refused.value).__name__, 0) + 1
        if success:
            for each in lockgate.verify(root, NOBODY_LIVES).unfinished:
                assert "is committed, and" in tell(each), f"change {number}"
                assert "do not run it again" in tell(each)
    else:
        pytest.fail("the commit has more changes than were tried")
    assert told["JobNotFound"], told

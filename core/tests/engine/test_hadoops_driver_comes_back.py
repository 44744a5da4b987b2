"""A job of Hadoop's first algorithm that Lockgate commits for it, and whose own driver commits or aborts it after all,
at every request: what it does to files is done here by hand, as `FileOutputCommitter` does it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import lockgate
import pytest
from killed_at_a_request import Died, at_request
from lockgate import JobOptions, recover
from lockgate.errors import LockgateError
from lockgate.stores.local import LocalStore

JOB = "job_202611241721_0003"
TASKS = ({"p=1/a": b"1", "b": b"2"}, {"p=1/c": b"3", "p=2/d": b"4"})
ALL = TASKS[0] | TASKS[1]
OLD = {"p=1/old": b"old"}


def leave(root: Path) -> None:
    """What the job has left, over a table with a file."""
    for path, content in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    for number, files in enumerate(TASKS):
        for path, content in files.items():
            file = root / f"_temporary/0/task_202611241721_0003_m_{number:06}" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def hadoop_commits(root: Path) -> bool:
    """Merges the tasks that are there into the destination; the answer: whether that were all."""
    found = sorted((root / "_temporary/0").glob("task_*"))
    for task in found:
        for path in [each for each in task.rglob("*") if each.is_file()]:
            target = root / path.relative_to(task)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    shutil.rmtree(root / "_temporary", ignore_errors=True)
    return len(found) == len(TASKS)


def hadoop_aborts(root: Path) -> bool:
    shutil.rmtree(root / "_temporary", ignore_errors=True)
    return False


def seen(root: Path) -> dict[str, bytes]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {name: path.read_bytes() for path in files if (name := path.relative_to(root).as_posix())[0] != "_"}


@pytest.mark.parametrize("conflict", ["append", "replace"])
@pytest.mark.parametrize("comes_back", [hadoop_commits, hadoop_aborts])
def test_complete_a_job_of_hadoops_is_committed_whole_or_not_whenever_its_driver_comes_back(
    tmp_path: Path, comes_back, conflict: str
) -> None:
    """Between the look at its tasks and the claim they were gone, and an empty job was committed: with `replace` all
    that was there was deleted, and with it what Hadoop had just committed. Later what Hadoop had committed was taken
    out by the rollback, as if it had been moved by the commit that failed."""
    number, at_most = 0, 1
    while number < at_most:
        number += 1
        root = tmp_path / str(number)
        leave(root)
        whole: list[bool] = []
        with pytest.MonkeyPatch.context() as patch:
            made = at_request(patch, number, lambda: whole.append(comes_back(root)))  # noqa: B023
            try:
                lockgate.commit(str(root), JOB, options=JobOptions(protocol="v1", conflict=conflict), force=True)
                committed = True
            except LockgateError:
                committed = False
        at_most = max(at_most, len(made)) if whole else number
        found = seen(root)
        kept = {} if committed and conflict == "replace" else OLD
        if committed or any(whole):
            assert found == ALL | kept, number
        else:
            assert found == OLD, number


def test_undoable_what_hadoop_has_committed_since_the_driver_of_a_commit_died_stays(tmp_path: Path) -> None:
    """The one who committed it for Hadoop is killed before any directory is its own; Hadoop's next attempt commits the
    job, and then somebody recovers what has crashed. Its files are the same, by every identity, and were taken out."""
    leave(tmp_path)

    def die() -> None:
        raise Died

    class AtAdoption:
        async def rename_directories(self, *_: object) -> None:
            die()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "rename_directories", AtAdoption.rename_directories)
        with pytest.raises(Died):
            lockgate.commit(str(tmp_path), JOB, options=JobOptions(protocol="v1"), force=True)
    assert hadoop_commits(tmp_path)
    for _ in range(2):
        recover(str(tmp_path), undo=True, force=True)
        assert seen(tmp_path) == ALL | OLD
    assert not (tmp_path / "_lockgate/found-v1").exists()


def dies_at(monkeypatch: pytest.MonkeyPatch, root: Path, number: int) -> bool:
    """Commit the job here, by a driver that dies before its `number`-th request; whether it has."""

    def dies() -> None:
        raise Died

    with monkeypatch.context() as patched:
        at_request(patched, number, dies)
        try:
            lockgate.commit(root, JOB, options=V1, force=True)
        except Died:
            return True
        return False


def died(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """What such drivers have left, one for each request before which one can die."""
    for number in itertools.count(1):
        root = tmp_path / str(number)
        root.mkdir()
        leave(root)
        if not dies_at(monkeypatch, root, number):
            return
        yield number, root


def hadoop_moves(root: Path, files: int) -> list[str]:
    """As `FileOutputCommitter.mergePaths` does, which leaves the emptied directories until its end: so many files of
    each task, those that are there yet."""
    moved: list[str] = []
    for task in sorted((root / "_temporary/0").glob("task_*")):
        for path in sorted(each for each in task.rglob("*") if each.is_file())[:files]:
            target = root / path.relative_to(task)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            moved.append(target.relative_to(root).as_posix())
    return moved


@pytest.mark.parametrize("files", [1, 2])
def test_what_hadoops_driver_moves_out_of_directories_that_an_undoing_then_adopts_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """The commit died before it had adopted all directories, Hadoop's driver lived and had begun to merge, and the
    undoing took its files for those that the job had moved: the table was empty, and Hadoop wrote its `_SUCCESS`."""
    met = 0
    for number, root in died(monkeypatch, tmp_path):
        before = set(seen(root))
        moved = hadoop_moves(root, files)
        try:
            recovery = recover(root, JOB, undo=True, force=True, options=V1)[JOB]
        except LockgateError:  # it had committed
            continue
        if recovery.outcome == "undone":
            # What had come by the job's own renames goes; what Hadoop has moved stays.
            assert set(seen(root)) == {"p=1/old", *moved}, (number, before)
            assert set(moved) <= set(recovery.left), number
            met += bool(moved)
        else:
            assert set(moved) <= set(seen(root))
    assert met


@pytest.mark.parametrize("which", [0, -2])
@pytest.mark.parametrize("undo", [None, True, False])
def test_resumable_a_commit_of_a_job_of_hadoops_of_whose_record_an_older_version_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undo: bool | None, which: int
) -> None:
    """A job of Hadoop's has no marker: without the version before, its record was taken for what a driver leaves that
    wakes up late, and its rows that had not moved yet were deleted, with the exit status 0."""
    met = 0
    for number, root in died(monkeypatch, tmp_path):
        records = sorted((root / "_lockgate").glob("found-v1/*/commit*.json"), key=lambda path: path.stat().st_mtime_ns)
        newest = records[-1].read_text() if records else ""
        if len(records) < 2 or not any(f'"{phase}"' in newest for phase in ("moving", "publishing")):
            continue
        records[which].unlink()
        (state,) = (each for each in lockgate.jobs(root, V1) if each.job_id == JOB)
        assert state.status.value in ("crashed", "committing"), number
        assert [each.action for each in lockgate.collect_garbage(root, options=SILENT) if JOB in each.path] != [
            "deleted"
        ]
        try:
            recovery = recover(root, JOB, undo=undo, force=True, options=V1)[JOB]
        except LockgateError:
            assert undo is True  # it is committed
            continue
        assert recovery.outcome in ("finished", "undone"), number
        rows = set(seen(root))
        assert rows == {"p=1/old", *(ALL if recovery.outcome == "finished" else ())}, number
        met += 1
    assert met


V1 = JobOptions(protocol="v1", alive_seconds=0.0)
SILENT = JobOptions(alive_seconds=0.0)

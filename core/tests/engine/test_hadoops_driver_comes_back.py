"""A job of Hadoop's first algorithm that Lockgate commits for it, and whose own driver commits or aborts it after all,
at every request: what it does to files is done here by hand, as `FileOutputCommitter` does it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from lockgate import JobOptions, recover
from lockgate.errors import LockgateError
from lockgate.stores.local import LocalStore

JOB = "job_202611241721_0003"
TASKS = ({"p=1/a": b"1", "b": b"2"}, {"p=1/c": b"3", "p=2/d": b"4"})
ALL = TASKS[0] | TASKS[1]
OLD = {"p=1/old": b"old"}
REQUESTS = ("stat_files", "read_files", "make_directories", "write_file", "create_file", "rename_directories")


class Died(BaseException):
    """As a process that is killed."""


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


def at_request(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> list[int]:
    """Do something before the `number`-th request from now on; what comes back grows by one for each."""
    made: list[int] = []

    def wrapped(name: str):
        asked = getattr(LocalStore, name)

        async def ask(store, *arguments, **named):
            made.append(len(made) + 1)
            if made[-1] == number:
                act()
            return await asked(store, *arguments, **named)

        return ask

    for name in REQUESTS:
        monkeypatch.setattr(LocalStore, name, wrapped(name))
    return made


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

"""A v1 job ends while a task attempt of it commits: whichever of them stands still, wherever, nothing of the attempt
stays in `_temporary`, where the next job of Hadoop's would commit it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from local_acts import before_act
from lockgate import Job, Receipt, TaskAttempt
from lockgate.errors import JobNotFound, LockgateError

ACTS = (
    "create_file",
    "delete_directories",
    "delete_empty_directories",
    "delete_files",
    "list_directory",
    "make_directories",
    "read_files",
    "rename_directories",
    "rename_files",
    "stat_files",
    "write_file",
)


def meets(monkeypatch: pytest.MonkeyPatch, number: int, other: Callable[[], None]) -> list[str]:
    """Right before its `number`-th act somebody stands still until `other` has come to its end."""

    async def stands_still() -> None:
        monkeypatch.undo()
        await asyncio.to_thread(other)

    return before_act(monkeypatch, number, ACTS, stands_still)


def written(job: Job, task: int, number: int = 0) -> TaskAttempt:
    attempt = job.task_attempt(task, number)
    attempt.setup()
    with attempt.open(f"p=1/part-{task}-{number}") as file:
        file.write(b"1")
    return attempt


@pytest.mark.parametrize("stands_still", ["the job", "the attempt"])
@pytest.mark.parametrize("late", [(0, 1), (1, 0)], ids=["a rival", "another task"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_continuity_nothing_of_an_attempt_stays_that_commits_while_its_job_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, late: tuple[int, int], stands_still: str
) -> None:
    number, refused = 0, 0
    while True:
        number += 1
        root = tmp_path / str(number)
        job = Job(str(root), protocol="v1", alive_seconds=0, durable=False)
        job.setup()
        receipt = written(job, 0).commit()
        attempt = written(job, *late)
        outcomes: list[Receipt | LockgateError] = []

        def commits(attempt=attempt, outcomes=outcomes) -> None:
            try:
                outcomes.append(attempt.commit())
            except LockgateError as error:
                outcomes.append(error)

        def ends(job=job, receipt=receipt) -> None:
            job.commit([receipt]) if end == "commit" else job.abort()

        first, second = (ends, commits) if stands_still == "the job" else (commits, ends)
        done = meets(monkeypatch, number, second)
        first()
        monkeypatch.undo()
        if len(done) < number:
            break
        refused += isinstance(outcomes[0], LockgateError)
        there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        left = {path for path in there if path.startswith("_temporary")}
        assert not left, (number, done[number - 1], outcomes)
        seen = {path for path in there if not path.startswith("_")}
        assert seen == ({"p=1/part-0-0"} if end == "commit" else set()), (number, done[number - 1])
    assert number > 5
    assert refused > 3
    with contextlib.suppress(LockgateError):
        job.abort()


def test_abortable_by_its_driver_though_somebody_has_deleted_the_jobs_directory(tmp_path: Path) -> None:
    """Whose tasks' directories these are, only the driver can tell then: the next job of Hadoop's commits them."""
    job = Job(str(tmp_path), protocol="v1")
    job.setup()
    receipt = written(job, 0).commit()
    shutil.rmtree(tmp_path / "_lockgate")
    with pytest.raises(LockgateError):
        job.commit([receipt])
    job.abort()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_setup_that_stands_still_until_its_job_is_aborted_brings_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    number = 0
    while True:
        number += 1
        root = tmp_path / str(number)
        job = Job(root, protocol=protocol, accept_unsafe=True)
        ended: list[bool] = []

        def ends(root: Path = root, job: Job = job, ended: list[bool] = ended) -> None:
            with contextlib.suppress(JobNotFound):
                lockgate.abort(root, job.job_id, force=True)
                ended.append(True)

        with monkeypatch.context() as patch:
            done = before_act(
                patch, number, ("make_directories", "create_file", "list_directory"), lambda: asyncio.to_thread(ends)
            )
            try:
                job.setup()
            except LockgateError:
                continue
        if len(done) < number:
            break
        if ended:
            with pytest.raises(JobNotFound):
                job.task_attempt(0).setup()
    assert number > 3

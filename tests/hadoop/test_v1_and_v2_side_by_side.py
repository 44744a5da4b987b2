"""The same jobs by Hadoop's own `FileOutputCommitter`, both of its algorithms, and by Lockgate's v1 and v2: what
readers see, and who is told what. Where the four differ, the table of the test says so, and docs/protocol-v1-v2.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lockgate
import pytest
from found_job import left_in_temporary, read_output
from hadoop_jvm import HadoopError, HadoopJvm
from lockgate import Job, LockgateError, Receipt
from lockgate.engine.run.store import no_progress
from lockgate.stores.local import LocalStore

pytestmark = pytest.mark.spark

FOUR = ("Hadoop's v1", "Hadoop's v2", "our v1", "our v2")
NUMBERS = itertools.count(1)
"""Of Hadoop's jobs: those of one destination are told apart by them."""

Files = dict[str, bytes]


class Died(Exception):
    """The process ends in the middle of what it does."""


class Hadoops:
    """A job of Hadoop's."""

    def __init__(self, hadoop: HadoopJvm, destination: Path, version: str) -> None:
        self._hadoop, number = hadoop, next(NUMBERS)
        self._job = f"side-by-side-{number}"
        hadoop.setup_job(destination, self._job, "v1" if version == "v1" else "v2", breakable=True, number=number)

    def write(self, task: int, attempt: int, files: Files) -> None:
        self._hadoop.write_task(self._job, task, files, attempt=attempt, commit=False)

    def commit_task(self, task: int, attempt: int) -> None:
        self._hadoop.commit_task(self._job, task, attempt)

    def commit(self) -> None:
        self._hadoop.commit_job(self._job)

    def abort(self) -> None:
        self._hadoop.abort_job(self._job)

    def dying_before_move(self, number: int, act: Callable[[], None]) -> None:
        self._hadoop.break_at_rename(number)
        try:
            with pytest.raises(HadoopError, match="told to break"):
                act()
        finally:
            self._hadoop.break_at_rename(0)


class Breakable(LocalStore):
    """A local store whose process dies before its move of that number, of a file into the destination or of a task's
    directory."""

    left = 0

    def _move(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Died("told to die")

    async def rename_files(self, renames: Sequence[Any], progress: Any = no_progress) -> list[Any]:
        outcomes = []
        for each in renames:
            if not each.target.startswith("_"):
                self._move()
            outcomes += await super().rename_files([each], progress)
        return outcomes

    async def rename_directories(self, renames: Sequence[Any]) -> list[Any]:
        if any(each.target.startswith("_temporary/") for each in renames):
            self._move()
        return await super().rename_directories(renames)


class Ours:
    """A job of ours. The driver takes the last report of each task."""

    def __init__(self, destination: Path, version: str) -> None:
        self._job = Job(destination, protocol=version, accept_unsafe=version == "v2", on_failure="leave")
        self._job.setup()
        self._receipts: dict[int, Receipt] = {}
        self._written: dict[tuple[int, int], Any] = {}

    def write(self, task: int, attempt: int, files: Files) -> None:
        self._written[task, attempt] = work = self._job.task_attempt(task, attempt)
        work.setup()
        for path, content in files.items():
            with work.open(path) as file:
                file.write(content)

    def commit_task(self, task: int, attempt: int) -> None:
        self._receipts[task] = self._written[task, attempt].commit()

    def commit(self) -> None:
        self._job.commit(list(self._receipts.values()))

    def abort(self) -> None:
        """As somebody does who finds the job: undone if its commit had begun."""
        url = str(self._job.url)
        (found,) = lockgate.recover(url, self._job.job_id, undo=True, force=True).values()
        if found.outcome != "undone":
            lockgate.abort(url, self._job.job_id, force=True)

    def dying_before_move(self, number: int, act: Callable[[], None]) -> None:
        kept = self._job._open()
        store = Breakable(kept.url)
        store.left = number
        self._job._store = store
        with pytest.raises((Died, LockgateError), match="told to die"):
            act()
        self._job._store = kept


AJob = Hadoops | Ours


class Place:
    """A destination, and the committer by which its jobs are."""

    def __init__(self, hadoop: HadoopJvm, root: Path, way: str) -> None:
        self._hadoop, self.root, self.way = hadoop, root, way

    def job(self) -> AJob:
        whose, version = self.way.split()
        return Ours(self.root, version) if whose == "our" else Hadoops(self._hadoop, self.root, version)

    def seen(self) -> Files:
        return read_output(self.root)


@pytest.fixture(params=FOUR)
def place(hadoop: HadoopJvm, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(hadoop, tmp_path / "table", request.param)


def by_way(place: Place, hadoops_v1: Any, hadoops_v2: Any, our_v1: Any, our_v2: Any) -> Any:
    """What is expected of this one of the four."""
    return dict(zip(FOUR, (hadoops_v1, hadoops_v2, our_v1, our_v2), strict=True))[place.way]


def told(act: Callable[[], None]) -> str:
    """`refused`, or nothing."""
    try:
        act()
    except (HadoopError, LockgateError):
        return "refused"
    return ""


ONE: Files = {"p=1/a": b"1", "a": b"2"}
TWO: Files = {"p=1/b": b"3", "p=2/q=1/b": b"4"}


def test_complete_and_exclusive_all_of_the_tasks_that_have_committed_and_nothing_else(place: Place) -> None:
    job = place.job()
    for task, files in enumerate((ONE, TWO)):
        job.write(task, 0, files)
        job.commit_task(task, 0)
    job.write(2, 0, {"never": b"committed"})
    job.commit()
    assert place.seen() == ONE | TWO
    assert (place.root / "_SUCCESS").exists()
    assert not left_in_temporary(place.root)


def test_what_readers_see_before_the_job_commits(place: Place) -> None:
    job = place.job()
    job.write(0, 0, ONE)
    assert place.seen() == {}
    job.commit_task(0, 0)
    assert place.seen() == by_way(place, {}, ONE, {}, ONE)


def test_two_attempts_at_a_task_commit_and_the_driver_takes_the_second(place: Place) -> None:
    """By Hadoop's v1 the later deletes what the earlier has committed; by its v2 both are there. Our v2 refuses the
    second, since the first is in place."""
    job = place.job()
    job.write(0, 0, ONE)
    job.write(0, 1, TWO)
    job.commit_task(0, 0)
    assert told(lambda: job.commit_task(0, 1)) == by_way(place, "", "", "", "refused")
    job.commit()
    assert place.seen() == by_way(place, TWO, ONE | TWO, TWO, ONE)


def test_a_task_commit_is_cut_short_and_another_attempt_goes_on(place: Place) -> None:
    """Of v1 it is one rename. Hadoop's v2 commits a job with a file that no attempt has committed; ours refuses the job
    until somebody aborts that attempt, or the job."""
    job = place.job()
    job.write(0, 0, ONE)
    job.dying_before_move(by_way(place, 1, 2, 1, 2), lambda: job.commit_task(0, 0))
    left = place.seen()
    assert len(left) == by_way(place, 0, 1, 0, 1)
    job.write(0, 1, TWO)
    assert told(lambda: job.commit_task(0, 1)) == by_way(place, "", "", "", "refused")
    assert told(job.commit) == by_way(place, "", "", "", "refused")
    assert place.seen() == by_way(place, TWO, left | TWO, TWO, left)
    if place.way == "our v2":
        job.abort()
        assert place.seen() == {}


def test_a_job_is_given_up_whose_tasks_have_committed(place: Place) -> None:
    """Hadoop's v2 has no list of what they have moved."""
    job = place.job()
    job.write(0, 0, ONE)
    job.commit_task(0, 0)
    job.abort()
    assert place.seen() == by_way(place, {}, ONE, {}, {})


def test_a_job_commit_is_cut_short_and_the_job_is_given_up(place: Place) -> None:
    """By v2 nothing moves in a job commit. Hadoop's v1 leaves what it had moved."""
    job = place.job()
    job.write(0, 0, {"a": b"1", "b": b"2"})
    job.commit_task(0, 0)
    if place.way.endswith("v1"):
        job.dying_before_move(2, job.commit)
        assert len(place.seen()) == 1
        job.abort()
        assert len(place.seen()) == by_way(place, 1, 0, 0, 0)
    else:
        job.commit()
        assert place.seen() == {"a": b"1", "b": b"2"}


def test_spark_24238_a_job_ends_while_another_is_at_work_at_the_destination(place: Place) -> None:
    """Hadoop deletes `_temporary`, with what the other's tasks write; and its v1 has committed by then what the other's
    tasks had committed, whose job may yet fail."""
    first, second = place.job(), place.job()
    second.write(0, 0, ONE)
    second.commit_task(0, 0)
    second.write(1, 0, TWO)
    first.write(0, 0, {"first": b"0"})
    first.commit_task(0, 0)
    first.commit()
    assert place.seen() == {"first": b"0"} | by_way(place, ONE, ONE, {}, ONE)
    lost = told(lambda: second.commit_task(1, 0))
    assert lost == by_way(place, "refused", "refused", "", "")
    assert told(second.commit) == by_way(place, "refused", "", "", "")
    rest = by_way(place, ONE, ONE, ONE | TWO, ONE | TWO)
    assert place.seen() == {"first": b"0"} | rest


def test_a_file_of_that_name_is_there(place: Place) -> None:
    """Hadoop replaces it, and nobody gets it back. Ours refuse: v2 when the task commits."""
    (place.root / "p=1").mkdir(parents=True)
    (place.root / "p=1/a").write_bytes(b"before")
    job = place.job()
    job.write(0, 0, ONE)
    assert told(lambda: job.commit_task(0, 0)) == by_way(place, "", "", "", "refused")
    assert told(job.commit) == by_way(place, "", "", "refused", "")
    if place.way == "our v1":
        job.abort()
    kept = {"p=1/a": b"before"}
    assert place.seen() == by_way(place, ONE, ONE, kept, kept)


def test_two_tasks_write_one_path(place: Place) -> None:
    """Hadoop's later one wins, whichever that is."""
    job = place.job()
    for task in (0, 1):
        job.write(task, 0, {"a": b"%d" % task})
        refused = told(lambda task=task: job.commit_task(task, 0))
        assert refused == by_way(place, "", "", "", "refused" if task else "")
    assert told(job.commit) == by_way(place, "", "", "refused", "")
    if place.way == "our v1":
        assert place.seen() == {}
    else:
        assert place.seen() == {"a": b"0"} if place.way == "our v2" else len(place.seen()) == 1

"""Continuity: task attempts that write on while their job ends neither hold its end up nor come back."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lockgate
import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions, TaskAttempt, collect_garbage
from lockgate.errors import CommitFailed, FileMissing, JobNotFound, LockgateError, StoreError, UsageError
from lockgate.model.layout import doomed

ATTEMPTS = 4


@contextmanager
def _late_attempts(job: Job) -> Iterator[list[BaseException]]:
    """Attempts that open one file after the other, until they are refused; the errors they end with."""
    ended: list[BaseException] = []
    all_write = threading.Barrier(ATTEMPTS + 1)

    def write(number: int) -> None:
        attempt = job.task_attempt(100 + number)
        attempt.setup()
        try:
            for file in itertools.count():
                with attempt.open(f"late-{number}-{file}") as output:
                    output.write(b"late")
                if file == 5:
                    all_write.wait()
        except BaseException as error:
            ended.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(ATTEMPTS)]
    for thread in threads:
        thread.start()
    all_write.wait()
    try:
        yield ended
    finally:
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("ends", ["committed", "aborted", "rolled back"])
def test_continuity_the_end_of_a_job_wins_against_attempts_that_write_on(table, ends: str) -> None:
    for _ in range(3):
        job = table.job(durable=False)
        receipt = table.task(job, {job.job_id: b"x"})
        with _late_attempts(job) as ended:
            if ends == "committed":
                job.commit([receipt])
            elif ends == "aborted":
                job.abort()
            else:
                make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS-" in str(subject)
                with pytest.raises(CommitFailed, match="restored"):
                    job.commit([receipt])
        assert (table.root / job.job_id).exists() is (ends == "committed")
        assert not (table.root / "_lockgate/jobs").exists()
        # An abort also tells the attempts that were made from the very object.
        told = [error for error in ended if type(error) is UsageError]
        assert len(ended) == ATTEMPTS and all(type(error) is FileMissing for error in ended if error not in told), ended
        assert not told or ends == "aborted"
        assert all("was aborted" in str(error) for error in told), told
        with pytest.raises(JobNotFound):
            job.task_attempt(200).setup()


def test_continuity_an_attempt_that_begins_as_the_job_ends_brings_no_directory_back(table) -> None:
    """It has looked for the job's directory, which goes before it makes its own."""
    job = table.job()
    receipt = table.task(job, {"f": b"x"})
    store = job._open()
    seen: list[str] = []
    make = store._make

    def gone_meanwhile(path: str, within: str, synced: set[str]) -> object:
        if not seen:
            seen.append(path)
            job.commit([receipt])
        return make(path, within, synced)

    late = Job(job.url, job_id=job.job_id, nonce="n")
    late._store = type(store)(store.url)
    late._store._make = gone_meanwhile
    with pytest.raises(LockgateError):
        asyncio.run(late._store.make_directories([late.layout.task_directory("late")], within=late.layout.tasks))
    assert seen
    assert not (table.root / "_lockgate/jobs").exists()


def test_an_abort_that_was_cut_short_is_ended_by_gc(table) -> None:
    job = table.job(alive_seconds=0.0)
    table.task(job, {"f": b"x"})

    def refuse(name: str, subject: object) -> None:
        if name == "delete_directories":
            raise StoreError("planned")

    make_faulty(job).before = refuse
    with pytest.raises(StoreError):
        job.abort()
    assert table.left_over()
    found = collect_garbage(str(table.root), options=job.options)
    assert [each.action for each in found if not each.path.startswith("_temporary/")] == ["deleted"]
    assert not (table.root / "_lockgate/jobs").exists()


def test_what_a_deletion_that_was_killed_has_left_aside_is_garbage(table) -> None:
    table.write({"f": b"x"}, conflict="replace")
    for path in ("_temporary/j/00/tasks", "_lockgate/jobs/j/00/tasks", "_lockgate/replaced/j"):
        aside = table.root / doomed(path, "0123abcd")
        aside.mkdir(parents=True, exist_ok=True)
        (aside / "file").write_bytes(b"x")
    found = collect_garbage(str(table.root), options=JobOptions(alive_seconds=0.0))
    assert [each.path for each in found] == ["_temporary/.aside-0123abcd", "_lockgate/.aside-0123abcd"]
    assert not (table.root / "_lockgate/jobs").exists()
    assert not (table.root / "_lockgate/.aside-0123abcd").exists()


@pytest.mark.parametrize("late", ["commit", "abort"])
@pytest.mark.parametrize("first", [True, False], ids=["before the new job's attempt", "after it"])
@pytest.mark.parametrize("protocol", ["v1", "v2", "direct", "stocator", "markers"])
def test_exclusive_an_attempt_of_a_job_that_was_aborted_does_nothing_to_another_job_of_its_id(
    tmp_path: Path, protocol: str, first: bool, late: str
) -> None:
    """By v1 and v2 the new job's own rows were lost, and it committed the old one's, or nothing, with success."""

    def begun(content: bytes) -> tuple[Job, TaskAttempt]:
        job = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="nightly")
        job.setup()
        attempt = job.task_attempt(task=0, attempt=0)
        attempt.setup()
        with attempt.open(f"p=1/x-{attempt.tag}") as file:
            file.write(content)
        return job, attempt

    def comes_late() -> None:
        with contextlib.suppress(JobNotFound):
            old.commit() if late == "commit" else old.abort()

    _, old = begun(b"old")
    lockgate.abort(tmp_path, "nightly", force=True)
    job, attempt = begun(b"new")
    if first:
        comes_late()
    receipt = attempt.commit()
    if not first:
        comes_late()
    job.commit([receipt])
    (found,) = lockgate.files(tmp_path).files
    assert (tmp_path / found.path).read_bytes() == b"new"

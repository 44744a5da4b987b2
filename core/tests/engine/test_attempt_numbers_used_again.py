"""A task is run again under the attempt number that its first run has, as by an engine that has lost the answer."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from faulty_store import make_faulty
from lockgate import Job, Receipt, TaskAttempt
from lockgate.errors import CommitFailed, StoreUnavailable


def begun(shipped: bytes, content: bytes) -> TaskAttempt:
    attempt = pickle.loads(shipped).task_attempt(0)
    attempt.setup()
    with attempt.open(f"a-{content.decode()}-{attempt.tag}") as file:
        file.write(content)
    return attempt


def rows(root: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in root.iterdir() if path.is_file() and path.name[0] != "_")


@pytest.mark.parametrize("protocol", ["direct", "v2"])
@pytest.mark.parametrize("pickled", [False, True], ids=["same object", "pickled since"])
def test_complete_the_abort_of_a_second_run_that_was_refused_leaves_the_first_ones_files(
    tmp_path: Path, protocol: str, pickled: bool
) -> None:
    """It took out what the first had committed, and its manifest: the job could not commit any more."""
    job = Job(str(tmp_path), protocol=protocol, accept_unsafe=True)
    job.setup()
    shipped = pickle.dumps(job)
    receipt = begun(shipped, b"first").commit()
    second = begun(shipped, b"second")
    for _ in range(2):
        with pytest.raises(CommitFailed, match="has committed before, with other files") as refused:
            second.commit()
        assert "abort() of the object that was refused here" in refused.value.next_step
        if pickled:
            second = pickle.loads(pickle.dumps(second))
    for _ in range(2):
        second.abort()
        assert rows(tmp_path) == [b"first"]
    assert b"second" not in {path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert job.commit([receipt]).files == 1
    assert rows(tmp_path) == [b"first"]


def test_complete_a_second_run_of_direct_whose_files_stay_at_first_is_taken_out_by_its_abort(tmp_path: Path) -> None:
    job = Job(str(tmp_path), protocol="direct", accept_unsafe=True)
    job.setup()
    shipped = pickle.dumps(job)
    receipt = begun(shipped, b"first").commit()
    second = begun(shipped, b"second")
    store, failed = make_faulty(second._job), []

    def before(name: str, subject) -> None:
        if name.startswith(("delete_", "rename_", "make_")):
            failed.append(name)
            raise StoreUnavailable("no answer")

    store.before = before
    with pytest.raises(CommitFailed, match="has committed before, with other files"):
        second.commit()
    assert failed and rows(tmp_path) == [b"first", b"second"]
    store.before = lambda name, subject: None
    second.abort()
    assert rows(tmp_path) == [b"first"]
    assert job.commit([receipt]).files == 1


def v2_job(root: Path) -> tuple[Job, bytes, Receipt]:
    job = Job(str(root), protocol="v2", accept_unsafe=True)
    job.setup()
    shipped = pickle.dumps(job)
    return job, shipped, begun(shipped, b"first").commit()


def test_complete_what_the_second_run_wrote_is_not_dropped_without_a_word(tmp_path: Path) -> None:
    """By v2 its commit returned the first run's receipt."""
    job, shipped, receipt = v2_job(tmp_path)
    with pytest.raises(CommitFailed, match="attempt_000000_0 has committed before, with other files") as caught:
        begun(shipped, b"second").commit()
    assert ".task_attempt(0, 0).abort()" in caught.value.next_step
    assert rows(tmp_path) == [b"first"]
    assert job.commit([receipt]).files == 1
    assert rows(tmp_path) == [b"first"]


@pytest.mark.parametrize("opens", [True, False], ids=["some opened", "none opened"])
def test_complete_what_a_second_run_has_left_to_be_found_is_not_dropped_without_a_word(
    tmp_path: Path, opens: bool
) -> None:
    """What a scan found did not count: the commit returned the first run's receipt."""
    job, shipped, receipt = v2_job(tmp_path)
    second = pickle.loads(shipped).task_attempt(0)
    second.setup()
    (Path(second.working_directory.removeprefix("file://")) / "found").write_bytes(b"second")
    if opens:
        with second.open("opened") as file:
            file.write(b"second")
    with pytest.raises(CommitFailed, match="attempt_000000_0 has committed before, with other files") as caught:
        second.commit(scan=True if opens else None)
    assert "found" in caught.value.where
    assert job.commit([receipt]).files == 1
    assert rows(tmp_path) == [b"first"]


def test_complete_once_the_first_run_is_aborted_the_second_counts(tmp_path: Path) -> None:
    job, shipped, _ = v2_job(tmp_path)
    job.task_attempt(0).abort()
    attempt = pickle.loads(shipped).task_attempt(0, 1)
    attempt.setup()
    with attempt.open("b") as file:
        file.write(b"second")
    assert job.commit([attempt.commit()]).files == 1
    assert rows(tmp_path) == [b"second"]


def test_a_commit_that_is_repeated_by_the_run_that_has_committed_is_no_failure(tmp_path: Path) -> None:
    job = Job(str(tmp_path), protocol="v2", accept_unsafe=True)
    job.setup()
    attempt = begun(pickle.dumps(job), b"first")
    receipt = attempt.commit()
    assert attempt.commit() == receipt
    again = pickle.loads(pickle.dumps(job)).task_attempt(0)
    again.setup()
    assert again.commit().digest == receipt.digest, "one that has written nothing keeps nothing from anybody"
    assert job.commit([receipt]).files == 1

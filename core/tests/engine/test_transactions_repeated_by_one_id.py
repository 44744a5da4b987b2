"""Exactly once by transaction id, where a workflow that was started again gives its job the same id as well: what the
repetition has staged goes, and nothing of what the first has committed does."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate import Job, Receipt
from lockgate.api.jobs import jobs, recover
from lockgate.engine.job import cleanup
from lockgate.errors import CleanupFailed, JobNotFound, StoreError

INVISIBLE = ["manifest", "v1", "hive"]


def begun(root: Path, protocol: str = "manifest", task: int = 0, **options: object) -> tuple[Job, Receipt]:
    job = Job(str(root), protocol=protocol, job_id="load", txn_id="t", accept_unsafe=True, **options)
    job.setup()
    attempt = job.task_attempt(task)
    attempt.setup()
    with attempt.open("p=1/part-0.bin") as file:
        file.write(b"x")
    return job, attempt.commit()


def everything(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("marks", [True, False], ids=["_SUCCESS", "a note"])
@pytest.mark.parametrize("policy", ["append", "replace-partitions"])
@pytest.mark.parametrize("protocol", INVISIBLE)
def test_what_a_repetition_by_the_same_id_has_staged_goes_and_what_counts_stays(
    tmp_path: Path, protocol: str, policy: str, marks: bool
) -> None:
    job, receipt = begun(tmp_path, protocol, conflict=policy, mark_success=marks)
    first = job.commit([receipt])
    committed = everything(tmp_path)
    for _ in range(3):
        again, receipt = begun(tmp_path, protocol, conflict=policy, mark_success=marks)
        assert again.commit([receipt]) == first
        assert everything(tmp_path) == committed
    assert [state.status.value for state in jobs(tmp_path)] == ["committed"]


@pytest.mark.parametrize("protocol", ["direct", "stocator", "markers", "v2"])
def test_a_repetition_whose_files_would_be_seen_is_refused_and_leaves_nothing(tmp_path: Path, protocol: str) -> None:
    def run() -> None:
        job = Job(str(tmp_path), protocol=protocol, job_id="load", txn_id="t", accept_unsafe=True)
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open(f"p=1/part-0-{attempt.tag}.bin") as file:
            file.write(b"x")
        job.commit([attempt.commit()])

    run()
    committed = everything(tmp_path)
    for _ in range(2):
        with pytest.raises(JobNotFound):
            run()
        assert everything(tmp_path) == committed


def dies_in_its_cleanup(root: Path, monkeypatch: pytest.MonkeyPatch, *, marker_is_gone: bool) -> tuple[Job, Receipt]:
    """A first job that has replaced a file, and whose driver died before it had let go of that."""
    (root / "p=1").mkdir()
    (root / "p=1" / "old.bin").write_bytes(b"old")
    job, receipt = begun(root, conflict="replace-partitions")

    async def dies(*arguments: object, **named: object) -> None:
        raise StoreError("the driver dies")

    with monkeypatch.context() as patched, pytest.raises(CleanupFailed):
        patched.setattr(cleanup, "let_go_of_replaced", dies)
        job.commit([receipt])
    if marker_is_gone:
        (root / job.layout.job_marker).unlink()
    return job, receipt


@pytest.mark.parametrize("marker_is_gone", [False, True])
def test_a_second_driver_of_the_first_job_deletes_nothing_that_its_cleanup_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker_is_gone: bool
) -> None:
    job, receipt = dies_in_its_cleanup(tmp_path, monkeypatch, marker_is_gone=marker_is_gone)
    left = everything(tmp_path)
    assert any("replaced" in path for path in left)
    second = Job(job.url, job.options, job_id="load", nonce=job._marker)
    assert second.commit([receipt]).job_id == "load"
    assert everything(tmp_path) == left


def test_a_repetition_leaves_the_record_of_a_first_job_that_died_in_its_cleanup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's marker is gone, so that the id could be set up again; its record is there, and recovery goes by
    it."""
    dies_in_its_cleanup(tmp_path, monkeypatch, marker_is_gone=True)
    left = everything(tmp_path)
    again, receipt = begun(tmp_path, task=1, conflict="replace-partitions")
    assert again.commit([receipt]).job_id == "load"
    assert left.items() <= everything(tmp_path).items()
    recover(tmp_path, "load")
    assert [state.status.value for state in jobs(tmp_path)] == ["committed"]
    assert {path for path in everything(tmp_path) if path[0] != "_"} == {"p=1/part-0.bin"}

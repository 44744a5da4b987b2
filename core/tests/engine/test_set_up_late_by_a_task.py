"""Where tasks set their job up themselves, as in a stream, one that comes late sets it up once more, and finds out only
then that it is over. Meanwhile another late task finds the marker."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import JobNotFound

EARLY = ["v2", "direct", "stocator", "markers"]


def a_job(root: Path, protocol: str) -> Job:
    """As each task of a stream has it."""
    options = JobOptions(protocol=protocol, accept_unsafe=True, durable=False, txn_id="q/3")
    return Job(root, options, job_id="batch", nonce="a" * 32)


def begun(root: Path, protocol: str, task: int, attempt: int):
    ours = a_job(root, protocol).task_attempt(task, attempt)
    ours.setup()
    with ours.open(f"n{task}-{attempt}-{ours.tag}") as file:
        file.write(b"%d" % task)
    return ours


def visible(root: Path) -> list[str]:
    return sorted(path.name[:4] for path in root.glob("n*"))


@pytest.mark.parametrize("protocol", EARLY)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_exclusive_a_late_task_adds_nothing_by_the_marker_that_another_late_task_has_made(
    tmp_path: Path, protocol: str, end: str
) -> None:
    """It was told that it had committed; its rows stayed beside those of the committed batch, or of none."""
    job = a_job(tmp_path, protocol)
    job.setup(by_task=True)
    receipts = [begun(tmp_path, protocol, task, 0).commit() for task in range(2)]
    slow = begun(tmp_path, protocol, 0, 5)
    marker = tmp_path / job.layout.job_marker
    content = marker.read_bytes()
    if end == "commit":
        job.commit(receipts)
    else:
        job.abort(set_up_by_tasks=True)
    kept = ["n0-0", "n1-0"] if end == "commit" else []
    assert not marker.exists()
    # As of a task that had looked whether the job is over before it was, and makes its marker now.
    for directory in (job.layout.manifests, job.layout.tasks):
        (tmp_path / directory).mkdir(parents=True)
    marker.write_bytes(content)
    with pytest.raises(JobNotFound):
        begun(tmp_path, protocol, 1, 6).commit()
    with pytest.raises(JobNotFound):
        slow.commit()
    with pytest.raises(JobNotFound):
        job.setup(by_task=True)
    assert visible(tmp_path) == kept
    assert len(lockgate.files(tmp_path).files) == len(kept)

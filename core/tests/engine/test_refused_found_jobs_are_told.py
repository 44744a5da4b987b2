"""Why a job of Hadoop's cannot be committed as it was left: in words that are true of it, which saves no manifests."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from lockgate import JobOptions
from lockgate.errors import ManifestInvalid

JOB = "job_202411211721_0003"
V1 = JobOptions(protocol="v1")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The directory of a committed task."""
    directory = tmp_path / "_temporary/0/task_202411211721_0003_m_000000"
    directory.mkdir(parents=True)
    (directory / "part-0").write_bytes(b"0")
    return directory


def test_a_name_that_is_no_tasks_is_told_by_itself_and_several_by_their_number(task: Path, tmp_path: Path) -> None:
    (task.parent / "notes.txt").touch()
    with pytest.raises(ManifestInvalid) as refused:
        lockgate.commit(tmp_path, JOB, options=V1, force=True)
    assert refused.value.what == "`notes.txt` is in a directory for committed tasks, and is no task's"
    assert "who wrote it, and move it away" in refused.value.next_step
    (task.parent / "task_bad").mkdir()
    with pytest.raises(ManifestInvalid) as refused:
        lockgate.commit(tmp_path, JOB, options=V1, force=True)
    assert refused.value.what == "2 names are in a directory for committed tasks, and are no task's"
    assert "who wrote them, and move them away" in refused.value.next_step


def test_a_symbolic_link_among_a_tasks_files_is_not_told_of_a_manifest(task: Path, tmp_path: Path) -> None:
    (task / "link").symlink_to("/etc/hostname")
    with pytest.raises(ManifestInvalid) as refused:
        lockgate.commit(tmp_path, JOB, options=V1, force=True)
    assert refused.value.what == "1 file that a task has left cannot be committed"
    assert "link: not a regular file" in refused.value.where
    (task / "link").unlink()
    assert lockgate.commit(tmp_path, JOB, options=V1, force=True).files == 1

"""Complete: a checksum of Hadoop's local filesystem (`.NAME.crc`) without its file says that output is missing."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from hive_left import HIVE, JOB, everything, leave
from lockgate import Job, JobOptions
from lockgate.api.jobs import abort, commit
from lockgate.errors import CommitFailed, ManifestInvalid

HADOOPS = "job_202411211721_0003"
V1 = JobOptions(protocol="v1")
TASK = f"_temporary/0/task_{HADOOPS.removeprefix('job_')}_m_000000"


def left_by_hadoop(root: Path) -> None:
    leave(root, {f"p=1/{name}": b"x" for name in ("part-0", ".part-0.crc", "part-1", ".part-1.crc")}, TASK)


def test_complete_v1_refuses_a_task_whose_file_is_gone_and_its_checksum_is_there(tmp_path: Path) -> None:
    left_by_hadoop(tmp_path)
    lost = tmp_path / TASK / "p=1/part-1"
    lost.unlink()
    before = everything(tmp_path)
    for ask in (lockgate.plan, lambda root, job, options: commit(root, job, options=options, force=True)):
        with pytest.raises(ManifestInvalid, match="1 file of task_000000 is missing") as refused:
            ask(tmp_path, HADOOPS, V1)
        assert refused.value.where == lost.as_uri().replace("%3D", "=")
        assert "bring it back" in refused.value.next_step
    assert everything(tmp_path) == before
    lost.write_bytes(b"x")
    commit(tmp_path, HADOOPS, options=V1, force=True)
    assert {path for path in everything(tmp_path) if path.startswith("p=1/")} == {"p=1/part-0", "p=1/part-1"}


def test_complete_the_next_attempt_keeps_no_task_of_hadoops_that_has_lost_a_file(tmp_path: Path) -> None:
    left_by_hadoop(tmp_path)
    (tmp_path / TASK / "p=1/part-1").unlink()
    job = Job(tmp_path, V1, job_id=HADOOPS, job_attempt=1)
    job.setup()
    with pytest.raises(ManifestInvalid, match="1 file of task_000000 is missing"):
        job.committed()


def test_a_job_of_hadoops_that_has_lost_a_file_can_be_given_up(tmp_path: Path) -> None:
    left_by_hadoop(tmp_path)
    (tmp_path / TASK / "p=1/part-1").unlink()
    abort(tmp_path, HADOOPS, V1, force=True)
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive"])
def test_complete_a_scan_refuses_a_checksum_whose_file_is_gone(tmp_path: Path, protocol: str) -> None:
    job = Job(tmp_path, protocol=protocol, accept_unsafe=protocol == "v2")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    directory = Path(attempt.working_directory.removeprefix("file://"))
    (directory / "part-0.csv").write_bytes(b"1")
    (directory / ".part-0.csv.crc").write_bytes(b"crc")
    (directory / ".part-1.csv.crc").write_bytes(b"crc")
    with pytest.raises(CommitFailed, match="its checksum is there") as refused:
        attempt.commit()
    assert refused.value.where.endswith("/part-1.csv")
    (directory / "part-1.csv").write_bytes(b"2")
    job.commit([attempt.commit()])
    assert sorted(c for path, c in everything(tmp_path).items() if not path.startswith(("_", "."))) == [b"1", b"2"]


def test_exclusive_a_checksum_is_no_output_of_a_hive_task_that_scans(tmp_path: Path) -> None:
    """Under the name that a hive job gives every file it was not hidden any more, and readers took it for rows."""
    job = Job(tmp_path, HIVE)
    job.setup()
    attempt = job.task_attempt(3)
    attempt.setup()
    leave(Path(attempt.working_directory.removeprefix("file://")), {"d=1/a.csv": b"1", "d=1/.a.csv.crc": b"crc"}, ".")
    job.commit([attempt.commit()])
    found = {path: c for path, c in everything(tmp_path).items() if not path.startswith("_")}
    assert found == {"d=1/000003_0.csv": b"1"}


@pytest.mark.parametrize("checksum", ["ds=2/.000001_0.crc", ".000001_0.gz.crc"])
def test_complete_hive_names_the_output_that_is_missing_and_never_says_to_move_its_checksum(
    tmp_path: Path, checksum: str
) -> None:
    left = leave(tmp_path, {"ds=1/000000_0": b"a", "ds=1/000001_0": b"bb", checksum: b"crc"})
    directory, dot, name = checksum.rpartition(".crc")[0].rpartition(".0")
    lost = left / f"{directory}{dot.removeprefix('.')}{name}"
    before = everything(tmp_path)
    for ask in (lockgate.plan, lambda root, job, options: commit(root, job, options=options, force=True)):
        with pytest.raises(ManifestInvalid, match="1 output file of Hive's tasks is missing") as refused:
            ask(tmp_path, JOB, HIVE)
        assert refused.value.where == lost.as_uri().replace("%3D", "=")
        assert "bring it back" in refused.value.next_step
        assert "move" not in refused.value.next_step.removeprefix("nothing was moved")
    assert everything(tmp_path) == before
    abort(tmp_path, JOB, HIVE, force=True)
    assert everything(tmp_path) == {}

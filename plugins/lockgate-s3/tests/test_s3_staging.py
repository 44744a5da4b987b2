"""Files that wait on a local disk until their task attempt commits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from lockgate import Job, JobOptions
from lockgate.errors import CommitFailed, DuplicateTarget, PathError, StoreError

pytestmark = pytest.mark.parametrize("s3", ["versity"], indirect=True)
PATH = "tables/staged"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def job(bucket: Any, disk: Path) -> Job:
    made = Job(bucket.url(PATH), JobOptions(store=bucket.store, patience_seconds=45.0, staging_directory=str(disk)))
    made.setup()
    return made


def begin(job: Job, number: int = 0, attempt: int = 0) -> Any:
    begun = job.task_attempt(task=number, attempt=attempt)
    begun.setup()
    return begun


def put(attempt: Any, path: str, content: bytes) -> None:
    with attempt.open(path) as file:
        file.write(content)


def seen(bucket: Any) -> dict[str, bytes]:
    found = bucket.files(PATH)
    return {path: content for path, content in found.items() if not path.startswith(("_lockgate/", "_SUCCESS"))}


def test_nothing_is_uploaded_before_the_task_commits_and_nothing_is_on_the_disk_after(bucket, job, disk) -> None:
    attempt = begin(job)
    put(attempt, "p=1/a+b %20", b"1" * (9 << 20))
    put(attempt, "p=2/empty", b"")
    assert bucket.uploads() == []
    receipt = attempt.commit()
    assert bucket.uploads() == [f"{PATH}/p=1/a+b %20", f"{PATH}/p=2/empty"]
    assert list(disk.iterdir()) == []
    assert attempt.commit() == receipt, "a commit that is repeated sends nothing again"
    assert len(bucket.uploads()) == 2
    job.commit([receipt])
    assert seen(bucket) == {"p=1/a+b %20": b"1" * (9 << 20), "p=2/empty": b""}
    assert bucket.uploads() == []


def test_what_other_programs_leave_in_the_working_directory_is_committed(bucket, job, disk) -> None:
    attempt = begin(job)
    found = Path(attempt.working_directory, "year=2026", "part-0.parquet")
    found.parent.mkdir()
    found.write_bytes(b"found")
    put(attempt, "opened", b"opened")
    job.commit([attempt.commit(scan=True)])
    assert seen(bucket) == {"year=2026/part-0.parquet": b"found", "opened": b"opened"}
    assert list(disk.iterdir()) == []


def test_complete_a_scan_refuses_a_checksum_of_hadoops_whose_file_is_gone(bucket, job) -> None:
    attempt = begin(job)
    Path(attempt.working_directory, ".part-0.csv.crc").write_bytes(b"crc")
    with pytest.raises(CommitFailed, match="its checksum is there") as refused:
        attempt.commit(scan=True)
    assert refused.value.where.endswith("/part-0.csv")
    assert seen(bucket) == {}


def test_an_attempt_that_is_aborted_has_uploaded_nothing_and_leaves_the_disk_as_it_was(bucket, job, disk) -> None:
    attempt = begin(job)
    put(attempt, "a", b"a")
    attempt.abort()
    assert list(disk.iterdir()) == []
    assert bucket.uploads() == []
    retry = begin(job, attempt=1)
    put(retry, "a", b"a")
    job.commit([retry.commit()])
    assert seen(bucket) == {"a": b"a"}


def test_a_file_that_is_discarded_is_not_committed(bucket, job) -> None:
    attempt = begin(job)
    with pytest.raises(RuntimeError), attempt.open("broken") as file:
        file.write(b"half")
        raise RuntimeError
    put(attempt, "whole", b"whole")
    job.commit([attempt.commit()])
    assert seen(bucket) == {"whole": b"whole"}


def test_two_files_for_one_path_are_refused_and_nothing_is_uploaded(bucket, job) -> None:
    attempt = begin(job)
    put(attempt, "a", b"opened")
    Path(attempt.working_directory, "a").write_bytes(b"found")
    with pytest.raises(DuplicateTarget):
        attempt.commit(scan=True)
    assert bucket.uploads() == []
    Path(attempt.working_directory, "a").unlink()
    job.commit([attempt.commit(scan=True)])
    assert seen(bucket) == {"a": b"opened"}


@pytest.mark.parametrize("name", ["_SUCCESS", "_temporary/x", "link"])
def test_what_is_no_plain_file_of_a_table_is_refused(bucket, job, name) -> None:
    attempt = begin(job)
    work = Path(attempt.working_directory)
    (work / name).parent.mkdir(exist_ok=True)
    if name == "link":
        (work / name).symlink_to("/etc/hostname")
    else:
        (work / name).write_bytes(b"x")
    with pytest.raises(PathError, match="no plain file"):
        attempt.commit(scan=True)
    assert bucket.uploads() == []


def test_a_file_that_is_gone_from_the_disk_leaves_no_uploads_of_the_others(bucket, job, disk) -> None:
    """As where somebody cleans the disk up while the task is at work."""
    attempt = begin(job)
    for number in range(6):
        put(attempt, f"file-{number}", b"x" * (6 << 20))
    last = sorted(disk.glob("*/*/*/opened/*"))[-1]
    last.unlink()
    with pytest.raises(StoreError, match="cannot be written or read") as caught:
        attempt.commit()
    assert caught.value.next_step
    assert bucket.uploads() == []


def test_a_directory_that_cannot_be_made_is_told_when_the_attempt_is_set_up(bucket, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    options = JobOptions(store=bucket.store, staging_directory=str(tmp_path / "file" / "scratch"))
    job = Job(bucket.url(PATH), options)
    job.setup()
    with pytest.raises(StoreError, match="Not a directory"):
        begin(job)


def test_what_an_attempt_that_was_killed_has_left_goes_with_its_job(bucket, job, disk) -> None:
    put(begin(job), "a", b"never committed")
    retry = begin(job, attempt=1)
    put(retry, "a", b"a")
    job.commit([retry.commit()])
    assert list(disk.iterdir()) == []


def test_what_other_jobs_have_left_long_ago_goes_and_what_is_young_stays(bucket, job, disk) -> None:
    """On a machine that runs tasks, and never their driver."""
    for name in ("lockgate-long-ago", "lockgate-young", "of-others"):
        (disk / name / "00").mkdir(parents=True)
    for path in (disk / "lockgate-long-ago", disk / "lockgate-long-ago" / "00", disk / "of-others"):
        os.utime(path, (1e9, 1e9))
    begin(job)
    others = {path.name for path in disk.iterdir() if not path.name.startswith(f"lockgate-{job.job_id}-")}
    assert others == {"lockgate-young", "of-others"}


def test_half_a_file_of_a_process_that_was_killed_is_not_committed_by_the_same_attempt_begun_again(bucket, job) -> None:
    killed = begin(job)
    Path(killed.working_directory, "half").write_bytes(b"ha")
    again = begin(job)
    Path(again.working_directory, "whole").write_bytes(b"whole")
    job.commit([again.commit(scan=True)])
    assert seen(bucket) == {"whole": b"whole"}


def test_an_attempt_whose_directory_somebody_has_deleted_does_not_commit_nothing(bucket, job, disk) -> None:
    attempt = begin(job)
    Path(attempt.working_directory, "a").write_bytes(b"a")
    shutil.rmtree(disk)
    with pytest.raises(StoreError, match="cannot be written or read"):
        attempt.commit(scan=True)
    assert bucket.uploads() == []


def test_jobs_of_one_id_on_two_destinations_do_not_share_their_files(bucket, disk) -> None:
    options = JobOptions(store=bucket.store, patience_seconds=45.0, staging_directory=str(disk))
    jobs = [Job(bucket.url(path), options, job_id="nightly") for path in (PATH, "tables/other")]
    attempts = []
    for job in jobs:
        job.setup()
        attempts.append(begin(job))
    Path(attempts[0].working_directory, "a").write_bytes(b"a")
    jobs[1].commit([attempts[1].commit(scan=True)])
    jobs[0].commit([attempts[0].commit(scan=True)])
    assert seen(bucket) == {"a": b"a"}
    assert not any(path.startswith("a") for path in bucket.files("tables/other"))

"""Files that wait on a local disk until their task attempt commits."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
from lockgate import Job, JobOptions
from lockgate.errors import CommitFailed, DuplicateTarget, LockgateError, PathError, StoreError, StoreUnavailable

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


@pytest.fixture(params=["deferred", "emrfs"])
def either(request: pytest.FixtureRequest, bucket: Any, disk: Path) -> Job:
    """A job of either protocol that has files wait on the disk."""
    options = JobOptions(
        store=bucket.store,
        patience_seconds=45.0,
        staging_directory=str(disk),
        protocol=request.param,
        accept_unsafe=True,
        manifest_save_attempts=1,
    )
    made = Job(bucket.url(PATH), options)
    made.setup()
    return made


@pytest.mark.parametrize("is_sent_elsewhere", [False, True], ids=["same object", "pickled"])
@pytest.mark.parametrize("names", [["p=1/found", "p=2/b"], []], ids=["two", "none"])
def test_repeatable_a_commit_of_what_was_found_gives_the_same_receipt(bucket, either, names, is_sent_elsewhere) -> None:
    attempt = begin(either)
    for name in names:
        file = Path(attempt.working_directory, name)
        file.parent.mkdir()
        file.write_bytes(b"found")
    receipt = attempt.commit(scan=True)
    again = pickle.loads(pickle.dumps(attempt)) if is_sent_elsewhere else attempt
    assert again.commit(scan=True) == receipt
    either.commit([receipt])
    assert seen(bucket) == dict.fromkeys(names, b"found")


def test_repeatable_a_commit_that_had_no_answer_at_any_moment(bucket, either, disk, monkeypatch) -> None:
    """By emrfs it has given its uploads up: they are made anew, of the files that are on the disk until it succeeds."""
    at, done = 0, 0
    kind = type(either._open())

    def unanswered(name: str) -> None:
        original = getattr(kind, name)

        async def act(store: Any, *arguments: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == at:
                raise StoreUnavailable(f"no answer to {name}", where=str(arguments)[:80], next_step="try again")
            return await original(store, *arguments, **named)

        monkeypatch.setattr(kind, name, act)

    for name in ("create_file", "write_file", "read_files", "stat_files", "complete_uploads"):
        unanswered(name)
    receipts, failed = [], 0
    for number in range(40):
        attempt = begin(either, number)
        put(attempt, f"opened-{number}", b"opened")
        Path(attempt.working_directory, f"found-{number}").write_bytes(b"found")
        at, done = number + 1, 0
        try:
            receipts.append(attempt.commit(scan=True))
        except LockgateError:
            failed += 1
            assert list(disk.glob("*/*/*/opened/*"))
            at = 0
            receipts.append(attempt.commit(scan=True))
        is_past, at = done < at, 0
        assert not list(disk.glob("*/*/*/opened/*"))
        assert attempt.commit(scan=True) == receipts[-1]
        if is_past:
            break
    assert failed
    either.commit(receipts)
    wanted = {f"{each}-{number}": each.encode() for number in range(len(receipts)) for each in ("opened", "found")}
    assert seen(bucket) == wanted
    assert bucket.uploads() == []


def test_a_repeated_commit_whose_files_somebody_has_deleted_does_not_say_that_nothing_is_committed(
    either, disk, monkeypatch
) -> None:
    attempt = begin(either)
    Path(attempt.working_directory, "a").write_bytes(b"a")
    kind = type(either._open())

    async def refuse(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("no answer", where="there", next_step="try again")

    with monkeypatch.context() as patched:
        patched.setattr(kind, "create_file", refuse)
        with pytest.raises(LockgateError):
            attempt.commit(scan=True)
    shutil.rmtree(disk)
    with pytest.raises(StoreError) as told:
        attempt.commit(scan=True)
    gave_up = either.options.protocol == "emrfs"  # at once, so that it knows
    known = "nothing of this attempt is committed" if gave_up else "whether it has committed is not known"
    assert known in told.value.next_step


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

"""Jobs on S3, from the Python API and the command line, on two servers."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import (
    AccessDenied,
    CapabilityMissing,
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    DestinationConflict,
    LockgateError,
    OutcomeUnknown,
    StoreError,
    UsageError,
)
from lockgate.protocols.deferred import job_commit
from lockgate_lab.servers import MinioServer
from lost_records import LOST_RECORDS, delete_record

PATH = "tables/all events"


def options(bucket: Any, **more: Any) -> JobOptions:
    return JobOptions(store=bucket.store, patience_seconds=45.0, **more)


def write_job(bucket: Any, files: dict[str, bytes], **more: Any) -> Job:
    job = Job(bucket.url(PATH), options(bucket, **more))
    job.setup()
    job.commit([task(job, files)])
    return job


def task(job: Job, files: dict[str, bytes], number: int = 0, attempt: int = 0) -> Any:
    begun = job.task_attempt(task=number, attempt=attempt)
    begun.setup()
    for path, content in files.items():
        with begun.open(path) as file:
            file.write(content)
    return begun.commit()


def seen(bucket: Any) -> dict[str, bytes]:
    """What readers see: other than what is kept of jobs."""
    found = bucket.files(PATH)
    return {path: content for path, content in found.items() if not path.startswith(("_lockgate/", "_SUCCESS"))}


def test_a_job_appends_and_another_replaces(bucket) -> None:
    write_job(bucket, {"p=1/a": b"1", "p=2/a+b %20": b"2", "p=1/empty": b""})
    assert seen(bucket) == {"p=1/a": b"1", "p=2/a+b %20": b"2", "p=1/empty": b""}
    write_job(bucket, {"p=1/b": b"new"}, conflict="replace-partitions")
    assert seen(bucket) == {"p=1/b": b"new", "p=2/a+b %20": b"2"}
    last = write_job(bucket, {"p=3/c": b"all"}, conflict="replace")
    assert seen(bucket) == {"p=3/c": b"all"}
    assert bucket.uploads() == []
    success = json.loads(bucket.files(PATH)["_SUCCESS"])
    assert success["jobId"] == last.job_id
    found = lockgate.verify(bucket.url(PATH), options(bucket))
    assert found.findings == [] and found.checked == 1


def test_nothing_is_seen_before_the_commit_and_nothing_left_after_an_abort(bucket) -> None:
    write_job(bucket, {"old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace"))
    job.setup()
    task(job, {"new": b"new"})
    assert seen(bucket) == {"old": b"old"}
    assert bucket.uploads() == [f"{PATH}/new"]
    job.abort()
    assert bucket.uploads() == []
    assert seen(bucket) == {"old": b"old"}


def test_a_file_in_the_way_is_never_written_over(bucket) -> None:
    """Also where its content is the same."""
    write_job(bucket, {"a": b"same", "b": b"b"})
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    receipt = task(job, {"a": b"same", "c": b"c"})
    with pytest.raises(CommitFailed, match="a file is there that this job did not write"):
        job.commit([receipt])
    assert seen(bucket) == {"a": b"same", "b": b"b"}
    assert bucket.uploads() == []
    job = Job(bucket.url(PATH), options(bucket, conflict="replace"))
    job.setup()
    receipt = task(job, {"a": b"same"})
    with pytest.raises(DestinationConflict, match="files of the same names"):
        job.commit([receipt])
    assert seen(bucket) == {"a": b"same", "b": b"b"}


def test_uploads_of_an_attempt_that_another_has_displaced_are_given_up(bucket) -> None:
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    first = task(job, {"first": b"1"})
    second = task(job, {"second": b"2"}, attempt=1)
    assert first.task_attempt_id != second.task_attempt_id
    job.commit([second])
    assert seen(bucket) == {"second": b"2"}
    assert bucket.uploads() == []


def test_a_transaction_takes_effect_once(bucket) -> None:
    first = write_job(bucket, {"a": b"1"}, txn_id="daily/1")
    job = Job(bucket.url(PATH), options(bucket, txn_id="daily/1"))
    job.setup()
    assert job.commit([task(job, {"b": b"2"})]).job_id == first.job_id
    assert seen(bucket) == {"a": b"1"}
    assert bucket.uploads() == []


def test_a_repetition_by_one_id_and_one_transaction_leaves_no_upload_and_takes_nothing_out(bucket) -> None:
    """Its files have the names, and the content, of those that the first has committed."""
    first = None
    for _ in range(3):
        job = Job(bucket.url(PATH), options(bucket, txn_id="daily/1"), job_id="load")
        job.setup()
        summary = job.commit([task(job, {"a": b"1"})])
        first = first or summary
        assert summary == first
        assert seen(bucket) == {"a": b"1"}
        assert bucket.uploads() == []
        states = lockgate.jobs(bucket.url(PATH), JobOptions(store=bucket.store))
        assert [(state.job_id, state.status.value) for state in states] == [("load", "committed")]


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2"])
def test_a_protocol_of_renames_is_refused_and_told_what_to_take_instead(bucket, protocol: str) -> None:
    with pytest.raises(CapabilityMissing) as caught:
        Job(bucket.url(PATH), options(bucket, protocol=protocol, accept_unsafe=True)).setup()
    assert "protocol=deferred" in caught.value.next_step


def test_files_in_a_working_directory_are_not_looked_for(bucket) -> None:
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    with pytest.raises(UsageError, match="no working directory"):
        attempt.commit(scan=True)


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_a_large_file_goes_in_parts_and_little_of_it_is_in_memory(bucket) -> None:
    content = bytes(range(256)) * (70 << 10)
    write_job(bucket, {"large": content}, conflict="append")
    assert seen(bucket)["large"] == content


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_anybody_looks_at_jobs_by_the_command_line(bucket, capsys) -> None:
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    task(job, {"a": b"1"})
    states = lockgate.jobs(bucket.url(PATH), JobOptions(store=bucket.store))
    assert [state.job_id for state in states] == [job.job_id]
    lockgate.commit(bucket.url(PATH), job.job_id, options=JobOptions(store=bucket.store), force=True)
    assert seen(bucket) == {"a": b"1"}
    assert lockgate.collect_garbage(bucket.url(PATH), options=JobOptions(store=bucket.store)) == []


def test_doctor_tries_what_a_job_relies_on(bucket, s3) -> None:
    """MinIO deletes whatever the condition says."""
    found = {probe.name: probe.verdict for probe in lockgate.doctor(bucket.url(PATH), options(bucket))}
    broken = ["conditional-write"] if isinstance(s3, MinioServer) else []
    assert found["deferred-upload"] == "ok"
    assert [name for name, verdict in found.items() if verdict == "broken claim"] == broken


def test_uploads_of_a_neighbour_whose_names_hold_this_jobs_id_are_not_given_up(bucket) -> None:
    """`job1` is in the names of `job10`."""
    neighbour = Job(bucket.url(PATH), options(bucket), job_id="job10")
    neighbour.setup()
    receipt = task(neighbour, {"part-job10": b"10"})
    job = Job(bucket.url(PATH), options(bucket), job_id="job1")
    job.setup()
    job.commit([task(job, {"part-job1": b"1"})])
    neighbour.commit([receipt])
    assert seen(bucket) == {"part-job1": b"1", "part-job10": b"10"}


def test_the_old_success_goes_at_setup_where_the_options_say_so(bucket) -> None:
    write_job(bucket, {"a": b"1"})
    job = Job(bucket.url(PATH), options(bucket, delete_success_at_setup=True))
    job.setup()
    assert "_SUCCESS" not in bucket.files(PATH)
    job.commit([task(job, {"b": b"2"})])
    assert json.loads(bucket.files(PATH)["_SUCCESS"])["jobId"] == job.job_id


def edit_in_place(bucket: Any, path: str, content: bytes) -> None:
    """Write an object over as tools do that keep its metadata."""
    key = f"{PATH}/{path}"
    metadata = bucket.client.head_object(Bucket=bucket.name, Key=key)["Metadata"]
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=content, Metadata=metadata)


def died_halfway(bucket: Any) -> Job:
    """A job whose commit has completed some uploads, and stands."""
    bucket.client.put_object(Bucket=bucket.name, Key=f"{PATH}/z", Body=b"in the way")
    job = Job(bucket.url(PATH), options(bucket, on_failure="leave"))
    job.setup()
    with pytest.raises(CommitFailed):
        job.commit([task(job, {"a": b"new", "b": b"new", "z": b"new"})])
    return job


def test_an_undoing_leaves_and_names_a_committed_file_that_somebody_has_edited(bucket) -> None:
    """Its metadata, and so the job's mark, are on it still."""
    job = died_halfway(bucket)
    edit_in_place(bucket, "a", b"edited by somebody")
    found = lockgate.recover(bucket.url(PATH), job.job_id, undo=True, force=True, options=options(bucket))
    assert (found[job.job_id].outcome, found[job.job_id].left) == ("undone", ["a"])
    assert seen(bucket) == {"a": b"edited by somebody", "z": b"in the way"}


def test_a_job_is_not_finished_over_a_committed_file_that_somebody_has_edited(bucket) -> None:
    job = died_halfway(bucket)
    edit_in_place(bucket, "a", b"edited by somebody")
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/z")
    with pytest.raises(LockgateError) as caught:
        lockgate.recover(bucket.url(PATH), job.job_id, force=True, options=options(bucket))
    assert f"{PATH}/a" in caught.value.where
    assert seen(bucket)["a"] == b"edited by somebody"


def test_an_upload_that_was_given_up_is_not_told_committed_where_anothers_file_stands(bucket) -> None:
    """versitygw 1.8 answers its completion with 200."""
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    receipt = task(job, {"a": b"new", "b": b"new"})
    bucket.client.put_object(Bucket=bucket.name, Key=f"{PATH}/a", Body=b"another's")
    for each in bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads", ()):
        if each["Key"] == f"{PATH}/a":
            bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=each["Key"], UploadId=each["UploadId"])
    with pytest.raises(CommitFailed, match="a file is there that this job did not write"):
        job.commit([receipt])
    assert seen(bucket) == {"a": b"another's"}


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_a_replaced_file_that_somebody_edits_after_the_plan_stays_and_is_named(bucket) -> None:
    write_job(bucket, {"old": b"old", "other": b"other"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace"))
    job.setup()
    receipt = task(job, {"new": b"new"})
    store = job._open()
    completes = store.complete_uploads

    async def edit_first(*given: Any) -> Any:
        edit_in_place(bucket, "old", b"edited by somebody")
        return await completes(*given)

    store.complete_uploads = edit_first
    summary = job.commit([receipt])
    assert seen(bucket) == {"old": b"edited by somebody", "new": b"new"}
    assert summary.diagnostics["replaced_files_that_stay"] == "old"
    assert json.loads(bucket.files(PATH)["_SUCCESS"])["diagnostics"]["replaced_files_that_stay"] == "old"


async def die(*_: object, **__: object) -> None:
    raise StoreError("dies")


def test_a_committed_job_whose_record_lost_its_newest_version_is_not_undone_with_all_the_data(
    bucket, monkeypatch
) -> None:
    """What it replaced was gone, and the undoing took out what it had written: told `undone`."""
    write_job(bucket, {"p=1/old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace-partitions"))
    job.setup()
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "_announce", die)
        with pytest.raises(CleanupFailed):
            job.commit([task(job, {"p=1/new": b"new"})])
    assert seen(bucket) == {"p=1/new": b"new"}
    records = [path for path in bucket.files(PATH) if f"/jobs/{job.job_id}/commit" in path]
    newest = max(records, key=lambda path: (len(path), path))
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/{newest}")
    with pytest.raises(OutcomeUnknown, match="may have committed"):
        lockgate.recover(bucket.url(PATH), job.job_id, undo=True, force=True, options=options(bucket))
    assert seen(bucket) == {"p=1/new": b"new"}
    found = lockgate.recover(bucket.url(PATH), job.job_id, undo=False, force=True, options=options(bucket))
    assert found[job.job_id].outcome == "finished"
    assert seen(bucket) == {"p=1/new": b"new"}
    assert lockgate.verify(bucket.url(PATH), options(bucket)).findings == []


def counts(bucket: Any) -> list[str]:
    return [file.path for file in lockgate.files(bucket.url(PATH), options(bucket)).files]


@pytest.mark.parametrize("dies_in", ["_withdraw_old_success", "_announce"])
def test_exclusive_what_a_committed_job_replaces_does_not_count_before_it_is_deleted(
    bucket, monkeypatch, dies_in: str
) -> None:
    """Old and new rows both counted, for as long as nobody recovered a job whose driver had died there."""
    write_job(bucket, {"p=1/old": b"old", "p=2/kept": b"kept"})
    write_job(bucket, {"p=1/older": b"older"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace-partitions"))
    job.setup()
    receipt = task(job, {"p=1/new": b"old"})
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, dies_in, die)
        with pytest.raises(CleanupFailed):
            job.commit([receipt])
    assert counts(bucket) == ["p=1/new", "p=2/kept"]
    lockgate.recover(bucket.url(PATH), job.job_id, force=True, options=options(bucket))
    assert counts(bucket) == ["p=1/new", "p=2/kept"]
    assert seen(bucket) == {"p=1/new": b"old", "p=2/kept": b"kept"}


def test_before_its_commit_point_a_job_has_replaced_nothing_for_readers(bucket, monkeypatch) -> None:
    write_job(bucket, {"p=1/old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace", on_failure="leave"))
    job.setup()
    receipt = task(job, {"p=1/new": b"new"})
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "complete", die)
        with pytest.raises(LockgateError):
            job.commit([receipt])
    assert counts(bucket) == ["p=1/old"]


def test_readers_are_told_where_the_list_of_what_a_committed_job_replaces_was_deleted(bucket, monkeypatch) -> None:
    write_job(bucket, {"p=1/old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace"))
    job.setup()
    receipt = task(job, {"p=1/new": b"new"})
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "_withdraw_old_success", die)
        with pytest.raises(CleanupFailed):
            job.commit([receipt])
    for path in bucket.files(PATH):
        if path.endswith(".list"):
            bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/{path}")
    doubts = lockgate.files(bucket.url(PATH), options(bucket)).doubts
    assert any("the list of what it replaces is gone" in doubt for doubt in doubts)


@pytest.mark.parametrize("scenario", LOST_RECORDS, ids=lambda scenario: scenario.__name__)
def test_a_job_whose_record_is_lost(scenario, bucket, monkeypatch) -> None:
    write_job(bucket, {"old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, on_failure="leave"))
    job.setup()
    receipts = [task(job, {"a": b"1", "p=1/b": b"2"}), task(job, {"late": b"3"}, number=1)]
    scenario(job, receipts, lambda: seen(bucket), monkeypatch)
    assert bucket.uploads() == []


def test_an_aborted_job_that_had_committed_keeps_its_files(bucket, monkeypatch) -> None:
    """Its record is deleted before its driver can clean up: `_SUCCESS` says what it is."""
    job = Job(bucket.url(PATH), options(bucket, cleanup_skip=True))
    job.setup()
    job.commit([task(job, {"a": b"1"})])
    delete_record(job)
    with pytest.raises(CommitFenced, match="has committed"):
        job.abort()
    assert seen(bucket) == {"a": b"1"}


def test_an_aborted_job_whose_transaction_has_committed_keeps_its_files(bucket) -> None:
    """Who aborts does not know of the transaction, and another job's `_SUCCESS` has taken the place of its own."""
    job = Job(bucket.url(PATH), options(bucket, cleanup_skip=True, txn_id="stream/1"))
    job.setup()
    job.commit([task(job, {"a": b"1"})])
    delete_record(job)
    write_job(bucket, {"b": b"2"})
    with contextlib.suppress(CommitFenced):  # the store dates in whole seconds, which may be the same
        Job(bucket.url(PATH), options(bucket), job_id=job.job_id).abort()
    assert seen(bucket) == {"a": b"1", "b": b"2"}


def test_an_aborted_job_whose_replaced_files_are_gone_keeps_its_own(bucket, monkeypatch) -> None:
    """Its driver died after its commit point, before it could say so."""
    write_job(bucket, {"p=1/old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace-partitions"))
    job.setup()
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "_announce", die)
        with pytest.raises(CleanupFailed):
            job.commit([task(job, {"p=1/new": b"new"})])
    delete_record(job)
    with pytest.raises(OutcomeUnknown, match="what they replace is gone"):
        job.abort()
    assert seen(bucket) == {"p=1/new": b"new"}


def test_an_undoing_names_a_replaced_file_that_somebody_has_deleted(bucket, monkeypatch) -> None:
    write_job(bucket, {"p=1/old": b"old", "p=1/older": b"older"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace-partitions", on_failure="leave"))
    job.setup()
    receipt = task(job, {"p=1/new": b"new"})
    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "complete", die)
        with pytest.raises(LockgateError):
            job.commit([receipt])
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/p=1/old")
    found = lockgate.recover(bucket.url(PATH), job.job_id, undo=True, force=True, options=options(bucket))
    assert found[job.job_id].missing == ["p=1/old"]
    assert seen(bucket) == {"p=1/older": b"older"}


def test_a_job_tells_that_the_list_of_what_it_replaces_was_deleted(bucket, monkeypatch) -> None:
    """The old rows stayed beside the new, and nobody was told."""
    write_job(bucket, {"p=1/old": b"old"})
    job = Job(bucket.url(PATH), options(bucket, conflict="replace-partitions"))
    job.setup()
    receipt = task(job, {"p=1/new": b"new"})
    really = job_commit.complete

    async def complete(*given: Any) -> None:
        await really(*given)
        (path,) = [path for path in bucket.files(PATH) if path.endswith(".list")]
        bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/{path}")

    monkeypatch.setattr(job_commit, "complete", complete)
    summary = job.commit([receipt])
    assert "somebody deleted the list" in summary.diagnostics[job_commit.STAYED]


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_an_access_key_that_nobody_knows_is_not_told_as_a_bucket_that_is_missing(bucket) -> None:
    job = Job(bucket.url(PATH), JobOptions(store={**bucket.store, "key": "nobody"}))
    with pytest.raises(AccessDenied, match="No user exists with the provided access key"):
        job.setup()

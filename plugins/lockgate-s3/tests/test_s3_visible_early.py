"""Jobs on S3 whose files are there before their job commits: emrfs, direct, stocator."""

from __future__ import annotations

import re
from typing import Any

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.engine.record.record_log import RecordLog
from lockgate.errors import (
    CapabilityMissing,
    CommitFailed,
    CommitRefused,
    FileExists,
    JobNotFound,
    OptionError,
    OutcomeUnknown,
    ReceiptUnmatched,
)
from lockgate.model.files import Unknown
from lockgate.model.phases import Phase
from lockgate.protocols.deferred import job_commit
from lockgate.protocols.emrfs import task_commit

PATH = "tables/all events"


def a_job(bucket: Any, protocol: str, job_id: str | None = None, **more: Any) -> Job:
    options = JobOptions(store=bucket.store, patience_seconds=5.0, protocol=protocol, accept_unsafe=True, **more)
    job = Job(bucket.url(PATH), options, job_id=job_id)
    job.setup()
    return job


def begun(job: Job, files: dict[str, bytes], number: int = 0, attempt: int = 0) -> Any:
    ours = job.task_attempt(task=number, attempt=attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path) as file:
            file.write(content)
    return ours


def done(job: Job, files: dict[str, bytes], number: int = 0, attempt: int = 0) -> Any:
    return begun(job, files, number, attempt).commit()


def seen(bucket: Any) -> dict[str, bytes]:
    found = {path: content for path, content in bucket.files(PATH).items() if not path.startswith(("_", "/_"))}
    return {re.sub(r"-attempt_lg[0-9a-f]{16}_0000_m_[0-9]+_[0-9]+", "", path): found[path] for path in found}


def listed(bucket: Any) -> list[str]:
    found = lockgate.files(bucket.url(PATH), JobOptions(store=bucket.store))
    return [file.path for file in found.files]


def test_emrfs_shows_nothing_of_an_attempt_and_all_of_a_task_that_has_committed(bucket) -> None:
    job = a_job(bucket, "emrfs")
    dead = begun(job, {"p=1/dead": b"0"}, 1)
    attempt = begun(job, {"p=1/a": b"1", "b": b"2"})
    assert seen(bucket) == {}
    receipt = attempt.commit()
    assert seen(bucket) == {"p=1/a": b"1", "b": b"2"}
    assert listed(bucket) == []
    summary = job.commit([receipt])
    assert summary.lockgate.unsafe
    assert listed(bucket) == ["b", "p=1/a"]
    with pytest.raises(JobNotFound):
        dead.commit()
    dead.abort()
    assert seen(bucket) == {"p=1/a": b"1", "b": b"2"}
    assert list(lockgate.uploads(bucket.url(PATH), JobOptions(store=bucket.store))) == []


def test_emrfs_takes_out_what_a_job_or_a_task_that_is_aborted_has_completed(bucket) -> None:
    job = a_job(bucket, "emrfs")
    first = begun(job, {"a": b"1"})
    first.commit()
    first.abort()
    assert seen(bucket) == {}
    again = done(job, {"a": b"2"}, 0, 1)
    assert again.files == 1
    job.abort()
    assert seen(bucket) == {}


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_a_second_run_of_an_emrfs_attempt_has_uploaded_is_given_up_by_its_abort(bucket, name: str) -> None:
    """Of a file that had the name of one that the first run has committed the upload stayed, and cost."""
    job = a_job(bucket, "emrfs")
    first, second = begun(job, {"a": b"1"}), begun(job, {name: b"2"})
    receipt = first.commit()
    with pytest.raises(CommitFailed, match="has committed before, with other files"):
        second.commit()
    assert len(bucket.uploads()) == 1
    second.abort()
    assert len(bucket.uploads()) == 0
    job.commit([receipt])
    assert seen(bucket) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["emrfs", "direct", "stocator"])
def test_a_job_whose_id_has_committed_another_transaction_is_refused_before_it_shows_a_file(
    bucket, protocol: str
) -> None:
    job = a_job(bucket, protocol, job_id="app", txn_id="first")
    job.commit([done(job, {"a": b"1"})])
    with pytest.raises(JobNotFound, match="with the transaction id 'first'"):
        a_job(bucket, protocol, job_id="app", txn_id="second")
    assert seen(bucket) == {"a": b"1"}
    assert len(listed(bucket)) == 1


def test_a_file_that_a_deferred_job_means_to_replace_counts_until_then(bucket) -> None:
    for path in ("part-0", "part-1"):
        earlier = a_job(bucket, "deferred")
        earlier.commit([done(earlier, {path: b"old"})])
    done(a_job(bucket, "deferred", conflict="replace"), {"part-0": b"new"})
    assert listed(bucket) == ["part-0", "part-1"]


def test_emrfs_writes_over_nothing_and_takes_its_files_out_where_one_is_refused(bucket) -> None:
    earlier = a_job(bucket, "emrfs")
    earlier.commit([done(earlier, {"z": b"theirs"})])
    job = a_job(bucket, "emrfs")
    with pytest.raises(CommitFailed, match="could not be put in place") as refused:
        done(job, {"a": b"1", "z": b"ours"})
    assert "new names" in refused.value.next_step
    assert seen(bucket) == {"z": b"theirs"}
    job.commit([done(job, {"a": b"2"}, 0, 1)])
    assert seen(bucket) == {"z": b"theirs", "a": b"2"}


def test_emrfs_asks_for_no_new_names_where_somebody_has_given_an_upload_up(versity, make_bucket) -> None:
    bucket = make_bucket(versity)
    job = a_job(bucket, "emrfs")
    attempt = begun(job, {"a": b"1", "z": b"2"})
    for each in bucket.client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]:
        bucket.client.abort_multipart_upload(Bucket=bucket.name, Key=each["Key"], UploadId=each["UploadId"])
    with pytest.raises(CommitFailed, match="upload missing") as refused:
        attempt.commit()
    assert "new names" not in refused.value.next_step
    assert "tried again" in refused.value.next_step
    job.commit([done(job, {"a": b"1", "z": b"2"}, 0, 1)])
    assert seen(bucket) == {"a": b"1", "z": b"2"}


def test_emrfs_refuses_to_commit_a_job_whose_task_commit_was_interrupted(bucket, monkeypatch) -> None:
    job = a_job(bucket, "emrfs")
    receipt = done(job, {"a": b"1"}, 0)
    attempt = begun(job, {"b": b"2", "c": b"3"}, 1)
    really = job_commit.complete_some

    async def half(run, uploads, progress):
        return [*await really(run, uploads[:1], progress), *(Unknown("it died") for _ in uploads[1:])]

    with monkeypatch.context() as cut:
        cut.setattr(job_commit, "complete_some", half)
        with pytest.raises(OutcomeUnknown):
            attempt.commit()
    assert seen(bucket) == {"a": b"1", "b": b"2"}
    for receipts in ([receipt], None):
        with pytest.raises(ReceiptUnmatched, match="attempt_000001_0 was interrupted"):
            job.commit(receipts)
    with pytest.raises(CommitFailed, match="interrupted"):
        done(job, {"b": b"3"}, 1, 1)
    attempt.abort()
    assert seen(bucket) == {"a": b"1"}
    job.commit([receipt, done(job, {"b": b"3"}, 1, 2)])
    assert seen(bucket) == {"a": b"1", "b": b"3"}


def test_emrfs_finishes_a_job_where_the_interrupted_attempt_lost_to_one_that_is_committed(bucket, monkeypatch) -> None:
    """Two attempts begin their commits at once; the one that loses dies when it has completed one of its files."""
    job = a_job(bucket, "emrfs")
    loser = begun(job, {"b": b"lost", "c": b"lost"}, 0, 0)
    winner = begun(job, {"a": b"1"}, 0, 1)
    really, receipts = job_commit.complete_some, []

    async def half(run, uploads, progress):
        if run.task_attempt_id.endswith("_1"):
            return await really(run, uploads, progress)
        return [*await really(run, uploads[:1], progress), *(Unknown("it died") for _ in uploads[1:])]

    async def at_once(run, attempt):
        """Neither has seen the other's intent."""

    with monkeypatch.context() as cut:
        cut.setattr(job_commit, "complete_some", half)
        cut.setattr(task_commit, "_refuse_rivals", at_once)
        with pytest.raises(OutcomeUnknown):
            loser.commit()
        receipts.append(winner.commit())
    assert seen(bucket) == {"a": b"1", "b": b"lost"}
    job.commit(receipts)
    assert seen(bucket) == {"a": b"1"}
    assert list(lockgate.uploads(bucket.url(PATH), JobOptions(store=bucket.store))) == []
    with pytest.raises(JobNotFound):
        loser.commit()
    assert seen(bucket) == {"a": b"1"}


def test_emrfs_commits_one_attempt_of_a_task_and_gives_the_others_uploads_up(bucket) -> None:
    job = a_job(bucket, "emrfs")
    rival = begun(job, {"other": b"2"}, 0, 1)
    receipt = done(job, {"a": b"1"}, 0)
    assert done(job, {"c": b"3"}, 1).files == 1
    with pytest.raises(CommitFailed, match="has committed already, by attempt_000000_0"):
        rival.commit()
    job.commit([receipt])
    assert seen(bucket) == {"a": b"1"}


def test_emrfs_leaves_alone_what_counts_when_its_attempt_is_aborted_afterwards(bucket) -> None:
    job = a_job(bucket, "emrfs", cleanup_skip=True)
    attempt = begun(job, {"a": b"1"})
    job.commit([attempt.commit()])
    attempt.abort()
    assert seen(bucket) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["emrfs", "direct", "stocator"])
def test_what_cannot_be_kept_is_refused_by_name(bucket, protocol: str) -> None:
    with pytest.raises(OptionError, match=f"cannot be kept by the protocol {protocol}"):
        a_job(bucket, protocol, conflict="replace")
    with pytest.raises(CapabilityMissing, match="unsafe"):
        Job(bucket.url(PATH), JobOptions(store=bucket.store, protocol=protocol))


@pytest.mark.parametrize("protocol", ["direct", "stocator"])
def test_files_in_place_are_committed_aborted_and_listed(bucket, protocol: str) -> None:
    job = a_job(bucket, protocol)
    done(job, {"p=1/x.parquet": b"unpinned"}, 7)
    job.commit([done(job, {"p=1/a.parquet": b"1", "b": b"2"})])
    assert seen(bucket) == {"p=1/a.parquet": b"1", "b": b"2"}
    assert len(listed(bucket)) == 2
    other = a_job(bucket, protocol)
    done(other, {"c": b"3"})
    assert seen(bucket) == {"p=1/a.parquet": b"1", "b": b"2", "c": b"3"}
    assert len(listed(bucket)) == 2
    lockgate.abort(bucket.url(PATH), other.job_id, JobOptions(store=bucket.store), force=True)
    assert seen(bucket) == {"p=1/a.parquet": b"1", "b": b"2"}


def test_direct_creates_only(bucket) -> None:
    job = a_job(bucket, "direct")
    job.commit([done(job, {"a": b"1"})])
    later = a_job(bucket, "direct")
    with pytest.raises(FileExists):
        done(later, {"a": b"2"})
    later.abort()
    assert seen(bucket) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["deferred", "emrfs", "direct", "stocator"])
def test_a_commit_from_outside_misses_the_task_that_has_begun_and_not_committed(bucket, protocol: str) -> None:
    job = a_job(bucket, protocol, alive_seconds=0.0)
    done(job, {"a": b"1"}, 0)
    begun(job, {"b": b"2"}, 1)
    options = JobOptions(store=bucket.store, alive_seconds=0.0)
    assert lockgate.plan(bucket.url(PATH), job.job_id, options).left_out == ["task_000001"]
    with pytest.raises(CommitRefused, match="begun and not committed: task_000001"):
        lockgate.commit(bucket.url(PATH), job.job_id, options=options)
    summary = lockgate.commit(bucket.url(PATH), job.job_id, options=options, force=True)
    assert summary.lockgate is not None
    assert list(summary.lockgate.left_out) == ["task_000001"]


@pytest.mark.parametrize("protocol", ["emrfs", "direct"])
def test_who_may_have_a_name_that_is_taken_is_told_with_what_frees_it(bucket, protocol: str) -> None:
    """By direct it is found taken when the file is closed, not when it is opened as on a local disk."""
    dead = a_job(bucket, protocol, "q-00000-run1")
    done(dead, {"part-00000-q-00000": b"1"})
    job = a_job(bucket, protocol, "q-00000-run2")
    frees = r"lockgate jobs '?s3://.* shows that job, and lockgate abort '?s3://.* JOB --force"
    with pytest.raises((CommitFailed, FileExists), match=frees):
        done(job, {"part-00000-q-00000": b"2"})
    job.abort()
    lockgate.abort(bucket.url(PATH), dead.job_id, JobOptions(store=bucket.store), force=True)
    job = a_job(bucket, protocol, "q-00000-run3")
    job.commit([done(job, {"part-00000-q-00000": b"3"})])
    assert seen(bucket) == {"part-00000-q-00000": b"3"}


def _killed_before_publishing(advance: Any) -> Any:
    async def die(log: RecordLog, to: Phase, **more: Any) -> Any:
        if to is Phase.PUBLISHING:
            raise Killed
        return await advance(log, to, **more)

    return die


class Killed(BaseException):
    """What nobody catches, so that the record stays as it is."""


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize("dies", [False, True], ids=["committed", "finished by recovery"])
def test_files_that_emrfs_has_put_in_place_are_counted_once_as_committed(bucket, monkeypatch, dies: bool) -> None:
    job = a_job(bucket, "emrfs", on_failure="leave")
    receipts = [done(job, {f"a-{number}": b"x" * (number + 1)}, number) for number in range(3)]
    if dies:
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(RecordLog, "advance", _killed_before_publishing(RecordLog.advance))
            job.commit(receipts)
        options = JobOptions(store=bucket.store)
        summary = lockgate.recover(bucket.url(PATH), force=True, options=options)[job.job_id].summary
    else:
        summary = job.commit(receipts)
    counters = summary.counters
    assert (counters["committer_files_committed"], counters["committer_bytes_committed"]) == (3, 6)


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize("protocol", ["deferred", "emrfs"])
def test_of_a_task_that_is_left_out_its_waiting_upload_is_told(bucket, protocol: str) -> None:
    """It was told that what it wrote is not there: an upload of it waited, and was paid for."""
    job = a_job(bucket, protocol, "j")
    done(job, {"a": b"1"})
    begun(job, {"b": b"2"}, 1)
    options = JobOptions(store=bucket.store)
    planned = lockgate.plan(bucket.url(PATH), "j", options=options)
    summary = lockgate.commit(bucket.url(PATH), "j", force=True, options=options)
    assert (summary.lockgate.left_out, seen(bucket)) == (["task_000001"], {"a": b"1"})
    assert [each.path for each in lockgate.uploads(bucket.url(PATH), options)] == ["b"]
    for told in (planned.left_out_stays, summary.lockgate.left_out_stays):
        assert told.startswith("What they wrote is not here. Uploads of theirs may wait")
        assert f"lockgate uploads list '{bucket.url(PATH)}' shows them" in told


@pytest.mark.parametrize("another", [False, True], ids=["last", "another has committed since"])
@pytest.mark.parametrize("ends", ["commits", "aborts"])
@pytest.mark.parametrize("protocol", ["emrfs", "direct"])
def test_complete_what_a_late_attempt_takes_out_is_not_what_another_run_of_its_batch_has_committed(
    bucket, protocol: str, ends: str, another: bool
) -> None:
    """Runs of a stream's batch give their files the same names, and the same bytes have the same etag."""
    first = a_job(bucket, protocol, "first", txn_id="query-0")
    late = begun(first, {"part-0": b"rows"})
    lockgate.abort(bucket.url(PATH), "first", JobOptions(store=bucket.store), force=True)
    for path in seen(bucket):  # as an operator does whom the next run's error has told of it
        bucket.client.delete_object(Bucket=bucket.name, Key=f"{PATH}/{path}")
    second = a_job(bucket, protocol, "second", txn_id="query-0")
    second.commit([done(second, {"part-0": b"rows"})])
    if another:
        third = a_job(bucket, protocol, "third", txn_id="query-1")
        third.commit([done(third, {"part-1": b"more"})])
    before = seen(bucket)
    if ends == "commits":
        with pytest.raises(JobNotFound):
            late.commit()
    late.abort()
    assert seen(bucket) == before
    assert before["part-0"] == b"rows"


def test_exclusive_a_late_attempt_takes_out_its_own_file_though_the_list_of_who_has_committed_is_gone(bucket) -> None:
    """An ordinary collection deletes the list, once another job has committed; the file's name is of no other run."""
    first = a_job(bucket, "direct", "first", txn_id="query-0", file_list_inline_max=0)
    late = first.task_attempt(task=0)
    late.setup()
    with late.open(f"part-0-{late.tag}") as file:
        file.write(b"rows")
    lockgate.abort(bucket.url(PATH), "first", JobOptions(store=bucket.store), force=True)
    second = a_job(bucket, "direct", "second", txn_id="query-0", file_list_inline_max=0)
    second.commit([done(second, {"part-0": b"rows"})])
    third = a_job(bucket, "direct", "third", txn_id="query-1", file_list_inline_max=0)
    third.commit([done(third, {"part-1": b"more"})])
    lockgate.collect_garbage(bucket.url(PATH), options=JobOptions(store=bucket.store, alive_seconds=0.0))
    with pytest.raises(JobNotFound):
        late.commit()
    late.abort()
    assert seen(bucket) == {"part-0": b"rows", "part-1": b"more"}

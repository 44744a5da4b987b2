"""A job whose tasks S3A's magic committer has committed is committed, or ended, by Lockgate."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sysconfig

import lockgate
import pytest
from hadoop_names import contents_for_keys
from lockgate import Job
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.errors import (
    CommitFailed,
    CommitFenced,
    CommitRefused,
    JobNotFound,
    ManifestInvalid,
    OutcomeUnknown,
    UsageError,
)
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from s3a_jvm import S3aJvm
from s3a_peer import BUCKET, S3aPlace

TASKS = [{f"p={p}/part-{task}-{p}": b"%d %d" % (task, p) for p in range(3)} for task in range(2)]
FILES = {name: content for files in TASKS for name, content in files.items()}


def test_complete_all_files_of_tasks_that_s3a_committed_are_in_place(s3a: S3aPlace) -> None:
    named = contents_for_keys("p=1/")
    tasks = [named, {"at the root": b"1"}, {"empty": b""}]
    written = {name: content for files in tasks for name, content in files.items()}
    job_id = s3a.write_job(tasks)
    assert s3a.files() == {}

    summary = lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)

    assert s3a.files() == written
    assert (summary.success, summary.job_id, summary.files) == (True, job_id, len(written))
    assert summary.bytes == sum(map(len, written.values()))
    assert summary.lockgate is not None
    assert (summary.lockgate.protocol, summary.lockgate.attempts) == ("magic", 3)
    # S3A's own counters of its tasks, added up with ours of the job commit.
    assert summary.counters["object_multipart_initiated"] == len(written)
    assert summary.counters["committer_files_committed"] == len(written)
    assert (s3a.uploads(), s3a.left_over()) == ([], [])
    found = lockgate.verify(s3a.url, options=s3a.options())
    assert (found.checked, found.findings) == (len(written), [])
    with pytest.raises(JobNotFound, match="committed already"):
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)


def test_complete_when_the_command_line_commits_what_s3a_wrote(s3a: S3aPlace) -> None:
    job_id = s3a.write_job(TASKS)
    given = [f"--option=store.{name}={value}" for name, value in s3a.peer.store.items()]
    command = [f"{sysconfig.get_path('scripts')}/lockgate", "commit", s3a.url, job_id, "--force", "--json", *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobId"] == job_id
    assert s3a.files() == FILES


def test_exclusive_nothing_of_an_attempt_that_s3a_did_not_commit_is_committed(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job_id = s3a.write_job([{"a": b"committed"}])
    s3a_jvm.write_task(job_id, 0, {"a": b"a second attempt", "b": b"never committed"}, attempt=1, commit=False)
    s3a_jvm.write_task(job_id, 1, {"c": b"never committed"}, commit=False)
    assert s3a.uploads() == ["a", "a", "b", "c"]
    lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert s3a.files() == {"a": b"committed"}
    assert (s3a.uploads(), s3a.left_over()) == ([], [])


def test_exclusive_of_two_attempts_that_s3a_committed_only_the_last_is_committed(
    s3a: S3aPlace, s3a_jvm: S3aJvm
) -> None:
    job_id = s3a.write_job([{"first": b"1"}])
    s3a_jvm.write_task(job_id, 0, {"last": b"2"}, attempt=1)
    lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert s3a.files() == {"last": b"2"}


def test_a_job_of_s3a_is_listed_and_guarded_like_any(s3a: S3aPlace) -> None:
    job_id = s3a.write_job(TASKS)
    (state,) = lockgate.jobs(s3a.url, s3a.options())
    assert (state.job_id, state.status, state.tasks_committed) == (job_id, JobStatus.RUNNING, 2)
    with pytest.raises(CommitFenced, match="may be at work"):
        lockgate.commit(s3a.url, job_id, options=s3a.options())
    assert (s3a.files(), len(s3a.uploads())) == ({}, len(FILES))


def test_gc_leaves_what_a_job_of_s3a_may_still_commit(s3a: S3aPlace) -> None:
    s3a.write_job(TASKS)
    (found,) = lockgate.collect_garbage(s3a.url, options=s3a.options(upload_alive_seconds=0))
    assert found.action == "kept"
    assert "it may be at work" in found.why
    assert "lockgate commit" in found.why
    assert len(s3a.uploads()) == len(FILES)


def test_concurrent_a_job_that_replaces_meets_one_of_s3a_in_its_commit(s3a: S3aPlace) -> None:
    job_id = s3a.write_job([{"a": b"1", "b": b"2"}])
    s3a.put("b", b"of others")
    with pytest.raises(CommitFailed):
        lockgate.commit(s3a.url, job_id, options=s3a.options(on_failure="leave"), force=True)
    rival = Job(s3a.url, s3a.options(conflict="replace", when_jobs_meet="fail"))
    rival.setup()
    with pytest.raises(CommitRefused, match=f"job {job_id} is at work"):
        rival.commit([])
    assert s3a.files() == {"a": b"1", "b": b"of others"}


def test_abortable_what_s3a_wrote_is_given_up(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job_id = s3a.write_job(TASKS)
    s3a_jvm.write_task(job_id, 7, {"late": b"not committed"}, commit=False)
    other = s3a.write_job([{"of another job": b"1"}])
    lockgate.abort(s3a.url, job_id, s3a.options(), force=True)
    assert (s3a.files(), s3a.uploads()) == ({}, ["of another job"])
    assert [state.job_id for state in lockgate.jobs(s3a.url, s3a.options())] == [other]
    assert all(other in name for name in s3a.left_over())


def test_an_abort_names_what_s3as_own_job_commit_has_put_in_place(s3a: S3aPlace) -> None:
    """A part of the job stayed, the abort said that all was well, and what told which it was is deleted."""
    job_id = s3a.write_job([{"a": b"1", "b": b"2", "c": b"3"}])
    (pending_set,) = s3a.pending_sets()
    for commit in json.loads(s3a.everything()[pending_set])["commits"][:2]:
        parts = [{"PartNumber": number, "ETag": part["etag"]} for number, part in enumerate(commit["etags"], 1)]
        s3a.peer.client.complete_multipart_upload(
            Bucket=BUCKET,
            Key=commit["destinationKey"],
            UploadId=commit["uploadId"],
            MultipartUpload={"Parts": parts},
        )
    with pytest.raises(OutcomeUnknown, match="2 of its files are in place") as caught:
        lockgate.abort(s3a.url, job_id, s3a.options(), force=True)
    assert {url.rpartition("/")[2] for url in caught.value.where.splitlines()} == set(s3a.files())
    assert (len(s3a.files()), s3a.uploads()) == (2, [])


def test_replace_partitions_of_a_job_that_s3a_wrote(s3a: S3aPlace) -> None:
    lockgate.commit(s3a.url, s3a.write_job([{"p=1/old": b"1", "p=2/old": b"2"}]), options=s3a.options(), force=True)
    second = s3a.write_job([{"p=1/new": b"3"}])
    lockgate.commit(s3a.url, second, options=s3a.options(conflict="replace-partitions"), force=True)
    assert s3a.files() == {"p=1/new": b"3", "p=2/old": b"2"}


def test_no_file_is_written_over_and_what_was_completed_is_left_and_named(s3a: S3aPlace) -> None:
    job_id = s3a.write_job([{"a": b"of the job", "b": b"of the job"}])
    s3a.put("b", b"of others")
    with pytest.raises(CommitFailed, match="a file is there that this job did not write") as raised:
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True, told=["on_failure"])
    assert s3a.files() == {"a": b"of the job", "b": b"of others"}
    assert s3a.uploads() == []
    # What S3A's uploads have become cannot be proved to be the job's: it is not deleted, and the error says which.
    assert "but for 1 file of the job, which somebody may have changed or put there since" in str(raised.value)
    assert "(a)" in str(raised.value)


def test_a_rivals_file_of_the_same_content_is_neither_taken_for_the_jobs_nor_deleted(s3a: S3aPlace) -> None:
    job_id = s3a.write_job([{"a": b"the same"}])
    s3a.put_in_one_part("a", b"the same")
    with pytest.raises(CommitFailed, match="a file is there that this job did not write"):
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert s3a.files() == {"a": b"the same"}


def test_complete_where_the_answers_to_completions_are_lost(s3a: S3aPlace) -> None:
    job_id = s3a.write_job(TASKS)
    with FaultProxyLab(s3a.peer.store["endpoint_url"], dialect=S3) as proxy:
        proxy.control.fault("answer-lost", "CompleteMultipartUpload", times=2)
        options = dataclasses.replace(s3a.options(), store={**s3a.peer.store, "endpoint_url": proxy.url})
        lockgate.commit(s3a.url, job_id, options=options, force=True)
        assert len(proxy.struck) == 2
    assert s3a.files() == FILES
    assert s3a.uploads() == []


def test_resumable_a_commit_that_was_given_up_midway_is_finished(s3a: S3aPlace) -> None:
    job_id = s3a.write_job(TASKS)
    s3a.put("p=1/part-1-1", b"of others")
    with pytest.raises(CommitFailed):
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert len(s3a.uploads()) == 1
    s3a.delete("p=1/part-1-1")
    recovered = lockgate.recover(s3a.url, job_id, options=s3a.options(), force=True)[job_id]
    assert recovered.outcome == "finished"
    assert s3a.files() == FILES
    assert (s3a.uploads(), s3a.left_over()) == ([], [])


def test_resumable_what_s3as_own_driver_had_completed_counts(s3a: S3aPlace) -> None:
    job_id = s3a.write_job([{"a": b"1"}, {"b": b"2"}])
    # S3A's driver died in the middle of its job commit.
    (pending,) = [name for name in s3a.pending_sets() if "_000000." in name]
    (upload,) = json.loads(s3a.everything()[pending])["commits"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": upload["etags"][0]["etag"]}]}
    s3a.peer.client.complete_multipart_upload(
        Bucket=BUCKET, Key=upload["destinationKey"], UploadId=upload["uploadId"], MultipartUpload=parts
    )
    lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert s3a.files() == {"a": b"1", "b": b"2"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"bucket": "other"}, "is not below"),
        ({"destinationKey": "tables/elsewhere/a"}, "is not below"),
        ({"destinationKey": "{path}/../a"}, "not acceptable"),
        ({"destinationKey": "{path}/_SUCCESS"}, "reserved for committers"),
        ({"destinationKey": "{path}/__magic_job-1/a"}, "reserved for committers"),
        ({"jobId": "another"}, "is of job 'another'"),
        ({"version": 1}, "version is 1, not 2"),
        ({"etags": []}, "has no parts"),
        ({"etags": [{"etag": "<x/>"}]}, "one without etag"),
        ({"length": -1}, "no length"),
    ],
)
def test_contained_nothing_is_committed_that_s3as_committer_would_not_have_written(
    s3a: S3aPlace, change: dict[str, object], why: str
) -> None:
    job_id = s3a.write_job([{"a": b"1"}])
    (name,) = s3a.pending_sets()
    found = json.loads(s3a.everything()[name])
    change = {key: value.format(path=s3a.path) if isinstance(value, str) else value for key, value in change.items()}
    found["commits"][0] |= change
    s3a.put(name, json.dumps(found).encode())
    with pytest.raises(ManifestInvalid, match=why):
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    assert s3a.files() == {}


def test_refused_when_no_task_of_s3as_job_has_committed(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job_id = s3a.write_job([])
    s3a_jvm.write_task(job_id, 0, {"a": b"1"}, commit=False)
    with pytest.raises(CommitRefused, match="no task"):
        lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)


def test_a_job_of_lockgates_cannot_have_the_protocol_of_s3as(s3a: S3aPlace) -> None:
    with pytest.raises(UsageError, match="it writes none"):
        Job(s3a.url, s3a.options(protocol="magic")).setup()
    assert s3a.everything() == {}


def test_a_commit_whose_uploads_s3a_gave_up_is_undone_whole(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job = Job(s3a.url, s3a.options())
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for name in ("ours-1", "ours-2"):
        with attempt.open(name) as file:
            file.write(b"1")
    receipt = attempt.commit()
    # Its committers give up every upload below their destination when a job of theirs ends
    # (fs.s3a.committer.abort.pending.uploads).
    s3a_jvm.commit_job(s3a.write_job([{"theirs": b"2"}]))
    with pytest.raises(CommitFailed, match="somebody has given its upload up"):
        job.commit([receipt])
    assert s3a.files() == {"theirs": b"2"}

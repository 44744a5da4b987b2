"""`_SUCCESS` both ways: S3A's own reader loads ours, and Lockgate reads what S3A's committers leave."""

from __future__ import annotations

import lockgate
import pytest
from hadoop_names import contents_for_keys
from lockgate import Job
from lockgate.api.show import read_any
from lockgate.errors import LockgateError
from lockgate.model.summary import Summary
from s3a_jvm import Committer, S3aJvm
from s3a_peer import BUCKET, S3aPlace


def test_s3as_own_reader_loads_what_a_job_of_lockgates_leaves(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job = Job(s3a.url, s3a.options())
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    files = contents_for_keys("p=1/")
    for name, content in files.items():
        with attempt.open(name) as file:
            file.write(content)
    summary = job.commit([attempt.commit({"rows_written": 7})])

    found = s3a_jvm.load_success(f"{s3a.url}/_SUCCESS")

    assert (found["success"], found["job_id"], found["committer"]) == (True, job.job_id, "lockgate")
    assert (found["timestamp"], found["date"]) == (summary.timestamp, summary.date)
    assert len(found["file_names"]) == len(files)
    assert found["counters"]["rows_written"] == 7
    assert found["counters"]["committer_files_committed"] == len(files)


def test_s3as_own_reader_loads_what_the_commit_of_its_tasks_leaves(s3a: S3aPlace, s3a_jvm: S3aJvm) -> None:
    job_id = s3a.write_job([{"a": b"1"}])
    lockgate.commit(s3a.url, job_id, options=s3a.options(), force=True)
    found = s3a_jvm.load_success(f"{s3a.url}/_SUCCESS")
    assert (found["success"], found["job_id"], len(found["file_names"])) == (True, job_id, 1)


@pytest.mark.parametrize("committer", ["magic", "directory"])
def test_lockgate_reads_what_s3as_committers_leave(s3a: S3aPlace, s3a_jvm: S3aJvm, committer: Committer) -> None:
    job_id = s3a.write_job([{"p=1/a": b"123"}, {"p=2/b": b"4"}], committer)
    s3a_jvm.commit_job(job_id)

    summary = read_any(s3a.url, s3a.options())

    assert isinstance(summary, Summary)
    assert (summary.success, summary.job_id, summary.committer) == (True, job_id, committer)
    assert (summary.files, summary.bytes) == (2, 4)
    assert {f"/{BUCKET}{name}" for name in summary.filenames} == {
        f"/{BUCKET}/{s3a.path}/{name}" for name in s3a.files()
    }
    with pytest.raises(LockgateError, match="lists no lengths") as raised:
        lockgate.verify(s3a.url, options=s3a.options())
    assert committer in str(raised.value)
    (state,) = lockgate.jobs(s3a.url, s3a.options())
    assert (state.job_id, state.status.value) == (job_id, "committed")

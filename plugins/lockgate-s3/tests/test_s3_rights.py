"""What a job does whose credentials lack one of the permissions that docs/stores-s3.md lists, and what it says."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import lockgate
import pytest
from lockgate import Job, JobOptions, Receipt
from lockgate.cli.main import app
from lockgate.errors import AccessDenied, CleanupFailed, CommitFailed, LockgateError
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from typer.testing import CliRunner

PATH = "tables/all events"

pytestmark = pytest.mark.parametrize("s3", ["versity"], indirect=True)


@pytest.fixture
def proxy(bucket: Any) -> Iterator[FaultProxyLab]:
    """Before the bucket, and refuses what it is told to."""
    with FaultProxyLab(bucket.store["endpoint_url"], dialect=S3) as proxy:
        yield proxy


@pytest.fixture
def through(bucket: Any, proxy: FaultProxyLab) -> Any:
    """The bucket behind it."""
    return dataclasses.replace(bucket, store={**bucket.store, "endpoint_url": proxy.url})


def deny(proxy: FaultProxyLab, operation: str) -> None:
    proxy.control.fault("error-before", operation, times=100_000, status=403, code="AccessDenied")


def a_job(bucket: Any, protocol: str = "deferred") -> Job:
    job = Job(bucket.url(PATH), JobOptions(store=bucket.store, protocol=protocol, accept_unsafe=True))
    job.setup()
    return job


def task(job: Job) -> Receipt:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"part-0-{job.job_id}") as file:
        file.write(b"x")
    return attempt.commit()


@pytest.mark.parametrize("protocol", ["deferred", "emrfs"])
def test_who_may_not_complete_an_upload_is_sent_to_the_rights_first(
    through: Any, proxy: FaultProxyLab, protocol: str
) -> None:
    """It said "run the job again", or "let the task be tried again": both fail again."""
    deny(proxy, "CompleteMultipartUpload")
    job = a_job(through, protocol)
    with pytest.raises(CommitFailed, match="403 AccessDenied") as failed:
        job.commit([task(job)])
    assert failed.value.next_step.startswith("check the credentials, and that their policy allows")
    job.abort()


@pytest.mark.parametrize("protocol", ["deferred", "emrfs"])
def test_a_job_that_may_not_list_uploads_is_committed_and_told_what_stays(
    bucket: Any, through: Any, proxy: FaultProxyLab, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each one committed, and then raised CleanupFailed. The listing finds what attempts that died have sent, and
    saved nowhere: nobody reads that."""
    deny(proxy, "ListMultipartUploads")
    job = a_job(through, protocol)
    receipt = task(job)
    left_by_a_dead_attempt = f"part-1-{job.job_id}"
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key=f"{PATH}/{left_by_a_dead_attempt}")
    assert job.commit([receipt]).files == 1
    assert "uploads may not be listed" in caplog.text
    options = JobOptions(store=through.store)
    assert [state.status for state in lockgate.jobs(through.url(PATH), options)] == ["committed"]
    assert len(bucket.uploads()) == 1
    # Who may list them finds it.
    (kept,) = lockgate.collect_garbage(through.url(PATH), options=options)
    assert (kept.action, kept.why.split(":")[0]) == (
        "kept", "uploads that wait may not be listed with these credentials"
    )  # fmt: skip
    with pytest.raises(AccessDenied, match="list refused: 403"):
        lockgate.uploads(through.url(PATH), options)
    found = lockgate.collect_garbage(bucket.url(PATH), options=JobOptions(store=bucket.store))
    assert [each.path.rpartition("/")[2] for each in found] == [left_by_a_dead_attempt]


@pytest.mark.parametrize("protocol", ["deferred", "emrfs"])
def test_a_job_that_may_not_list_uploads_is_aborted(
    bucket: Any, through: Any, proxy: FaultProxyLab, protocol: str
) -> None:
    deny(proxy, "ListMultipartUploads")
    job = a_job(through, protocol)
    task(job)
    job.abort()
    assert bucket.files(PATH).keys() == set()
    assert bucket.uploads() == []


def test_who_waits_for_a_command_hears_that_uploads_may_not_be_listed(
    through: Any, proxy: FaultProxyLab, capsys: pytest.CaptureFixture[str]
) -> None:
    deny(proxy, "ListMultipartUploads")
    job = a_job(through)
    task(job)
    store = [word for name, value in through.store.items() for word in ("-o", f"store.{name}={value}")]
    ended = CliRunner().invoke(app, ["abort", through.url(PATH), job.job_id, "--force", *store])
    assert ended.exit_code == 0
    assert "lockgate: uploads may not be listed" in capsys.readouterr().err + ended.stderr


NEEDED = {
    "PutObject": "set up",
    "CreateMultipartUpload": "write",
    "UploadPart": "write",
    "CompleteMultipartUpload": "commit",
    "GetObject": "set up",
    "HeadObject": "write",
    "ListObjectsV2": "set up",
    "DeleteObject*": "clean up",
    "AbortMultipartUpload": "",
    "ListMultipartUploads": "",
}
"""At which step a job of `deferred` fails without each request; empty: it commits."""


@pytest.mark.parametrize("operation", NEEDED)
def test_what_a_job_needs_is_what_the_page_says(through: Any, proxy: FaultProxyLab, operation: str) -> None:
    deny(proxy, operation)
    step = "set up"
    try:
        job = a_job(through)
        step = "write"
        receipt = task(job)
        step = "commit"
        job.commit([receipt])
        step = ""
    except CleanupFailed:
        step = "clean up"
    except LockgateError as error:
        assert "403" in str(error)
    assert step == NEEDED[operation]

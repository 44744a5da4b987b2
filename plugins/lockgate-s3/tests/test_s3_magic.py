"""What S3A's magic committer leaves is committed on each server, whatever its etags and checksums are.

The files are written here as S3A writes them; S3A itself writes them in `tests/hadoop/test_s3a_magic_jobs.py`.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import botocore.session
import lockgate
import pytest
from lockgate import JobOptions
from lockgate.api.job_runs import registry_of
from lockgate.engine.run.runtime import Event
from lockgate.errors import CommitFailed, OutcomeUnknown
from lockgate.plugins.hookspecs import hookimpl
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.opaque_etags import OpaqueEtagsLab
from lockgate_lab.servers import MotoServer

PLACE = "tables/all events"
FILES = {"p=1/a b%20ü": b"1", "p=2/b": b"22", "p=2/empty": b""}


def begin(bucket: Any, job_id: str, name: str, content: bytes, *, checksum: bool = False) -> dict[str, Any]:
    """An upload in one part, as S3A's `SinglePendingCommit` describes it."""
    where = {"Bucket": bucket.name, "Key": f"{PLACE}/{name}"}
    digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
    begun, sent = ({"ChecksumAlgorithm": "SHA256"}, {"ChecksumSHA256": digest}) if checksum else ({}, {})
    upload = bucket.client.create_multipart_upload(**where, **begun)["UploadId"]
    part = bucket.client.upload_part(**where, UploadId=upload, PartNumber=1, Body=content, **sent)
    etag = {"etag": part["ETag"], "checksumAlgorithm": "SHA256" if checksum else None}
    etag["checksum"] = digest if checksum else None
    return {
        "version": 2,
        "uploadId": upload,
        "bucket": bucket.name,
        "destinationKey": where["Key"],
        "jobId": job_id,
        "taskId": "attempt_20260101_0001_m_000000_0",
        "length": len(content),
        "etags": [etag],
    }


def save(bucket: Any, job_id: str, commits: list[dict[str, Any]], task: int = 0) -> None:
    """What its task commit leaves, as `PendingSet` describes it."""
    directory = f"{PLACE}/__magic_job-{job_id}/job-{job_id}/00"
    content = json.dumps({"version": 3, "jobId": job_id, "commits": commits, "extraData": {}})
    key = f"{directory}/task_20260101_0001_m_{task:06d}.pendingset"
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=content.encode())


def write_job(bucket: Any, files: dict[str, bytes], *, checksum: bool = False) -> str:
    job_id = str(uuid.uuid4())
    save(bucket, job_id, [begin(bucket, job_id, name, files[name], checksum=checksum) for name in files])
    return job_id


@pytest.mark.parametrize("checksum", [False, True])
def test_complete_what_s3a_left_is_committed_on_each_server(bucket: Any, checksum: bool) -> None:
    job_id = write_job(bucket, FILES, checksum=checksum)
    options = JobOptions(store=bucket.store)
    assert lockgate.plan(bucket.url(PLACE), job_id, options).files == len(FILES)
    lockgate.commit(bucket.url(PLACE), job_id, options=options, force=True)
    found = bucket.files(PLACE)
    assert {name: found[name] for name in FILES} == FILES
    assert not [name for name in found if name.startswith("__magic")]
    assert lockgate.verify(bucket.url(PLACE), options).findings == []


def test_a_job_of_another_place_with_the_same_beginning_is_not_found(bucket: Any) -> None:
    write_job(bucket, FILES)
    assert lockgate.jobs(bucket.url("tables/all"), JobOptions(store=bucket.store)) == []
    assert lockgate.jobs(bucket.url("tables"), JobOptions(store=bucket.store)) == []


@pytest.mark.parametrize("at", ["tables", f"{PLACE}/p=1"], ids=["inside", "above"])
def test_an_upload_of_a_job_of_s3as_inside_or_above_is_kept(bucket: Any, at: str) -> None:
    """It was looked for at the destination itself only, and that job's commit failed: its uploads were gone."""
    write_job(bucket, {"p=1/a": b"1"})
    waiting = bucket.uploads()
    found = lockgate.collect_garbage(bucket.url(at), options=JobOptions(store=bucket.store, upload_alive_seconds=0.0))
    assert [each.action for each in found if each.action != "kept"] == []
    judged = lockgate.abort_uploads(bucket.url(at), older_than=0.0, options=JobOptions(store=bucket.store))
    assert judged and all("may have begun it" in each.keep for each in judged)
    assert bucket.uploads() == waiting


class TakesAName:
    """A plugin of the test's process by which another program takes a name once the uploads are being completed."""

    def __init__(self, take: Callable[[], object]) -> None:
        self.take = take

    @hookimpl
    def lockgate_event(self, event: Event) -> None:
        if event.name == "stage-begins" and event.stage == "complete_uploads":
            self.take()


@contextmanager
def taking_a_name(options: JobOptions, take: Callable[[], object]) -> Iterator[None]:
    registry, plugin = registry_of(options), TakesAName(take)
    registry.register(plugin, "takes-a-name")
    try:
        yield
    finally:
        registry.unregister(plugin)


@pytest.mark.parametrize("undo", [None, True])
def test_pinned_a_late_attempt_that_takes_the_file_of_a_committed_one_stops_nobody(bucket: Any, undo: Any) -> None:
    """What the job commit had pinned is kept where S3A does not write: neither finish nor undo could go on."""
    job_id = write_job(bucket, {"a": b"1", "b": b"2"})
    options = JobOptions(store=bucket.store, on_failure="leave")
    taken = {"Bucket": bucket.name, "Key": f"{PLACE}/b", "Body": b"of others"}
    with taking_a_name(options, lambda: bucket.client.put_object(**taken)), pytest.raises(CommitFailed):
        lockgate.commit(bucket.url(PLACE), job_id, options=options, force=True)
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{PLACE}/b")
    save(bucket, job_id, [begin(bucket, job_id, "late", b"3")])
    found = lockgate.recover(bucket.url(PLACE), job_id, undo=undo, options=options, force=True)[job_id]
    there = {path: content for path, content in bucket.files(PLACE).items() if not path.startswith("_")}
    assert (found.outcome, found.left) == (("undone", ["a"]) if undo else ("finished", ()))
    # What S3A has completed carries no mark, so that an undoing leaves and names it.
    assert there == ({"a": b"1"} if undo else {"a": b"1", "b": b"2"})
    assert bucket.uploads() == []


@pytest.fixture
def opaque(moto: MotoServer, make_bucket: Callable[[MotoServer], Any]) -> Iterator[Any]:
    """A bucket whose etags are no digests, as with keys of KMS."""
    behind = make_bucket(moto)
    with OpaqueEtagsLab(moto.url) as proxy:
        client = botocore.session.Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=proxy.url,
            aws_access_key_id=moto.access_key,
            aws_secret_access_key=moto.secret_key,
        )
        yield dataclasses.replace(behind, store={**behind.store, "endpoint_url": proxy.url}, client=client)


def test_complete_where_etags_are_no_digests(opaque: Any) -> None:
    job_id = write_job(opaque, FILES)
    options = JobOptions(store=opaque.store)
    lockgate.commit(opaque.url(PLACE), job_id, options=options, force=True)
    assert FILES.items() <= opaque.files(PLACE).items()
    assert lockgate.verify(opaque.url(PLACE), options).findings == []


def test_without_an_answer_nothing_is_guessed_or_deleted_where_etags_are_no_digests(opaque: Any) -> None:
    job_id = write_job(opaque, {"a": b"1"})
    with FaultProxyLab(opaque.store["endpoint_url"], dialect=S3) as proxy:
        proxy.control.fault("answer-lost", "CompleteMultipartUpload", times=100)
        through = JobOptions(store={**opaque.store, "endpoint_url": proxy.url}, patience_seconds=1.0)
        with pytest.raises(OutcomeUnknown, match="cannot tell whether a file was committed"):
            lockgate.commit(opaque.url(PLACE), job_id, options=through, force=True)
    options = JobOptions(store=opaque.store)
    recovered = lockgate.recover(opaque.url(PLACE), job_id, undo=True, force=True, options=options)[job_id]
    assert (recovered.outcome, recovered.left) == ("undone", ["a"])
    assert opaque.files(PLACE) == {"a": b"1"}

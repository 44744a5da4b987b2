"""What objects are made with, and etags that are no digests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lockgate
import pytest
from job_scenarios import recover_after
from lockgate.errors import OptionError
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.opaque_etags import OpaqueEtagsLab
from lockgate_lab.servers import MotoServer
from lockgate_s3.settings import S3Settings
from remote_jobs import RemoteTable

SAID = {"encryption": "SSE-KMS", "encryption_key": "k-1", "storage_class": "standard_ia", "tags": "team=a&kind=b%20c"}


@pytest.fixture
def opaque(moto: MotoServer, make_bucket: Any) -> Iterator[RemoteTable]:
    """A table on a server whose etags are no digests, as S3's are not with keys of KMS."""
    bucket = make_bucket(moto)
    with OpaqueEtagsLab(moto.url) as proxy:
        store = {**bucket.store, "endpoint_url": proxy.url}
        yield RemoteTable(bucket.url("t"), store, lambda: bucket.files("t"), {"patience_seconds": 45.0})


def test_jobs_where_etags_are_no_digests(opaque: RemoteTable) -> None:
    opaque.write({"p=1/a": b"1", "p=2/b": b"2", "p=2/empty": b""})
    opaque.write({"p=2/c": b"3"}, conflict="replace-partitions")
    assert opaque.read() == {"p=1/a": b"1", "p=2/c": b"3"}
    found = lockgate.verify(opaque.url, opaque.job_options())
    assert found.findings == [] and found.checked == 1


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_is_recovered_where_etags_are_no_digests(opaque: RemoteTable, undo: bool) -> None:
    with FaultProxyLab(opaque.store["endpoint_url"], dialect=S3) as proxy:

        def stop() -> None:
            proxy.control.fault("error-before", "CompleteMultipartUpload", skip=13, times=10_000, status=403)

        through = opaque.through(opaque.url, {**opaque.store, "endpoint_url": proxy.url})
        recover_after(through, stop, lambda: proxy.control.call("DELETE", "faults"), undo=undo)


def test_a_lost_answer_is_not_taken_for_anothers_object_where_etags_are_no_digests(opaque: RemoteTable) -> None:
    with FaultProxyLab(opaque.store["endpoint_url"], dialect=S3) as proxy:
        through = opaque.through(opaque.url, {**opaque.store, "endpoint_url": proxy.url})
        job = through.job()
        receipts = [through.task(job, {"a": b"1"})]
        proxy.control.fault("answer-lost", "PutObject", times=1)
        proxy.control.fault("answer-lost", "CompleteMultipartUpload", times=1)
        job.commit(receipts)
    assert opaque.read() == {"a": b"1"}


def test_objects_are_made_as_the_options_say(moto: MotoServer, make_bucket: Any) -> None:
    bucket = make_bucket(moto)
    table = RemoteTable(bucket.url("t"), {**bucket.store, **SAID}, lambda: bucket.files("t"))
    table.write({"a": b"1"})
    for key in ("t/a", "t/_SUCCESS"):
        head = bucket.client.head_object(Bucket=bucket.name, Key=key)
        assert (head["ServerSideEncryption"], head["StorageClass"]) == ("aws:kms", "STANDARD_IA"), key
    tags = bucket.client.get_object_tagging(Bucket=bucket.name, Key="t/a")["TagSet"]
    assert {each["Key"]: each["Value"] for each in tags} == {"team": "a", "kind": "b c"}


def test_hadoops_names_of_what_objects_are_made_with() -> None:
    told = {
        "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "k",
        "fs.s3a.acl.default": "BucketOwnerFullControl",
        "fs.s3a.create.storage.class": "intelligent_tiering",
    }
    assert S3Settings.resolve(told, {}).headers_of_objects() == {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "k",
        "x-amz-acl": "bucket-owner-full-control",
        "x-amz-storage-class": "INTELLIGENT_TIERING",
    }


@pytest.mark.parametrize(
    "told",
    [
        {"key": "k", "secret": "s", "anon": "true"},
        {"key": "k", "secret": "s", "profile": "other"},
        {"profile": "other", "anon": "TRUE"},
        {"token": "t"},
        {"region": "Mars 1"},
        {"endpoint_url": "ftp://host"},
        {"endpoint_url": "http://"},
    ],
)
def test_what_contradicts_itself_or_is_no_address_is_refused(told: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"store\.") as caught:
        S3Settings.resolve(told, {})
    assert caught.value.next_step


@pytest.mark.parametrize(
    "told",
    [{"encryption": "SSE-C"}, {"encryption": "SSE-S3", "encryption_key": "k"}, {"acl": "everybody"}, {"tags": "a"}],
)
def test_what_objects_cannot_be_made_with_is_refused(told: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="store"):
        S3Settings.resolve(told, {})

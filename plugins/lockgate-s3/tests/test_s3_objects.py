"""What objects are made with, and etags that are no digests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lockgate
import pytest
from job_scenarios import recover_after
from lockgate import Job, JobOptions
from lockgate.errors import OptionError, StoreError, StoreUnavailable
from lockgate.plugin import parse_url
from lockgate.stores.http.exchange import Answer
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.opaque_etags import OpaqueEtagsLab
from lockgate_lab.servers import MotoServer
from lockgate_s3.answers import error_of
from lockgate_s3.calls import Calls
from lockgate_s3.checksums import checksum_named
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


def refused(told: dict[str, str], status: int, code: str, message: str = "") -> StoreError:
    """The error for this answer to the beginning of an upload with these options."""
    settings = S3Settings.resolve(told, {})
    calls = Calls(
        parse_url("s3://b/t"), "http://b", "t/", settings.headers_of_objects(), checksum_named(settings.checksum)
    )
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    return error_of(calls.begin_upload("a", "mark"), Answer(status, {}, body))


@pytest.mark.parametrize(
    ("told", "status", "code", "names"),
    [
        ({"storage_class": "COLDEST", "tags": "a=b"}, 400, "InvalidStorageClass", "store.storage_class=COLDEST;"),
        ({"storage_class": "COLDEST", "tags": "a=b"}, 400, "InvalidTag", "store.tags=a=b;"),
        ({"acl": "public-read"}, 400, "AccessControlListNotSupported", "store.acl=public-read;"),
        ({"encryption": "SSE-KMS", "encryption_key": "k"}, 400, "KMS.NotFoundException", "store.encryption_key=k;"),
        ({"checksum": "sha256"}, 400, "InvalidRequest", "store.checksum=sha256;"),
        ({"acl": "private", "tags": "a=b"}, 501, "NotImplemented", "store.acl=private, store.tags=a=b;"),
        ({"acl": "private", "tags": "a=b"}, 403, "AccessDenied", "s3:PutObjectTagging for store.tags"),
    ],
)
def test_a_refusal_for_an_option_names_the_option(told: dict[str, str], status: int, code: str, names: str) -> None:
    error = refused(told, status, code)
    assert names in error.next_step
    assert not isinstance(error, StoreUnavailable), "trying again would not help"


def test_a_refusal_for_something_else_names_no_option() -> None:
    assert "store." not in refused({"tags": "a=b"}, 400, "ExpiredToken", "The provided token has expired.").next_step
    assert "store." not in refused({}, 400, "InvalidStorageClass").next_step


def test_a_real_service_that_refuses_a_storage_class_is_told_with_the_option(
    moto: MotoServer, make_bucket: Any
) -> None:
    bucket = make_bucket(moto)
    job = Job(bucket.url("t"), JobOptions(store={**bucket.store, "storage_class": "coldest"}, patience_seconds=5.0))
    with pytest.raises(StoreError, match="InvalidStorageClass") as caught:
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        attempt.open("a").close()
    assert "store.storage_class=COLDEST" in caught.value.next_step

"""Checksums of the user's choice: sent with every part, checked by the service, kept with the object."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Any

import lockgate
import pytest
from awscrt import checksums
from lockgate import Job, JobOptions
from lockgate.errors import OptionError
from lockgate_s3.checksums import checksum_named
from lockgate_s3.settings import S3Settings

CONTENT = os.urandom(6 << 20)
PART = 5 << 20


def composite(digests: list[bytes], whole: bytes) -> str:
    return f"{base64.b64encode(whole).decode()}-{len(digests)}"


def expected(name: str, content: bytes) -> str:
    """What S3 says of an object in parts of five MiB."""
    if name == "crc64nvme":
        return base64.b64encode(checksums.crc64nvme(content).to_bytes(8, "big")).decode()
    parts = [content[start : start + PART] for start in range(0, max(1, len(content)), PART)]
    if name == "sha256":
        digests = [hashlib.sha256(part).digest() for part in parts]
        return composite(digests, hashlib.sha256(b"".join(digests)).digest())
    digests = [checksums.crc32c(part).to_bytes(4, "big") for part in parts]
    return composite(digests, checksums.crc32c(b"".join(digests)).to_bytes(4, "big"))


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize("name", ["crc32c", "crc64nvme", "sha256"])
def test_a_committed_object_has_the_checksum_that_was_asked_for(bucket: Any, name: str) -> None:
    options = JobOptions(store={**bucket.store, "checksum": name, "part_bytes": "5M"})
    job = Job(bucket.url("t"), options)
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    for path, content in (("large", CONTENT), ("small", b"1"), ("empty", b"")):
        with attempt.open(path) as file:
            file.write(content)
    receipt = attempt.commit()
    # Whoever commits the job need not have said the same.
    lockgate.commit(bucket.url("t"), job.job_id, [receipt], JobOptions(store=bucket.store))
    field = f"Checksum{name.upper()}"
    for path, content in (("large", CONTENT), ("small", b"1"), ("empty", b"")):
        head = bucket.client.head_object(Bucket=bucket.name, Key=f"t/{path}", ChecksumMode="ENABLED")
        assert head[field] == expected(name, content), path


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_small_files_of_the_job_itself_have_it_as_well(bucket: Any) -> None:
    job = Job(bucket.url("t"), JobOptions(store={**bucket.store, "checksum": "SHA-256"}))
    job.setup()
    job.commit([])
    head = bucket.client.head_object(Bucket=bucket.name, Key="t/_SUCCESS", ChecksumMode="ENABLED")
    content = bucket.client.get_object(Bucket=bucket.name, Key="t/_SUCCESS")["Body"].read()
    assert head["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(content).digest()).decode()


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize("name", ["crc32c", "crc64nvme", "sha256"])
def test_content_that_was_changed_on_its_way_is_refused(bucket: Any, name: str) -> None:
    """By the service: so the checksum is one that it knows, and not a header that it passes over."""
    checksum = checksum_named(name)
    assert checksum is not None
    with pytest.raises(Exception, match=r"BadDigest|checksum"):
        bucket.client.put_object(
            Bucket=bucket.name, Key="t/x", Body=b"changed", **{f"Checksum{name.upper()}": checksum.of(b"right")}
        )


def test_the_published_check_values() -> None:
    """Of `123456789`, from the catalogue of parametrised CRC algorithms."""
    found = {name: checksum_named(name) for name in ("crc32c", "crc64nvme")}
    values = {name: base64.b64decode(each.of(b"123456789")).hex() for name, each in found.items() if each}
    assert values == {"crc32c": "e3069283", "crc64nvme": "ae8b14860a799888"}


def test_hadoops_name_of_it() -> None:
    assert S3Settings.resolve({"fs.s3a.create.checksum.algorithm": "CRC32C"}, {}).checksum == "crc32c"


def test_one_that_there_is_not_is_refused() -> None:
    with pytest.raises(OptionError) as caught:
        S3Settings.resolve({"checksum": "md5"}, {})
    assert "crc64nvme" in caught.value.next_step

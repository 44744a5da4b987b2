"""Real servers of S3, each started once a session, and buckets in them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate.stores.http import transport
from lockgate_lab.servers import MinioServer, MotoServer, VersityGateway, VersityGatewayOfVersions, start_or_skip

AnyS3 = MinioServer | MotoServer | VersityGateway


@dataclass(frozen=True)
class Bucket:
    """A new bucket, and a client of botocore's to look into it with."""

    name: str
    store: dict[str, str]
    client: Any

    def url(self, path: str) -> str:
        return f"s3://{self.name}/{path}"

    def files(self, path: str) -> dict[str, bytes]:
        """What is below a path, seen by another client."""
        found = {}
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=f"{path}/"):
            for each in page.get("Contents", ()):
                body = self.client.get_object(Bucket=self.name, Key=each["Key"])["Body"].read()
                found[each["Key"][len(path) + 1 :]] = body
        return found

    def set_versioning(self, state: str) -> None:
        """`Enabled` or `Suspended`."""
        self.client.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": state})

    def versions(self, path: str) -> dict[str, list[bytes | None]]:
        """Every version of what is below a path, the newest first; None is a delete marker."""
        found: dict[str, list[tuple[tuple[bool, float], bytes | None]]] = {}
        listed = self.client.list_object_versions(Bucket=self.name, Prefix=f"{path}/")
        for each in listed.get("Versions", ()):
            got = self.client.get_object(Bucket=self.name, Key=each["Key"], VersionId=each["VersionId"])
            at = (not each["IsLatest"], -each["LastModified"].timestamp())
            found.setdefault(each["Key"][len(path) + 1 :], []).append((at, got["Body"].read()))
        for each in listed.get("DeleteMarkers", ()):
            at = (not each["IsLatest"], -each["LastModified"].timestamp())
            found.setdefault(each["Key"][len(path) + 1 :], []).append((at, None))
        return {key: [content for _, content in sorted(each, key=lambda pair: pair[0])] for key, each in found.items()}

    def uploads(self) -> list[str]:
        """The keys of uploads that are neither complete nor given up."""
        found = self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", ())
        return sorted(each["Key"] for each in found)


@pytest.fixture
def the_answer_to_a_cancelled_request_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is that the server runs on."""
    monkeypatch.setattr(transport, "ANSWER_SECONDS_MAX", 300.0)


@pytest.fixture(scope="session")
def versity() -> Iterator[VersityGateway]:
    """A server that honours every condition."""
    server = start_or_skip(VersityGateway())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def versions() -> Iterator[VersityGateway]:
    """The same, for buckets that keep versions."""
    server = start_or_skip(VersityGatewayOfVersions())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoServer]:
    """A server of others, in memory."""
    server = start_or_skip(MotoServer())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def minio() -> Iterator[MinioServer]:
    """A server that takes ten minutes to build, the first time: for the long session."""
    server = start_or_skip(MinioServer())
    yield server
    server.stop()


@pytest.fixture(params=["versity", "moto", *(["minio"] if os.environ.get("TEST_MINIO") else [])])
def s3(request: pytest.FixtureRequest) -> AnyS3:
    """Each of the servers."""
    server: AnyS3 = request.getfixturevalue(request.param)
    return server


@pytest.fixture(scope="session")
def make_bucket() -> Callable[[AnyS3], Bucket]:
    """Makes a bucket on a server."""

    def make(server: AnyS3) -> Bucket:
        name = f"b-{uuid.uuid4().hex[:12]}"
        client = botocore.session.Session().create_client(
            "s3",
            region_name="us-east-1",
            endpoint_url=server.url,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
        )
        client.create_bucket(Bucket=name)
        return Bucket(name, {"endpoint_url": server.url, "key": server.access_key, "secret": server.secret_key}, client)

    return make


@pytest.fixture
def bucket(s3: AnyS3, make_bucket: Callable[[AnyS3], Bucket]) -> Bucket:
    """A bucket of the test's own."""
    return make_bucket(s3)


@pytest.fixture
def make_s3(bucket: Bucket) -> Callable[..., Store]:
    """Opens the store at a place of the bucket, with more store options."""

    def make(place: str = "tables/all events", **store: str) -> Store:
        options = JobOptions(store={**bucket.store, **store}, timeout_seconds=120.0, patience_seconds=120.0)
        return registry_for((), ()).open_store(bucket.url(place), options)

    return make

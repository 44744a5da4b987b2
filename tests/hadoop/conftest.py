"""One Java process with Hadoop's classes for all tests of this directory, and one with S3A's and a server for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import botocore.session
import hadoop_jvm
import java_program
import pytest
from lockgate_lab.servers import VersityGateway, or_skip, s3a_class_path, start_or_skip
from s3a_jvm import S3aJvm
from s3a_peer import BUCKET, S3aPeer, S3aPlace


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hadoop_jvm.HadoopJvm]:
    """Hadoop's own classes."""
    missing = hadoop_jvm.missing()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with hadoop_jvm.HadoopJvm(tmp_path_factory.mktemp("hadoop-jvm")) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def s3a_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3aPeer]:
    """S3A, and a server that honours every condition."""
    or_skip(s3a_class_path)
    missing = java_program.missing_tool()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    gateway = start_or_skip(VersityGateway())
    gateway.make_bucket(BUCKET)
    client = botocore.session.Session().create_client(
        "s3",
        region_name="us-east-1",
        endpoint_url=gateway.url,
        aws_access_key_id=gateway.access_key,
        aws_secret_access_key=gateway.secret_key,
    )
    store = {"endpoint_url": gateway.url, "key": gateway.access_key, "secret": gateway.secret_key}
    work = tmp_path_factory.mktemp("s3a-jvm")
    with S3aJvm(work, gateway.url, gateway.access_key, gateway.secret_key) as jvm:
        yield S3aPeer(jvm, client, store)
    gateway.stop()


@pytest.fixture
def s3a(s3a_peer: S3aPeer) -> S3aPlace:
    """A destination of the test's own."""
    return s3a_peer.new_place()


@pytest.fixture
def s3a_jvm(s3a_peer: S3aPeer) -> S3aJvm:
    """S3A."""
    return s3a_peer.jvm

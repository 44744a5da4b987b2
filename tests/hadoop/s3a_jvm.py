"""S3A's own committers and classes in a Java process of ours: `S3aInterop.java` compiled and driven.

hadoop-aws and what it needs come from Maven Central, once, into the lab's cache (`s3a_class_path`).
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from committer_jvm import CommitterJvm
from lockgate_lab.servers import s3a_class_path

SOURCE = Path(__file__).with_name("S3aInterop.java")

Committer = Literal["magic", "directory", "v1"]

FACTORY = "mapreduce.outputcommitter.factory.scheme.s3a"

COMMITTERS = MappingProxyType(
    {
        "magic": {FACTORY: "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory", "fs.s3a.committer.name": "magic"},
        "directory": {
            FACTORY: "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
            "fs.s3a.committer.name": "directory",
        },
        "v1": {
            FACTORY: "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
            "mapreduce.fileoutputcommitter.algorithm.version": "1",
        },
    }
)
"""How S3A's documentation of committers binds each. The staging committer keeps what is there, as ours does."""


def s3a_settings(work: Path, endpoint: str, access_key: str, secret_key: str, *, in_flight: int = 16) -> dict[str, str]:
    """What S3A and its committers are told of the server at `endpoint`."""
    # Names from Hadoop 3.5.0's `core-default.xml` and S3A's documentation of committers.
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": access_key,
        "fs.s3a.secret.key": secret_key,
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.buffer.dir": str(work / "buffer"),
        "fs.s3a.committer.threads": str(in_flight),
        "fs.s3a.committer.staging.tmp.path": f"file:{work}/staging",
        "fs.s3a.committer.staging.conflict-mode": "append",
    }


class S3aJvm(CommitterJvm):
    """The Java process, whose S3A asks the server at `endpoint`; a context manager. A job's settings are one of
    `COMMITTERS`.

    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """

    def __init__(self, work: Path, endpoint: str, access_key: str, secret_key: str, *, in_flight: int = 16) -> None:
        settings = s3a_settings(work, endpoint, access_key, secret_key, in_flight=in_flight)
        super().__init__(work, s3a_class_path(), settings, ("-Daws.region=us-east-1",), source=SOURCE)

    def load_success(self, url: str) -> dict[str, Any]:
        """What `SuccessData.load` and `validate` make of a `_SUCCESS`."""
        return dict(self.call("load_success", path=url))

    def load_pending_set(self, url: str) -> list[str]:
        """The keys that `PendingSet.load` finds in a committed task's file."""
        return list(self.call("load_pending_set", path=url))

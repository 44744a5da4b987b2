"""S3A's own committers and classes in a Java process of ours: `S3aInterop.java` compiled and driven.

hadoop-aws and what it needs come from Maven Central, once, into the lab's cache (`s3a_class_path`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from java_program import JavaProgram
from lockgate_lab.servers import s3a_class_path

SOURCE = Path(__file__).with_name("S3aInterop.java")

Committer = Literal["magic", "directory", "v1"]


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


class S3aJvm(JavaProgram):
    """The Java process, whose S3A asks the server at `endpoint`; a context manager.

    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """

    def __init__(self, work: Path, endpoint: str, access_key: str, secret_key: str, *, in_flight: int = 16) -> None:
        super().__init__(
            SOURCE, s3a_class_path(), work, ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Daws.region=us-east-1"]
        )
        own = {"fs.defaultFS": f"file:{work}", "hadoop.tmp.dir": str(work / "tmp")}
        self.call("configure", settings=own | s3a_settings(work, endpoint, access_key, secret_key, in_flight=in_flight))

    def setup_job(self, destination: str, job_id: str, committer: Committer = "magic") -> None:
        """Set a job up at an `s3a://` URL. The staging committer keeps what is there, as ours does."""
        self.call("setup_job", destination=destination, job_id=job_id, committer=committer)

    def write_task(
        self, job_id: str, task: int, files: Mapping[str, bytes], *, attempt: int = 0, commit: bool = True
    ) -> None:
        """Write a task attempt and commit it, where asked to."""
        encoded = [[path, base64.b64encode(content).decode()] for path, content in files.items()]
        self.call("write_task", job_id=job_id, task=task, attempt=attempt, files=encoded, commit=commit)

    def write_uniform_tasks(
        self, job_id: str, tasks: int, *, files: int, directories: int, length: int, threads: int
    ) -> None:
        """Write and commit tasks of `files` files of `length` bytes each, so many at once."""
        self.call(
            "write_uniform_tasks",
            job_id=job_id,
            tasks=tasks,
            files=files,
            directories=directories,
            bytes=length,
            threads=threads,
        )

    def commit_job(self, job_id: str) -> float:
        """The committer's job commit; returns the seconds that it took."""
        return float(self.call("commit_job", job_id=job_id))

    def abort_job(self, job_id: str) -> None:
        """The committer's job abort."""
        self.call("abort_job", job_id=job_id)

    def load_success(self, url: str) -> dict[str, Any]:
        """What `SuccessData.load` and `validate` make of a `_SUCCESS`."""
        return dict(self.call("load_success", path=url))

    def load_pending_set(self, url: str) -> list[str]:
        """The keys that `PendingSet.load` finds in a committed task's file."""
        return list(self.call("load_pending_set", path=url))

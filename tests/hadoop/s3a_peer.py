"""S3A in a Java process, a server of S3 that it writes to, and a client to look into that with."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lockgate import JobOptions
from s3a_jvm import COMMITTERS, Committer, S3aJvm

BUCKET = "data"


@dataclass(frozen=True)
class S3aPeer:
    """One server with one bucket; each test has a path of its own."""

    jvm: S3aJvm
    client: Any
    store: dict[str, str]

    def new_place(self) -> S3aPlace:
        """A destination that nobody else has."""
        return S3aPlace(self, f"tables/{uuid.uuid4().hex[:12]} events")


@dataclass(frozen=True)
class S3aPlace:
    """A destination."""

    peer: S3aPeer
    path: str

    @property
    def url(self) -> str:
        """As people give it."""
        return f"s3a://{BUCKET}/{self.path}"

    def options(self, **more: Any) -> JobOptions:
        """The server's, and others."""
        return JobOptions(store=self.peer.store, **more)

    def write_job(self, tasks: Sequence[dict[str, bytes]], committer: Committer = "magic") -> str:
        """A job of S3A's whose tasks have committed; its id."""
        job_id = str(uuid.uuid4())
        self.peer.jvm.setup_job(self.url, job_id, COMMITTERS[committer])
        for task, files in enumerate(tasks):
            self.peer.jvm.write_task(job_id, task, files)
        return job_id

    def everything(self) -> dict[str, bytes]:
        """All files, those of committers too."""
        found = {}
        for page in self.peer.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{self.path}/"):
            # S3A keeps a directory by an object whose key ends in a slash.
            for each in (each for each in page.get("Contents", ()) if not each["Key"].endswith("/")):
                body = self.peer.client.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read()
                found[each["Key"].removeprefix(f"{self.path}/")] = body
        return found

    def files(self) -> dict[str, bytes]:
        """What readers see."""
        return {name: content for name, content in self.everything().items() if not name.startswith("_")}

    def left_over(self) -> list[str]:
        """What a job should not leave: its own directories."""
        return [name for name in self.everything() if name.startswith(("__magic", "_lockgate/jobs"))]

    def uploads(self) -> list[str]:
        """Uploads that are neither complete nor given up."""
        found = self.peer.client.list_multipart_uploads(Bucket=BUCKET, Prefix=f"{self.path}/").get("Uploads", ())
        return sorted(each["Key"].removeprefix(f"{self.path}/") for each in found)

    def put(self, name: str, content: bytes) -> None:
        """An object by somebody else."""
        self.peer.client.put_object(Bucket=BUCKET, Key=f"{self.path}/{name}", Body=content)

    def put_in_one_part(self, name: str, content: bytes) -> None:
        """An object by somebody else, as an upload in one part, so that its etag is that of S3A's upload."""
        where = {"Bucket": BUCKET, "Key": f"{self.path}/{name}"}
        upload = self.peer.client.create_multipart_upload(**where)["UploadId"]
        part = self.peer.client.upload_part(**where, UploadId=upload, PartNumber=1, Body=content)
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        self.peer.client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload=parts)

    def delete(self, name: str) -> None:
        """Somebody deletes an object."""
        self.peer.client.delete_object(Bucket=BUCKET, Key=f"{self.path}/{name}")

    def pending_sets(self) -> list[str]:
        """What committed tasks of S3A's have left."""
        return [name for name in self.everything() if name.endswith(".pendingset")]

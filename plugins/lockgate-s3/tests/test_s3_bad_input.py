"""Bad input of the protocols whose files are uploads: a clear error before one is completed, and nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from lockgate import Job, JobOptions, Receipt
from lockgate.errors import LockgateError

PATH = "tables/events"
BOTH = pytest.mark.parametrize("protocol", ["deferred", "emrfs"])


def a_job(bucket: Any, protocol: str) -> Job:
    earlier = Job(bucket.url(PATH), JobOptions(store=bucket.store))
    earlier.setup()
    earlier.commit([done(earlier, 0, "old")])
    job = Job(bucket.url(PATH), JobOptions(store=bucket.store, protocol=protocol, accept_unsafe=True))
    job.setup()
    return job


def done(job: Job, task: int, path: str) -> Receipt:
    attempt = job.task_attempt(task, 0)
    attempt.setup()
    with attempt.open(path) as file:
        file.write(path.encode())
    return attempt.commit()


def table(bucket: Any) -> dict[str, bytes]:
    return {path: content for path, content in bucket.files(PATH).items() if not path.startswith("_")}


def put(bucket: Any, path: str, content: bytes) -> None:
    bucket.client.put_object(Bucket=bucket.name, Key=f"{PATH}/{path}", Body=content)


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes, bytes], bytes]:
    def edit(content: bytes, other: bytes) -> bytes:
        manifest = json.loads(content)
        change(manifest)
        return json.dumps(manifest).encode()

    return edit


DAMAGED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda content, other: b"",
    "truncated": lambda content, other: content[: len(content) // 2],
    "another job's": edited(lambda manifest: manifest.update(jobId="somebody-elses")),
    "another task's": lambda content, other: other,
    "outside": edited(lambda manifest: manifest["files"][0].update(d="s3://elsewhere/x")),
    "above": edited(lambda manifest: manifest["files"][0].update(d=manifest["files"][0]["d"] + "/../../../x")),
}


@BOTH
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_manifest_is_refused_and_when_it_is_mended_the_job_commits(
    bucket: Any, protocol: str, damage: str
) -> None:
    job = a_job(bucket, protocol)
    receipts = [done(job, 0, "p=1/a"), done(job, 1, "p=1/b")]
    before = table(bucket)
    manifests = job.layout.manifests
    files = bucket.files(PATH)
    saved = {path: files[path] for path in files if path.startswith(f"{manifests}/") and "-manifest.json" in path}
    damaged = [path for path in saved if "_000001" in path]
    assert damaged
    for path in damaged:
        put(bucket, path, DAMAGED[damage](saved[path], saved[path.replace("_000001", "_000000")]))
    for given in (receipts, None):
        with pytest.raises(LockgateError) as refused:
            job.commit(given)
        assert re.search("000001|written by two tasks", str(refused.value))
        assert refused.value.next_step
        assert table(bucket) == before
    for path in damaged:
        put(bucket, path, saved[path])
    job.commit(receipts)
    assert table(bucket) == {"old": b"old", "p=1/a": b"p=1/a", "p=1/b": b"p=1/b"}


@BOTH
def test_two_tasks_for_one_file_are_refused_and_nothing_is_lost(bucket: Any, protocol: str) -> None:
    job = a_job(bucket, protocol)
    receipts = [done(job, 0, "same")]
    with pytest.raises(LockgateError, match="same"):
        job.commit([*receipts, done(job, 1, "same")])
    job.abort()
    assert table(bucket) == {"old": b"old"}
    assert bucket.uploads() == []

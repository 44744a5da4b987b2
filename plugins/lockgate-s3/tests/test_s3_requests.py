"""What a commit asks of the service: one completion a file, and hardly anything else."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab
from remote_jobs import RemoteTable

FILES = 300


@pytest.mark.parametrize(("s3", "looks"), [("moto", 0), ("versity", FILES)], indirect=["s3"])
def test_a_commit_completes_each_file_and_looks_at_none_where_the_service_is_believed(bucket: Any, looks: int) -> None:
    """versitygw says of an upload that was given up that it is completed: there each file is looked at."""
    with FaultProxyLab(bucket.store["endpoint_url"], dialect=S3) as proxy:
        store = {**bucket.store, "endpoint_url": proxy.url}
        table = RemoteTable(bucket.url("t"), store, lambda: bucket.files("t"), {"patience_seconds": 45.0})
        table.write({"first": b"asks whether the service is believed"})
        job = table.job()
        receipt = table.task(job, {f"p={number % 10}/{number}": b"x" for number in range(FILES)})
        before = Counter(proxy.control.counts()["operations"])
        job.commit([receipt])
        asked = Counter(proxy.control.counts()["operations"]) - before
    assert asked.pop("CompleteMultipartUpload") == FILES
    assert looks <= asked.pop("HeadObject") <= looks + 10
    assert asked.total() <= 60, "however many files there are"

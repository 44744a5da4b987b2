"""More files and uploads than S3 answers of at once: a thousand a page, a thousand deletions a request."""

from __future__ import annotations

from typing import Any

import lockgate
import pytest
from lockgate import JobOptions
from lockgate.errors import OptionError
from lockgate_s3.settings import S3Settings
from lockgate_s3.upload import PARTS_MAX
from remote_jobs import RemoteTable

FILES = 1_050
LARGEST_OBJECT = 50 * 10**12
"""Bytes, by S3's service model of 2026."""

pytestmark = pytest.mark.parametrize("s3", ["versity"], indirect=True)


def test_a_task_of_more_files_than_a_page_holds_commits_aborts_and_is_replaced(bucket: Any) -> None:
    table = RemoteTable(bucket.url("t"), bucket.store, lambda: bucket.files("t"), {"patience_seconds": 45.0})
    files = {f"p={number % 7}/{number:04d}": b"%d" % number for number in range(FILES)}
    job = table.job()
    table.task(job, files)
    assert len(lockgate.uploads(table.url, JobOptions(store=bucket.store))) == FILES
    job.abort()
    assert bucket.uploads() == []
    table.write(files)
    assert table.read() == files
    table.write({"p=0/new": b"new"}, conflict="replace")
    assert table.read() == {"p=0/new": b"new"}


def test_parts_may_be_so_long_that_the_largest_object_fits(bucket: Any) -> None:
    assert S3Settings.resolve({"part_bytes": "5G"}, {}).part_bytes * PARTS_MAX >= LARGEST_OBJECT
    for wrong in ("4M", "6G", "0", "5X"):
        with pytest.raises(OptionError, match="part_bytes"):
            S3Settings.resolve({"part_bytes": wrong}, {})

"""Throttled answers are counted where people look, those to single calls of a batch among them."""

from __future__ import annotations

from lockgate_lab.gcs import GcsLab
from remote_jobs import RemoteTable


def test_throttled_answers_are_in_the_summarys_counters(gcs: GcsLab, gcs_table: RemoteTable, renames_by: str) -> None:
    quiet = gcs_table.write({"p=0/a.bin": b"a"})
    assert not [name for name in quiet.counters if name.startswith("store_io")]
    job = gcs_table.job()
    gcs.control.fault("error-before", "objects.insert", target="*/tasks/*", times=3, status=429)
    receipts = [gcs_table.task(job, {f"p={n}/{i}.bin": b"b" for i in range(4)}, task=n) for n in range(2)]
    operation = "objects.move" if renames_by == "move" else "objects.rewrite"
    gcs.control.fault("error-before", operation, target="*/tasks/*", times=2, status=429)
    summary = job.commit(receipts)
    assert summary.counters["store_io_throttled"] == 3 + 2
    assert summary.counters["store_io_retry"] >= 3

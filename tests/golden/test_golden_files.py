"""Files that Hadoop 3.5.0 wrote (a job of two tasks with three files each, local disk) go through Lockgate's codec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lockgate.api.show import read_any
from lockgate.errors import ManifestInvalid
from lockgate.model.layout import JobLayout
from lockgate.model.manifest import Entry, UncheckedManifest, decode_manifest, encode_manifest
from lockgate.model.summary import decode_summary, encode_summary
from lockgate.model.urls import Below, parse_url

GOLDEN = Path(__file__).parent
MANIFEST = (GOLDEN / "hadoop-3.5.0-task-manifest.json").read_bytes()
SUMMARY = (GOLDEN / "hadoop-3.5.0-_SUCCESS.json").read_bytes()

JOB_ID = "0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11"
LAYOUT = JobLayout(JOB_ID, 0, prefix="_temporary/")
ATTEMPT = "attempt_20260101_0001_m_000000_0"
BELOW = Below(parse_url("file:///data/events"))


def test_a_task_manifest_of_hadoops_is_read() -> None:
    manifest = decode_manifest(MANIFEST, LAYOUT, BELOW, name="golden")
    staged = f"_temporary/{JOB_ID}/00/tasks/{ATTEMPT}"
    assert (manifest.job_id, manifest.job_attempt) == (JOB_ID, 0)
    assert (manifest.task_id, manifest.task_attempt_id) == ("task_20260101_0001_m_000000", ATTEMPT)
    assert list(manifest.files) == [
        Entry(f"{staged}/{name}", name, length)
        for name, length in [
            ("year=2024/month=1/part-00000 1.parquet", 11),
            ("year=2024/month=0/part-00000 0.parquet", 10),
            ("year=2024/month=2/part-00000 2.parquet", 12),
        ]
    ]
    assert set(manifest.directories) == {"year=2024", *(f"year=2024/month={month}" for month in range(3))}
    assert manifest.bytes_total == manifest.counters["committer_task_file_size"] == 33
    assert manifest.counters["committer_task_file_count"] == 3
    assert len(manifest.counters) == 84


def test_a_task_manifest_of_hadoops_is_encoded_again_without_loss_in_a_tenth_of_its_bytes() -> None:
    manifest = decode_manifest(MANIFEST, LAYOUT, BELOW, name="golden")
    ours = encode_manifest(manifest, BELOW)
    again = decode_manifest(ours, LAYOUT, BELOW, name="encoded again")
    assert again.files == manifest.files
    assert again.counters == {name: count for name, count in manifest.counters.items() if count}
    assert not again.directories, "every directory follows from the files"
    hadoops, said = json.loads(MANIFEST), json.loads(ours)
    for key in ("type", "version", "jobId", "jobAttemptNumber", "taskID", "taskAttemptID"):
        assert said[key] == hadoops[key]
    assert [entry["d"].replace("file:///", "file:/") for entry in said["files"]] == [e["d"] for e in hadoops["files"]]
    assert [entry["s"] for entry in said["files"]] == [e["s"] for e in hadoops["files"]]
    assert len(ours) < 2000 < 19_000 < len(MANIFEST)


@pytest.mark.parametrize("destination", ["file:///data/events1", "file:///data/event", "hdfs://name/data/events"])
def test_contained_a_task_manifest_of_hadoops_is_refused_below_another_destination(destination: str) -> None:
    with pytest.raises(ManifestInvalid, match="entry 0"):
        decode_manifest(MANIFEST, LAYOUT, Below(parse_url(destination)), name="golden")


def test_a_task_manifest_of_hadoops_is_refused_in_another_job() -> None:
    with pytest.raises(ManifestInvalid, match="job id"):
        decode_manifest(MANIFEST, JobLayout("another", 0, prefix="_temporary/"), BELOW, name="golden")


def test_a_summary_of_hadoops_is_read() -> None:
    summary = decode_summary(SUMMARY, name="golden")
    assert (summary.success, summary.job_id, summary.jobIdSource) == (True, JOB_ID, "spark.sql.sources.writeJobUUID")
    assert (summary.timestamp, summary.date) == (1795225320694, "2026-11-21T01:42:00.694609087Z[Etc/UTC]")
    assert summary.committer == "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitter"
    assert (summary.hostname, summary.diagnostics["principal"]) == ("driver", "root")
    assert (summary.files, summary.bytes) == (6, 66)
    names = {BELOW.relative(uri) for uri in summary.filenames}
    assert names == {f"year=2024/month={m}/part-0000{t} {m}.parquet" for m in range(3) for t in range(2)}
    assert summary.lockgate is None


def test_a_summary_of_hadoops_keeps_all_its_statistics() -> None:
    statistics = decode_summary(SUMMARY, name="golden").iostatistics
    assert statistics is not None
    hadoops = json.loads(SUMMARY)["iostatistics"]
    assert statistics.counters == hadoops["counters"]
    assert statistics.gauges == hadoops["gauges"]
    assert statistics.minimums == hadoops["minimums"]
    assert statistics.maximums == hadoops["maximums"]
    assert msgspec.to_builtins(statistics.meanstatistics) == hadoops["meanstatistics"]
    assert statistics.counters["committer_files_committed"] == 6
    assert statistics.counters["task_stage_commit"] == 2


def test_a_summary_of_hadoops_is_encoded_again_without_loss() -> None:
    summary = decode_summary(SUMMARY, name="golden")
    ours = encode_summary(summary)
    assert decode_summary(ours, name="encoded again") == summary
    assert _without_empty(json.loads(ours)) == _without_empty(json.loads(SUMMARY))


def test_show_tells_what_is_in_a_task_manifest_of_hadoops() -> None:
    shown = read_any(str(GOLDEN / "hadoop-3.5.0-task-manifest.json"))
    assert isinstance(shown, UncheckedManifest)
    assert (shown.job_id, shown.task_attempt_id, len(shown.files)) == (JOB_ID, ATTEMPT, 3)
    assert sum(entry.length for entry in shown.files) == 33
    assert shown.counters["task_stage_commit"] == 1


def test_show_tells_what_is_in_a_summary_of_hadoops() -> None:
    assert read_any(str(GOLDEN / "hadoop-3.5.0-_SUCCESS.json")) == decode_summary(SUMMARY, name="golden")


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ({}, [], None, "")}

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lockgate.model.errors import ManifestInvalid
from lockgate.model.layout import JobLayout, TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.urls import Below, parse_url

LAYOUT = JobLayout("0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11")
BELOW = Below(parse_url("file:///data/events"))
ATTEMPT = TaskAttempt(0, 0)
NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda text: text not in (".", "..") and not text.startswith("_")
)


def manifest(targets: list[str]) -> TaskManifest:
    entries = [
        Entry(LAYOUT.staged(ATTEMPT.task_attempt_id, index, target, nonce="1f2e3d"), target, index, f"id-{index}")
        for index, target in enumerate(targets)
    ]
    return TaskManifest(
        LAYOUT.job_id, 0, ATTEMPT.task_id, ATTEMPT.task_attempt_id, entries, counters={"rows_written": 7}
    )


def wire() -> dict:
    return json.loads(encode_manifest(manifest(["year=2024/a.parquet", "b.parquet"]), BELOW))


def decode(content: bytes | dict) -> TaskManifest:
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return decode_manifest(content, LAYOUT, BELOW, name="file:///m.json")


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), unique=True, max_size=20))
def test_a_manifest_survives_its_codec(targets: list[str]) -> None:
    before = manifest(targets)
    after = decode_manifest(encode_manifest(before, BELOW), LAYOUT, BELOW, name="m")
    assert list(after.files) == list(before.files)
    assert (after.task_id, after.task_attempt_id, after.counters) == (
        before.task_id,
        before.task_attempt_id,
        before.counters,
    )


def test_a_manifest_of_three_files_is_under_one_kilobyte() -> None:
    # Names and destination as in the golden manifest, for which Hadoop 3.5.0 writes 19.9 kB.
    targets = [f"year=2024/month={month}/part-00000 {month}.parquet" for month in range(3)]
    files = [
        Entry(
            LAYOUT.staged(ATTEMPT.task_attempt_id, n, target, nonce="1f2e3d"), target, 10 + n, "98601b-18e9fbe052104718"
        )
        for n, target in enumerate(targets)
    ]
    content = encode_manifest(
        TaskManifest(LAYOUT.job_id, 0, ATTEMPT.task_id, ATTEMPT.task_attempt_id, files, counters={"rows_written": 30}),
        BELOW,
    )
    assert len(content) < 1000, content.decode()


@pytest.mark.parametrize("cut", [0, 1, 10, 100, 300, -1])
def test_a_truncated_manifest_is_refused(cut: int) -> None:
    content = encode_manifest(manifest(["a", "b/c"]), BELOW)
    with pytest.raises(ManifestInvalid, match="not valid"):
        decode(content[:cut])


@given(st.binary(max_size=200))
def test_noise_is_refused_as_a_manifest(noise: bytes) -> None:
    with pytest.raises(ManifestInvalid):
        decode(noise)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"),
        ("type", ""),
        ("version", 2),
        ("version", "1"),
        ("jobId", "another-job"),
        ("jobAttemptNumber", 3),
        ("taskID", ""),
        ("taskAttemptID", ""),
        ("files", {}),
        ("files", [{"s": "x"}]),
        ("files", [None]),
        ("directories", [{"d": "file:///data/other"}]),
        ("directories", [{"d": "file:///data/events/_lockgate/jobs/x"}]),
        ("iostatistics", {"counters": {"rows": "many"}}),
    ],
)
def test_a_manifest_of_a_wrong_type_version_or_job_is_refused(field: str, value: object) -> None:
    with pytest.raises(ManifestInvalid):
        decode(wire() | {field: value})


@pytest.mark.parametrize(
    "source",
    [
        "file:///data/events/part-0.parquet",
        "file:///etc/passwd",
        "file:///data/events/_lockgate/jobs/other/00/tasks/attempt_000000_0/0.parquet",
        "file:///data/events/_lockgate/jobs/0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11/01/tasks/a/0.parquet",
        "file:///data/events/_lockgate/jobs/0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11/00/manifests/x.json",
        "{tasks}/../../../../part-0.parquet",
        "{tasks}/%2e%2e/%2E%2e/x",
        "{tasks}10/x",
        "hdfs://nn/data/events/_lockgate/jobs/x",
        "",
    ],
)
def test_contained_a_source_outside_this_job_attempt_is_refused(source: str) -> None:
    hostile = wire()
    hostile["files"][0]["s"] = source.format(tasks=BELOW.uri(LAYOUT.tasks))
    with pytest.raises(ManifestInvalid, match="entry 0"):
        decode(hostile)


@pytest.mark.parametrize(
    "target",
    [
        "file:///data/events",
        "file:///data/events/",
        "file:///data/events10/x",
        "file:///data/events/../x",
        "file:///data/events/%2e%2e/x",
        "file:///etc/passwd",
        "file://host/data/events/x",
        "abfs://c@a/data/events/x",
        "file:///data/events/_SUCCESS",
        "file:///data/events/_lockgate/jobs/x",
        "file:///data/events/_lockgate/txn/x.json",
    ],
)
def test_contained_a_target_outside_the_destination_is_refused(target: str) -> None:
    hostile = wire()
    hostile["files"][1]["d"] = target
    with pytest.raises(ManifestInvalid) as caught:
        decode(hostile)
    assert "entry 1" in str(caught.value)
    assert "file:///m.json" in str(caught.value)
    assert target in str(caught.value)


def test_a_target_that_occurs_twice_is_refused() -> None:
    hostile = wire()
    hostile["files"][1]["d"] = hostile["files"][0]["d"].replace("a.parquet", "%61.parquet")
    with pytest.raises(ManifestInvalid, match="twice"):
        decode(hostile)


@pytest.mark.parametrize("length", [-1, 2**63])
def test_an_impossible_length_is_refused(length: int) -> None:
    hostile = wire()
    hostile["files"][0]["z"] = length
    with pytest.raises(ManifestInvalid):
        decode(hostile)


def test_unknown_fields_are_passed_over_as_hadoop_does() -> None:
    assert len(decode(wire() | {"lockgate": {"x": 1}, "future": []}).files) == 2

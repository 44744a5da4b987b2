"""The benchmarks run, small, with the tests, so that they do not rot. No timing is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import hadoop_jvm
import pytest
from lockgate_lab.servers import HUDI_VERSIONS, abfs_class_path, hudi_class_path, or_skip, s3a_class_path

BENCHMARKS = Path(__file__).parent
TAKE_DIRECTORY = sorted(each.name for each in BENCHMARKS.glob("bench_*.py") if '"--directory"' in each.read_text())


def run(script: str, figures: Path, *arguments: str) -> Any:
    command = [sys.executable, str(BENCHMARKS / script), "--quick", "--json", str(figures), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout, "a table for people"
    return json.loads(figures.read_bytes())


@pytest.mark.spark
def test_job_commit_beside_hadoop_is_measured(tmp_path: Path) -> None:
    missing = hadoop_jvm.missing()
    if missing and os.environ.get("CI") != "true":
        pytest.skip(missing)
    found = run("bench_job_commit.py", tmp_path / "figures.json", "--directory", str(tmp_path))
    assert len(found["committers"]) == 6
    for figures in found["committers"].values():
        assert figures["job_commit_files_per_second"]["median"] > 0
        assert figures["task_commit_milliseconds"]["median"] > 0
    assert {"rename_files", "load_manifests"} <= set(found["lockgate_stage_seconds"])


@pytest.mark.spark
def test_sparks_own_writer_beside_sparks_default_is_measured(tmp_path: Path) -> None:
    found = run("bench_spark_native.py", tmp_path / "figures.json", "--directory", str(tmp_path))
    assert [each["partitioned"] for each in found] == [False, True]
    assert all(each["ratio"] > 0 for each in found)


@pytest.mark.spark
def test_the_python_source_beside_mere_draining_is_measured(tmp_path: Path) -> None:
    found = run("bench_python_source.py", tmp_path / "figures.json", "--directory", str(tmp_path))
    assert [each["partitioned"] for each in found] == [False, True]
    assert all(set(each["ratios"]) == {"draining", "Lockgate", "Spark's own"} for each in found)


def test_a_replaced_partition_is_set_aside_by_one_request_on_azure(tmp_path: Path) -> None:
    by_files, by_directories, *local = run("bench_set_aside.py", tmp_path / "f.json", "--directory", str(tmp_path))
    assert by_files["set_aside"] == 5 * by_files["partitions"]
    assert by_directories["set_aside"] <= 1.1 * by_directories["partitions"]
    assert 1 <= by_directories["looked"] <= 2
    assert by_directories["total"] < by_files["total"]
    assert all(row["stage_s"] > 0 for row in local)


@pytest.mark.spark
def test_a_distributed_job_commit_is_measured(tmp_path: Path) -> None:
    found = run("bench_distributed_commit.py", tmp_path / "figures.json")
    assert [each["tasks"] for each in found] == [0, 2, 0]
    assert all(each["rate"] > 0 for each in found)


def test_memory_of_whatever_looks_at_all_files_is_measured(tmp_path: Path) -> None:
    found = run("bench_memory.py", tmp_path / "figures.json", "--directory", str(tmp_path), "--files", "1000")
    assert [row["operation"] for row in found["jobs"]] == [
        "job commit",
        "plan of a replace",
        "replace",
        "verify",
        "gc",
        "recover --finish",
        "recover --undo",
    ]
    assert all(row["peak_bytes"] >= row["before_bytes"] > 0 for row in found["jobs"])


def test_requests_of_a_commit_far_away_are_measured(tmp_path: Path) -> None:
    found = run("bench_remote_store.py", tmp_path / "figures.json", "--latency-ms", "1")
    assert {row["store"] for row in found} == {"abfs", "gcs", "s3"}
    for row in found:
        assert row["renames_per_file"] < 1.1
        assert row["others_per_file"] > 0


def test_a_job_on_s3_beside_its_peers_is_measured(tmp_path: Path) -> None:
    or_skip(s3a_class_path)
    found = run("bench_s3_peers.py", tmp_path / "figures.json", "--latency-ms", "1")
    rows = {row["committer"]: row for row in found}
    assert set(rows) == {"Lockgate", "S3A magic", "S3A directory staging", "Spark's classic way"}
    for name, row in rows.items():
        files, length = row["files"], 10_000
        copied = 2 * files if name == "Spark's classic way" else 0
        assert row["bytes_copied"] == copied * length
        # Lockgate's first commit asks once whether the service is believed.
        probe = int(name == "Lockgate")
        assert row["operations"].get("CompleteMultipartUpload", 0) == (0 if copied else files + probe)
        assert row["bytes_sent"] >= files * length


def test_a_job_on_azure_beside_its_peers_is_measured(tmp_path: Path) -> None:
    or_skip(abfs_class_path)
    found = run("bench_abfs_peers.py", tmp_path / "figures.json")
    ours, equal, manifest, bare, v1 = found
    for row in found:
        assert row["job_commit"]["operations"]["RenamePath"] >= (0 if row is v1 else row["files"])
        assert all(row[stage]["cpu_s"] > 0 for stage in ("task_commit", "job_commit"))
    for row in (ours, equal):
        assert row["task_commit"]["requests"] == 3 * row["tasks"]
    assert equal["job_commit"]["in_flight_most"] <= 32
    for row in (manifest, bare):
        assert row["task_commit"]["requests"] > 10 * row["tasks"]
    assert v1["task_commit"]["requests"] < 10 * v1["tasks"], "one rename, and looks beside it"


def test_a_shared_limit_is_measured(tmp_path: Path) -> None:
    (row,) = run("bench_shared_limit.py", tmp_path / "figures.json", "--processes", "2")
    assert row["used"] > 0
    assert row["least_share"] > 0


def test_in_flight_is_measured(tmp_path: Path) -> None:
    found = run("bench_in_flight.py", tmp_path / "figures.json")
    assert [row["ceiling"] for row in found] == [64, 512]
    for row in found:
        assert row["per_second"] > 0
        assert 0 < row["in_flight_most"] <= row["ceiling"] + 1


def test_markers_by_a_timeline_server_take_fewer_requests_than_direct_ones(tmp_path: Path) -> None:
    direct, batched = run("bench_markers.py", tmp_path / "figures.json", "--latency-ms", "1")
    assert direct["files"] == batched["files"] == 200
    assert direct["files_of_markers"] == 200
    assert 2 <= batched["files_of_markers"] <= 21
    assert batched["store_requests"] < direct["store_requests"]


def test_all_protocols_and_their_peers_at_one_job_are_measured(tmp_path: Path) -> None:
    for class_path in (s3a_class_path, abfs_class_path, partial(hudi_class_path, HUDI_VERSIONS[-1])):
        or_skip(class_path)
    rows = run(
        "bench_protocols.py", tmp_path / "f.json", "--latency-ms", "1", "--directory", str(tmp_path), "--files", "20"
    )
    by_store: dict[str, set[str]] = {}
    for row in rows:
        by_store.setdefault(row["store"], set()).add(row["protocol"])
    ours = {"direct", "hive", "manifest", "markers", "markers, timeline server", "stocator", "v1", "v2"}
    hadoops, hudis = {"Hadoop v1", "Hadoop v2"}, {"Hudi direct markers", "Hudi timeline server"}
    assert by_store["local"] == ours | hadoops | hudis | {"Hadoop manifest"}
    assert by_store["abfs"] == ours | hadoops | hudis | {"Hadoop manifest", "deferred", "emrfs"}
    of_s3 = {"deferred", "direct", "emrfs", "markers", "markers, timeline server", "stocator"}
    assert by_store["s3"] == of_s3 | hadoops | hudis | {"S3A magic", "S3A directory staging"}
    assert all(row["seen_before"] in (0, 1) and row["job_commit_s"] > 0 for row in rows)
    copied = {row["protocol"]: row["bytes_copied"] for row in rows if row["store"] == "s3"}
    assert {name: copies for name, copies in copied.items() if copies} == {"Hadoop v1": 4000, "Hadoop v2": 2000}
    written = {row["protocol"]: row["seen_written"] for row in rows}
    assert written["Hudi direct markers"] == written["markers"] == 1
    assert written["Hadoop v1"] == written["v1"] == 0


def test_who_is_predicted_to_take_too_long_is_left_out_and_said_so(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "bench_protocols.py"), "--files", "220", "--places", "local"]
    command += ["--protocols", "manifest", "--peers", "none", "--seconds-most", "0", "--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "- local, manifest: 220 files are predicted to take" in done.stdout


@pytest.mark.parametrize("script", TAKE_DIRECTORY)
def test_a_directory_that_is_not_there_is_told_without_a_traceback(tmp_path: Path, script: str) -> None:
    command = [sys.executable, str(BENCHMARKS / script), "--directory", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"argument --directory: there is no directory {tmp_path / 'none'}" in done.stderr
    assert "Traceback" not in done.stderr

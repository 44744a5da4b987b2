"""Hadoop's own classes read what Lockgate writes: task manifests, `_SUCCESS`, reports of failed jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from found_job import job_in_hadoops_directory, read_output
from hadoop_jvm import HadoopJvm
from hadoop_names import COLON, NAMES, contents
from lockgate import Job, Receipt
from lockgate.errors import CommitRefused
from lockgate.model.layout import JobLayout
from lockgate.model.manifest import decode_manifest, encode_manifest
from lockgate.model.urls import Below, parse_url

pytestmark = pytest.mark.spark


def write_task(job: Job, files: dict[str, bytes], task: int = 0, **counters: int) -> Receipt:
    attempt = job.task_attempt(task)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path) as file:
            file.write(content)
    return attempt.commit(counters)


def manifest_of(destination: Path, task: int = 0) -> Path:
    (found,) = destination.glob(f"_lockgate/jobs/*/*/manifests/task_{task:06d}-manifest.json")
    return found


def test_hadoop_loads_and_validates_a_task_manifest(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events with a space, 50% + ü"
    job = Job(str(destination))
    job.setup()
    files = contents() | contents("year=2024/") | {COLON: b"colon"}
    write_task(job, files, rows_written=7)

    found = hadoop.load_task_manifest(manifest_of(destination))

    assert (found["job_id"], found["job_attempt"]) == (job.job_id, 0)
    assert (found["task_id"], found["task_attempt_id"]) == ("task_000000", "attempt_000000_0")
    assert found["bytes_total"] == sum(map(len, files.values()))
    assert found["counters"] == {"rows_written": 7}
    targets = {entry["target"]: entry for entry in found["files"]}
    assert set(targets) == {f"{destination}/{name}" for name in files}
    for name, content in files.items():
        entry = targets[f"{destination}/{name}"]
        assert Path(entry["source"]).read_bytes() == content
        assert entry["length"] == len(content)
        assert entry["identity"]


def test_hadoop_loads_the_manifest_of_a_task_without_files(hadoop: HadoopJvm, tmp_path: Path) -> None:
    job = Job(str(tmp_path / "events"))
    job.setup()
    write_task(job, {})
    found = hadoop.load_task_manifest(manifest_of(tmp_path / "events"))
    assert (found["files"], found["directories"], found["counters"]) == ([], [], {})


def test_a_manifest_that_hadoop_loaded_and_saved_says_the_same(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    job = Job(str(destination))
    job.setup()
    write_task(job, contents("p=1/") | {COLON: b"colon"}, rows_written=7)
    ours, theirs = manifest_of(destination), tmp_path / "saved-by-hadoop.json"
    hadoop.save_task_manifest(ours, theirs)

    below = Below(parse_url(str(destination)))
    layout = JobLayout(job.job_id)
    assert theirs.read_bytes() != ours.read_bytes()
    assert decode_manifest(theirs.read_bytes(), layout, below, name="Hadoop's") == decode_manifest(
        ours.read_bytes(), layout, below, name="ours"
    )


def test_hadoop_loads_its_golden_manifest_as_lockgate_encodes_it_again(hadoop: HadoopJvm, tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "hadoop-3.5.0-task-manifest.json"
    layout = JobLayout("0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11", 0, prefix="_temporary/")
    below = Below(parse_url("file:///data/events"))
    ours = tmp_path / "ours.json"
    ours.write_bytes(encode_manifest(decode_manifest(golden.read_bytes(), layout, below, name="golden"), below))
    before, after = hadoop.load_task_manifest(golden), hadoop.load_task_manifest(ours)
    before["counters"] = {name: count for name, count in before["counters"].items() if count}
    before["directories"] = []
    assert after == before


def test_hadoop_loads_and_prints_a_summary(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    job = Job(str(destination))
    job.setup()
    files = contents("p=1/")
    summary = job.commit([write_task(job, files, rows_written=7), write_task(job, {"other": b"1"}, 1, rows_written=4)])

    found = hadoop.load_success(destination / "_SUCCESS")
    assert (found["success"], found["job_id"], found["committer"]) == (True, job.job_id, "lockgate")
    assert (found["timestamp"], found["date"]) == (summary.timestamp, summary.date)
    assert set(found["file_names"]) == {f"{destination}/{name}" for name in [*files, "other"]}
    assert found["counters"]["rows_written"] == 11
    assert found["counters"]["committer_files_committed"] == len(files) + 1
    assert found["counters"]["committer_bytes_committed"] == sum(map(len, files.values())) + 1

    printed = hadoop.print_success(destination / "_SUCCESS").splitlines()
    assert "succeeded: true" in printed
    assert "committer: lockgate" in printed
    assert f"jobId: {job.job_id}" in printed
    assert any("rows_written=11" in line for line in printed)


def test_hadoop_loads_the_summary_of_a_commit_whose_list_is_in_a_companion_file(
    hadoop: HadoopJvm, tmp_path: Path
) -> None:
    job = Job(str(tmp_path / "events"), file_list_inline_max=10)
    job.setup()
    job.commit([write_task(job, {f"f{number:03d}": b"x" for number in range(150)})])
    assert (tmp_path / "events" / "_lockgate").is_dir()
    found = hadoop.load_success(tmp_path / "events" / "_SUCCESS")
    assert len(found["file_names"]) == 100
    assert found["counters"]["committer_files_committed"] == 150


def test_hadoop_loads_and_prints_the_report_of_a_job_that_failed(hadoop: HadoopJvm, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    job = Job(str(tmp_path / "events"), summary_report_directory=str(reports))
    job.setup()
    receipts = [write_task(job, {"same": b"1"}, 0), write_task(job, {"same": b"2"}, 1)]
    with pytest.raises(CommitRefused):
        job.commit(receipts)

    (report,) = reports.iterdir()
    found = hadoop.load_success(report)
    assert (found["success"], found["job_id"]) == (False, job.job_id)
    assert "succeeded: false" in hadoop.print_success(report).splitlines()


def test_complete_when_hadoop_commits_a_job_whose_tasks_lockgate_committed(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    tasks = [contents(f"task={task}/") for task in range(3)] + [{"root.txt": b"root"}]
    hadoop.setup_job(destination, "ours-then-theirs")
    job = job_in_hadoops_directory(destination, "ours-then-theirs")
    for task, files in enumerate(tasks):
        write_task(job, files, task)

    # Our manifests leave out directories that follow from the files, so Hadoop makes none before it renames; its local
    # file system then copies into the missing ones. A store that refuses such a rename would fail this job commit.
    hadoop.commit_job("ours-then-theirs")

    assert read_output(destination) == {name: content for files in tasks for name, content in files.items()}
    summary = json.loads((destination / "_SUCCESS").read_bytes())
    assert summary["committer"].endswith("ManifestCommitter")
    assert summary["iostatistics"]["counters"]["committer_files_committed"] == 3 * len(NAMES) + 1
    assert not (destination / "_temporary").exists()

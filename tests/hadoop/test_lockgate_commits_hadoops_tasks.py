"""A job whose tasks Hadoop's `ManifestCommitter` committed is committed by Lockgate."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import uuid
from pathlib import Path

import lockgate
import pytest
from found_job import left_in_temporary, read_output
from hadoop_jvm import HadoopError, HadoopJvm
from hadoop_names import COLON, NAMES, contents
from lockgate import JobOptions
from lockgate.errors import CommitRefused

pytestmark = pytest.mark.spark


def write_job(hadoop: HadoopJvm, destination: Path, tasks: list[dict[str, bytes]]) -> str:
    job_id = str(uuid.uuid4())
    hadoop.setup_job(destination, job_id)
    for task, files in enumerate(tasks):
        hadoop.write_task(job_id, task, files)
    return job_id


def together(tasks: list[dict[str, bytes]]) -> dict[str, bytes]:
    return {name: content for files in tasks for name, content in files.items()}


def test_complete_all_files_of_hadoops_committed_tasks_are_in_place(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events with a space, 50% + ü"
    tasks = [contents(), contents("year=2024/month=1/"), {f"p={p}/part-{p}": bytes([p]) for p in range(30)}]
    job_id = write_job(hadoop, destination, tasks)

    summary = lockgate.commit(str(destination), job_id, force=True)

    written = together(tasks)
    assert read_output(destination) == written
    assert (summary.success, summary.files) == (True, len(written))
    assert summary.bytes == sum(map(len, written.values()))
    # Hadoop's own counters of its task commits, added up with ours of the job commit.
    assert summary.counters["task_stage_commit"] == 3
    assert summary.counters["committer_files_committed"] == len(written)
    assert not left_in_temporary(destination)
    for name, content in written.items():
        assert hadoop.read_file(destination / name) == content


def test_complete_when_the_command_line_commits_hadoops_tasks(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    tasks = [contents("p=1/"), contents("p=2/")]
    job_id = write_job(hadoop, destination, tasks)
    # Its tasks have only just written, and nothing in Hadoop's directory says that it is over: the operator does.
    command = [f"{sysconfig.get_path('scripts')}/lockgate", "commit", str(destination), job_id, "--force", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobId"] == job_id
    assert read_output(destination) == together(tasks)


def test_complete_in_the_directory_name_of_the_protocols_text(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    tasks = [contents(f"task={task}/") for task in range(2)]
    job_id = write_job(hadoop, destination, tasks)
    # Hadoop 3.5.0 leaves out the `manifest_` that the protocol's text has: such a job is this one under that name.
    before, after = destination / "_temporary" / job_id, destination / "_temporary" / f"manifest_{job_id}"
    before.rename(after)
    for manifest in after.glob("00/manifests/*.json"):
        text = manifest.read_text().replace(f"/_temporary/{job_id}/", f"/_temporary/manifest_{job_id}/")
        manifest.write_text(text)

    lockgate.commit(str(destination), job_id, force=True)

    assert read_output(destination) == together(tasks)
    assert not left_in_temporary(destination)


def test_exclusive_nothing_of_hadoops_uncommitted_attempts_is_committed(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    job_id = write_job(hadoop, destination, [{"a": b"committed"}])
    hadoop.write_task(job_id, 0, {"a": b"a second attempt", "b": b"never committed"}, attempt=1, commit=False)
    hadoop.write_task(job_id, 1, {"c": b"never committed"}, commit=False)
    lockgate.commit(str(destination), job_id, force=True)
    assert read_output(destination) == {"a": b"committed"}


def test_exclusive_of_two_attempts_that_hadoop_committed_only_the_last_is_committed(
    hadoop: HadoopJvm, tmp_path: Path
) -> None:
    destination = tmp_path / "events"
    job_id = write_job(hadoop, destination, [{"first": b"1"}])
    hadoop.write_task(job_id, 0, {"last": b"2"}, attempt=1)
    lockgate.commit(str(destination), job_id, force=True)
    assert read_output(destination) == {"last": b"2"}


def test_replace_partitions_of_a_job_that_hadoop_wrote(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    first = write_job(hadoop, destination, [{"p=1/old": b"1", "p=2/old": b"2"}])
    lockgate.commit(str(destination), first, force=True)
    second = write_job(hadoop, destination, [{"p=1/new": b"3"}])
    lockgate.commit(str(destination), second, options=JobOptions(conflict="replace-partitions"), force=True)
    assert read_output(destination) == {"p=1/new": b"3", "p=2/old": b"2"}


def test_refused_when_a_file_that_hadoop_staged_is_gone(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    job_id = write_job(hadoop, destination, [{"a": b"1"}, {"b": b"2"}])
    (gone,) = destination.glob("_temporary/*/00/tasks/*/b")
    gone.unlink()
    with pytest.raises(CommitRefused):
        lockgate.commit(str(destination), job_id, force=True)
    assert read_output(destination) == {}


@pytest.mark.parametrize("why", NAMES)
def test_a_summary_of_hadoops_own_job_names_what_lockgate_would(hadoop: HadoopJvm, tmp_path: Path, why: str) -> None:
    name = NAMES[why]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    hadoop.commit_job(write_job(hadoop, theirs, [{name: b"1"}]))
    lockgate.commit(str(ours), write_job(hadoop, ours, [{name: b"1"}]), force=True)
    assert read_output(theirs) == read_output(ours) == {name: b"1"}
    (their_name,) = hadoop.load_success(theirs / "_SUCCESS")["file_names"]
    (our_name,) = hadoop.load_success(ours / "_SUCCESS")["file_names"]
    assert their_name.removeprefix(str(theirs)) == our_name.removeprefix(str(ours)) == f"/{name}"


def test_hadoop_itself_cannot_commit_a_task_with_a_colon_in_a_name(hadoop: HadoopJvm, tmp_path: Path) -> None:
    # Why COLON is missing from what Hadoop writes here; should a later Hadoop take it, it belongs into NAMES.
    with pytest.raises(HadoopError, match="Relative path in absolute URI"):
        write_job(hadoop, tmp_path / "events", [{COLON: b"1"}])

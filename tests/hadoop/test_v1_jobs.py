"""Jobs that Hadoop's `FileOutputCommitter`, algorithm 1, began and Lockgate ends, and the reverse."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import uuid
from pathlib import Path

import lockgate
import pytest
from found_job import left_in_temporary, read_output
from hadoop_jvm import HadoopJvm
from hadoop_names import contents
from lockgate import Job, JobOptions, Receipt
from lockgate.errors import (
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    DuplicateTarget,
    ManifestInvalid,
    OutcomeUnknown,
)

pytestmark = pytest.mark.spark

V1 = JobOptions(protocol="v1")
THEIR_ID = "job_20260101_0001"
"""What the Java program calls its MapReduce job."""


def hadoops_job(hadoop: HadoopJvm, destination: Path, tasks: list[dict[str, bytes]], *, raw: bool = False) -> str:
    job = str(uuid.uuid4())
    hadoop.setup_job(destination, job, "v1", raw_file_system=raw)
    for task, files in enumerate(tasks):
        hadoop.write_task(job, task, files)
    return job


def our_task(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0) -> Receipt:
    ours = job.task_attempt(task, attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path) as file:
            file.write(content)
    return ours.commit()


def together(tasks: list[dict[str, bytes]]) -> dict[str, bytes]:
    return {name: content for files in tasks for name, content in files.items()}


TASKS = [contents(), contents("year=2024/month=1/"), {f"p={p}/part-{p}": bytes([p]) for p in range(8)}]


@pytest.mark.parametrize("raw", [False, True])
def test_complete_all_files_of_tasks_that_hadoop_committed_by_v1(hadoop: HadoopJvm, tmp_path: Path, raw: bool) -> None:
    destination = tmp_path / "events with a space, 50% + ü"
    job = hadoops_job(hadoop, destination, TASKS, raw=raw)
    hadoop.write_task(job, 3, {"never": b"committed"}, commit=False)
    with pytest.raises(CommitFenced):
        lockgate.commit(str(destination), THEIR_ID, options=V1)
    summary = lockgate.commit(str(destination), THEIR_ID, options=V1, force=True)
    assert read_output(destination) == together(TASKS)
    assert (summary.files, summary.success) == (len(together(TASKS)), True)
    assert not left_in_temporary(destination)
    for name, content in together(TASKS).items():
        assert hadoop.read_file(destination / name) == content


def test_the_command_line_commits_tasks_that_hadoop_committed_by_v1(hadoop: HadoopJvm, tmp_path: Path) -> None:
    hadoops_job(hadoop, tmp_path / "t", TASKS[:1])
    command = [f"{sysconfig.get_path('scripts')}/lockgate", "commit", str(tmp_path / "t"), THEIR_ID]
    done = subprocess.run(
        [*command, "--protocol", "v1", "--force", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["jobId"] == THEIR_ID
    assert read_output(tmp_path / "t") == TASKS[0]


def test_hadoop_commits_tasks_that_lockgate_committed_by_v1(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    hadoop.setup_job(destination, "driver", "v1")
    job = Job(destination, V1, job_id=THEIR_ID)
    job.setup()
    for task, files in enumerate(TASKS):
        our_task(job, files, task)
    hadoop.write_task("driver", 7, {"theirs": b"1"})
    hadoop.commit_job("driver")
    assert read_output(destination) == together(TASKS) | {"theirs": b"1"}
    with pytest.raises(OutcomeUnknown, match="another program's job commit has put them there"):
        job.abort()
    assert read_output(destination) == together(TASKS) | {"theirs": b"1"}


def test_hadoops_next_attempt_recovers_tasks_that_lockgate_committed(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    job = Job(destination, V1, job_id=THEIR_ID)
    job.setup()
    our_task(job, TASKS[0], 0)
    our_task(job, TASKS[1], 1)
    hadoop.setup_job(destination, "next", "v1", job_attempt=1)
    hadoop.recover_task("next", 0)
    hadoop.recover_task("next", 1)
    hadoop.write_task("next", 2, TASKS[2])
    hadoop.commit_job("next")
    assert read_output(destination) == together(TASKS)


def test_the_layout_while_a_task_writes_and_when_it_has_committed_is_hadoops(hadoop: HadoopJvm, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    hadoop.setup_job(theirs, "layout", "v1", raw_file_system=True)
    hadoop.write_task("layout", 3, {"p=1/a": b"1"})
    hadoop.write_task("layout", 4, {"p=1/b": b"2"}, attempt=2, commit=False)
    job = Job(ours, V1, job_id=THEIR_ID)
    job.setup()
    our_task(job, {"p=1/a": b"1"}, 3)
    attempt = job.task_attempt(4, 2)
    attempt.setup()
    file = attempt.open("p=1/b")
    file.write(b"2")

    def shown(root: Path) -> set[str]:
        return {
            path.relative_to(root).as_posix() for path in (root / "_temporary").rglob("*") if ".lock" not in path.name
        }

    assert shown(ours) >= {path for path in shown(theirs) if not path.endswith("/b")}
    file.close()
    assert shown(ours) == shown(theirs)


def test_the_next_attempt_at_hadoops_job_keeps_the_tasks_that_committed(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    hadoops_job(hadoop, destination, TASKS[:2])
    job = Job(destination, V1, job_id=THEIR_ID, job_attempt=1)
    job.setup()
    kept = job.committed()
    assert [receipt.task_id for receipt in kept] == ["task_000000", "task_000001"]
    summary = job.commit([*kept, our_task(job, TASKS[2], 2)])
    assert read_output(destination) == together(TASKS)
    assert summary.files == len(together(TASKS))
    assert not left_in_temporary(destination)


def test_a_job_of_hadoops_beside_ours_loses_nothing(hadoop: HadoopJvm, tmp_path: Path) -> None:
    destination = tmp_path / "events"
    driver = hadoops_job(hadoop, destination, [{"theirs": b"1"}])
    job = Job(destination, V1)
    job.setup()
    job.commit([our_task(job, {"ours": b"2"})])
    assert (destination / "_temporary/0/task_20260101_0001_m_000000/theirs").read_bytes() == b"1"
    # `_SUCCESS` is there, which Hadoop's first algorithm writes over.
    hadoop.commit_job(driver)
    assert read_output(destination) == {"theirs": b"1", "ours": b"2"}


def test_equal_ids_are_refused(hadoop: HadoopJvm, tmp_path: Path) -> None:
    hadoops_job(hadoop, tmp_path / "t", [{"theirs": b"1"}])
    with pytest.raises(lockgate.errors.UsageError, match="another job has tasks of the names"):
        Job(tmp_path / "t", V1, job_id=THEIR_ID).setup()


def test_a_taken_name_is_refused_unless_hadoops_way_is_asked_for(hadoop: HadoopJvm, tmp_path: Path) -> None:
    (tmp_path / "t/p=1").mkdir(parents=True)
    (tmp_path / "t/p=1/taken").write_bytes(b"before")
    hadoops_job(hadoop, tmp_path / "t", [{"p=1/taken": b"1", "new": b"2"}])
    with pytest.raises(DestinationConflict, match="1 name that the job gives its files is taken"):
        lockgate.commit(str(tmp_path / "t"), THEIR_ID, options=V1, force=True)
    assert read_output(tmp_path / "t") == {"p=1/taken": b"before"}
    overwriting = JobOptions(protocol="v1", delete_target_files=True)
    lockgate.commit(str(tmp_path / "t"), THEIR_ID, options=overwriting, force=True)
    assert read_output(tmp_path / "t") == {"p=1/taken": b"1", "new": b"2"}


@pytest.mark.parametrize("strange", ["task_20260101_0001_m_1/a", "notes.txt", "task_20260101_0001_m_000009"])
def test_refused_when_something_foreign_is_among_the_tasks(hadoop: HadoopJvm, tmp_path: Path, strange: str) -> None:
    hadoops_job(hadoop, tmp_path / "t", [{"a": b"1"}])
    path = tmp_path / "t/_temporary/0" / strange
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"whose?")
    with pytest.raises(ManifestInvalid, match="is in a directory for committed tasks, and is no task's"):
        lockgate.commit(str(tmp_path / "t"), THEIR_ID, options=V1, force=True)
    assert read_output(tmp_path / "t") == {}
    assert path.read_bytes() == b"whose?"


def test_refused_when_two_tasks_write_one_file_or_one_writes_a_committers_name(
    hadoop: HadoopJvm, tmp_path: Path
) -> None:
    hadoops_job(hadoop, tmp_path / "twice", [{"a": b"1"}, {"a": b"2"}])
    with pytest.raises(DuplicateTarget):
        lockgate.commit(str(tmp_path / "twice"), THEIR_ID, options=V1, force=True)
    hadoops_job(hadoop, tmp_path / "reserved", [{"_temporary/x": b"1"}])
    with pytest.raises(CommitRefused, match="reserved"):
        lockgate.commit(str(tmp_path / "reserved"), THEIR_ID, options=V1, force=True)
    for name, count in (("twice", 2), ("reserved", 1)):
        assert read_output(tmp_path / name) == {}
        assert len(list((tmp_path / name / "_temporary/0").glob("task_*"))) == count


@pytest.mark.parametrize("protocol", ["v1", "v2"])
@pytest.mark.parametrize("hadoop_first", [True, False])
def test_a_job_of_hadoops_without_output_commits_beside_ours(
    hadoop: HadoopJvm, tmp_path: Path, protocol: str, hadoop_first: bool
) -> None:
    """Ours deleted its directory for being empty, and it failed: FileNotFoundException. Whose it is does not show."""
    destination = tmp_path / "t"
    job = Job(destination, protocol=protocol, accept_unsafe=protocol == "v2")
    driver = hadoops_job(hadoop, destination, []) if hadoop_first else ""
    job.setup()
    receipt = our_task(job, {"ours": b"2"})
    driver = driver or hadoops_job(hadoop, destination, [])
    job.commit([receipt])
    lockgate.collect_garbage(str(destination))
    hadoop.commit_job(driver)
    assert read_output(destination) == {"ours": b"2"}


def test_an_abort_deletes_the_one_job_and_nothing_beside_it(hadoop: HadoopJvm, tmp_path: Path) -> None:
    hadoops_job(hadoop, tmp_path / "t", [{"a": b"1"}])
    other = tmp_path / "t/_temporary/0/task_20260101_0002_m_000000/other"
    other.parent.mkdir()
    other.write_bytes(b"2")
    lockgate.abort(str(tmp_path / "t"), THEIR_ID, V1, force=True)
    assert [path for path in (tmp_path / "t").rglob("*") if path.is_file()] == [other]

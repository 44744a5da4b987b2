"""Abortable: what a job by a protocol whose files are seen early has written does not come back once it was ended,
though another job's commit had set it aside meanwhile, and is undone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from interleaved_store import interleave
from lockgate import Job, JobOptions
from lockgate.errors import CommitFailed, DestinationConflict, OutcomeUnknown

EARLY = ("direct", "markers", "stocator", "v2")


def written(job: Job, partition: int, task: int = 0, number: int = 0) -> lockgate.Receipt:
    """Three files in a partition, by a task that has committed."""
    return filled(job, partition, task, number).commit()


def filled(job: Job, partition: int, task: int = 0, number: int = 0) -> lockgate.TaskAttempt:
    """An attempt that has written three files in a partition."""
    attempt = job.task_attempt(task, number)
    attempt.setup()
    for each in range(3):
        with attempt.open(f"p={partition}/part-{each}-{attempt.tag}.bin") as file:
            file.write(b"1")
    return attempt


def seen(root: Path) -> list[str]:
    """The files that readers see."""
    paths = (path.relative_to(root).as_posix() for path in root.rglob("p=*/*.bin"))
    return sorted(path for path in paths if not path.startswith(("_", ".")))


def early(root: Path, protocol: str) -> Job:
    """A job whose files are seen, and that has not committed."""
    job = Job(root, protocol=protocol, accept_unsafe=True)
    job.setup()
    written(job, 1)
    return job


def replacing(root: Path, set_aside: str, partition: int = 1, *, there: bool = False) -> Job:
    """A job whose driver has given up in its commit, once it had set aside what it replaces; with `there` something
    that it replaces is put there first."""
    if there:
        (root / f"p={partition}").mkdir(exist_ok=True)
        (root / f"p={partition}/old.bin").write_bytes(b"old")
    options = {"conflict": "replace-partitions", "set_aside": set_aside, "on_failure": "leave"}
    job = Job(root, JobOptions.resolve(options))
    job.setup()
    receipt = written(job, partition)
    faulty = make_faulty(job)
    faulty.fail_at = lambda name, subject: (
        name == "rename_files" and any(each.target.startswith(f"p={partition}/") for each in subject)
    )
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    return job


def end(root: Path, job: Job, how: str) -> None:
    """End a job without its commit."""
    if how == "its driver":
        job.abort()
    elif how == "abort":
        lockgate.abort(root, job.job_id, force=True)
    else:
        gone = lockgate.collect_garbage(root, options=JobOptions(alive_seconds=0))
        failed = [each for each in gone if each.action == "failed"]
        if failed:
            raise OutcomeUnknown(failed[0].why)


@pytest.mark.parametrize(
    ("protocol", "set_aside", "how"),
    [
        ("direct", "files", "its driver"),
        ("markers", "files", "abort"),
        ("markers", "directories", "gc"),
        ("stocator", "directories", "abort"),
        ("v2", "files", "gc"),
        ("v2", "directories", "its driver"),
    ],
)
def test_abortable_files_that_another_job_has_set_aside_do_not_come_back(
    tmp_path: Path, protocol: str, set_aside: str, how: str
) -> None:
    job = early(tmp_path, protocol)
    other = replacing(tmp_path, set_aside)
    assert seen(tmp_path) == []
    with pytest.raises(OutcomeUnknown, match=f"job {other.job_id}.*has set aside files of job {job.job_id}"):
        end(tmp_path, job, how)
    assert lockgate.recover(tmp_path, other.job_id, undo=True, force=True)[other.job_id].outcome == "undone"
    assert len(seen(tmp_path)) == 3
    end(tmp_path, job, how)
    assert seen(tmp_path) == []
    assert lockgate.files(tmp_path).files == []


@pytest.mark.parametrize("protocol", EARLY)
def test_a_job_is_aborted_beside_one_that_replaces_other_files(tmp_path: Path, protocol: str) -> None:
    done = Job(tmp_path)
    done.setup()
    done.commit([written(done, 2)])
    before = seen(tmp_path)
    job = early(tmp_path, protocol)
    other = replacing(tmp_path, "files", partition=2)
    job.abort()
    lockgate.recover(tmp_path, other.job_id, undo=True, force=True)
    assert seen(tmp_path) == before


@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_files_that_are_set_aside_while_their_job_is_aborted_do_not_come_back(
    tmp_path: Path, protocol: str
) -> None:
    job = early(tmp_path, protocol)
    others: list[Job] = []
    store = job._open()

    async def another_comes(name: str, subject: Any) -> None:
        if name == "create_file" and not others:
            others.append(await asyncio.to_thread(replacing, tmp_path, "files"))

    interleave(job).before = another_comes
    with pytest.raises(OutcomeUnknown, match="has set aside files of job"):
        job.abort()
    job._store = store
    for each in (others[0], job):
        assert lockgate.recover(tmp_path, each.job_id, undo=True, force=True)[each.job_id].outcome == "undone"
    assert seen(tmp_path) == []


@pytest.mark.parametrize("set_aside", ["files", "directories"])
@pytest.mark.parametrize("protocol", ["direct", "markers", "stocator"])
def test_an_aborted_attempts_files_that_come_back_are_no_part_of_what_its_job_commits(
    tmp_path: Path, protocol: str, set_aside: str
) -> None:
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True)
    job.setup()
    failed = filled(job, 1)
    other = replacing(tmp_path, set_aside)
    failed.abort()
    lockgate.recover(tmp_path, other.job_id, undo=True, force=True)
    assert len(seen(tmp_path)) == 3, "they came back"
    job.commit([written(job, 1, number=1)])
    assert len(seen(tmp_path)) == 3
    assert sorted(file.path for file in lockgate.files(tmp_path).files) == seen(tmp_path)


@pytest.mark.parametrize("protocol", ["direct", "markers", "stocator"])
def test_a_job_commits_once_what_must_not_count_of_it_is_not_set_aside_by_another(
    tmp_path: Path, protocol: str
) -> None:
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True)
    job.setup()
    written(job, 1)  # its receipt never arrives
    other = replacing(tmp_path, "files")
    receipt = written(job, 2, number=1)
    with pytest.raises(DestinationConflict, match=f"job {other.job_id}.*has set aside files of job {job.job_id}"):
        job.commit([receipt])
    lockgate.recover(tmp_path, other.job_id, undo=True, force=True)
    job.commit([receipt])
    assert len(seen(tmp_path)) == 3
    assert all(path.startswith("p=2/") for path in seen(tmp_path))


def test_a_job_commits_beside_what_a_committed_one_has_yet_to_delete(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="direct", accept_unsafe=True)
    job.setup()
    written(job, 1)
    other = Job(tmp_path, conflict="replace-partitions", cleanup_skip=True)
    other.setup()
    other.commit([written(other, 1)])
    job.commit([written(job, 2, number=1)])
    assert len(seen(tmp_path)) == 6


@pytest.mark.parametrize("protocol", EARLY)
def test_a_list_that_cannot_be_read_is_told_with_a_step_that_works(tmp_path: Path, protocol: str) -> None:
    """Of another job, in another partition: nobody can say whose the files were that it names."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True)
    job.setup()
    given_up, receipt = filled(job, 1), written(job, 1, task=1)
    other = replacing(tmp_path, "files", partition=2, there=True)
    (kept,) = (tmp_path / "_lockgate/replaced" / other.job_id).glob("*.list")
    kept.write_bytes(kept.read_bytes()[:20])
    given_up.abort()
    with pytest.raises(DestinationConflict, match=r"(?s)nobody can tell whether job .* move .* out of the destination"):
        job.commit([receipt])
    with pytest.raises(OutcomeUnknown, match=r"(?s)nobody can tell whether job .* move .* out of the destination"):
        job.abort()
    (tmp_path / "_lockgate/replaced" / other.job_id).rename(tmp_path.parent / f"{tmp_path.name}-away")
    job.commit([receipt])
    assert len([path for path in seen(tmp_path) if path.startswith("p=1/")]) == 3


@pytest.mark.parametrize("set_aside", ["files", "directories"])
def test_an_aborted_attempt_of_v2_is_not_forgotten_while_another_job_has_set_its_files_aside(
    tmp_path: Path, set_aside: str
) -> None:
    job = Job(tmp_path, protocol="v2", accept_unsafe=True)
    job.setup()
    failed = filled(job, 1)
    failed.commit()
    other = replacing(tmp_path, set_aside)
    with pytest.raises(CommitFailed, match=f"set aside by job {other.job_id}"):
        failed.abort()
    lockgate.recover(tmp_path, other.job_id, undo=True, force=True)
    assert len(seen(tmp_path)) == 3, "they came back"
    failed.abort()
    assert seen(tmp_path) == []
    job.commit([written(job, 1, number=1)])
    assert sorted(file.path for file in lockgate.files(tmp_path).files) == seen(tmp_path)


@pytest.mark.parametrize("ends", ["abort", "gc", "attempt", "person"])
@pytest.mark.parametrize("order", ["old-first", "new-first", "directories"])
@pytest.mark.parametrize("protocol", EARLY)
def test_a_commit_that_died_is_finished_though_what_it_was_to_set_aside_was_deleted_since(
    tmp_path: Path, protocol: str, order: str, ends: str
) -> None:
    """The list of what it replaces was written, and nothing of it was set aside yet: nobody was refused, and the commit
    could only be undone from then on, which deletes what its tasks have written."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="early")
    job.setup()
    attempt = filled(job, 1)
    attempt.commit()
    how = {"set_aside": order} if order == "directories" else {"replace_order": order}
    other = Job(tmp_path, conflict="replace-partitions", job_id="other", on_failure="leave", **how)
    other.setup()
    receipt = written(other, 1)
    faulty = make_faulty(other)
    faulty.fail_at = lambda name, subject: name == "rename_files" and "_lockgate/replaced" in subject[0].target

    async def dies(renames: object) -> list[object]:
        raise Stop

    faulty.rename_directories = dies  # type: ignore[method-assign]
    with pytest.raises(CommitFailed):
        other.commit([receipt])
    assert len(seen(tmp_path)) == (6 if order == "new-first" else 3)
    if ends == "attempt":
        attempt.abort()
    elif ends == "person":
        for path in tmp_path.glob(f"p=1/part-*-{attempt.tag}.bin"):
            path.unlink()
    else:
        end(tmp_path, job, ends)
    found = lockgate.recover(tmp_path, "other", force=True)["other"]
    assert (found.outcome, found.problem) == ("finished", "")
    assert len(seen(tmp_path)) == 3
    assert lockgate.verify(tmp_path).findings == []

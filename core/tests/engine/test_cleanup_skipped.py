"""A job that was told to leave its directory behind: `gc` deletes all that it has left, by the job's own protocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate import Job, JobOptions, collect_garbage

PROTOCOLS = ("direct", "hive", "manifest", "markers", "stocator", "v1", "v2")


def left(root: Path) -> list[str]:
    """The files of committers' own directories, without what says which jobs have committed, and what."""
    own = ("_temporary/", "_lockgate/", ".hoodie/")
    kept = ("_lockgate/commits/", "_lockgate/winners/")
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in paths if path.startswith(own) and not path.startswith(kept))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gc_deletes_all_that_a_committed_job_was_told_to_leave(tmp_path: Path, protocol: str) -> None:
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True, cleanup_skip=True)
    job.setup()
    receipts = []
    for task, commits in enumerate((True, True, False)):
        attempt = job.task_attempt(task)
        attempt.setup()
        with attempt.open(f"p={task}/part-{attempt.tag}.bin") as file:
            file.write(b"1")
        if commits:
            receipts.append(attempt.commit())
    job.commit(receipts)
    assert left(tmp_path)
    found = collect_garbage(tmp_path, options=JobOptions(alive_seconds=0))
    assert left(tmp_path) == []
    assert {each.action for each in found} == {"deleted"}
    assert collect_garbage(tmp_path, options=JobOptions(alive_seconds=0)) == []


def test_gc_deletes_the_directories_that_a_committed_job_had_set_aside_and_was_told_to_leave(tmp_path: Path) -> None:
    for options in ({}, {"conflict": "replace-partitions", "set_aside": "directories", "cleanup_skip": True}):
        job = Job(tmp_path, JobOptions.resolve(options))
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        for number in range(3):
            with attempt.open(f"p=1/part-{number}-{attempt.tag}.bin") as file:
                file.write(b"1")
        job.commit([attempt.commit()])
    assert len([path for path in left(tmp_path) if path.endswith(".bin") and "-whole/" in path]) == 3
    found = collect_garbage(tmp_path, options=JobOptions(alive_seconds=0))
    assert left(tmp_path) == []
    assert {each.action for each in found} == {"deleted"}

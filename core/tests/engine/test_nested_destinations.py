"""Concurrent: jobs of destinations inside one another do not spoil each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, recover
from lockgate.errors import CommitFailed, DestinationConflict


def _job(url: Path, files: dict[str, bytes], **options: object) -> tuple[Job, object]:
    job = Job(str(url), JobOptions(**options))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path) as file:
            file.write(content)
    return job, attempt.commit()


@pytest.mark.parametrize(("policy", "file"), [("replace", "new"), ("replace-partitions", "x/new")])
def test_concurrent_a_job_that_replaces_leaves_a_job_inside_its_destination_alone(table, policy, file) -> None:
    table.write({"old": b"old", "x/old": b"old"})
    inner, inner_receipt = _job(table.root / "x", {"p=1/inner": b"inner"})
    outer, outer_receipt = _job(table.root, {file: b"new"}, conflict=policy)
    with pytest.raises(DestinationConflict, match="inside"):
        outer.commit([outer_receipt])
    inner.commit([inner_receipt])
    assert (table.root / "x/p=1/inner").read_bytes() == b"inner"
    outer.commit([outer_receipt])
    left = {"new": b"new"} if policy == "replace" else {"old": b"old", "x/new": b"new", "x/p=1/inner": b"inner"}
    assert {path: content for path, content in table.read().items() if "_SUCCESS" not in path} == left


def test_an_empty_directory_that_a_committer_left_inside_is_in_nobodys_way(table) -> None:
    table.write({"x/old": b"old"})
    (table.root / "x/_temporary/0").mkdir(parents=True)
    table.write({"x/new": b"new"}, conflict="replace-partitions")
    assert table.read() == {"x/new": b"new"}


def test_undoable_what_a_dead_job_inside_had_set_aside_is_not_replaced_with_the_rest(table) -> None:
    kept = table.root / "x/_lockgate/replaced/j/0123/_0"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"set aside")
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace")
    with pytest.raises(DestinationConflict, match="inside"):
        outer.commit([receipt])
    assert kept.read_bytes() == b"set aside"


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_a_job_that_replaces_inside_a_destination_that_is_being_replaced_is_refused(table, policy) -> None:
    table.write({"old": b"old", "x/old": b"old"})
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace", on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "rename_files" and "x/old" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} replaces a destination"):
        inner.commit([inner_receipt])
    appending, appended = _job(table.root / "x", {"appended": b"x"})
    appending.commit([appended])
    recover(str(table.root), outer.job_id, force=True)
    inner.commit([inner_receipt])
    assert (table.root / "new").read_bytes() == b"new"
    assert not (table.root / "x/old").exists()
    assert (table.root / "x/inner").read_bytes() == b"inner"


def test_concurrent_jobs_on_other_partitions_of_the_destination_above_are_in_nobodys_way(table) -> None:
    table.write({"y/old": b"old", "x/old": b"old"})
    outer, receipt = _job(table.root, {"y/new": b"new"}, conflict="replace-partitions", on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "rename_files" and "y/old" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict="replace")
    inner.commit([inner_receipt])
    assert not (table.root / "x/old").exists()


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_what_a_job_above_has_appended_and_not_yet_committed_is_not_replaced(table, policy) -> None:
    """The inner job set the outer's new file aside, committed and deleted it, and the outer could never be finished."""
    table.write({"x/old": b"old"})
    outer, receipt = _job(table.root, {"x/new": b"new"}, on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} writes here"):
        inner.commit([inner_receipt])
    recover(str(table.root), outer.job_id, force=True)
    assert {path for path in table.read() if "_temporary" not in path} == {"x/old", "x/new"}
    inner.commit([inner_receipt])
    assert (table.root / "x/inner").read_bytes() == b"inner"
    assert not (table.root / "x/new").exists()

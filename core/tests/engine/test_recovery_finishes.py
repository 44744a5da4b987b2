"""What can be finished is finished: by names that stay, through another name of the store, and past a slow driver."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import make_faulty
from lockgate import Job, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.errors import FileChanged, LockgateError


def leave(table, at, files: dict[str, bytes], **options: object) -> Job:
    """A job that fails at the first call for which `at` holds, and is left as it is."""
    job = table.job(on_failure="leave", **options)
    receipts = [table.task(job, {path: content}, task) for task, (path, content) in enumerate(files.items())]
    make_faulty(job).fail_at = at
    with pytest.raises(LockgateError):
        job.commit(receipts)
    return job


def test_resumable_a_replace_with_the_old_file_names_is_finished(table) -> None:
    """Killed when some of the new files stand where the old ones stood."""
    table.write({f"p=1/{n}": b"old" for n in range(4)})
    job = table.job(conflict="replace", on_failure="leave")
    receipts = [table.task(job, {f"p=1/{n}": b"new"}, n) for n in range(4)]
    store = make_faulty(job)
    store.lose = lambda target: target == "p=1/2"
    store.fail_at = lambda name, subject: (
        name == "stat_files" and "p=1/2" in subject and store.calls[-2][0] == "stat_files"
    )
    with pytest.raises(LockgateError):
        job.commit(receipts)
    (recovery,) = recover(str(table.root), force=True).values()
    assert recovery.outcome == "finished"
    assert table.read() == {f"p=1/{n}": b"new" for n in range(4)}
    assert not table.left_over()


@pytest.mark.parametrize("order", ["old-first", "new-first"])
@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_resumable_with_old_names_from_every_rename(table, policy, order) -> None:
    files = {f"p=1/{n}": b"new" for n in range(3)}
    for stop in range(1, 8):
        table.write(dict.fromkeys(files, b"old"), conflict="replace")
        count = 0

        def at(name: str, subject: object, stop: int = stop) -> bool:
            nonlocal count
            count += name == "rename_files" and "manifest" not in subject[0].source  # type: ignore[index]
            return count == stop

        try:
            leave(table, at, files, conflict=policy, replace_order=order)
        except pytest.fail.Exception:
            break
        (recovery,) = recover(str(table.root), force=True).values()
        assert recovery.outcome == "finished"
        assert table.read() == files
        assert not table.left_over()
    assert stop > 2


def test_resumable_by_another_name_of_the_destination(table, tmp_path: Path) -> None:
    """The tasks wrote their manifests under one URL; the recoverer reaches the same files by another."""
    table.write({"p=1/old": b"old"})
    at = lambda name, subject: name == "rename_files" and "/tasks/" in subject[0].source  # noqa: E731
    leave(table, at, {"p=1/new": b"new"}, conflict="replace")
    alias = tmp_path / "alias"
    alias.symlink_to(table.root, target_is_directory=True)
    (recovery,) = recover(str(alias), force=True).values()
    assert recovery.outcome == "finished"
    assert table.read() == {"p=1/new": b"new"}


def test_recovery_that_cannot_read_the_manifests_leaves_the_phase_as_it_is(table) -> None:
    """Unless the job is to be undone: that needs no manifest (`test_manifests_lost.py`)."""
    table.write({"p=1/old": b"old"})
    at = lambda name, subject: name == "rename_files" and "/tasks/" in subject[0].source  # noqa: E731
    job = leave(table, at, {"p=1/new": b"new"}, conflict="replace")
    manifest = table.root / job.layout.manifest("task_000000")
    content = manifest.read_bytes()
    manifest.write_bytes(b"{")
    with pytest.raises(LockgateError):
        recover(str(table.root), job.job_id, force=True)
    (state,) = [state for state in jobs(str(table.root)) if state.job_id == job.job_id]
    assert state.phase == "moving"
    manifest.write_bytes(content)
    (recovery,) = recover(str(table.root), force=True).values()
    assert recovery.outcome == "finished"
    assert state.status in (JobStatus.COMMITTING, JobStatus.CRASHED)


def test_a_driver_whose_job_was_finished_by_another_says_that_it_is_committed(table) -> None:
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"p=1/new": b"new"})
    store = make_faulty(job)
    taken: list[str] = []

    def take_over(name: str, subject: object) -> None:
        if name == "rename_files" and "/tasks/" in subject[0].source and not taken:  # type: ignore[index]
            taken.append("now")
            import threading

            worker = threading.Thread(target=lambda: taken.append(recover_elsewhere(table)))
            worker.start()
            worker.join()

    store.before = take_over
    summary = job.commit([receipt])
    assert summary.success
    assert summary.job_id == job.job_id
    assert taken[1:] == ["finished"]
    assert table.read() == {"p=1/new": b"new"}
    assert not table.left_over()


def recover_elsewhere(table) -> str:
    """Recover in a process of its own: this one's loop is at work for the driver."""
    import subprocess
    import sys

    code = f"import lockgate; print(*[r.outcome for r in lockgate.recover({str(table.root)!r}, force=True).values()])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"validate_output": True}])
def test_complete_recovery_does_not_publish_a_job_whose_files_somebody_has_deleted_since(table, options) -> None:
    """All were in place when its driver died at `publishing`; it was said to be finished."""
    table.write({"old": b"old"}, mark_success=False)
    published: list[bool] = []

    def at(name: str, subject: object) -> bool:
        published.extend([True] * (name == "create_file" and "publishing" in _newest_phase(table)))
        return bool(published) or (name == "rename_files" and subject[0].target == "_SUCCESS")  # type: ignore[index]

    job = leave(table, at, {"p=1/new": b"new", "p=2/new": b"new"}, **options)
    (table.root / "p=1/new").unlink()
    for _ in range(2):
        with pytest.raises(FileChanged, match=r"p=1/new(.|\n)*--undo"):
            recover(str(table.root), job.job_id, force=True)
    assert recover(str(table.root), job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
    assert table.read() == {"old": b"old"}
    assert not table.left_over()


def _newest_phase(table) -> str:
    records = sorted(table.root.glob("_lockgate/jobs/*/commit*.json"), key=lambda path: path.stat().st_mtime_ns)
    return records[-1].read_text() if records else ""

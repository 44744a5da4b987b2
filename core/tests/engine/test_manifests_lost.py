"""Somebody deletes, or damages, a manifest of a job that died in its commit: its plan is lost, not its lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_store import make_faulty
from lockgate import recover
from lockgate.errors import CommitRefused, LockgateError


def in_moving(name: str, subject: object) -> bool:
    """Before the first new file is renamed."""
    return name == "rename_files" and "/tasks/" in subject[0].source  # type: ignore[index]


def before_setting_aside(name: str, subject: object) -> bool:
    """Before the first replaced file is."""
    return name == "rename_files" and "/replaced/" in subject[0].target  # type: ignore[index]


def after_moving(name: str, subject: object) -> bool:
    """Before the summary is written."""
    return name == "write_file" and "_SUCCESS" in str(subject)


def delete(manifest: Path) -> None:
    manifest.unlink()


def empty(manifest: Path) -> None:
    manifest.write_bytes(b"")


def cut(manifest: Path) -> None:
    manifest.write_bytes(manifest.read_bytes()[:100])


def die(table, at, lose: Callable[[Path], None], files: dict[str, bytes], **options: object) -> str:
    """A job of two tasks that dies at the first call for which `at` holds, and the manifest of one; its id."""
    job = table.job(on_failure="leave", **options)
    receipts = [table.task(job, {path: content}, task=task) for task, (path, content) in enumerate(files.items())]
    make_faulty(job).fail_at = at
    with pytest.raises(LockgateError):
        job.commit(receipts)
    manifests = sorted((table.root / "_lockgate/jobs" / job.job_id).glob("*/manifests/*"))
    lose(manifests[-1])
    return str(job.job_id)


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
@pytest.mark.parametrize("lose", [delete, empty, cut])
@pytest.mark.parametrize("at", [before_setting_aside, in_moving, after_moving])
def test_undoable_a_job_that_replaces_data_and_has_lost_a_manifest(table, at, lose, policy: str) -> None:
    table.write({"p=1/old": b"old", "p=1/same": b"old"})
    before = table.everything()
    job_id = die(table, at, lose, {"p=1/same": b"new", "p=2/new": b"new"}, conflict=policy)
    with pytest.raises(CommitRefused) as caught:
        recover(str(table.root), job_id, force=True)
    assert "--undo restores the destination" in caught.value.next_step
    recovery = recover(str(table.root), job_id, undo=True, force=True)[job_id]
    assert (recovery.outcome, list(recovery.missing), list(recovery.left)) == ("undone", [], [])
    assert table.everything() == before
    assert not table.left_over()


def test_undoable_so_while_what_others_wrote_meanwhile_stays(table) -> None:
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, delete, {"p=1/new": b"new", "p=2/new": b"new"}, conflict="replace")
    (table.root / "p=1" / "theirs").write_bytes(b"theirs")
    (table.root / "p=2" / "new").write_bytes(b"theirs, of the same name")
    recovery = recover(str(table.root), job_id, undo=True, force=True)[job_id]
    assert list(recovery.left) == ["p=2/new"]
    assert table.read() == {"p=1/old": b"old", "p=1/theirs": b"theirs", "p=2/new": b"theirs, of the same name"}


@pytest.mark.parametrize("undo", [True, None])
def test_a_job_that_adds_and_has_lost_a_manifest_is_left_as_it_is_and_says_not_to_run_it_again(table, undo) -> None:
    """Nothing but the manifest names the files that are in place already."""
    table.write({"p=1/old": b"old"})
    job_id = die(table, after_moving, delete, {"p=1/new": b"new", "p=2/new": b"new"}, conflict="append")
    before = table.everything()
    with pytest.raises(CommitRefused) as caught:
        recover(str(table.root), job_id, undo=undo, force=True)
    assert "do not run the job again" in caught.value.next_step
    assert {path: content for path, content in table.everything().items() if not path.startswith("_")} == {
        path: content for path, content in before.items() if not path.startswith("_")
    }


def test_undoable_by_its_own_driver_which_finds_a_manifest_lost(table) -> None:
    table.write({"p=1/old": b"old"})
    before = table.everything()
    job = table.job(conflict="replace")
    receipts = [table.task(job, {f"p={task}/new": b"new"}, task=task) for task in range(2)]

    def lose(name: str, subject: object) -> bool:
        if not after_moving(name, subject):
            return False
        sorted((table.root / "_lockgate/jobs" / job.job_id).glob("*/manifests/*"))[-1].unlink(missing_ok=True)
        return True

    make_faulty(job).fail_at = lose
    with pytest.raises(LockgateError):
        job.commit(receipts)
    assert table.everything() == before

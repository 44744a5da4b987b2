"""Somebody damages or deletes a manifest of a job whose files have names that no other job's have: it is given up and
undone by these, and nobody has to delete its files by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, Receipt
from lockgate.api.jobs import abort, collect_garbage, recover
from lockgate.errors import CommitRefused, LockgateError, ManifestInvalid

NAMES_TELL = pytest.mark.parametrize("protocol", ["stocator", "markers"])
LOSES = ["cut", "delete"]


def two_tasks(root: Path, protocol: str, **options) -> tuple[Job, list[Receipt]]:
    """A job at work over a file of another's, both of whose tasks have committed."""
    (root / "p=1").mkdir()
    (root / "p=1/old").write_bytes(b"old")
    job = Job(root, protocol=protocol, accept_unsafe=True, job_id="j", **options)
    job.setup()
    receipts = []
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        for part in range(2):
            with attempt.open(f"p={part}/part-{number}-{attempt.tag}") as file:
                file.write(b"new")
        receipts.append(attempt.commit())
    return job, receipts


def lose(root: Path, how: str, pattern: str = "task_*1-manifest.json") -> None:
    for manifest in (root / "_lockgate/jobs/j/00/manifests").glob(pattern):
        if how == "delete":
            manifest.unlink()
        else:
            manifest.write_bytes(manifest.read_bytes()[:300])


def data(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name[0] not in "_."}


@NAMES_TELL
@pytest.mark.parametrize("pattern", ["task_*1-manifest.json", "*-manifest.json*"], ids=["one", "all"])
@pytest.mark.parametrize("end", ["driver", "abort", "gc"])
def test_abortable_with_a_damaged_manifest_where_names_tell(
    tmp_path: Path, protocol: str, end: str, pattern: str
) -> None:
    """It was refused, since nobody could tell which files those are: without the manifest all were found."""
    job, _ = two_tasks(tmp_path, protocol)
    lose(tmp_path, "cut", pattern)
    with pytest.raises(ManifestInvalid, match="not valid"):
        lockgate.commit(tmp_path, "j", force=True)
    if end == "driver":
        job.abort()
    elif end == "abort":
        abort(tmp_path, "j", force=True)
    else:
        found = collect_garbage(tmp_path, options=JobOptions(alive_seconds=0))
        assert [each.action for each in found if each.action == "failed"] == []
    assert data(tmp_path) == {"p=1/old": b"old"}
    assert not (tmp_path / "_lockgate/jobs").exists()


def test_abortable_with_a_damaged_manifest_and_no_markers(tmp_path: Path) -> None:
    """The names say it even then."""
    two_tasks(tmp_path, "markers")
    lose(tmp_path, "cut", "*-manifest.json*")
    shutil.rmtree(tmp_path / ".hoodie")
    abort(tmp_path, "j", force=True)
    assert data(tmp_path) == {"p=1/old": b"old"}


@NAMES_TELL
@pytest.mark.parametrize("how", LOSES)
def test_undoable_with_a_lost_manifest_where_names_tell(tmp_path: Path, protocol: str, how: str) -> None:
    """ "some files of this job may be in place, and without this manifest nobody knows which"."""
    job, receipts = two_tasks(tmp_path, protocol, on_failure="leave")
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(LockgateError):
        job.commit(receipts)
    lose(tmp_path, how, "*-manifest.json*" if protocol == "stocator" else "*1*-manifest.json*")
    with pytest.raises(CommitRefused) as refused:
        recover(tmp_path, "j", undo=False, force=True)
    assert "--undo restores the destination" in refused.value.next_step
    recovery = recover(tmp_path, "j", undo=True, force=True)["j"]
    assert (recovery.outcome, list(recovery.missing), list(recovery.left)) == ("undone", [], [])
    assert data(tmp_path) == {"p=1/old": b"old"}


@NAMES_TELL
@pytest.mark.parametrize("how", LOSES)
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_committed_job_that_has_lost_its_newest_records_and_a_manifest_keeps_its_files(
    tmp_path: Path, protocol: str, how: str, lost: int
) -> None:
    job, receipts = two_tasks(tmp_path, protocol, cleanup_skip=True)
    job.commit(receipts)
    before = data(tmp_path)
    lose(tmp_path, how, "*-manifest.json*")
    records = (tmp_path / "_lockgate/jobs/j").glob("commit*.json")
    for record in sorted(records, key=lambda path: path.stat().st_mtime_ns)[-lost:]:
        record.unlink()
    with pytest.raises(LockgateError):
        recover(tmp_path, "j", undo=True, force=True)
    assert data(tmp_path) == before


@pytest.mark.parametrize("protocol", ["direct", "v2", "marker of stocator gone"])
def test_where_no_name_tells_a_damaged_manifest_stops_an_abort(tmp_path: Path, protocol: str) -> None:
    job, receipts = two_tasks(tmp_path, protocol.replace("marker of ", "").split()[0], on_failure="leave")
    if "marker" in protocol:
        make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
        with pytest.raises(LockgateError):
            job.commit(receipts)
        (tmp_path / "_lockgate/jobs/j/00/job.json").unlink()
    lose(tmp_path, "cut", "*-manifest.json*")
    before = data(tmp_path)
    with pytest.raises(LockgateError):
        abort(tmp_path, "j", force=True)
    assert data(tmp_path) == before


@pytest.mark.parametrize("protocol", ["direct", "v2", "stocator", "markers"])
def test_abortable_gc_names_all_files_of_an_abandoned_job_that_somebody_has_changed(
    tmp_path: Path, protocol: str
) -> None:
    """They stayed, the list of them was deleted, and it was told as deleted with nothing to see to."""
    two_tasks(tmp_path, protocol)
    files = {name for name in data(tmp_path) if "part-" in name}
    for name in files:
        (tmp_path / name).write_bytes(b"changed since")
    garbage = collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
    (found,) = (each for each in garbage if "jobs/j" in each.path)
    stays = {name for name in data(tmp_path) if "part-" in name}
    assert stays == files
    assert (found.action, found.needs_somebody) == ("deleted", True)
    assert all(name in found.why for name in files)


@pytest.mark.parametrize("protocol", ["direct", "v2", "stocator", "markers"])
def test_gc_names_all_changed_files_of_a_job_whose_abort_was_cut_short(tmp_path: Path, protocol: str) -> None:
    """To end such an abort is to delete it, and gc does so without being asked for each job."""
    job, _ = two_tasks(tmp_path, protocol)
    files = {name for name in data(tmp_path) if "part-" in name}
    make_faulty(job).fail_at = lambda name, subject: (
        name in ("rename_files", "delete_files") and "part-" in str(subject)
    )
    with pytest.raises(Stop):
        job.abort()
    for name in files:
        (tmp_path / name).write_bytes(b"changed since")
    garbage = collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
    (found,) = (each for each in garbage if "jobs/j" in each.path)
    assert {name for name in data(tmp_path) if "part-" in name} == files
    assert (found.action, found.needs_somebody) == ("deleted", True)
    assert all(name in found.why for name in files)

"""The protocol markers, direct ones: what is where, what counts, who is rolled back, and what is believed."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import lockgate
import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions, Receipt
from lockgate.api.jobs import abort, collect_garbage, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.job import answer_failure
from lockgate.errors import (
    CapabilityMissing,
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
    OptionError,
    PathError,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.hudi_markers import file_group_of


def a_job(root: Path, **options) -> Job:
    job = Job(root, protocol="markers", accept_unsafe=True, **options)
    job.setup()
    return job


def begun(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0):
    """An attempt that has written files; `TAG` in their names stands for its tag."""
    ours = job.task_attempt(task, attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path.replace("TAG", ours.tag)) as file:
            file.write(content)
    return ours


def done(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0) -> Receipt:
    return begun(job, files, task, attempt).commit()


def all_files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def data(root: Path) -> list[bytes]:
    names = sorted(name for name in all_files(root) if not name.startswith(("_", ".")))
    return [(root / name).read_bytes() for name in names]


def test_a_marker_is_there_before_its_file_and_names_it(tmp_path: Path) -> None:
    job = a_job(tmp_path, job_id="j")
    attempt = job.task_attempt(0)
    attempt.setup()
    name = f"p=1/a-{attempt.tag}.parquet"
    file = attempt.open(name)
    assert (tmp_path / f".hoodie/.temp/j/{name}.marker.CREATE").read_bytes() == b""
    file.write(b"1")
    file.close()
    assert (tmp_path / name).read_bytes() == b"1"
    job.commit([attempt.commit()])
    assert data(tmp_path) == [b"1"]
    assert not (tmp_path / ".hoodie").exists()
    assert lockgate.verify(str(tmp_path)).findings == []


@pytest.mark.parametrize(("operation", "told"), [("create", "CREATE"), ("merge", "MERGE"), ("MERGE", "MERGE")])
def test_a_marker_says_what_kind_of_write_it_is(tmp_path: Path, operation: str, told: str) -> None:
    job = a_job(tmp_path, job_id="j", markers_operation=operation)
    begun(job, {"f-0_TAG_1.parquet": b"", ".f-0_1.log.1_0-TAG-0": b""})
    markers = {path.name.rpartition(".marker.")[2] for path in (tmp_path / ".hoodie/.temp/j").iterdir()}
    assert markers == {told, "APPEND"}


def test_what_no_committed_attempt_wrote_is_deleted_at_the_job_commit(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    begun(job, {"p=1/TAG": b"died"}, 0, 0)
    done(job, {"p=1/TAG": b"lost the race", "TAG": b"too"}, 0, 1)
    receipt = done(job, {"p=1/TAG": b"won"}, 0, 2)
    assert len(data(tmp_path)) == 4
    summary = job.commit([receipt])
    assert data(tmp_path) == [b"won"]
    assert summary.lockgate is not None
    assert "readers see a file as soon as it is written" in summary.lockgate.unsafe


def test_an_abort_takes_out_all_that_was_marked_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1/old").write_bytes(b"old")
    job = a_job(tmp_path)
    begun(job, {"p=1/TAG": b"died"}, 0, 0)
    done(job, {"TAG": b"committed"}, 1, 0)
    job.abort()
    assert all_files(tmp_path) == {"p=1/old"}


@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"file_list_inline_max": 0}], ids=str)
def test_exclusive_a_file_that_comes_to_be_there_when_its_job_has_committed_without_its_attempt_goes(
    tmp_path: Path, end: str, options: dict
) -> None:
    """Its attempt takes it out when it comes to its end. Found on S3, where a file is there once it is closed: it
    stayed, since the attempt might have been committed."""
    job = a_job(tmp_path, **options)
    late = begun(job, {"late-TAG": b"2", "also-late-TAG": b"3"}, task=1)
    kept = {path: path.with_name(f".kept-{path.name}") for path in tmp_path.glob("*late-*")}
    for path, other in kept.items():
        other.hardlink_to(path)  # with its identity
    counted = begun(job, {"a-TAG": b"1"})
    job.commit([counted.commit()])
    assert data(tmp_path) == [b"1"]
    for path, other in kept.items():
        other.rename(path)
    if end == "commit":
        with pytest.raises(JobNotFound, match="not at work"):
            late.commit()
    else:
        late.abort()
    assert data(tmp_path) == [b"1"]
    counted.abort()
    assert data(tmp_path) == [b"1"]


def test_where_another_jobs_success_is_in_the_place_of_the_list_a_late_attempt_leaves_its_files(tmp_path: Path) -> None:
    """Nobody can tell any more whether they count."""
    job = a_job(tmp_path)
    counted = begun(job, {"a-TAG": b"1"})
    job.commit([counted.commit()])
    another = a_job(tmp_path)
    another.commit([done(another, {"b-TAG": b"2"})])
    counted.abort()
    assert data(tmp_path) == [b"1", b"2"]


def test_a_job_of_markers_does_not_make_the_destination_a_hudi_table(tmp_path: Path) -> None:
    first, second = a_job(tmp_path), a_job(tmp_path)
    receipts = done(first, {"TAG": b"1"}), done(second, {"TAG": b"2"})
    first.commit([receipts[0]])
    second.commit([receipts[1]])
    assert sorted(data(tmp_path)) == [b"1", b"2"]
    (tmp_path / ".hoodie").mkdir()
    (tmp_path / ".hoodie/hoodie.properties").touch()
    with pytest.raises(DestinationConflict, match="is a Hudi table"):
        a_job(tmp_path)


# Dead writers.


def test_the_next_writer_rolls_a_dead_one_back_first(tmp_path: Path) -> None:
    killed = a_job(tmp_path)
    begun(killed, {"TAG": b"half"})
    done(killed, {"p=1/TAG": b"whole"}, 1)
    alive = a_job(tmp_path)
    assert len(data(tmp_path)) == 2, "a writer that may be alive is left alone"
    alive.abort()
    job = a_job(tmp_path, alive_seconds=0)
    assert data(tmp_path) == []
    job.commit([done(job, {"TAG": b"new"})])
    assert data(tmp_path) == [b"new"]
    assert [state.status for state in jobs(str(tmp_path))] == [JobStatus.COMMITTED]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("moment", ["delete_files", "stat_files"])
def test_a_writer_that_died_in_its_commit_is_rolled_back_by_the_next_and_one_that_was_left_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, left: bool
) -> None:
    if not left:

        async def dies(*ignored: object) -> None:
            return

        monkeypatch.setattr(answer_failure, "give_up", dies)
    job = a_job(tmp_path, on_failure="leave", validate_output=True)
    receipt = done(job, {"TAG": b"1"})
    begun(job, {"TAG": b"other"}, 1)
    names = {name for name in all_files(tmp_path) if "/" not in name}
    asked: list[str] = []

    def fails(name: str, subject) -> bool:
        if name != moment or names.isdisjoint(subject):
            return False
        asked.append(name)
        # The third look at what is in place comes once the record says `moving`.
        return len(asked) == (1 if moment == "delete_files" else 3)

    make_faulty(job).fail_at = fails
    with pytest.raises(CommitFailed, match="was left as it is"):
        job.commit([receipt])
    assert b"1" in data(tmp_path)
    a_job(tmp_path, alive_seconds=0)
    if left:
        assert recover(tmp_path, job.job_id)[job.job_id].outcome == "finished"
        assert data(tmp_path) == [b"1"]
    else:
        assert data(tmp_path) == []


def test_what_a_dead_writer_has_left_and_cannot_be_deleted_stops_no_setup(tmp_path: Path) -> None:
    """The setup of the next job was told that a job is committed, and not to run it again: the dead one's."""
    dead = a_job(tmp_path)
    receipt = done(dead, {"TAG": b"1"})
    job = Job(tmp_path, protocol="markers", accept_unsafe=True, alive_seconds=0)

    def fails(name: str, subject) -> bool:
        if name == "delete_directories" and dead.job_id in str(subject):
            raise StoreUnavailable("planned", where=str(subject))
        return False

    for each in (dead, job):
        make_faulty(each).fail_at = fails
    with pytest.raises(CleanupFailed):
        dead.commit([receipt])
    job.setup()
    job.commit([done(job, {"TAG": b"2"})])
    assert sorted(data(tmp_path)) == [b"1", b"2"]


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.parametrize("end", ["abort", "undo", "gc", "the next writer"])
def test_a_committed_job_whose_record_lost_its_newest_versions_keeps_its_files(
    tmp_path: Path, lost: int, end: str
) -> None:
    job = a_job(tmp_path, cleanup_skip=True)
    job.commit([done(job, {"TAG": b"1"})])
    versions = sorted(
        (tmp_path / "_lockgate/jobs" / job.job_id).glob("commit*.json"), key=lambda path: path.stat().st_mtime_ns
    )
    for version in versions[-lost:]:
        version.unlink()
    with contextlib.suppress(LockgateError):
        if end == "abort":
            abort(str(tmp_path), job.job_id, force=True)
        elif end == "undo":
            recover(str(tmp_path), job.job_id, undo=True, force=True)
        elif end == "gc":
            collect_garbage(str(tmp_path), options=JobOptions(alive_seconds=0))
        else:
            a_job(tmp_path, alive_seconds=0)
    assert data(tmp_path) == [b"1"]


def test_an_operator_ends_a_job_by_its_id_alone(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    begun(job, {"TAG": b"1"})
    abort(str(tmp_path), job.job_id, force=True)
    assert all_files(tmp_path) == set()
    with pytest.raises(JobNotFound):
        done(job, {"TAG": b"late"})


# What is refused.


def test_it_asks_for_accept_unsafe_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="as soon as it is written"):
        Job(tmp_path, protocol="markers")


@pytest.mark.parametrize("options", [{"conflict": "replace"}, {"delete_target_files": True}], ids=str)
def test_what_its_tasks_could_not_take_back_is_refused_by_name(tmp_path: Path, options: dict) -> None:
    with pytest.raises(OptionError, match="cannot be kept by the protocol markers"):
        a_job(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", ".hoodie/a-TAG", "p\n-TAG", "00000TAG"])
def test_a_name_that_no_marker_could_tell_is_refused(tmp_path: Path, name: str) -> None:
    job = a_job(tmp_path)
    attempt = job.task_attempt(0)
    attempt.setup()
    with pytest.raises(PathError):
        attempt.open(name.replace("TAG", attempt.tag))
    assert data(tmp_path) == []


def test_a_name_without_the_tag_is_refused_before_its_marker_is_made(tmp_path: Path) -> None:
    """Else the job could be neither committed nor aborted: its own marker would be of a file of nobody."""
    job = a_job(tmp_path)
    receipt = done(job, {"TAG": b"1"})
    attempt = job.task_attempt(1)
    attempt.setup()
    with pytest.raises(PathError, match="needs the tag"):
        attempt.open("p=1/untagged")
    assert not [name for name in all_files(tmp_path) if "untagged" in name]
    job.commit([receipt])
    assert data(tmp_path) == [b"1"]


def test_files_that_were_not_announced_are_not_found_by_a_scan(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    attempt = job.task_attempt(0)
    attempt.setup()
    with pytest.raises(UsageError, match="no working directory"):
        attempt.commit()


# Markers that lie.

LIES = {
    "a file of nobody": "p=1/old.marker.CREATE",
    "another job's file": "p=1/{other}.marker.CREATE",
    "no operation": "p=1/{tag}.marker.DELETE",
    "no marker": "p=1/{tag}",
    "a committer's own": "_lockgate/{tag}.marker.CREATE",
    "a table's own": ".hoodie/{tag}.marker.CREATE",
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_marker_that_lies_is_refused_before_anything_is_deleted(tmp_path: Path, lie: str, end: str) -> None:
    other = a_job(tmp_path)
    theirs = begun(other, {"p=1/TAG": b"theirs"})
    (tmp_path / "p=1/old").write_bytes(b"old")
    job = a_job(tmp_path)
    receipt = done(job, {"p=1/TAG": b"ours"})
    begun(job, {"TAG": b"not committed"}, 1)
    marker = tmp_path / ".hoodie/.temp" / job.job_id / LIES[lie].format(tag=theirs.tag, other=theirs.tag)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    before = {name for name in all_files(tmp_path) if not name.startswith("_lockgate/")}
    with pytest.raises(ManifestInvalid, match="nothing was deleted"):
        job.commit([receipt]) if end == "commit" else job.abort()
    assert {name for name in all_files(tmp_path) if not name.startswith("_lockgate/")} == before
    marker.unlink()
    if end == "commit":
        job.commit([receipt])
        assert sorted(data(tmp_path)) == [b"old", b"ours", b"theirs"]
    else:
        recover(str(tmp_path), job.job_id, undo=True, force=True)
        assert sorted(data(tmp_path)) == [b"old", b"theirs"]


def test_a_marker_of_a_file_that_is_not_there_harms_nobody(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    attempt = begun(job, {"TAG": b"1"})
    (tmp_path / f".hoodie/.temp/{job.job_id}/gone-{attempt.tag}.marker.MERGE").touch()
    job.commit([attempt.commit()])
    assert data(tmp_path) == [b"1"]


def test_what_a_late_attempt_of_an_earlier_job_of_the_id_has_marked_keeps_no_job_from_its_end(tmp_path: Path) -> None:
    """Where directories are not real its marker comes into the new job's directory: that job could not be committed,
    aborted or collected, nor any later one be set up."""
    earlier = a_job(tmp_path, job_id="j")
    tag = earlier.task_attempt(3).tag
    earlier.abort()
    for end in ("commit", "abort"):
        job = a_job(tmp_path, job_id=f"j{end}")
        receipt = done(job, {"TAG": end.encode()})
        (tmp_path / f".hoodie/.temp/{job.job_id}/late-{tag}.marker.CREATE").touch()
        job.commit([receipt]) if end == "commit" else job.abort()
        assert not (tmp_path / ".hoodie").exists()
    assert data(tmp_path) == [b"commit"]


def test_a_commit_is_refused_whose_markers_somebody_has_deleted(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    receipt = done(job, {"TAG": b"1"})
    for marker in (tmp_path / ".hoodie/.temp" / job.job_id).iterdir():
        marker.unlink()
    with pytest.raises(CommitRefused, match="1 of the 1 files that the job commits have no marker"):
        job.commit([receipt])
    job.abort()
    assert data(tmp_path) == []


def test_who_commits_without_tasks_that_have_begun_is_told_what_no_marker_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A marker that somebody has deleted names nothing: "what they wrote is not here" was said of what stayed. And
    nothing is deleted by its name alone: it may be a person's copy."""
    job = a_job(tmp_path, job_id="j", durable=False)
    done(job, {"0-TAG": b"1"})
    begun(job, {"1-TAG": b"left out"}, 1)
    begun(job, {"2-TAG": b"marked"}, 2)
    (marker,) = (tmp_path / ".hoodie/.temp/j").glob("1-*")
    marker.unlink()
    (copied,) = tmp_path.glob("0-*")
    shutil.copy(copied, tmp_path / f"copy-{copied.name}")
    job._show_life_no_more()
    summary = lockgate.commit(tmp_path, "j", force=True)
    assert sorted(data(tmp_path)) == [b"1", b"1", b"left out"]
    assert "files have a tag of this job in their names, and no marker" in caplog.text
    assert summary.lockgate is not None
    assert summary.lockgate.left_out_stays.startswith("2 files with a tag of the job in the name may be theirs")


def test_an_abort_says_that_markers_were_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What an attempt wrote that has not committed is named by its marker alone: it is looked for by its own name."""
    job = a_job(tmp_path)
    done(job, {"part-0-TAG": b"committed"})
    begun(job, {"part-1-TAG": b"not committed"}, 1)
    shutil.rmtree(tmp_path / ".hoodie/.temp" / job.job_id)
    abort(str(tmp_path), job.job_id, force=True)
    assert data(tmp_path) == []
    assert "files of this job have no marker" in caplog.text


def test_an_abort_of_a_job_whose_markers_are_there_says_nothing_of_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = a_job(tmp_path)
    done(job, {"part-0-TAG": b"committed"})
    begun(job, {"part-1-TAG": b"not committed"}, 1)
    abort(str(tmp_path), job.job_id, force=True)
    assert data(tmp_path) == []
    assert "marker" not in caplog.text


def test_a_file_that_somebody_has_changed_is_left_by_an_abort(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    attempt = begun(job, {"TAG": b"1"})
    attempt.commit()
    (tmp_path / attempt.tag).write_bytes(b"edited")
    job.abort()
    assert data(tmp_path) == [b"edited"]


# Early conflicts.


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("p=1/f-0_1-0-1_001.parquet", "p=1/f-0"),
        ("p=1/.f-0_001.log.1_1-0-1", "p=1/f-0"),
        ("p_1/part-0.parquet", "p_1/part-0.parquet"),
        ("part_0.parquet", "part_0.parquet"),
    ],
)
def test_the_file_group_is_what_hudis_names_say(path: str, group: str) -> None:
    assert file_group_of(path) == group


def test_writers_of_one_file_group_find_each_other_before_either_writes(tmp_path: Path) -> None:
    first, second = a_job(tmp_path, early_conflicts=True), a_job(tmp_path, early_conflicts=True)
    receipt = done(first, {"p=1/f-0_TAG_1.parquet": b"1"})
    begun(second, {"p=1/g-0_TAG_1.parquet": b"another group", "p=2/f-0_TAG_1.parquet": b"another partition"})
    with pytest.raises(DestinationConflict, match=f"{first.job_id}, which is at work, writes to the same file group"):
        begun(second, {"p=1/f-0_TAG_1.parquet": b"2"}, 1)
    second.abort()
    first.commit([receipt])
    assert data(tmp_path) == [b"1"]


def test_a_writer_that_is_dead_stands_in_nobodys_way(tmp_path: Path) -> None:
    second = a_job(tmp_path, early_conflicts=True, alive_seconds=0)
    first = a_job(tmp_path, early_conflicts=True)
    begun(first, {"f-0_TAG_1.parquet": b"1"})
    second.commit([done(second, {"f-0_TAG_1.parquet": b"2"})])


def test_markers_that_a_killed_cleanup_was_deleting_are_garbage(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    job.commit([done(job, {"part-TAG": b"kept"})])
    left = tmp_path / ".hoodie/.temp" / ".aside-0123456789abcdef"
    (left / "y=1").mkdir(parents=True)
    (left / "y=1" / "part.marker.CREATE").touch()
    assert [each.path for each in collect_garbage(tmp_path, options=JobOptions(alive_seconds=0))] == [
        ".hoodie/.temp/.aside-0123456789abcdef"
    ]
    assert not (tmp_path / ".hoodie").exists()
    assert data(tmp_path) == [b"kept"]


def test_what_hudi_keeps_beside_them_is_no_garbage(tmp_path: Path) -> None:
    (tmp_path / ".hoodie/.temp/20240817173605000").mkdir(parents=True)
    assert collect_garbage(tmp_path, options=JobOptions(alive_seconds=0)) == []
    assert (tmp_path / ".hoodie/.temp/20240817173605000").exists()


def test_gc_names_files_of_a_job_that_is_over_and_deletes_only_markers_that_name_none(tmp_path: Path) -> None:
    """Where directories are not real, an attempt that comes too late leaves its marker, and its file."""
    late = tmp_path / ".hoodie/.temp/over/p=1"
    late.mkdir(parents=True)
    for name in ("there", "gone"):
        (late / f"{name}.marker.CREATE").touch()
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1/there").write_bytes(b"late, or committed by a job whose directory is gone")
    options = JobOptions(alive_seconds=0)
    found = {each.path: each for each in collect_garbage(str(tmp_path), options=options)}
    assert found[".hoodie/.temp/over/p=1/gone.marker.CREATE"].action == "deleted"
    assert found[".hoodie/.temp/over"].action == "kept"
    assert "p=1/there" in found[".hoodie/.temp/over"].why
    assert (tmp_path / "p=1/there").exists()
    assert [path.name for path in late.iterdir()] == ["there.marker.CREATE"]
    (tmp_path / "p=1/there").unlink()
    collect_garbage(str(tmp_path), options=options)
    assert not (tmp_path / ".hoodie").exists()


def test_gc_deletes_late_markers_beside_one_whose_path_is_behind_a_symbolic_link(tmp_path: Path) -> None:
    """One such marker kept the late markers of all jobs, and gc reported their directory as failed."""
    root, outside = tmp_path / "table", tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / "p=2").symlink_to(outside)
    (outside / "part").write_bytes(b"somebody's")
    for job_id, name in (("behind", "p=2/part"), ("beside", "p=1/part"), ("deep", "p=2/q=1/part")):
        marker = root / ".hoodie/.temp" / job_id / f"{name}.marker.CREATE"
        marker.parent.mkdir(parents=True)
        marker.write_bytes(b"")
    found = collect_garbage(root, options=JobOptions(alive_seconds=0))
    assert [each.action for each in found if each.path.startswith(".hoodie")] == ["deleted"] * 3
    assert not (root / ".hoodie").exists()
    assert (outside / "part").read_bytes() == b"somebody's"


def test_gc_leaves_the_markers_of_a_job_that_is_there_and_those_of_a_hudi_table(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    begun(job, {"a-TAG": b"a"})
    (marker,) = [path for path in (tmp_path / ".hoodie").rglob("*") if path.is_file()]
    (file,) = tmp_path.glob("a-*")
    file.unlink()
    collect_garbage(str(tmp_path))
    assert marker.exists()
    shutil.rmtree(tmp_path / "_lockgate")
    (tmp_path / ".hoodie/hoodie.properties").touch()
    collect_garbage(str(tmp_path), options=JobOptions(alive_seconds=0))
    assert marker.exists()


def test_readers_see_no_file_of_a_job_that_has_not_committed_saved_or_not(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    job = a_job(tmp_path)
    begun(job, {"dead-TAG": b"dead"}, 0, 1)
    receipt = done(job, {"a-TAG": b"a"})
    assert [file.path for file in lockgate.files(tmp_path).files] == ["theirs"]
    job.commit([receipt])
    assert len(lockgate.files(tmp_path).files) == 2


def test_a_marker_that_names_a_directory_deletes_nothing_and_stops_no_commit(tmp_path: Path) -> None:
    """An attempt makes its marker, and then finds that a directory has the name."""
    for end in ("commit", "abort"):
        root = tmp_path / end
        job = a_job(root)
        failing = begun(job, {"TAG/part-TAG": b"of the failing attempt"}, attempt=0)
        with pytest.raises(LockgateError), failing.open(failing.tag) as file:
            file.write(b"a directory is there")
        kept = root / failing.tag / "kept"
        kept.write_bytes(b"somebody's")
        receipt = done(job, {"part-TAG": b"x"}, attempt=1)
        if end == "commit":
            job.commit([receipt])
        else:
            job.abort()
        assert data(root) == ([b"somebody's", b"x"] if end == "commit" else [b"somebody's"])
        assert not (root / ".hoodie").exists()


@pytest.mark.parametrize("end", ["commit", "abort", "the next writer"])
@pytest.mark.parametrize("leads", ["inside", "outside", "through a link below", "a name that is too long"])
def test_an_attempt_that_was_refused_at_a_path_that_cannot_be_looked_at_stops_no_end_of_its_job(
    tmp_path: Path, leads: str, end: str
) -> None:
    """Its marker is there by then. Behind a symbolic link nothing of the job can be, nor under a name that is too
    long."""
    root, outside = tmp_path / "table", tmp_path / "outside"
    for directory in (root / "p=1", outside):
        directory.mkdir(parents=True)
    (root / "p=2").symlink_to(root / "p=1" if leads != "outside" else outside)
    job = a_job(root)
    receipt = done(job, {"p=1/part-TAG": b"x"})
    path = {"through a link below": "p=2/q=1/part-TAG", "a name that is too long": f"{'n' * 300}-TAG"}
    failing = job.task_attempt(1)
    failing.setup()
    with pytest.raises(LockgateError):
        failing.open(path.get(leads, "p=2/part-TAG").replace("TAG", failing.tag))
    # A timeline server knows of no limit to names, and of no directories.
    many = root / ".hoodie/.temp" / job.job_id / "MARKERS0"
    many.write_text(f"{path.get(leads, 'p=2/part-TAG').replace('TAG', failing.tag)}.marker.CREATE\n")
    names = [root / "p=1" / failing.tag, outside / f"part-{failing.tag}"]
    for name in names:
        name.write_bytes(b"somebody's")
    if end == "commit":
        job.commit([receipt])
    elif end == "abort":
        job.abort()
    else:
        a_job(root, alive_seconds=0)
    assert [path.read_bytes() for path in names] == [b"somebody's"] * 2
    assert [path.read_bytes() for path in (root / "p=1").glob("part-*")] == ([b"x"] if end == "commit" else [])
    assert not (root / ".hoodie/.temp" / job.job_id).exists()


def test_writers_find_each_other_by_direct_markers_beside_files_of_many(tmp_path: Path) -> None:
    """Of a job with a file of many its direct ones were passed over: those of its earlier attempt, say."""
    first = a_job(tmp_path, early_conflicts=True)
    begun(first, {"p=1/group_0-0-0_TAG.parquet": b"1"})
    many = tmp_path / ".hoodie/.temp" / first.job_id / "MARKERS0"
    many.write_text("p=1/other_0-0-0_00.parquet.marker.CREATE\n")
    second = a_job(tmp_path, early_conflicts=True)
    attempt = second.task_attempt(0)
    attempt.setup()
    with pytest.raises(DestinationConflict):
        attempt.open(f"p=1/group_0-0-0_{attempt.tag}.parquet")


@pytest.mark.parametrize("is_alive", [False, True])
def test_damaged_markers_of_a_writer_that_is_dead_stand_in_nobodys_way(tmp_path: Path, is_alive: bool) -> None:
    """No job that looks for conflicts could write a file any more."""
    other = a_job(tmp_path, early_conflicts=True, alive_seconds=3600 if is_alive else 0)
    begun(other, {"p=1/other-TAG": b"1"})
    (tmp_path / ".hoodie/.temp" / other.job_id / "MARKERS0").write_bytes(b"\xff cut short")
    if not is_alive:
        shutil.rmtree(tmp_path / "_lockgate/jobs" / other.job_id)
    job = a_job(tmp_path, early_conflicts=True)
    attempt = job.task_attempt(0)
    attempt.setup()
    if is_alive:
        with pytest.raises(ManifestInvalid):
            attempt.open(f"p=1/ours-{attempt.tag}")
    else:
        attempt.open(f"p=1/ours-{attempt.tag}").close()


def test_a_writer_that_a_dead_one_keeps_from_its_setup_hears_which_job_that_is(tmp_path: Path) -> None:
    """The error named a path, and neither the job nor the command that ends it."""
    dead = a_job(tmp_path, alive_seconds=0, job_id="dead")
    begun(dead, {"part-TAG": b"1"})
    many = tmp_path / ".hoodie/.temp/dead/MARKERS0"
    many.write_bytes(b"cut sho")
    with pytest.raises(ManifestInvalid, match="the writer of another job, dead, is dead") as refused:
        a_job(tmp_path, alive_seconds=0)
    assert f"lockgate recover {tmp_path.as_uri()} dead" in refused.value.next_step
    many.unlink()
    recover(str(tmp_path), "dead", force=True)
    a_job(tmp_path, alive_seconds=0)
    assert data(tmp_path) == []


def test_a_commit_from_outside_misses_the_task_that_has_begun_and_not_committed(tmp_path: Path) -> None:
    job = a_job(tmp_path, alive_seconds=0.0)
    done(job, {"part-0-TAG": b"committed"})
    begun(job, {"part-1-TAG": b"at work"}, task=1)
    options = JobOptions(alive_seconds=0.0)
    assert lockgate.plan(tmp_path, job.job_id, options).left_out == ["task_000001"]
    with pytest.raises(CommitRefused, match="begun and not committed: task_000001"):
        lockgate.commit(tmp_path, job.job_id, options=options)
    summary = lockgate.commit(tmp_path, job.job_id, options=options, force=True)
    assert summary.lockgate is not None
    assert list(summary.lockgate.left_out) == ["task_000001"]
    assert data(tmp_path) == [b"committed"]


@pytest.mark.parametrize("end", ["abort", "gc"])
def test_abortable_where_one_of_several_files_of_markers_is_gone(tmp_path: Path, end: str) -> None:
    """What only that one named stayed visible for good, and nobody was told: the job's files are looked for by name."""
    job = a_job(tmp_path, job_id="j", alive_seconds=0.0)
    attempt = begun(job, {"p=1/part-0-TAG": b"0", "part-1-TAG": b"1"})
    place = tmp_path / ".hoodie/.temp/j"
    shutil.rmtree(place)
    place.mkdir()
    (place / "MARKERS1").write_text(f"part-1-{attempt.tag}.marker.CREATE\n")
    (tmp_path / "p=1/of-another").write_bytes(b"kept")
    if end == "abort":
        lockgate.abort(tmp_path, "j", force=True)
    else:
        lockgate.collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
    assert data(tmp_path) == [b"kept"]
    assert not place.exists()


@pytest.mark.parametrize("last", ["committed", "not committed"])
@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("cut", [1, 4, 9, 15, 40])
def test_a_file_of_markers_that_was_cut_short_is_mended_as_the_error_says(
    tmp_path: Path, cut: int, end: str, last: str
) -> None:
    """The error told to delete the file that the last line begins to name: it was a committed task's, and the job could
    never be committed any more."""
    job = a_job(tmp_path, job_id="j", alive_seconds=0.0)
    done(job, {"p=1/part-0-TAG": b"committed"})
    begun(job, {"p=1/part-1-TAG": b"not committed"}, 1)
    place = tmp_path / ".hoodie/.temp/j"
    shutil.rmtree(place)
    place.mkdir()
    of_content = {path.read_text(): f"p=1/{path.name}.marker.CREATE" for path in tmp_path.glob("p=1/*")}
    cut_line = of_content.pop(last)
    many = place / "MARKERS0"
    many.write_text(f"{''.join(of_content.values())}\n{cut_line}\n"[:-cut])
    for command in (lockgate.plan, lockgate.commit) if end == "commit" else (lockgate.abort,):
        with pytest.raises(ManifestInvalid, match="was cut short") as refused:
            command(tmp_path, "j", **({} if command is lockgate.plan else {"force": True}))
        told = re.findall("`([^`]+)`", refused.value.next_step)
        assert cut_line in told
        assert refused.value.next_step.count("delete") == 1, "nothing was deleted, and nothing is to be"
    many.write_text("".join(f"{line}\n" for line in [*many.read_text().split("\n")[:-1], *told]))
    if end == "commit":
        lockgate.commit(tmp_path, "j", force=True)
        assert data(tmp_path) == [b"committed"]
    else:
        recover(tmp_path, "j", force=True)  # the abort has begun
        assert data(tmp_path) == []


def test_a_line_of_markers_that_begins_to_name_no_file_of_the_job_may_go(tmp_path: Path) -> None:
    job = a_job(tmp_path, job_id="j", alive_seconds=0.0)
    done(job, {"part-0-TAG": b"0"})
    (tmp_path / "part-9-of-another").write_bytes(b"kept")
    many = tmp_path / ".hoodie/.temp/j/MARKERS0"
    many.write_bytes("part-9-größ".encode()[:-1])
    with pytest.raises(ManifestInvalid, match="within 'part-9-gr") as refused:
        lockgate.commit(tmp_path, "j", force=True)
    assert "no file of the job is there whose name begins so: delete this line" in refused.value.next_step
    many.write_bytes(b"")
    lockgate.commit(tmp_path, "j", force=True)
    assert data(tmp_path) == [b"0", b"kept"]


def test_a_directory_that_has_the_name_of_a_file_of_markers_is_told(tmp_path: Path) -> None:
    job = a_job(tmp_path, job_id="j")
    begun(job, {"part-TAG": b"1"})
    (tmp_path / ".hoodie/.temp/j/MARKERS0").mkdir()
    with pytest.raises(ManifestInvalid, match="what has the name of a file of markers is a directory"):
        lockgate.abort(tmp_path, "j", force=True)
    assert data(tmp_path) == [b"1"]
    (tmp_path / ".hoodie/.temp/j/MARKERS0").rmdir()
    recover(tmp_path, "j", force=True)
    assert data(tmp_path) == []


@pytest.mark.parametrize("who", ["the next writer", "abort", "gc"])
def test_a_dead_writer_whose_markers_were_damaged_waits_for_nobody_once_they_are_mended(
    tmp_path: Path, who: str
) -> None:
    """The process that had failed to roll it back lives on, as a notebook's does: it was shown as at work in its
    commit, and the commands that the error named were refused."""
    dead = a_job(tmp_path, alive_seconds=0, job_id="dead")
    begun(dead, {"part-TAG": b"1"})
    many = tmp_path / ".hoodie/.temp/dead/MARKERS0"
    many.write_bytes(b"cut sho")
    if who == "gc":
        (found,) = lockgate.collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
        assert found.action == "failed"
    else:
        with pytest.raises(ManifestInvalid):
            a_job(tmp_path, alive_seconds=0) if who == "the next writer" else lockgate.abort(
                tmp_path, "dead", force=True
            )
    (state,) = lockgate.jobs(tmp_path)
    assert (state.job_id, state.status) == ("dead", JobStatus.CRASHED)
    many.unlink()
    with pytest.raises(CommitFenced, match="has given it up") as refused:
        lockgate.abort(tmp_path, "dead", force=True)
    assert f"lockgate recover {tmp_path.as_uri()} dead goes on" in refused.value.next_step
    recovery = recover(tmp_path, "dead")["dead"]
    assert (recovery.outcome, recovery.problem) == ("undone", "")
    assert data(tmp_path) == []


def test_a_name_is_taken_or_refused_by_what_stands_beside_its_tag_as_the_page_and_the_error_say(tmp_path: Path) -> None:
    """They said that the tag stands apart from other letters, and names were taken in which it does not."""
    attempt = begun(a_job(tmp_path, job_id="j"), {})
    for name in ("{}y", "x{}", "{}_1", "{}"):
        attempt.open(name.format(attempt.tag)).close()
    for name in ("{}f", "9{}"):
        with pytest.raises(PathError, match="needs the tag") as refused:
            attempt.open(name.format(attempt.tag))
        assert "no digit and no letter from a to f right before or behind it" in refused.value.next_step

"""The protocols v1 and v2, from Python: what they refuse, what an interruption leaves, and what is nobody else's."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from local_acts import Died, before_act, dies
from lockgate import Job, JobOptions, Receipt
from lockgate.api.jobs import abort, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.run.job_run import JobRun
from lockgate.errors import (
    CapabilityMissing,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    DuplicateTarget,
    FileMissing,
    JobNotFound,
    ManifestInvalid,
    OptionError,
    OutcomeUnknown,
    PathError,
    ReceiptUnmatched,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.capabilities import Capability
from lockgate.model.files import Unknown
from lockgate.model.layout import MANIFEST_SUFFIX
from lockgate.model.names import ABFS
from lockgate.model.phases import Phase
from lockgate.protocols.file_output import job_directories
from lockgate.protocols.v1 import protocol as v1_protocol
from lockgate.protocols.v2.visible import keep_unmoved, take_out
from lockgate.stores import local_delete
from lockgate.stores.local import LocalStore


def begun(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0):
    ours = job.task_attempt(task, attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path) as file:
            file.write(content)
    return ours


def done(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0) -> Receipt:
    return begun(job, files, task, attempt).commit()


def seen(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("_")}


def a_job(root: Path, protocol: str, **options) -> Job:
    job = Job(root, protocol=protocol, accept_unsafe=protocol == "v2", **options)
    job.setup()
    return job


def of_jobs(root: Path) -> list[Path]:
    """What is in `_temporary` but job attempt directories, and those in them where task attempts work."""
    return [path for path in (root / "_temporary").rglob("*") if path.is_file() or path.name[:5] in ("task_", "attem")]


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_job_leaves_its_output_and_nothing_in_temporary(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    receipts = [done(job, {"p=1/a": b"1"}, 0), done(job, {"p=1/b": b"2", "c": b"3"}, 1), done(job, {}, 2)]
    summary = job.commit(receipts)
    assert seen(tmp_path) == {"p=1/a": b"1", "p=1/b": b"2", "c": b"3"}
    assert not of_jobs(tmp_path)
    assert summary.lockgate is not None
    assert summary.lockgate.protocol == protocol
    assert bool(summary.lockgate.unsafe) is (protocol == "v2")
    assert lockgate.verify(str(tmp_path)).findings == []


def test_v2_asks_for_accept_unsafe_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(CapabilityMissing, match="as soon as it commits") as refused:
        Job(tmp_path, protocol="v2")
    assert "accept_unsafe=true" in refused.value.next_step


@pytest.mark.parametrize(
    "options",
    [{"conflict": policy} for policy in ("replace", "replace-partitions", "fail-partitions")]
    + [{"delete_target_files": True}],
    ids=str,
)
def test_v2_refuses_by_name_what_its_tasks_could_not_take_back(tmp_path: Path, options: dict) -> None:
    with pytest.raises(OptionError, match="cannot be kept by the protocol v2"):
        a_job(tmp_path, "v2", **options)
    assert list(tmp_path.iterdir()) == []


def test_v1_is_refused_by_name_where_no_directory_is_renamed_as_one_act(tmp_path: Path, monkeypatch) -> None:
    less = LocalStore.capabilities.fget
    without = {Capability.ATOMIC_DIRECTORY_RENAME}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: less(store) - without))
    with pytest.raises(CapabilityMissing, match="atomic-directory-rename"):
        Job(tmp_path, protocol="v1")


@pytest.mark.parametrize("job_id", ["with_underscore", "job_1"])
def test_an_id_that_hadoops_names_cannot_hold_is_refused(tmp_path: Path, job_id: str) -> None:
    with pytest.raises(OptionError, match="underscore"):
        a_job(tmp_path, "v1", job_id=job_id)
    assert seen(tmp_path) == {}


def test_two_ids_of_one_name_in_temporary_are_refused(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1", job_id="x")
    receipt = done(job, {"a": b"1"})
    with pytest.raises(UsageError, match="job_x_0000 or x"):
        a_job(tmp_path, "v1", job_id="job_x_0000")
    job.commit([receipt])
    assert seen(tmp_path) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_two_ids_of_one_name_are_refused_before_their_tasks_begin(tmp_path: Path, protocol: str) -> None:
    options = {"protocol": protocol, "accept_unsafe": protocol == "v2"}
    job = a_job(tmp_path, protocol, job_id="x")
    with pytest.raises(UsageError, match="would give its own"):
        Job(tmp_path, job_id="job_x_0000", **options).setup()
    again = Job(tmp_path, job_id="x", nonce=job._marker, **options)
    again.setup()
    job.commit([done(job, {"a": b"1"})])
    assert seen(tmp_path) == {"a": b"1"}
    assert not (tmp_path / "_lockgate/jobs").exists()


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_exclusive_of_two_ids_of_one_name_that_begin_at_once_one_at_most_is_taken(
    tmp_path: Path, protocol: str
) -> None:
    options = {"protocol": protocol, "accept_unsafe": protocol == "v2"}

    def begins(job: Job) -> bool:
        try:
            job.setup()
        except UsageError:
            return False
        return True

    for number in range(20):
        rivals = [Job(tmp_path / str(number), job_id=name, **options) for name in ("x", "job_x_0000")]
        with ThreadPoolExecutor(2) as both:
            assert sum(both.map(begins, rivals)) <= 1


@pytest.mark.parametrize("path", ["_temporary", "_temporary/0"])
@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_file_where_temporary_is_to_be_is_named_before_a_task_writes(
    tmp_path: Path, protocol: str, path: str
) -> None:
    job = a_job(tmp_path, protocol)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_bytes(b"")
    with pytest.raises(CommitFailed, match="a file stands where") as caught:
        job.task_attempt(0, 0).setup()
    assert caught.value.where.endswith(path)


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_names_of_hadoops_checksums_are_refused_when_they_are_opened(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    attempt = begun(job, {"x": b"1"})
    with pytest.raises(PathError, match="checksums"), attempt.open(".x.crc") as file:
        file.write(b"2")
    job.commit([done(job, {"x": b"1"}, attempt=1)])
    assert seen(tmp_path) == {"x": b"1"}


@pytest.mark.parametrize("by_receipts", [True, False])
def test_v1_names_the_files_of_one_path_where_they_are(tmp_path: Path, by_receipts: bool) -> None:
    """It named where the commit would have moved them first."""
    job, receipts = Job(tmp_path, protocol="v1"), []
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open("p=1/same") as file:
            file.write(b"x")
        receipts.append(attempt.commit())
    with pytest.raises(DuplicateTarget) as refused:
        job.commit(receipts if by_receipts else None)
    sources = [line.split()[1] for line in refused.value.where.splitlines() if line.startswith("source")]
    assert len(sources) == 2
    assert all((tmp_path / source).is_file() for source in sources)


def test_jobs_that_share_temporary_end_without_each_other(tmp_path: Path) -> None:
    first, second, third = (a_job(tmp_path, protocol) for protocol in ("v1", "v1", "v2"))
    one, two, three = done(first, {"a": b"1"}), done(second, {"b": b"2"}), done(third, {"c": b"3"})
    first.commit([one])
    third.abort()
    assert seen(tmp_path) == {"a": b"1"}
    assert three.files == 1
    second.commit([two])
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}
    assert not of_jobs(tmp_path)


def test_the_next_attempt_keeps_what_tasks_of_the_last_have_committed(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1", job_id="again")
    done(job, {"a": b"1"}, 0)
    late = begun(job, {"b": b"never"}, 1)
    following = Job(tmp_path, protocol="v1", job_id="again", job_attempt=1)
    following.setup()
    kept = following.committed()
    assert [receipt.task_id for receipt in kept] == ["task_000000"]
    following.commit([*kept, done(following, {"b": b"2"}, 1)])
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}
    with pytest.raises(JobNotFound):
        late.commit()
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}


def test_a_commit_without_receipts_is_refused_when_temporary_was_deleted(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1")
    done(job, {"a": b"1"})
    for path in sorted((tmp_path / "_temporary").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(ReceiptUnmatched, match="may have committed, and its directory is not there"):
        job.commit()
    job.abort()


def test_a_task_that_died_before_its_directory_was_renamed_has_begun_and_not_committed(tmp_path: Path) -> None:
    """It had saved its manifest: whoever committed the job from outside was told that somebody had aborted it."""
    job = a_job(tmp_path, "v1", job_id="j")
    done(job, {"a": b"1"}, 0)
    attempt = begun(job, {"b": b"2"}, 1)
    with pytest.MonkeyPatch.context() as patch:
        before_act(patch, 1, ["rename_directories"], dies)
        with pytest.raises(Died):
            attempt.commit()
    assert list(tmp_path.rglob("attempt_000001_0-manifest*")), "its manifest is saved"
    silent = JobOptions(alive_seconds=0.0)
    assert lockgate.plan(tmp_path, "j", silent).left_out == ["task_000001"]
    with pytest.raises(CommitRefused, match="begun and not committed: task_000001"):
        lockgate.commit(tmp_path, "j", options=silent)
    lockgate.commit(tmp_path, "j", options=silent, force=True)
    assert seen(tmp_path) == {"a": b"1"}


def test_a_file_that_was_changed_after_its_task_has_committed_is_refused(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1")
    receipt = done(job, {"a": b"1"})
    (staged,) = (tmp_path / "_temporary/0").glob("task_*/a")
    staged.write_bytes(b"2")
    with pytest.raises(CommitRefused):
        job.commit([receipt])
    assert seen(tmp_path) == {}
    job.abort()


def test_jobs_shows_tasks_that_have_committed_by_v1(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1")
    done(job, {"a": b"1"}, 0)
    begun(job, {"b": b"2"}, 1)
    (state,) = jobs(str(tmp_path))
    assert (state.job_id, state.status, state.tasks_committed) == (job.job_id, JobStatus.RUNNING, 1)
    with pytest.raises(CommitFenced, match="may be at work"):
        lockgate.commit(str(tmp_path), job.job_id)
    job.abort()
    # Whose the empty directory is that it has worked in nothing says.
    assert [state.job_id for state in jobs(str(tmp_path))] == ["unknown-0"]


def test_jobs_shows_a_v1_job_that_was_killed_while_it_moves_once(tmp_path: Path) -> None:
    """What it leaves of `_temporary/0` is empty by then, and was shown as the job of somebody that nobody knows."""
    job = a_job(tmp_path, "v1", on_failure="leave")
    receipt = done(job, {"a": b"1", "b": b"2"}, 0)
    begun(job, {"c": b"3"}, 1)
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files" and subject[0].target == "a"
    with pytest.raises((CommitFailed, Stop)):
        job.commit([receipt])
    shutil.rmtree(tmp_path / "_temporary/0/_temporary")
    assert (tmp_path / "_temporary/0").is_dir()
    (state,) = jobs(str(tmp_path))
    assert (state.job_id, state.phase, state.protocol) == (job.job_id, Phase.MOVING, "v1")
    theirs = tmp_path / "_temporary/1"
    theirs.mkdir()
    assert {each.job_id for each in jobs(str(tmp_path))} == {job.job_id, "unknown-1"}
    theirs.rmdir()
    recover(str(tmp_path), job.job_id, force=True)
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}
    assert not of_jobs(tmp_path)


def test_v2_shows_what_a_task_has_committed_and_an_abort_takes_it_out(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1/before").write_bytes(b"0")
    job = a_job(tmp_path, "v2")
    done(job, {"p=1/a": b"1", "b": b"2"})
    assert seen(tmp_path) == {"p=1/before": b"0", "p=1/a": b"1", "b": b"2"}
    job.abort()
    assert seen(tmp_path) == {"p=1/before": b"0"}


def test_v2_takes_out_what_a_refused_task_commit_has_moved(tmp_path: Path) -> None:
    (tmp_path / "z").write_bytes(b"theirs")
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"a": b"1", "z": b"ours"})
    with pytest.raises(CommitFailed, match="target exists"):
        attempt.commit()
    assert seen(tmp_path) == {"z": b"theirs"}
    attempt.abort()
    job.commit([done(job, {"a": b"1"}, 0, 1)])
    assert seen(tmp_path) == {"z": b"theirs", "a": b"1"}


def _off_from_the_end_on(job: Job, *, carried_out: bool) -> Callable[[], None]:
    """The store answers no more from the rename on by which a task attempt commits; the answer brings it back."""
    store, off = make_faulty(job), []

    def before(name: str, subject) -> None:
        if not carried_out and name == "rename_files" and "manifest" in subject[0].source:
            off.append(True)
        if off:
            raise StoreUnavailable("no answer")

    def lose(target: str) -> bool:
        if carried_out and target.endswith(MANIFEST_SUFFIX):
            off.append(True)
        return bool(off)

    def back() -> None:
        store.before, store.lose = lambda name, subject: None, lambda target: False

    store.before, store.lose = before, lose
    return back


def test_told_right_v2_takes_nothing_out_of_an_attempt_that_may_have_committed(tmp_path: Path) -> None:
    """Its files were taken out, and its manifest stayed: it had committed, without files, and no other could."""
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"p=1/a": b"1", "b": b"2"})
    back = _off_from_the_end_on(job, carried_out=True)
    with pytest.raises(OutcomeUnknown, match="attempt_000000_0 has committed") as told:
        attempt.commit()
    assert isinstance(told.value.__cause__, StoreUnavailable)
    assert "commit() of this attempt again" in told.value.next_step
    back()
    assert seen(tmp_path) == {"p=1/a": b"1", "b": b"2"}
    assert job.commit([attempt.commit()]).files == 2
    assert seen(tmp_path) == {"p=1/a": b"1", "b": b"2"}


def test_told_right_v2_an_attempt_that_may_have_committed_and_has_not_can_be_aborted(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"p=1/a": b"1", "b": b"2"})
    back = _off_from_the_end_on(job, carried_out=False)
    with pytest.raises(OutcomeUnknown, match="attempt_000000_0 has committed"):
        attempt.commit()
    back()
    assert seen(tmp_path) == {"p=1/a": b"1", "b": b"2"}
    with pytest.raises(CommitFailed, match="interrupted") as refused:
        attempt.commit()
    assert ".task_attempt(0, 0).abort()" in refused.value.next_step
    attempt.abort()
    assert seen(tmp_path) == {}
    assert job.commit([done(job, {"b": b"3"}, 0, 1)]).files == 1
    assert seen(tmp_path) == {"b": b"3"}


def test_abortable_v2_takes_out_a_file_whose_rename_comes_while_it_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at its rename, which had no answer, failed: then what was seen unmoved was taken for never moved."""
    has = LocalStore.capabilities.fget
    less = {Capability.UNIQUE_IDENTITY}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - less))
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"a": b"1"})
    store, late, off = make_faulty(job), [], []
    really = store.rename_files

    async def rename_files(renames, *progress):
        if renames[0].target == "a":
            late.append(renames[0])
            off.append(True)
            return [Unknown("no answer")]
        if late and "/unmoved/" in renames[0].target:
            os.rename(tmp_path / late[0].source, tmp_path / late[0].target)
            late.clear()
        return await really(renames, *progress)

    def before(name: str, subject) -> None:
        if off and name == "stat_files":
            off.clear()
            raise StoreUnavailable("no answer")

    store.rename_files, store.before = rename_files, before
    with pytest.raises(StoreUnavailable):
        attempt.commit()
    assert not late and not off
    assert seen(tmp_path) == {}


def test_v2_refuses_to_commit_a_job_whose_task_commit_was_interrupted(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v2")
    receipt = done(job, {"a": b"1"}, 0)
    attempt = begun(job, {"b": b"2"}, 1)
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "manifest" in subject[0].source
    with pytest.raises(Stop):
        attempt.commit()
    store.fail_at = lambda name, subject: False
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}
    for receipts in ([receipt], None):
        with pytest.raises(ReceiptUnmatched, match="attempt_000001_0 was interrupted"):
            job.commit(receipts)
    with pytest.raises(CommitFailed, match="interrupted"):
        begun(job, {"b": b"3"}, 1, 1).commit()
    attempt.abort()
    job.commit([receipt, done(job, {"b": b"3"}, 1, 2)])
    assert seen(tmp_path) == {"a": b"1", "b": b"3"}


def test_the_line_that_takes_an_interrupted_task_out_is_told_whole_and_runs_in_another_process(tmp_path: Path) -> None:
    """It named a method of an object that lives in a program which has died, and an attempt by a name to be parsed."""
    place = tmp_path / "it's here"
    job = Job(place, protocol="v2", accept_unsafe=True, job_id="j")
    job.setup()
    receipt = done(job, {"a": b"1"}, 0)
    attempt = begun(job, {"b": b"2"}, 12, 3)
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "manifest" in subject[0].source
    with pytest.raises(Stop):
        attempt.commit()
    with pytest.raises(ReceiptUnmatched) as refused:
        Job(place, protocol="v2", accept_unsafe=True, job_id="j", nonce=job._marker).commit([receipt])
    assert ".task_attempt(12, 3).abort()" in refused.value.next_step
    with pytest.raises(CommitFailed, match="interrupted") as rival:
        begun(job, {"b": b"3"}, 12, 4).commit()
    (line,) = {re.search(r"Job\(.*?\)\.task_attempt\([0-9, ]+\)\.abort\(\)", each.value.next_step)[0]
               for each in (refused, rival)}  # fmt: skip
    subprocess.run([sys.executable, "-c", f"from lockgate import Job; {line}"], check=True, timeout=60)
    assert seen(place) == {"a": b"1"}


def test_recover_of_all_says_the_same_of_a_job_as_recover_of_that_one(tmp_path: Path) -> None:
    """It recommended the commit that the other knew to be refused, and `next_step` was empty in both."""
    job = a_job(tmp_path, "v2")
    done(job, {"a": b"1"}, 0)
    attempt = begun(job, {"b": b"2"}, 1)
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "manifest" in subject[0].source
    with pytest.raises(Stop):
        attempt.commit()
    silent = JobOptions(alive_seconds=0.0)
    (of_all,) = recover(tmp_path, options=silent).values()
    (of_one,) = recover(tmp_path, job.job_id, options=silent).values()
    assert of_all == of_one
    assert ".task_attempt(1, 0).abort()" in of_one.next_step and of_one.next_step in of_one.problem


def test_v2_commits_one_attempt_of_a_task(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v2")
    receipt = done(job, {"a": b"1"}, 0)
    with pytest.raises(CommitFailed, match="has committed already, by attempt_000000_0"):
        done(job, {"other": b"2"}, 0, 1)
    job.commit([receipt])
    assert seen(tmp_path) == {"a": b"1"}


def test_v2_takes_out_what_a_task_has_committed_whose_receipt_the_driver_does_not_hold(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v2")
    receipt = done(job, {"a": b"1"}, 0)
    done(job, {"b": b"2"}, 1)
    job.commit([receipt])
    assert seen(tmp_path) == {"a": b"1"}


def test_what_a_v2_job_has_left_is_ended_by_those_who_know_nothing_of_its_protocol(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v2")
    done(job, {"a": b"1"}, 0)
    assert recover(str(tmp_path), job.job_id, options=JobOptions(), force=True)[job.job_id].outcome == "not begun"
    abort(str(tmp_path), job.job_id, JobOptions(), force=True)
    assert seen(tmp_path) == {}


def test_gc_deletes_what_a_v1_job_has_left_in_temporary_and_nothing_beside_it(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1")
    done(job, {"a": b"1"}, 0)
    begun(job, {"b": b"2"}, 1)
    theirs = tmp_path / "_temporary/0/task_20260101_0001_m_000000/theirs"
    theirs.parent.mkdir()
    theirs.write_bytes(b"3")
    lockgate.collect_garbage(str(tmp_path), options=JobOptions(alive_seconds=0))
    assert [path for path in (tmp_path / "_temporary").rglob("*") if path.is_file()] == [theirs]
    assert not (tmp_path / "_lockgate").exists()


def test_gc_keeps_what_tasks_of_hadoops_manifest_committer_have_committed(tmp_path: Path) -> None:
    """A file that a task writes for more than a day shows no sign of life on HDFS before it is closed."""
    job_id = "0b6a1f0e-6c1f-4c53-9d8e-2a8f0c9d1a11"
    job = Job(tmp_path, job_id=job_id)
    job.setup()
    done(job, {"part-0": b"theirs"})
    theirs = tmp_path / "_temporary" / f"manifest_{job_id}"
    theirs.parent.mkdir()
    shutil.move(tmp_path / "_lockgate/jobs" / job_id, theirs)
    (theirs / "00/job.json").unlink()
    idle = JobOptions(alive_seconds=0)
    (state,) = lockgate.jobs(str(tmp_path), idle)
    assert state.status.value == "abandoned"
    before = sorted(theirs.rglob("*"))
    (kept,) = lockgate.collect_garbage(str(tmp_path), options=idle)
    assert (kept.action, sorted(theirs.rglob("*"))) == ("kept", before)
    lockgate.abort(str(tmp_path), job_id, options=idle)
    assert not theirs.exists()


def test_gc_keeps_what_hadoops_tasks_have_committed_though_a_commit_of_it_was_refused(tmp_path: Path) -> None:
    """It is the only place of their rows: gc kept them as long as nobody had tried, and deleted them after that."""
    job_id = "job_202411211721_0003"
    task = tmp_path / "_temporary/0" / f"{job_id.replace('job', 'task')}_m_000000"
    task.mkdir(parents=True)
    (task / "part-0").write_bytes(b"theirs")
    (tmp_path / "part-0").write_bytes(b"another's")
    idle = JobOptions(alive_seconds=0)
    with pytest.raises(DestinationConflict):
        lockgate.commit(str(tmp_path), job_id, options=idle.replace(protocol="v1"))
    (kept,) = lockgate.collect_garbage(str(tmp_path), options=idle)
    assert (kept.action, "of which nothing was moved" in kept.why) == ("kept", True)
    assert f"lockgate abort file://{tmp_path} {job_id} --protocol v1" in kept.why
    (tmp_path / "part-0").unlink()
    lockgate.commit(str(tmp_path), job_id, options=idle.replace(protocol="v1"))
    assert seen(tmp_path) == {"part-0": b"theirs"}
    (empty,) = lockgate.collect_garbage(str(tmp_path), options=idle)
    assert (empty.path, empty.action) == ("_temporary/0", "deleted")
    assert not (tmp_path / "_temporary").exists()


def test_what_a_v1_job_has_begun_to_commit_survives_a_committer_that_deletes_temporary(tmp_path: Path) -> None:
    job = a_job(tmp_path, "v1", on_failure="leave")
    receipts = [done(job, {"a": b"1"}, 0), done(job, {"b": b"2"}, 1)]
    store = make_faulty(job)
    moved: list[str] = []

    def fails(name: str, subject) -> bool:
        if name == "rename_files" and subject[0].target in ("a", "b"):
            moved.append(subject[0].target)
        return bool(moved)

    store.fail_at = fails
    with pytest.raises((CommitFailed, Stop)):
        job.commit(receipts)
    assert not list((tmp_path / "_temporary").rglob("task_*"))
    shutil.rmtree(tmp_path / "_temporary")
    assert recover(str(tmp_path), job.job_id, force=True)[job.job_id].outcome == "finished"
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}


def test_v1_sets_a_replaced_directory_aside_by_one_rename_and_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    for name in ("x", "y"):
        (tmp_path / "p=1" / name).write_bytes(b"old")
    job = a_job(tmp_path, "v1", conflict="replace", set_aside="directories", on_failure="leave")
    receipt = done(job, {"p=1/a": b"1"})
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "_SUCCESS-" in subject[0].source
    with pytest.raises((CommitFailed, Stop)):
        job.commit([receipt])
    recover(str(tmp_path), job.job_id, undo=True, force=True)
    assert seen(tmp_path) == {"p=1/x": b"old", "p=1/y": b"old"}
    again = a_job(tmp_path, "v1", conflict="replace", set_aside="directories")
    again.commit([done(again, {"p=1/a": b"1"})])
    assert seen(tmp_path) == {"p=1/a": b"1"}


def test_v2_knows_of_each_of_several_attempts_what_it_has_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered for the last one only: files of the others that had vanished since were taken for moved ones."""
    has = LocalStore.capabilities.fget
    less = {Capability.UNIQUE_IDENTITY}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - less))
    job = a_job(tmp_path, "v2")
    attempts = [begun(job, {"a": b"1", "b": b"2"}, 0), begun(job, {"c": b"3"}, 1)]
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files"
    for attempt in attempts:
        with pytest.raises(Stop):
            attempt.commit()
    run = Job(tmp_path, protocol="v2", accept_unsafe=True, job_id=job.job_id, nonce=job._marker)._run()

    async def taken_out() -> list[str]:
        known = await saved(run)
        unmoved = await keep_unmoved(run, known)
        assert unmoved == {(0, "attempt_000000_0"): {0, 1}, (0, "attempt_000001_0"): {0}}
        kept = sorted((tmp_path / "_lockgate").rglob("unmoved/*/_*"))
        assert len(kept) == 3
        # Another program puts equal files where these were to be, and deletes what says that these never were there.
        for path, name in zip(kept, ("a", "b", "c"), strict=True):
            path.rename(tmp_path / name)
        return await take_out(run, known, never_moved=unmoved)

    assert asyncio.run(taken_out()) == []
    assert seen(tmp_path) == {"a": b"1", "b": b"2", "c": b"3"}


def test_v2_takes_no_older_file_for_its_own_where_another_program_has_deleted_what_it_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the same name and content was there: the rename, whose source was gone, passed for done, and the older
    file was taken out with the attempt."""
    has = LocalStore.capabilities.fget
    less = {Capability.UNIQUE_IDENTITY}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - less))
    monkeypatch.setattr(LocalStore, "same_identity", lambda store, one, other: True)
    (tmp_path / "a").write_bytes(b"1")
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"a": b"1"}, 0)

    def loses(name: str, subject: object) -> None:
        if name == "rename_files":
            for staged in (tmp_path / "_temporary").rglob("a"):
                staged.unlink()

    make_faulty(job).before = loses
    with pytest.raises(CommitFailed, match="target exists"):
        attempt.commit()
    attempt.abort()
    job.abort()
    assert seen(tmp_path) == {"a": b"1"}


def test_v2_takes_no_equal_file_for_its_own_that_came_before_its_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name was free when the attempt looked. The file that it could not move is kept, which tells that the one at
    its target is another's."""
    has = LocalStore.capabilities.fget
    less = {Capability.UNIQUE_IDENTITY}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - less))
    monkeypatch.setattr(LocalStore, "same_identity", lambda store, one, other: True)
    job = a_job(tmp_path, "v2")
    attempt = begun(job, {"a": b"1"}, 0)

    def another_comes(name: str, subject: object) -> None:
        if name == "rename_files" and not (tmp_path / "a").exists():
            (tmp_path / "a").write_bytes(b"1")

    make_faulty(job).before = another_comes
    with pytest.raises(CommitFailed, match="target exists"):
        attempt.commit()
    attempt.abort()
    job.abort()
    assert seen(tmp_path) == {"a": b"1"}


def asides(root: Path) -> list[str]:
    """What stores have renamed away to delete it, and not deleted."""
    return [path.relative_to(root).as_posix() for path in root.rglob(".aside-*")]


def test_v2_leaves_nothing_aside_however_its_tasks_and_its_job_end(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"theirs")
    for ends in ("commit", "abort", "no receipts"):
        job = a_job(tmp_path, "v2")
        receipt = done(job, {f"{ends}/a": b"1"}, 0)
        refused = begun(job, {f"{ends}/b": b"2", "taken": b"ours"}, 1)
        with pytest.raises(CommitFailed):
            refused.commit()
        assert not asides(tmp_path)
        refused.abort()
        begun(job, {f"{ends}/c": b"3"}, 2).abort()
        late = begun(job, {f"{ends}/d": b"4"}, 3)
        if ends == "abort":
            job.abort()
        else:
            job.commit([receipt] if ends == "commit" else [])
        with pytest.raises(UsageError):
            late.commit()
        late.abort()
        assert not asides(tmp_path)
    assert seen(tmp_path) == {"commit/a": b"1", "taken": b"theirs"}


@pytest.mark.parametrize("ends", ["attempt", "job"])
def test_what_a_v2_process_that_is_killed_while_it_deletes_leaves_aside_is_gone_with_gc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """The one way in which anything stays: the rename is done, and who did it dies before the deletion."""
    job = a_job(tmp_path, "v2")
    done(job, {"a": b"1"}, 0)
    late = begun(job, {"b": b"2"}, 1)

    def dies(full: str) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(local_delete, "_remove", dies)
        with pytest.raises(Stop):
            late.abort() if ends == "attempt" else job.abort()
    assert asides(tmp_path)
    if ends == "attempt":
        job.abort()
    lockgate.collect_garbage(str(tmp_path), options=JobOptions(alive_seconds=0))
    assert not asides(tmp_path)
    assert not (tmp_path / "_temporary").exists()
    assert not (tmp_path / "_lockgate").exists()
    assert seen(tmp_path) == {}


def put_in_place_by_hadoop(root: Path) -> tuple[Job, list[Receipt]]:
    """A job of v1 at work, while another program puts one of its two tasks in place and deletes `_temporary`."""
    (root / "old").write_bytes(b"old")
    job = a_job(root, "v1", job_id="x")
    receipts = [done(job, {"p=1/a": b"1"}, 0), done(job, {"p=1/b": b"2"}, 1)]
    (root / "p=1").mkdir()
    (task,) = (root / "_temporary/0").glob("task_*_000000")
    (task / "p=1/a").rename(root / "p=1/a")
    shutil.rmtree(root / "_temporary")
    return job, receipts


@pytest.mark.parametrize("ends", ["driver", "somebody"])
def test_an_abort_of_v1_tells_what_another_programs_job_commit_has_put_in_place(tmp_path: Path, ends: str) -> None:
    """Hadoop's job commit takes what the tasks of all jobs in `_temporary/0` have committed, and then deletes it: an
    abort said that all was well, and who ran the job again had its rows twice."""
    job, _ = put_in_place_by_hadoop(tmp_path)
    with pytest.raises(OutcomeUnknown, match=r"1 of its files are in place: another program's job commit") as told:
        job.abort() if ends == "driver" else abort(tmp_path, "x", force=True)
    assert "p=1/a" in str(told.value)
    assert not (tmp_path / "_lockgate/jobs").exists()
    assert seen(tmp_path) == {"old": b"old", "p=1/a": b"1"}


def test_an_abort_of_v1_tells_what_another_programs_job_commit_puts_in_place_while_it_looks(
    tmp_path: Path, monkeypatch
) -> None:
    """It had looked before it deleted the tasks' directories, from which Hadoop was moving files: it ended without a
    word, and they stayed."""
    job = a_job(tmp_path, "v1")
    done(job, {"a": b"1"})
    really = job_directories.delete_of_job

    async def hadoop_moves_first(run: JobRun) -> None:
        for task in (tmp_path / "_temporary/0").glob("task_*_000000"):
            (task / "a").rename(tmp_path / "a")
        await really(run)

    monkeypatch.setattr(job_directories, "delete_of_job", hadoop_moves_first)
    with pytest.raises(OutcomeUnknown, match=r"1 of its files are in place: another program's job commit"):
        job.abort()
    assert seen(tmp_path) == {"a": b"1"}


def test_a_commit_of_v1_tells_what_another_programs_job_commit_has_put_in_place(tmp_path: Path) -> None:
    """It said that nothing was moved, and to run the job again."""
    job, receipts = put_in_place_by_hadoop(tmp_path)
    with pytest.raises(ManifestInvalid, match="another program's job commit has put 1 file of the job in place"):
        job.commit(receipts)
    with pytest.raises(OutcomeUnknown, match=r"1 of its files are in place: another program's job commit"):
        job.abort()
    assert seen(tmp_path) == {"old": b"old", "p=1/a": b"1"}


@pytest.mark.parametrize("end", ["driver", "abort", "undo, abort", "gc"])
def test_what_another_programs_finished_job_commit_has_put_in_place_stays_after_a_refused_one(
    tmp_path: Path, end: str
) -> None:
    """The refused commit left a record, which was taken for one whose newest versions are lost: the next step took out
    all that the other program had committed."""
    job = a_job(tmp_path, "v1", job_id="x")
    receipts = [done(job, {f"p=1/{each}": b"1"}, each) for each in range(7)]
    (tmp_path / "p=1").mkdir()
    for path in list((tmp_path / "_temporary/0").glob("task_*/p=1/*")):
        path.rename(tmp_path / "p=1" / path.name)
    shutil.rmtree(tmp_path / "_temporary")
    before = seen(tmp_path)
    with pytest.raises(ManifestInvalid, match="another program's job commit has put 7 files of the job in place"):
        job.commit(receipts)
    if end == "driver":
        with pytest.raises(OutcomeUnknown, match="7 of its files are in place") as error:
            job.abort()
        told = str(error.value)
    elif end == "gc":
        (found,) = lockgate.collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
        assert (found.action, found.needs_somebody) == ("deleted", True)
        told = found.why
    else:
        if "undo" in end:
            (recovery,) = recover(tmp_path, "x", undo=True, force=True).values()
            assert recovery.outcome == "not begun"
            assert "another program's job commit has put 7 files" in recovery.problem
        with pytest.raises(OutcomeUnknown, match="7 of its files are in place") as error:
            abort(tmp_path, "x", force=True)
        told = str(error.value)
    assert all(name in told for name in before)
    assert seen(tmp_path) == before


@pytest.mark.parametrize("refused", [False, True], ids=["not begun", "refused"])
def test_recover_says_that_a_v1_job_cannot_be_committed_whose_files_another_program_has_put_in_place(
    tmp_path: Path, refused: bool
) -> None:
    """It named no file and offered the commit, as long as the directories of the tasks were there."""
    job = a_job(tmp_path, "v1", job_id="x")
    receipts = [done(job, {"a": b"1"}, 0), done(job, {"b": b"2"}, 1)]
    (task,) = (tmp_path / "_temporary/0").glob("task_*_000000")
    (task / "a").rename(tmp_path / "a")
    if refused:
        with pytest.raises(ManifestInvalid):
            job.commit(receipts)
    (recovery,) = recover(tmp_path, "x", options=JobOptions(alive_seconds=0.0)).values()
    assert recovery.outcome == "not begun"
    assert "another program's job commit has put 1 file of the job in place" in recovery.problem
    assert str(tmp_path / "a") in recovery.problem
    assert "commits what they wrote" not in recovery.problem


def test_gc_tells_of_a_v1_job_that_is_gone_what_another_program_has_put_in_place(tmp_path: Path) -> None:
    """It said that it had failed, and the next gc had nothing to do."""
    job = a_job(tmp_path, "v1", job_id="x")
    for each in range(7):
        done(job, {f"{each}": b"1"}, each)
    for path in list((tmp_path / "_temporary/0").glob("task_*/*")):
        path.rename(tmp_path / path.name)
    (found,) = (
        each
        for each in lockgate.collect_garbage(tmp_path, options=JobOptions(alive_seconds=0.0))
        if each.path.endswith("/x")
    )
    assert (found.action, found.needs_somebody) == ("deleted", True)
    assert "another program's job commit has put there" in found.why
    assert found.why.endswith("0, 1, 2, 3, 4, 5, 6")
    assert len(seen(tmp_path)) == 7


@pytest.mark.parametrize("ask", ["plan", "commit", "recover", "recover all"])
def test_who_ends_a_v1_job_hears_that_another_programs_job_commit_has_put_its_files_in_place(
    tmp_path: Path, ask: str
) -> None:
    """With every directory gone it looked like a job whose tasks had not committed: the next step was to write again,
    and the rows were there twice."""
    put_in_place_by_hadoop(tmp_path)
    (tmp_path / "p=1/b").write_bytes(b"not as the task has left it")
    silent = JobOptions(alive_seconds=0.0)
    if ask.startswith("recover"):
        found = recover(tmp_path, None if ask == "recover all" else "x", options=silent)["x"]
        assert found.outcome == "not begun"
        said = found.problem
    else:
        with pytest.raises(ReceiptUnmatched) as refused:
            lockgate.plan(tmp_path, "x", silent) if ask == "plan" else lockgate.commit(tmp_path, "x", force=True)
        said = str(refused.value)
    assert "another program's job commit has put 1 file of the job in place" in said
    assert str(tmp_path / "p=1/a") in said.replace("%3D", "=")
    assert "do not write again before you have seen to them: lockgate abort" in said
    assert "write again" not in said.replace("do not write again", "")
    with pytest.raises(OutcomeUnknown, match=r"1 of its files are in place: another program's job commit"):
        abort(tmp_path, "x", force=True)


def test_exclusive_what_another_has_put_in_a_v1_tasks_place_after_the_look_is_not_committed(
    tmp_path: Path, monkeypatch
) -> None:
    """Between the look at what a task has committed and the rename of its directory: on a store whose renames take
    whatever is there, it would be the job's."""
    job = a_job(tmp_path, "v1")
    receipt = done(job, {"p=1/a": b"1"})
    really = v1_protocol.adopt

    async def another_comes_first(run: JobRun, pins) -> None:
        (there,) = (tmp_path / "_temporary/0").glob("task_*/p=1/a")
        there.unlink()
        there.write_bytes(b"of another attempt")
        await really(run, pins)

    monkeypatch.setattr(v1_protocol, "adopt", another_comes_first)
    with pytest.raises(CommitFailed, match="are not those that their attempts have committed"):
        job.commit([receipt])
    assert seen(tmp_path) == {}


def test_who_commits_a_v1_job_hears_that_another_programs_job_commit_has_begun(tmp_path: Path) -> None:
    """It died in the middle of a task's files: "somebody has changed or deleted them: run the job again"."""
    job = a_job(tmp_path, "v1", job_id="x")
    done(job, {f"p=1/{number}": b"1" for number in range(9)})
    (tmp_path / "p=1").mkdir()
    (task,) = (tmp_path / "_temporary/0").glob("task_*_000000")
    for number in range(7):
        (task / f"p=1/{number}").rename(tmp_path / f"p=1/{number}")
    silent = JobOptions(alive_seconds=0.0)
    for ask in (lambda: lockgate.plan(tmp_path, "x", silent), lambda: lockgate.commit(tmp_path, "x", force=True)):
        with pytest.raises(ManifestInvalid, match="another program's job commit has put 7 files of the job in place"):
            ask()
    with pytest.raises(OutcomeUnknown, match="7 of its files are in place") as told:
        abort(tmp_path, "x", force=True)
    named = str(told.value).replace("%3D", "=")
    assert all(f"p=1/{number}\n" in f"{named}\n" for number in range(7)), "nothing else says which they are"


def test_who_ends_a_v1_job_hears_that_its_tasks_are_gone_and_nothing_of_them_is_in_place(tmp_path: Path) -> None:
    """As where a job of Hadoop's that fails deletes `_temporary`: it was "no task has committed"."""
    job = a_job(tmp_path, "v1", job_id="x")
    for number in range(2):
        done(job, {f"p=1/{number}": b"1"}, number)
    shutil.rmtree(tmp_path / "_temporary")
    with pytest.raises(ReceiptUnmatched, match="may have committed, and its directory is not there") as refused:
        lockgate.commit(tmp_path, "x", force=True)
    assert "No file is in place" in refused.value.next_step
    assert "lockgate abort" in refused.value.next_step
    abort(tmp_path, "x", force=True)
    assert list(tmp_path.iterdir()) == []


def test_complete_the_next_attempt_at_a_v1_job_hears_that_tasks_of_the_last_may_be_in_place(tmp_path: Path) -> None:
    """It was told that none of them had committed, and would have run all of them again."""
    put_in_place_by_hadoop(tmp_path)
    following = Job(tmp_path, protocol="v1", job_id="x", job_attempt=1)
    following.setup()
    with pytest.raises(ReceiptUnmatched, match="another program's job commit has put 1 file of the job in place"):
        following.committed()


@pytest.mark.parametrize("name", ["p=1/a\\b", "p=1/ends."])
def test_v2_moves_no_file_to_a_name_that_the_store_would_change(tmp_path: Path, monkeypatch, name: str) -> None:
    """It asked nobody: on Azure a file went elsewhere than its manifest says, and the job was committed."""
    monkeypatch.setattr(LocalStore, "name_rules", ABFS)
    job = a_job(tmp_path, "v2")
    good = done(job, {"p=1/good": b"1"}, 0)
    with pytest.raises(ManifestInvalid, match="name that this store does not take"):
        done(job, {"p=1/fine": b"2", name: b"3"}, 1)
    assert seen(tmp_path) == {"p=1/good": b"1"}
    job.commit([good, done(job, {"p=1/fine": b"2"}, 1, 1)])
    assert seen(tmp_path) == {"p=1/good": b"1", "p=1/fine": b"2"}


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_task_attempt_begins_while_a_job_of_hadoops_deletes_temporary(
    tmp_path: Path, monkeypatch, protocol: str
) -> None:
    """It was told that its job, which lives, is over."""
    really, deleted = LocalStore.make_directories, []

    async def hadoop_deletes_first(self, paths, **within):
        if not deleted and paths[0].startswith("_temporary/"):
            deleted.append(paths[0])
            raise FileMissing("the directory above is gone", where=paths[0])
        return await really(self, paths, **within)

    job = a_job(tmp_path, protocol)
    monkeypatch.setattr(LocalStore, "make_directories", hadoop_deletes_first)
    job.commit([done(job, {"a": b"1"})])
    assert deleted
    assert seen(tmp_path) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["manifest", "v1"])
def test_a_task_attempt_is_told_of_a_name_that_the_store_does_not_take(
    tmp_path: Path, monkeypatch, protocol: str
) -> None:
    """The job commit was, when all tasks had been at work."""
    monkeypatch.setattr(LocalStore, "name_rules", ABFS)
    job = a_job(tmp_path, protocol)
    with pytest.raises(ManifestInvalid, match="name that this store does not take"):
        done(job, {"p=1/ends.": b"1"})
    job.commit([done(job, {"p=1/fine": b"2"}, 0, 1)])
    assert seen(tmp_path) == {"p=1/fine": b"2"}


@pytest.mark.parametrize("by", ["driver", "outside"])
def test_a_refused_v1_job_whose_record_has_lost_its_first_version_is_not_taken_for_one_that_is_over(
    tmp_path: Path, by: str
) -> None:
    """It was deleted by `recover`, which answered that an abort would; what another program had put in place was named
    by nobody."""
    job = a_job(tmp_path, "v1", job_id="x")
    receipts = [done(job, {"a": b"1"}, 0), done(job, {"b": b"2"}, 1)]
    (task,) = (tmp_path / "_temporary/0").glob("task_*_000000")
    (task / "a").rename(tmp_path / "a")
    with pytest.raises(ManifestInvalid, match="another program's job commit"):
        job.commit(receipts) if by == "driver" else lockgate.commit(tmp_path, "x", force=True)
    first = min((tmp_path / "_lockgate/jobs/x").glob("commit*.json"), key=lambda path: path.stat().st_mtime_ns)
    first.unlink()
    (recovery,) = recover(tmp_path, "x", options=JobOptions(alive_seconds=0.0), force=True).values()
    assert recovery.outcome == "not begun"
    assert "another program's job commit" in recovery.problem
    with pytest.raises(OutcomeUnknown, match="1 of its files are in place"):
        abort(tmp_path, "x", force=True)
    assert seen(tmp_path) == {"a": b"1"}


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_a_task_that_sets_its_job_up_is_not_refused_for_another_task_of_that_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """As in a stream. Between its look for the job's marker and its look into `_temporary` the other had begun: the
    batch failed, since "another job has tasks of the names"."""
    options = JobOptions(protocol=protocol, accept_unsafe=True, durable=False)
    slow, other = (Job(tmp_path, options, job_id="batch", nonce="n" * 32) for _ in range(2))
    listed = LocalStore.list_directory
    asked: list[str] = []

    async def list_directory(store, directory):
        if directory.startswith("_temporary") and not asked:
            asked.append(directory)
            await asyncio.to_thread(begin)
        async for page in listed(store, directory):
            yield page

    def begin() -> None:
        other.setup(by_task=True)
        other.task_attempt(1, 1).setup()

    monkeypatch.setattr(LocalStore, "list_directory", list_directory)
    slow.setup(by_task=True)
    slow.task_attempt(0, 0).setup()
    assert asked
    stranger = Job(tmp_path, options, job_id="batch", nonce="m" * 32)
    with pytest.raises(UsageError, match=r"another job has (tasks of the names|the id)"):
        stranger.setup(by_task=True)

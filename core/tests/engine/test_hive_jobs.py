"""What a job of Hive's has left is committed, one attempt a task; and whatever is wrong with it is told before anything
moves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import lockgate
import pytest
from hive_left import HIVE, JOB, OUTPUT, STAGING, everything, leave, seen
from lockgate import Job, JobOptions
from lockgate.api.jobs import abort, collect_garbage, commit, jobs, plan, recover
from lockgate.engine.job import job_commit
from lockgate.errors import (
    CapabilityMissing,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    DuplicateTarget,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
    OptionError,
    PluginError,
)
from lockgate.model import hive_output
from lockgate.model.capabilities import Capability
from lockgate.plugin import Asked, Choice, hookimpl
from lockgate.plugins.registry import registry_for
from lockgate.protocols.hive import adopt, protocol
from lockgate.stores.local import LocalStore

TWO_TASKS = {"ds=1/000000_0": b"a", "ds=2/000000_0": b"b", "ds=1/000001_0": b"c"}


def by(**options) -> JobOptions:
    return HIVE.replace(**options)


def test_complete_all_that_the_tasks_of_a_hive_job_have_finished(tmp_path: Path) -> None:
    leave(
        tmp_path,
        TWO_TASKS
        | {"ds=1/.000000_0.crc": b"crc", "000002_0.gz": b"z", "000003_0_copy_2": b"", "ds=3/k=1/000000_0": b"lb"},
    )
    (tmp_path / OUTPUT / "ds=empty").mkdir()
    summary = commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == TWO_TASKS | {"000002_0.gz": b"z", "000003_0_copy_2": b"", "ds=3/k=1/000000_0": b"lb"}
    assert not (tmp_path / STAGING).exists()
    assert not (tmp_path / "ds=empty").exists()
    assert summary.lockgate is not None
    assert summary.lockgate.protocol == "hive"
    assert lockgate.verify(str(tmp_path)).findings == []
    assert jobs(tmp_path, HIVE)[0].job_id == JOB


def test_exclusive_partial_files_and_what_tasks_are_at_work_on_are_left_out(tmp_path: Path) -> None:
    leave(
        tmp_path,
        TWO_TASKS | {"ds=1/_tmp.000007_0": b"half", "_task_tmp.old/000001_0": b"half", "_tmp.x/000001_3": b"x"},
    )
    leave(tmp_path, {"ds=1/_tmp.000001_1": b"half"}, f"{STAGING}/_task_tmp.-ext-10000")
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == TWO_TASKS
    assert not (tmp_path / STAGING).exists()


def test_a_job_whose_tasks_may_be_at_work_is_not_committed_without_force(tmp_path: Path) -> None:
    left = leave(tmp_path, TWO_TASKS)
    with pytest.raises(CommitFenced):
        commit(tmp_path, JOB, options=HIVE)
    leave(tmp_path, {"ds=1/_tmp.000005_0": b"half"}, f"{STAGING}/_task_tmp.-ext-10000")
    with pytest.raises(CommitRefused, match="task_000005"):
        commit(tmp_path, JOB, options=by(alive_seconds=0))
    assert everything(left) == TWO_TASKS


@pytest.mark.parametrize(
    ("unfinished", "above"),
    [
        ("ds=1/_tmp.000003_0", OUTPUT),
        ("_task_tmp.old/_tmp.000003_0", OUTPUT),
        ("ds=1/_tmp.000003_0", f"{STAGING}/_task_tmp.-ext-10000"),
    ],
)
def test_a_task_with_unfinished_files_only_is_missed_wherever_they_are(
    tmp_path: Path, unfinished: str, above: str
) -> None:
    """Of those in the directory that the tasks share nothing was said: the job was committed without the task."""
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {unfinished: b"half"}, above)
    left = everything(tmp_path)
    with pytest.raises(CommitRefused, match=r"1 task of job .* has begun and not committed: task_000003"):
        commit(tmp_path, JOB, options=by(alive_seconds=0))
    assert everything(tmp_path) == left
    assert plan(tmp_path, JOB, HIVE).left_out == ["task_000003"]
    summary = commit(tmp_path, JOB, options=HIVE, force=True)
    assert summary.lockgate is not None
    assert summary.lockgate.left_out == ["task_000003"]
    assert seen(tmp_path) == TWO_TASKS


def test_the_unfinished_files_of_a_unions_branch_are_of_its_tasks(tmp_path: Path) -> None:
    above = f"{STAGING}/-ext-10000"
    leave(tmp_path, {"_tmp.HIVE_UNION_SUBDIR_1/000000_0": b"1", "_tmp.HIVE_UNION_SUBDIR_2/000000_1": b"2"}, above)
    leave(tmp_path, {"_task_tmp.HIVE_UNION_SUBDIR_2/_tmp.000004_0": b"half"}, above)
    job = f"{STAGING[1:]}.-ext-10000"
    with pytest.raises(CommitRefused, match=r"committed: task_HIVE_UNION_SUBDIR_2-000004"):
        commit(tmp_path, job, options=by(hive_directory=above, alive_seconds=0))


@pytest.mark.parametrize("directory", [OUTPUT, f"{STAGING}/_task_tmp.-ext-10000"])
def test_complete_an_attempt_that_was_cut_short_is_never_chosen(tmp_path: Path, directory: str) -> None:
    """It renames its files one by one; a plan took those that it had come to for all of the task."""
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"ds=2/_tmp.000001_0": b"rest"}, directory)
    left = everything(tmp_path)
    for act in (
        lambda: plan(tmp_path, JOB, HIVE),
        lambda: commit(tmp_path, JOB, options=HIVE, force=True),
        lambda: commit(tmp_path, JOB, options=by(duplicates="largest"), force=True),
    ):
        with pytest.raises(CommitRefused, match="attempt 0 at task_000001 was cut short"):
            act()
    assert everything(tmp_path) == left
    leave(tmp_path, {"ds=1/000001_1": b"c", "ds=2/000001_1": b"rest"})
    named = by(duplicates="receipts", duplicate_attempts=("000001_0",))
    with pytest.raises(CommitRefused, match="attempt 0 at task_000001 was cut short"):
        commit(tmp_path, JOB, options=named, force=True)
    summary = commit(tmp_path, JOB, options=HIVE, force=True)
    whole = {"ds=1/000001_1": b"c", "ds=2/000001_1": b"rest"}
    assert seen(tmp_path) == {path: TWO_TASKS[path] for path in ("ds=1/000000_0", "ds=2/000000_0")} | whole
    assert summary.lockgate is not None
    assert summary.lockgate.extra["duplicates_resolved"] == [
        "task_000001: attempt 1, not 0: the only one without an unfinished file"
    ]


def test_union_branches_count_their_tasks_each_from_zero(tmp_path: Path) -> None:
    files = {
        "ds=1/HIVE_UNION_SUBDIR_1/000000_0": b"1",
        "ds=1/HIVE_UNION_SUBDIR_2/000000_1": b"2",
        "ds=1/3/000000_2": b"3",
    }
    leave(tmp_path, files)
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == files


def test_the_branches_of_a_union_with_directories_of_their_own_are_one_job(tmp_path: Path) -> None:
    above = f"{STAGING}/-ext-10000"
    leave(tmp_path, {"_tmp.HIVE_UNION_SUBDIR_1/000000_0": b"1", "_tmp.HIVE_UNION_SUBDIR_2/000000_1": b"2"}, above)
    options = by(hive_directory=above)
    (state,) = (state for state in jobs(tmp_path, options) if state.job_id.endswith(".-ext-10000"))
    commit(tmp_path, state.job_id, options=options, force=True)
    assert seen(tmp_path) == {"HIVE_UNION_SUBDIR_1/000000_0": b"1", "HIVE_UNION_SUBDIR_2/000000_1": b"2"}


def test_one_branch_of_a_union_by_itself_goes_to_its_directory(tmp_path: Path) -> None:
    directory = f"{STAGING}/-ext-10000/_tmp.HIVE_UNION_SUBDIR_2"
    leave(tmp_path, {"000000_0": b"2"}, directory)
    commit(tmp_path, "-ext-10000.HIVE_UNION_SUBDIR_2".strip("-"), options=by(hive_directory=directory), force=True)
    assert seen(tmp_path) == {"HIVE_UNION_SUBDIR_2/000000_0": b"2"}


# The choice.

DIFFER = {"ds=1/000005_0": b"aaaa", "ds=1/000005_1": b"bbb"}


def test_attempts_that_differ_are_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS | DIFFER)
    before = everything(tmp_path)
    for act in (plan, lambda url, job, options: commit(url, job, options=options, force=True)):
        with pytest.raises(CommitRefused, match="task_000005 has the output of 2 attempts, and they differ") as refused:
            act(tmp_path, JOB, HIVE)
        assert "ds=1/000005_0 (4 bytes)" in refused.value.where
        assert "duplicate_attempts=000005_1" in refused.value.next_step
    assert everything(tmp_path) == before


def test_attempts_that_have_written_the_same_bytes_are_no_conflict(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS | {"ds=1/000005_0": b"same", "ds=1/000005_1": b"same"})
    made = plan(tmp_path, JOB, HIVE)
    assert made.choices == ["task_000005: attempt 0, not 1: all attempts have written the same bytes"]
    summary = commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == TWO_TASKS | {"ds=1/000005_0": b"same"}
    assert summary.lockgate is not None


def test_equal_lengths_of_other_bytes_are_refused(tmp_path: Path) -> None:
    leave(tmp_path, {"000005_0": b"one!", "000005_1": b"two!"})
    with pytest.raises(CommitRefused, match="of the same lengths, and they differ"):
        commit(tmp_path, JOB, options=HIVE, force=True)


def test_files_too_long_to_be_compared_are_refused(tmp_path: Path) -> None:
    leave(tmp_path, {"000005_0": bytes(2000), "000005_1": bytes(2000)})
    with pytest.raises(CommitRefused, match="too long to be compared"):
        commit(tmp_path, JOB, options=by(manifest_bytes_max=1024), force=True)


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ({"duplicates": "largest"}, "ds=1/000005_0"),
        ({"duplicates": "newest"}, "ds=1/000005_1"),
        ({"duplicates": "receipts", "duplicate_attempts": ("000005_0", "000001_0")}, "ds=1/000005_0"),
        ({"duplicates": "receipts", "duplicate_attempts": ("attempt_000005_1",)}, "ds=1/000005_1"),
    ],
)
def test_the_attempt_that_the_option_chooses_is_committed(tmp_path: Path, options: dict, taken: str) -> None:
    leave(tmp_path, TWO_TASKS | DIFFER)
    summary = commit(tmp_path, JOB, options=by(**options), force=True)
    assert seen(tmp_path) == TWO_TASKS | {taken: DIFFER[taken]}
    assert summary.files == 4


def test_of_equal_lengths_largest_takes_the_first_as_hive_does(tmp_path: Path) -> None:
    leave(tmp_path, {"000005_1": b"two!", "000005_0": b"one!"})
    commit(tmp_path, JOB, options=by(duplicates="largest"), force=True)
    assert seen(tmp_path) == {"000005_0": b"one!"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"duplicates": "receipts"}, "names none"),
        ({"duplicates": "receipts", "duplicate_attempts": ("000005_0", "000005_1")}, "names several"),
        ({"duplicates": "receipts", "duplicate_attempts": ("000005_2",)}, "have left nothing: 000005_2"),
        ({"duplicates": "receipts", "duplicate_attempts": ("000005_0", "000009_0")}, "have left nothing: 000009_0"),
    ],
)
def test_receipts_that_do_not_decide_are_refused(tmp_path: Path, options: dict, why: str) -> None:
    leave(tmp_path, DIFFER)
    with pytest.raises(CommitRefused, match=why):
        commit(tmp_path, JOB, options=by(**options), force=True)
    assert everything(tmp_path / OUTPUT) == DIFFER


@pytest.mark.parametrize("rule", ["refuse", "largest", "newest"])
def test_a_name_beside_a_rule_that_would_pass_it_over_is_refused(rule: str) -> None:
    with pytest.raises(OptionError, match="goes by another rule") as refused:
        by(duplicates=rule, duplicate_attempts=("000005_0",))
    assert "duplicates=receipts" in refused.value.next_step


def test_a_resolution_that_nobody_knows_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    leave(tmp_path, DIFFER)
    with pytest.raises(OptionError, match="bigest") as refused:
        commit(tmp_path, JOB, options=by(duplicates="bigest"), force=True)
    assert "largest" in refused.value.next_step


# The seed's bug: what is one task's is chosen in each partition by itself, or not at all.


def test_the_seeds_bug_two_attempts_in_dynamic_partitions_are_not_both_kept(tmp_path: Path) -> None:
    """Seed: attempts 0 and 1 of task 000005 of a merge job both renamed their files into `hp_cal_month=2013-04`, and
    both stayed, since the merge job looked for duplicates beside the partitions (HIVE-3149)."""
    leave(tmp_path, {f"hp_cal_month=2013-04/000005_{attempt}": b"6" * 66 for attempt in (0, 1)})
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == {"hp_cal_month=2013-04/000005_0": b"6" * 66}


@pytest.mark.parametrize("resolution", ["largest", "newest"])
def test_the_seeds_bug_an_attempt_that_lacks_a_partition_is_not_mixed_with_one_that_has_it(
    tmp_path: Path, resolution: str
) -> None:
    """Hive keeps attempt 0's file in the one partition, and attempt 1's in the other."""
    leave(tmp_path, {"ds=1/000005_0": b"one", "ds=1/000005_1": b"two", "ds=2/000005_1": b"two"})
    commit(tmp_path, JOB, options=by(duplicates=resolution), force=True)
    assert seen(tmp_path) == {"ds=1/000005_1": b"two", "ds=2/000005_1": b"two"}


@pytest.mark.parametrize("resolution", ["refuse", "largest", "newest"])
@pytest.mark.parametrize(
    "files",
    [
        {"ds=1/000005_0": b"all of it", "ds=2/000005_1": b"all of it"},
        {
            "ds=1/000005_0": b"longer",
            "ds=1/000005_1": b"short",
            "ds=2/000005_0": b"s",
            "ds=2/000005_1": b"longer",
            "ds=3/000005_0": b"x",
        },
    ],
    ids=["halves", "crossed"],
)
def test_the_seeds_bug_two_attempts_that_each_hold_part_are_refused(
    tmp_path: Path, files: dict, resolution: str
) -> None:
    leave(tmp_path, files)
    with pytest.raises(CommitRefused, match="task_000005 has the output of 2 attempts"):
        commit(tmp_path, JOB, options=by(duplicates=resolution), force=True)
    assert everything(tmp_path / OUTPUT) == files


def test_a_receipt_decides_also_for_an_attempt_that_lacks_what_another_has(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=1/000005_0": b"1", "ds=2/000005_1": b"2"})
    commit(tmp_path, JOB, options=by(duplicates="receipts", duplicate_attempts=("000005_0",)), force=True)
    assert seen(tmp_path) == {"ds=1/000005_0": b"1"}


def test_empty_buckets_are_files_like_any(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=1/000000_0": b"", "ds=1/000001_0": b"", "ds=1/000001_1": b"rows"})
    commit(tmp_path, JOB, options=by(duplicates="largest"), force=True)
    assert seen(tmp_path) == {"ds=1/000000_0": b"", "ds=1/000001_1": b"rows"}


# Bad input.


@pytest.mark.parametrize(
    "path",
    [
        "part-00000", "ds=1/000001", "00001_0", "0000001_0", "000001_00", "ds=1/bucket_00000", "000001_0_copy_0",
        "ds=1/.hidden", "_SUCCESS", "_temporary/0/x", "base_0000001/000001_0", "000007_0/file", "nopartition/000001_0",
        ".x=1/000001_0", "HIVE_UNION_SUBDIR_1/HIVE_UNION_SUBDIR_2/000001_0", "ds=1/.notes.txt.crc", "_lockgate/x",
        "_task_id=5/000001_0", "ds=1/_tmp.x=1/000001_0",
    ],
)  # fmt: skip
def test_what_no_task_has_written_is_refused_by_name_and_nothing_moves(tmp_path: Path, path: str) -> None:
    leave(tmp_path, TWO_TASKS | {path: b"?"})
    before = everything(tmp_path)
    with pytest.raises(ManifestInvalid, match="not of a task's output") as refused:
        commit(tmp_path, JOB, options=HIVE, force=True)
    assert path.split("/")[0] in refused.value.where
    assert everything(tmp_path) == before


def test_an_empty_directory_where_a_file_is_expected_is_refused(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    (tmp_path / OUTPUT / "ds=1/000009_0").mkdir()
    with pytest.raises(ManifestInvalid, match="not of a task's output"):
        commit(tmp_path, JOB, options=HIVE, force=True)


def test_a_symbolic_link_among_the_files_is_refused(tmp_path: Path) -> None:
    left = leave(tmp_path, TWO_TASKS)
    (left / "000009_0").symlink_to(tmp_path)
    with pytest.raises(LockgateError):
        commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == {}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("000000_0")], ids=["a pipe", "a link"])
def test_what_is_no_plain_file_is_refused_and_what_hive_has_left_stays(tmp_path: Path, make) -> None:
    left = leave(tmp_path, TWO_TASKS)
    make(left / "000009_0")
    before = sorted(path.name for path in left.rglob("*"))
    with pytest.raises(ManifestInvalid, match="not of a task's output"):
        commit(tmp_path, JOB, options=HIVE, force=True)
    assert sorted(path.name for path in left.rglob("*")) == before


def test_two_files_of_one_attempt_at_one_place_are_refused(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS | {"ds=1/000001_0.gz": b"again"})
    with pytest.raises(ManifestInvalid, match="of one task attempt"):
        commit(tmp_path, JOB, options=HIVE, force=True)


@pytest.mark.parametrize("change", ["grows", "comes", "goes", "another attempt"])
def test_what_changes_between_the_look_and_the_move_is_refused_before_anything_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    left = leave(tmp_path, TWO_TASKS)
    create = LocalStore.create_file

    async def changed(store, path, content):
        if path.endswith("commit.json"):
            if change == "grows":
                os.truncate(left / "ds=1/000001_0", 100)
            elif change == "goes":
                (left / "ds=1/000001_0").unlink()
            else:
                leave(tmp_path, {"ds=2/000001_1" if change == "another attempt" else "ds=2/000009_0": b"new"})
        return await create(store, path, content)

    monkeypatch.setattr(LocalStore, "create_file", changed)
    with pytest.raises(CommitRefused, match="is changing while it is looked at"):
        commit(tmp_path, JOB, options=HIVE, force=True)
    monkeypatch.undo()
    assert seen(tmp_path) == {}
    assert left.is_dir()
    now = everything(left)
    commit(
        tmp_path,
        JOB,
        options=by(duplicates="newest")
        if change != "another attempt"
        else by(duplicates="receipts", duplicate_attempts=("000001_0",)),
        force=True,
    )
    assert seen(tmp_path) == {path: now[path] for path in now if path != "ds=2/000001_1"}


@pytest.mark.parametrize("late", ["ds=2/000009_0", "ds=2/000001_0"])
def test_complete_what_an_attempt_adds_between_the_last_look_and_the_rename_is_not_deleted_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """It went with the job's directory, and the commit said that all was well."""
    leave(tmp_path, TWO_TASKS)
    rename = LocalStore.rename_directories

    async def finished_first(store, renames):
        if any(each.source == OUTPUT for each in renames):
            leave(tmp_path, {late: b"late"})
        return await rename(store, renames)

    monkeypatch.setattr(LocalStore, "rename_directories", finished_first)
    with pytest.raises(CommitFailed, match="1 file of the Hive job"):
        commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == {}
    assert everything(tmp_path / OUTPUT) == TWO_TASKS | {late: b"late"}, "it is Hive's as before"
    monkeypatch.undo()
    summary = commit(tmp_path, JOB, options=HIVE, force=True)
    assert summary.job_id == JOB
    assert seen(tmp_path) == TWO_TASKS | {late: b"late"}


def test_resumable_a_choice_that_was_made_anew_at_the_claim_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifests were saved nowhere: a driver that died after the claim left a job that nobody could end."""
    leave(tmp_path, TWO_TASKS)
    keep = protocol._keep

    async def added_then(run, place, chosen):
        await keep(run, place, chosen)
        leave(tmp_path, {"ds=2/000009_0": b"late"})

    monkeypatch.setattr(protocol, "_keep", added_then)
    with pytest.raises(CommitRefused, match="is changing while it is looked at"):
        commit(tmp_path, JOB, options=HIVE, force=True)
    monkeypatch.undo()
    assert seen(tmp_path) == {}
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == TWO_TASKS | {"ds=2/000009_0": b"late"}


def test_an_attempt_that_is_not_chosen_may_finish_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave(tmp_path, TWO_TASKS)
    rename = LocalStore.rename_directories

    async def finished_first(store, renames):
        if any(each.source == OUTPUT for each in renames):
            leave(tmp_path, {"ds=1/000001_1": b"c"})
        return await rename(store, renames)

    monkeypatch.setattr(LocalStore, "rename_directories", finished_first)
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == TWO_TASKS


def test_hive_is_refused_by_name_where_no_directory_is_renamed_as_one_act(tmp_path: Path, monkeypatch) -> None:
    less = LocalStore.capabilities.fget
    without = {Capability.ATOMIC_DIRECTORY_RENAME}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: less(store) - without))
    with pytest.raises(CapabilityMissing, match="atomic-directory-rename"):
        Job(tmp_path, protocol="hive")


# Where the directory is.


def test_a_directory_outside_of_the_destination_is_named_by_its_url(tmp_path: Path) -> None:
    table, scratch = tmp_path / "warehouse/t", tmp_path / "tmp/hive_2013-05-30_10-13-59_124_8643"
    table.mkdir(parents=True)
    leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    options = by(hive_directory=str(scratch / "_tmp.-ext-10000"))
    (state,) = jobs(table, options)
    assert state.job_id == "hive_2013-05-30_10-13-59_124_8643.-ext-10000"
    assert plan(table, state.job_id, options).files == 3
    commit(table, state.job_id, options=options, force=True)
    assert seen(table) == TWO_TASKS
    assert everything(scratch) == {}


def test_contained_a_directory_elsewhere_is_only_touched_by_who_names_it(tmp_path: Path) -> None:
    table, scratch = tmp_path / "t", tmp_path / "tmp/hive_1"
    table.mkdir()
    leave(scratch, DIFFER, "_tmp.-ext-10000")
    named = by(hive_directory=f"file://{scratch}/_tmp.-ext-10000", duplicates="largest", conflict="fail")
    (table / "000001_0").write_bytes(b"old")
    job = "hive_1.-ext-10000"
    with pytest.raises(DestinationConflict):
        commit(table, job, options=named, force=True)
    with pytest.raises(OptionError, match="only the one who gives the command"):
        commit(table, job, options=HIVE, force=True)
    assert everything(scratch / "_tmp.-ext-10000") == DIFFER
    commit(table, job, options=named.replace(conflict="append"), force=True)
    assert seen(table) == {"000001_0": b"old", "ds=1/000005_0": b"aaaa"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("/", "or above it"),
        ("..", "a path below the destination"),
        ("s3://bucket/x/_tmp.y", "on another store"),
        ("{root}", "or above it"),
        ("/etc", "none that a Hive job writes to"),
        ("data", "none that a Hive job writes to"),
    ],
)
def test_a_directory_that_cannot_be_is_refused(tmp_path: Path, given: str, why: str) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(OptionError, match=why):
        jobs(tmp_path, by(hive_directory=given.format(root=tmp_path)))


@pytest.mark.parametrize("given", ["{elsewhere}/_tmp.-ext-10000", ".hive-staging_1/_tmp.typo", "file"])
def test_a_directory_that_is_not_there_is_refused_before_anything(tmp_path: Path, given: str) -> None:
    """It was made into the id of a job, which was listed, and could be asked to commit."""
    table, elsewhere = tmp_path / "t", tmp_path / "elsewhere"
    leave(table, TWO_TASKS)
    (table / "file").write_bytes(b"1")
    named = by(hive_directory=given.format(elsewhere=elsewhere))
    before = everything(tmp_path)
    acts = (
        lambda: jobs(table, named),
        lambda: plan(table, "any", named),
        lambda: commit(table, "any", options=named, force=True),
        lambda: abort(table, "any", named, force=True),
    )
    for act in acts:
        with pytest.raises(OptionError, match="hive_directory is a file" if given == "file" else "no such hive_dir"):
            act()
    assert everything(tmp_path) == before


def test_a_directory_that_is_another_jobs_is_not_passed_over(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    other = leave(tmp_path / "elsewhere", TWO_TASKS, "_tmp.-ext-10000")
    named, before = by(hive_directory=str(other)), everything(tmp_path)
    acts = (
        lambda: plan(tmp_path, JOB, named),
        lambda: commit(tmp_path, JOB, options=named, force=True),
        lambda: abort(tmp_path, JOB, named, force=True),
    )
    for act in acts:
        with pytest.raises(OptionError, match=r"not that of job .*, but of elsewhere"):
            act()
    assert everything(tmp_path) == before


def test_a_directory_that_was_committed_and_is_gone_is_no_mistake_in_its_name(tmp_path: Path) -> None:
    table, scratch = tmp_path / "t", tmp_path / "hive_1"
    table.mkdir()
    left = leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    named, job = by(hive_directory=str(left)), "hive_1.-ext-10000"
    commit(table, job, options=named, force=True)
    assert not left.exists()
    with pytest.raises(JobNotFound, match="committed already"):
        commit(table, job, options=named, force=True)
    assert [state.job_id for state in jobs(table, named)] == [job]


def test_a_job_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    with pytest.raises(JobNotFound):
        commit(tmp_path, "another", options=HIVE, force=True)
    with pytest.raises(LockgateError):
        commit(tmp_path, JOB, options=JobOptions(), force=True)
    assert everything(tmp_path / OUTPUT) == TWO_TASKS


# The destination, and the end of the job.


def test_append_gives_a_name_that_is_taken_the_next_copy_as_hive_does(tmp_path: Path) -> None:
    for number, content in enumerate((b"1", b"2", b"3")):
        leave(tmp_path, {"ds=1/000000_0.gz": content}, f"{STAGING}/_tmp.-ext-1000{number}")
        commit(tmp_path, f"{JOB[:-1]}{number}", options=HIVE, force=True)
    assert seen(tmp_path) == {
        "ds=1/000000_0.gz": b"1",
        "ds=1/000000_0_copy_1.gz": b"2",
        "ds=1/000000_0_copy_2.gz": b"3",
    }


def test_a_taken_name_without_a_next_copy_refuses_the_commit_instead_of_looking_for_ever(tmp_path: Path) -> None:
    leave(tmp_path, {"000001_0_copy_999999": b"old"}, ".")
    leave(tmp_path, {"000001_0_copy_999999": b"new"})
    before = everything(tmp_path)
    for command in (plan, commit):
        with pytest.raises(CommitRefused, match="no number of a copy above 999999"):
            command(tmp_path, JOB, options=HIVE, **({"force": True} if command is commit else {}))
    assert seen(tmp_path) == {"000001_0_copy_999999": b"old"}
    assert everything(tmp_path).items() >= before.items()


def test_replace_partitions_replaces_what_the_job_writes_and_leaves_the_rest(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=1/000000_0": b"old", "ds=3/000000_0": b"kept"}, ".")
    leave(tmp_path, TWO_TASKS)
    commit(tmp_path, JOB, options=by(conflict="replace-partitions"), force=True)
    assert seen(tmp_path) == TWO_TASKS | {"ds=3/000000_0": b"kept"}


def test_an_abort_deletes_what_hive_has_left_and_nothing_beside_it(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"_tmp.000005_0": b"half"}, f"{STAGING}/_task_tmp.-ext-10000")
    leave(tmp_path, TWO_TASKS, f"{STAGING}/_tmp.-ext-10001")
    abort(tmp_path, JOB, HIVE, force=True)
    assert everything(tmp_path) == {f"{STAGING}/_tmp.-ext-10001/{path}": content for path, content in TWO_TASKS.items()}
    abort(tmp_path, f"{JOB[:-1]}1", HIVE, force=True)
    assert not (tmp_path / STAGING).exists(), "an empty one is left to nobody"


def test_gc_deletes_what_a_refused_commit_has_left_and_nothing_of_hives(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"ds=9/000000_0": b"data"}, ".")
    idle = by(alive_seconds=0)
    (kept,) = collect_garbage(tmp_path, options=idle)
    assert kept.action == "kept"
    with pytest.raises(DestinationConflict):
        commit(tmp_path, JOB, options=by(conflict="fail"), force=True)
    assert (tmp_path / "_lockgate").exists()
    (deleted,) = collect_garbage(tmp_path, options=idle)
    assert deleted.action == "deleted"
    assert not (tmp_path / "_lockgate").exists()
    assert everything(tmp_path / OUTPUT) == TWO_TASKS


def test_a_plugins_resolution_is_asked_first(tmp_path: Path) -> None:
    class Second:
        @hookimpl
        def lockgate_resolve_duplicates(self, duplicates, options):
            return Choice(duplicates.attempts[1].attempt, "the second") if options.duplicates == "second" else None

    plugin = Second()
    registry_for((), ()).register(plugin, "second")
    try:
        leave(tmp_path, DIFFER)
        assert plan(tmp_path, JOB, by(duplicates="second")).choices == ["task_000005: attempt 1, not 0: the second"]
    finally:
        registry_for((), ()).unregister(plugin)


# Jobs of ours.


def test_a_task_of_ours_gives_its_files_the_names_that_hive_would(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="hive")
    job.setup()
    receipts = []
    for task, names in enumerate((["ds=1/part-a.snappy.orc", "ds=1/b.orc", "ds=2/x"], ["ds=1/000007_2", "y"])):
        attempt = job.task_attempt(task, 2)
        attempt.setup()
        for name in names:
            with attempt.open(name) as file:
                file.write(name.encode())
        receipts.append(attempt.commit())
    job.commit(receipts)
    assert seen(tmp_path) == {
        "ds=1/000000_2.orc": b"ds=1/b.orc",
        "ds=1/000000_2_copy_1.snappy.orc": b"ds=1/part-a.snappy.orc",
        "ds=2/000000_2": b"ds=2/x",
        "ds=1/000007_2": b"ds=1/000007_2",
        "000001_2": b"y",
    }
    assert all(re.fullmatch(r"[0-9]{6}_2.*", path.rpartition("/")[2]) for path in seen(tmp_path))


def test_jobs_of_ours_append_beside_each_other(tmp_path: Path) -> None:
    for content in (b"1", b"2"):
        job = Job(tmp_path, protocol="hive")
        job.setup()
        attempt = job.task_attempt(0, 0)
        attempt.setup()
        with attempt.open("x.csv") as file:
            file.write(content)
        job.commit([attempt.commit()])
    assert seen(tmp_path) == {"000000_0.csv": b"1", "000000_0_copy_1.csv": b"2"}


def test_two_tasks_whose_attempts_are_a_million_apart_have_files_of_their_own(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="hive")
    job.setup()
    receipts = []
    for task, attempt in ((0, 7), (1, 1_000_007), (2, 1_000_008)):
        one = job.task_attempt(task, attempt)
        one.setup()
        for name in ("part-0.orc", "part-1.orc"):
            with one.open(name) as file:
                file.write(f"{task} {name}".encode())
        receipts.append(one.commit())
    job.commit(receipts)
    assert sorted(seen(tmp_path)) == [
        "000000_7.orc",
        "000000_7_copy_1.orc",
        "000001_7.orc",
        "000001_7_copy_1.orc",
        "000002_8.orc",
        "000002_8_copy_1.orc",
    ]


def test_two_tasks_of_ours_for_one_file_are_refused(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="hive")
    job.setup()
    receipts = []
    for task, name in enumerate(("ds=1/000001_0", "ds=1/x")):
        attempt = job.task_attempt(task, 0)
        attempt.setup()
        with attempt.open(name) as file:
            file.write(name.encode())
        receipts.append(attempt.commit())
    with pytest.raises(DuplicateTarget, match="two tasks"):
        job.commit(receipts)
    assert seen(tmp_path) == {}


# A driver that dies.

ACTS = (
    "rename_files", "rename_directories", "create_file", "write_file", "delete_files", "delete_directories",
    "make_directories", "delete_empty_directories",
)  # fmt: skip


def dies_at(monkeypatch: pytest.MonkeyPatch, number: int, *, after: bool) -> list[str]:
    """From its `number`-th act on, or after that one, a driver's process does nothing any more."""
    done: list[str] = []

    def dying(name: str):
        original = getattr(LocalStore, name)

        async def act(store, *arguments, **named):
            done.append(name)
            if len(done) > number or (len(done) == number and not after):
                raise Died(name)
            answer = await original(store, *arguments, **named)
            if len(done) == number:
                raise Died(name)
            return answer

        return act

    for name in ACTS:
        monkeypatch.setattr(LocalStore, name, dying(name))
    return done


class Died(BaseException):
    """What is left of a process that was killed."""


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("buckets", [0, 3])
def test_resumable_a_driver_that_dies_at_any_act_is_finished_or_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buckets: int, after: bool, undo: bool
) -> None:
    options = by(conflict="replace-partitions", duplicates="largest", hive_buckets=buckets)
    new = {"ds=1/000000_0": b"a", "ds=2/000000_0": b"b", "ds=1/000001_1": b"ccc"}
    if buckets:
        new |= {"ds=1/000002_0": b"", "ds=2/000001_0": b"", "ds=2/000002_0": b""}
    number, finished, undone, untouched = 0, 0, 0, 0
    while True:
        number += 1
        root = tmp_path / str(number)
        old = {"ds=1/000000_0": b"old", "ds=3/000000_0": b"kept"}
        leave(root, old, ".")
        leave(root, TWO_TASKS | {"ds=1/000001_1": b"ccc"})
        left = everything(root / OUTPUT)
        with monkeypatch.context() as patched:
            done = dies_at(patched, number, after=after)
            with contextlib.suppress(Died):
                commit(root, JOB, options=options, force=True)
            if len(done) < number:
                break
        outcome = (
            recover(root, JOB, undo=undo or None, force=True, options=HIVE)
            if not (undo and seen(root).get("ds=1/000001_1") and (root / "_SUCCESS").exists())
            else recover(root, JOB, force=True, options=HIVE)
        )
        if (root / "_SUCCESS").exists():
            assert seen(root) == new | {"ds=3/000000_0": b"kept"}, (number, outcome)
            finished += 1
            continue
        assert seen(root) == old, (number, outcome)
        if (root / OUTPUT).exists():
            # Nobody has taken it: it is Hive's as before, and can be committed yet.
            assert everything(root / OUTPUT) == left
            commit(root, JOB, options=options, force=True)
            assert seen(root) == new | {"ds=3/000000_0": b"kept"}
            untouched += 1
        else:
            undone += 1
    assert number > 15
    assert finished
    assert untouched
    assert undone or not undo


def test_recovery_of_a_job_whose_directory_is_elsewhere_asks_for_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, scratch = tmp_path / "t", tmp_path / "hive_1"
    table.mkdir()
    left = leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    named, job = by(hive_directory=str(left)), "hive_1.-ext-10000"

    async def dies(store, renames):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "rename_directories", dies)
        with pytest.raises(Died):
            commit(table, job, options=named, force=True)
    with pytest.raises(OptionError, match="only the one who gives the command"):
        recover(table, job, force=True, options=JobOptions())
    assert everything(left) == TWO_TASKS
    recover(table, job, force=True, options=named)
    assert seen(table) == TWO_TASKS
    assert not left.exists()


def test_recovery_that_lacks_the_directory_of_a_claimed_job_leaves_it_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written down as refused, and nothing was left to recover once the name was given."""
    table, scratch = tmp_path / "t", tmp_path / "hive_1"
    table.mkdir()
    left = leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    named, job = by(hive_directory=str(left)), "hive_1.-ext-10000"

    async def dies(*arguments, **options):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "plan_claimed", dies)
        with pytest.raises(Died):
            commit(table, job, options=named, force=True)
    with pytest.raises(OptionError, match="only the one who gives the command"):
        recover(table, job, force=True, options=JobOptions())
    assert recover(table, job, force=True, options=named)[job].outcome == "finished"
    assert seen(table) == TWO_TASKS


def test_the_tasks_that_were_left_out_are_named_where_recovery_finishes_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"_tmp.000005_0": b"half"}, f"{STAGING}/_task_tmp.-ext-10000")

    async def dies(store, renames):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "rename_directories", dies)
        with pytest.raises(Died):
            commit(tmp_path, JOB, options=HIVE, force=True)
    summary = recover(tmp_path, JOB, force=True, options=HIVE)[JOB].summary
    assert summary is not None
    assert summary.lockgate is not None
    assert list(summary.lockgate.left_out) == ["task_000005"]


def test_undoing_a_job_whose_directory_nobody_has_taken_leaves_it_to_hive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, scratch = tmp_path / "t", tmp_path / "hive_1"
    leave(table, {"ds=1/000000_0": b"old"}, ".")
    left = leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    named, job = by(hive_directory=str(left), conflict="replace"), "hive_1.-ext-10000"
    dies = LocalStore.rename_directories

    async def slept(store, renames):
        """The driver sleeps before its rename, while another undoes the job."""
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "rename_directories", dies)
            await asyncio.to_thread(recover_in_a_process, table, job)
        return await dies(store, renames)

    monkeypatch.setattr(LocalStore, "rename_directories", slept)
    with pytest.raises(LockgateError):
        commit(table, job, options=named, force=True)
    assert everything(left) == TWO_TASKS
    assert seen(table) == {"ds=1/000000_0": b"old"}


def recover_in_a_process(table: Path, job: str) -> None:
    code = "import sys; from lockgate.api.jobs import recover; recover(sys.argv[1], sys.argv[2], undo=True, force=True)"
    subprocess.run([sys.executable, "-c", code, str(table), job], check=True, timeout=100)


@pytest.mark.parametrize("given", [{"hive_buckets": 4}, {"duplicates": "largest"}, {"hive_directory": "x/_tmp.y"}])
def test_options_for_a_job_of_hives_are_not_passed_over_by_one_of_ours(tmp_path: Path, given: dict) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(given))} would have no effect"):
        Job(tmp_path, options=by(**given)).setup()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_complete_hive_gets_its_files_back_where_a_task_has_made_the_directory_again(
    tmp_path: Path, monkeypatch, elsewhere: bool
) -> None:
    """All that had finished before was deleted; who gave the command again, as the error says, committed the rest."""
    table = tmp_path / "table"
    table.mkdir()
    directory = "elsewhere/_tmp.-ext-10000" if elsewhere else f"table/{OUTPUT}"
    options = by(hive_directory=(tmp_path / directory).as_uri()) if elsewhere else HIVE
    leave(tmp_path, TWO_TASKS, directory)
    (job_id,) = (state.job_id for state in jobs(table, options))
    adopts = adopt.adopt

    async def amid_tasks_at_work(run):
        leave(tmp_path, {"ds=3/000007_0": b"late"}, directory)
        await adopts(run)
        leave(tmp_path, {"ds=1/000008_0": b"later", "ds=1/000001_0": b"again"}, directory)

    with monkeypatch.context() as patched:
        patched.setattr(adopt, "adopt", amid_tasks_at_work)
        with pytest.raises(CommitFailed, match="changed, or added"):
            commit(table, job_id, options=options, force=True)
    left = TWO_TASKS | {"ds=3/000007_0": b"late", "ds=1/000008_0": b"later", "ds=1/000001_0": b"again"}
    assert (seen(table), everything(tmp_path / directory)) == ({}, left)
    commit(table, job_id, options=options, force=True)
    assert seen(table) == left


# Found by a newcomer.


@pytest.mark.parametrize("name", ["hive_2024-11-21_10-13-59_124_8643", "hive_2024-11-21_dump", ".hive-staging_hive_1"])
def test_a_querys_own_directory_is_no_jobs(tmp_path: Path, name: str) -> None:
    """It holds what several jobs have left, each of which an abort would delete."""
    scratch = tmp_path / "scratch" / name
    leave(scratch, TWO_TASKS, "_tmp.-ext-10000")
    leave(scratch, TWO_TASKS, "_tmp.-ext-10002")
    before = everything(tmp_path)
    with pytest.raises(OptionError, match="none that a Hive job writes to"):
        jobs(tmp_path / "t", by(hive_directory=str(scratch)))
    job = hive_output.job_id_of(str(scratch))
    with pytest.raises(LockgateError):
        abort(tmp_path / "t", job, by(hive_directory=str(scratch)), force=True)
    assert everything(tmp_path) == before


def test_an_abort_of_what_no_task_has_written_deletes_nothing(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS | {"README": b"mine"})
    with pytest.raises(ManifestInvalid, match="1 name in what Hive has left is not of a task's output") as caught:
        abort(tmp_path, JOB, HIVE, force=True)
    assert "who wrote it, and move it away" in caught.value.next_step
    assert everything(tmp_path / OUTPUT) == TWO_TASKS | {"README": b"mine"}
    assert not (tmp_path / "_lockgate").exists()


class Wrong:
    """Resolutions that a plugin gives wrongly, by their names."""

    @hookimpl
    def lockgate_resolve_duplicates(self, duplicates, options):
        answers = {"text": "1", "no attempt": Choice(7, "it is not there"), "asks": Asked.CONTENTS}
        if options.duplicates == "raises":
            raise ValueError("a plugin's own")
        return answers.get(options.duplicates)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "the plugin 'wrong' is faulty: lockgate_resolve_duplicates fails: ValueError: a plugin's own"),
        ("text", r"answers '1'(?s:.)*mend the plugin \(wrong\)"),
        ("no attempt", r"answers Choice(?s:.)*whose attempts are 0, 1(?s:.)*mend the plugin \(wrong\)"),
        ("asks", r"answers <Asked(?s:.)*mend the plugin \(wrong\)"),
    ],
)
def test_a_resolution_that_is_none_names_its_plugin(tmp_path: Path, name: str, words: str) -> None:
    plugin = Wrong()
    registry_for((), ()).register(plugin, "wrong")
    try:
        leave(tmp_path, DIFFER)
        with pytest.raises(PluginError, match=words):
            plan(tmp_path, JOB, by(duplicates=name))
    finally:
        registry_for((), ()).unregister(plugin)


def test_an_abort_after_a_refused_commit_deletes_what_hive_has_left(tmp_path: Path) -> None:
    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"ds=9/000000_0": b"data"}, ".")
    with pytest.raises(DestinationConflict):
        commit(tmp_path, JOB, options=by(conflict="fail"), force=True)
    assert everything(tmp_path / OUTPUT) == TWO_TASKS
    abort(tmp_path, JOB, HIVE, force=True)
    assert everything(tmp_path) == {"ds=9/000000_0": b"data"}


@pytest.mark.parametrize("policy", ["fail", "replace", "replace-partitions"])
def test_a_directory_that_readers_see_is_not_taken_for_the_destinations_data(tmp_path: Path, policy: str) -> None:
    leave(tmp_path, TWO_TASKS, "sub/-ext-10000")
    leave(tmp_path, {"ds=1/000009_0": b"old"}, ".")
    before = everything(tmp_path)
    with pytest.raises(OptionError, match="where readers of the destination look"):
        commit(tmp_path, "sub.-ext-10000", options=by(hive_directory="sub/-ext-10000", conflict=policy), force=True)
    assert everything(tmp_path) == before
    commit(tmp_path, "sub.-ext-10000", options=by(hive_directory="sub/-ext-10000"), force=True)
    assert seen(tmp_path) == TWO_TASKS | {"ds=1/000009_0": b"old"}


def test_an_attempt_that_was_cut_short_counts_as_little_after_an_abort_that_was_killed(
    tmp_path: Path, monkeypatch
) -> None:
    """The abort had taken what says so, where tasks were at work, before it took the rest."""

    async def dies(run, *, if_there) -> None:
        raise Died

    leave(tmp_path, TWO_TASKS)
    leave(tmp_path, {"ds=2/_tmp.000000_0": b"half"}, f"{STAGING}/_task_tmp.-ext-10000")
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(adopt, "adopt", dies)
        abort(tmp_path, JOB, HIVE, force=True)
    with pytest.raises(CommitRefused, match="was cut short"):
        commit(tmp_path, JOB, options=HIVE, force=True)
    abort(tmp_path, JOB, HIVE, force=True)
    assert everything(tmp_path) == {}

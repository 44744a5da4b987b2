"""An abort of a job of Hive's dies before any of its acts: what Hive has left goes as a whole, or stays as a
whole, with what says which attempts were cut short; and another command afterwards does what it is asked for."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hive_left import HIVE, JOB, OUTPUT, STAGING, everything, leave, seen
from local_acts import CHANGES, Died, before_act, dies
from lockgate.api.jobs import abort, collect_garbage, commit, jobs, plan, recover
from lockgate.errors import CommitFailed, CommitFenced, CommitRefused, JobNotFound, OptionError
from lockgate.stores.local import LocalStore

AT_WORK = f"{STAGING}/_task_tmp.-ext-10000"
ALONE = HIVE.replace(alive_seconds=0)
LARGEST, NEWEST = (ALONE.replace(duplicates=each) for each in ("largest", "newest"))
SHORT = {f"{OUTPUT}/ds=1/000000_0": b"a", f"{AT_WORK}/ds=2/_tmp.000000_0": b"half"}


@pytest.mark.parametrize("gc", [False, True])
def test_complete_an_attempt_that_was_cut_short_counts_in_no_commit_after_an_abort_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gc: bool
) -> None:
    for number in range(1, 40):
        root = tmp_path / str(number)
        leave(root, SHORT, ".")
        with monkeypatch.context() as patch:
            done = before_act(patch, number, CHANGES, dies)
            with contextlib.suppress(Died):
                abort(root, JOB, options=ALONE, force=True)
        if len(done) < number:
            return
        if gc:
            collect_garbage(root, options=ALONE)
            there = everything(root)
            assert set(SHORT) <= set(there) or not any(path in there for path in SHORT)
        with pytest.raises((CommitRefused, JobNotFound)):
            commit(root, JOB, options=ALONE, force=True)
        assert seen(root) == {}
    raise AssertionError("no end")


@pytest.mark.parametrize("command", ["gc", "abort", "nothing"])
def test_complete_the_same_of_a_directory_outside_of_the_destination_which_only_some_commands_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """What the abort had taken can go back only where it is known from where it came."""
    for number in range(1, 40):
        root = tmp_path / str(number)
        destination = root / "table"
        destination.mkdir(parents=True)
        hives = root / "scratch" / STAGING
        leave(hives, {"ds=1/000000_0": b"a", "ds=1/000001_0": b"b"}, "_tmp.-ext-10000")
        leave(hives, {"ds=2/_tmp.000001_0": b"half"}, "_task_tmp.-ext-10000")
        options = ALONE.replace(hive_directory=(hives / "_tmp.-ext-10000").as_uri())
        (job,) = jobs(destination, options)
        with monkeypatch.context() as patch:
            done = before_act(patch, number, CHANGES, dies)
            with contextlib.suppress(Died):
                abort(destination, job.job_id, options=options, force=True)
        if len(done) < number:
            return
        with contextlib.suppress(OptionError, JobNotFound, CommitFenced):
            if command == "gc":
                collect_garbage(destination, options=ALONE)
            if command == "abort":
                abort(destination, job.job_id, options=ALONE, force=True)
        with pytest.raises((CommitRefused, JobNotFound, OptionError)):
            commit(destination, job.job_id, options=options, force=True)
        assert seen(destination) == {}
    raise AssertionError("no end")


def test_complete_hive_gets_back_what_an_abort_that_was_killed_had_taken_with_what_the_commit_gives_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"ds=1/000000_0": b"rows 1-5", "ds=1/000001_0": b"other"}
    leave(tmp_path, {**whole, "ds=1/000000_1": b"rows 1-3"})
    leave(tmp_path, {"ds=1/_tmp.000000_1": b"rows 4"}, AT_WORK)
    rename = LocalStore.rename_directories

    async def dies_at_the_second(store, renames):
        if renames[0].target.endswith("/left"):
            raise Died
        return await rename(store, renames)

    async def after_a_task(store, renames):
        if renames[0].target.endswith("/left"):
            leave(tmp_path, {"ds=1/000002_0": b"late"})
        return await rename(store, renames)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "rename_directories", dies_at_the_second)
        with pytest.raises(Died):
            abort(tmp_path, JOB, options=ALONE, force=True)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "rename_directories", after_a_task)
        with pytest.raises(CommitFailed, match="destination was restored"):
            commit(tmp_path, JOB, options=NEWEST, force=True)
    assert (tmp_path / AT_WORK / "ds=1/_tmp.000000_1").read_bytes() == b"rows 4"
    commit(tmp_path, JOB, options=NEWEST, force=True)
    assert seen(tmp_path) == {**whole, "ds=1/000002_0": b"late"}


def test_a_choice_of_before_an_abort_that_was_killed_is_made_by_the_same_options_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path, {"p=1/000000_0": b"aaaa", "p=1/000000_1": b"bb"})
    with monkeypatch.context() as patch:
        before_act(patch, 1, ["create_file"], dies)
        with pytest.raises(Died):
            commit(tmp_path, JOB, options=NEWEST, force=True)
    with monkeypatch.context() as patch:
        before_act(patch, 1, ["create_file"], dies)
        with pytest.raises(Died):
            abort(tmp_path, JOB, options=ALONE, force=True)
    for options in (ALONE, LARGEST):
        with pytest.raises(CommitRefused, match="an abort was begun"):
            plan(tmp_path, JOB, options)
        with pytest.raises(CommitRefused, match="an abort was begun"):
            commit(tmp_path, JOB, options=options, force=True)
    commit(tmp_path, JOB, options=NEWEST, force=True)
    assert seen(tmp_path) == {"p=1/000000_1": b"bb"}


def test_complete_an_undoing_gives_hive_its_directory_back_to_where_it_was_whatever_namesake_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy has the same last two names, which the job's id is made of."""
    table, right, copy = tmp_path / "table", tmp_path / "scratch" / STAGING, tmp_path / "backup" / STAGING
    table.mkdir()
    for root in (right, copy):
        leave(root, {"000000_0": b"a"}, "_tmp.-ext-10000")
    named, wrong = (ALONE.replace(hive_directory=(root / "_tmp.-ext-10000").as_uri()) for root in (right, copy))
    (job,) = jobs(table, named)
    rename = LocalStore.rename_files

    async def dies_first(store, renames, *others):
        if any("000000_0" in each.target for each in renames):
            raise Died
        return await rename(store, renames, *others)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "rename_files", dies_first)
        with pytest.raises(Died):
            commit(table, job.job_id, options=named, force=True)
    assert not (right / "_tmp.-ext-10000").exists()
    for _ in range(2):
        with pytest.raises(OptionError, match="of another directory, of the same last two names") as caught:
            recover(table, job.job_id, undo=True, force=True, options=wrong)
        assert str((right / "_tmp.-ext-10000").as_uri()) in caught.value.next_step
    recover(table, job.job_id, undo=True, force=True, options=named)
    assert everything(right) == everything(copy)


def test_an_abort_of_a_committed_job_leaves_alone_a_namesake_of_its_directory(tmp_path: Path) -> None:
    table, other = tmp_path / "table", tmp_path / "backup"
    leave(table, {"000000_0": b"a"})
    commit(table, JOB, options=ALONE, force=True)
    leave(other, {"000000_0": b"another"})
    before = everything(other)
    named = ALONE.replace(hive_directory=(other / OUTPUT).as_uri())
    with pytest.raises(JobNotFound, match="is committed already"):
        abort(table, JOB, options=named, force=True)
    assert everything(other) == before

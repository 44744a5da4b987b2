"""A job with parts in other locations: whatever happens to its driver, all of its destinations end alike."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from faulty_store import FaultyStore, Stop
from lockgate import Job, Receipt, jobs, recover
from lockgate.api.job_runs import job_run
from lockgate.api.jobs import abort, collect_garbage, commit
from lockgate.api.locations import commit_with, may_have_locations, part_of
from lockgate.engine.commit_once import commit_once
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.recovery.recover import recover_job
from lockgate.errors import (
    CommitFailed,
    CommitFenced,
    CommitRefused,
    DestinationConflict,
    LockgateError,
    OutcomeUnknown,
    UsageError,
)
from lockgate.stores.local import LocalStore

OLD = {"table": {"p=1/old": b"old"}, "one": {"old": b"old"}, "two": {"kept": b"kept"}}
NEW = {"table": {"p=1/new": b"new"}, "one": {"new": b"new"}, "two": {"kept": b"kept", "new": b"new"}}
POLICIES = {"one": "replace", "two": "append"}
Tables = Callable[[str], Any]
EACH = int(os.environ.get("TEST_EVERY_CALL", "0"))
"""1: drivers die, or sleep, before every one of their calls, and not before some of them."""


def fill(tables: Tables, number: int = 0) -> dict[str, Any]:
    """The three destinations as they were."""
    found = {name: tables(f"{number}/{name}") for name in OLD}
    for name, table in found.items():
        table.write(OLD[name])
    return found


def declare(job: Job, url: str) -> None:
    """As a task of Spark's does before it makes anything there."""
    path = job.layout.location(hashlib.sha256(url.encode()).hexdigest())
    asyncio.run(job._open().make_directories([job.layout.locations]))
    asyncio.run(job._open().write_file(path, url.encode()))


def prepare(at: dict[str, Any], **options: Any) -> tuple[Job, list[Receipt]]:
    """A job whose tasks have written to all three."""
    job = at["table"].job(conflict="replace-partitions", **options)
    may_have_locations(job)
    parts: dict[Job, list[Receipt]] = {}
    for name, policy in POLICIES.items():
        part = part_of(job, str(at[name].root), policy)
        declare(job, part.url)
        declare(job, part.url.replace("file://", "file:"))  # as Hadoop spells it
        part.setup()
        parts[part] = [at[name].task(part, {"new": b"new"})]
    commit_with(job, parts)
    return job, [at["table"].task(job, {"p=1/new": b"new"})]


def read(at: dict[str, Any]) -> dict[str, dict[str, bytes]]:
    return {name: table.read() for name, table in at.items()}


def left_over(at: dict[str, Any]) -> list[str]:
    return [f"{name}/{path}" for name, table in at.items() for path in table.left_over()]


def faulty(job: Job, fail_at: Callable[[str, Any, str], bool]) -> Any:
    """The run of the job's driver, whose stores, at all destinations, fail where `fail_at` says so."""

    def made(store: LocalStore) -> FaultyStore:
        found = FaultyStore(store)
        found.fail_at = lambda name, subject: fail_at(name, subject, store.url.path)
        return found

    run = job._run()
    really = run.open_store

    async def open_store(url: str) -> Any:
        return made(await really(url))  # type: ignore[arg-type]

    faulty_run = job_run(made(job._open()), job.options, job.layout, marker=job._marker)  # type: ignore[arg-type]
    faulty_run.open_store = open_store
    faulty_run.locations, faulty_run.may_have_locations = run.locations, run.may_have_locations
    return faulty_run


def dies_after(calls: int) -> Callable[[str, Any, str], bool]:
    """A driver that is killed: no call of its gets through any more."""
    made = 0

    def fails(name: str, subject: Any, where: str) -> bool:
        nonlocal made
        made += where != "/"  # how many looks there are from the top depends on where the tests run
        return made > calls

    return fails


def test_complete_in_every_location_and_what_is_replaced_is_gone(tables: Tables) -> None:
    at = fill(tables)
    job, receipts = prepare(at)
    summary = job.commit(receipts)
    assert read(at) == NEW
    assert left_over(at) == []
    assert summary.lockgate is not None
    assert [(each.files, each.bytes) for each in summary.lockgate.locations] == [(1, 3), (1, 3)]


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("marks", [True, False])
def test_resumable_a_driver_killed_anywhere_leaves_all_locations_to_one_end(
    tables: Tables, undo: bool, marks: bool
) -> None:
    ends: list[str] = []
    for calls in range(0, 400, EACH or (3 if marks else 7)):
        at = fill(tables, calls)
        job, receipts = prepare(at, mark_success=marks)
        try:
            asyncio.run(commit_once(faulty(job, dies_after(calls)), receipts))
            break
        except (Stop, LockgateError):
            pass
        url = str(at["table"].root)
        for name in POLICIES:
            # By itself no part is ended, as long as the whole is not.
            recover(str(at[name].root), force=True)
        job._show_life_no_more()
        try:
            found = recover(url, job.job_id, undo=undo, force=True)[job.job_id].outcome
        except UsageError:
            assert undo
            found = recover(url, job.job_id, force=True)[job.job_id].outcome
            assert found == "finished"
        if found == "not begun":
            abort(url, job.job_id, force=True)
        expected = NEW if found in ("finished", "nothing") else OLD
        assert read(at) == expected, (calls, found)
        assert left_over(at) == [], (calls, found)
        ends.append(found)
    assert ends[0] == "not begun"
    assert {"finished", "undone" if undo else "finished"} <= set(ends)


@pytest.mark.parametrize("gone", ["JOB/commit*", "JOB"], ids=["its record", "its directory"])
def test_undoable_a_part_whose_record_somebody_has_deleted_is_restored_by_its_list(tables: Tables, gone: str) -> None:
    for calls in range(42, 57, 7):  # what `one` replaces is set aside, and the commit point is ahead
        at = fill(tables, calls)
        job, receipts = prepare(at, on_failure="leave")
        with pytest.raises(LockgateError):
            asyncio.run(commit_once(faulty(job, dies_after(calls)), receipts))
        jobs_of_one = at["one"].root / "_lockgate" / "jobs"
        assert list(jobs_of_one.glob(gone.replace("JOB", job.job_id))), calls
        for path in jobs_of_one.glob(gone.replace("JOB", job.job_id)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert recover(at["table"].root, job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
        assert read(at) == OLD, calls
        assert left_over(at) == []


@pytest.mark.parametrize("gone", ["JOB/commit*", "JOB"], ids=["its record", "its directory"])
@pytest.mark.parametrize("collects", [False, True], ids=["at once", "after gc there"])
def test_undoable_a_part_that_only_appended_and_whose_record_somebody_has_deleted(
    tables: Tables, gone: str, collects: bool
) -> None:
    """It kept its files, and nothing named them."""
    undone = 0
    for calls in range(42, 60):
        at = fill(tables, calls)
        job, receipts = prepare(at, on_failure="leave", alive_seconds=0.0)
        with pytest.raises((Stop, LockgateError)):
            asyncio.run(commit_once(faulty(job, dies_after(calls)), receipts))
        job._show_life_no_more()
        success = at["table"].root / "_SUCCESS"
        if success.exists() and job.job_id in success.read_text():
            break
        undone += read(at)["two"] == NEW["two"]
        for path in (at["two"].root / "_lockgate" / "jobs").glob(gone.replace("JOB", job.job_id)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if collects:
            collect_garbage(str(at["two"].root), options=job.options)
        assert recover(at["table"].root, job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
        assert read(at) == OLD, calls
        assert left_over(at) == []
        assert not [path for each in at.values() for path in (each.root / "_lockgate" / "replaced").rglob("*")]
    assert undone > 3


@pytest.mark.parametrize("gone", ["JOB/commit*", "JOB/*"], ids=["its record", "all of it"])
@pytest.mark.parametrize("part", ["one", "two"])
def test_undoable_a_part_whose_record_is_lost_after_somebody_could_not_finish_the_whole(
    tables: Tables, gone: str, part: str
) -> None:
    """Who tried to finish it began the part's record anew, beside which the list of its new files was not looked for
    (seed 20636 of the simulation with parts)."""
    for calls in range(42, 60, 3):
        at = fill(tables, calls)
        job, receipts = prepare(at, on_failure="leave")
        with pytest.raises((Stop, LockgateError)):
            asyncio.run(commit_once(faulty(job, dies_after(calls)), receipts))
        job._show_life_no_more()
        success = at["table"].root / "_SUCCESS"
        if success.exists() and job.job_id in success.read_text():
            break
        for path in (at[part].root / "_lockgate" / "jobs").glob(gone.replace("JOB", job.job_id)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        with contextlib.suppress(LockgateError):
            recover(at["table"].root, job.job_id, undo=False, force=True)
        with contextlib.suppress(UsageError):  # it could be finished all the same
            recover(at["table"].root, job.job_id, undo=True, force=True)
        assert read(at) in (OLD, NEW), calls
        assert left_over(at) == [], calls


def test_undoable_another_jobs_file_is_left_where_a_deleted_parts_file_was(tables: Tables) -> None:
    at = fill(tables)
    job, receipts = prepare(at, on_failure="leave")
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after(54)), receipts))
    assert read(at)["two"] == NEW["two"]
    shutil.rmtree(at["two"].root / "_lockgate" / "jobs")
    (at["two"].root / "new").unlink()
    at["two"].write({"new": b"another's"})
    found = recover(at["table"].root, job.job_id, undo=True, force=True)[job.job_id]
    assert (found.outcome, [path.rpartition("/")[2] for path in found.left]) == ("undone", ["new"])
    assert read(at)["two"] == {"kept": b"kept", "new": b"another's"}


def dies_after_the_commit_point() -> Callable[[str, Any, str], bool]:
    """A driver that is killed once it has renamed its summary to `_SUCCESS`."""
    passed = False

    def fail_at(name: str, subject: Any, where: str) -> bool:
        nonlocal passed
        was, passed = passed, passed or (name == "rename_files" and subject[0].target == "_SUCCESS")
        return was

    return fail_at


def _dead_after_the_commit_point(tables: Tables, number: int) -> tuple[dict[str, Any], Job]:
    """A job whose driver died once `_SUCCESS` was there, before it had said in its parts that they have committed."""
    at = fill(tables, number)
    job, receipts = prepare(at)
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after_the_commit_point()), receipts))
    job._show_life_no_more()
    assert (at["table"].root / "_SUCCESS").exists()
    assert read(at) == NEW
    return at, job


def test_resumable_a_part_whose_newest_records_somebody_has_deleted_is_finished_with_the_whole(tables: Tables) -> None:
    for number, keep in enumerate((1, 2)):
        at, job = _dead_after_the_commit_point(tables, number)
        versions = sorted((at["one"].root / "_lockgate" / "jobs" / job.job_id).glob("commit*"))
        first = [path for path in versions if path.name == "commit.json"]
        for path in [path for path in versions if path not in first][keep - 1 :]:
            path.unlink()
        assert recover(at["table"].root, job.job_id, force=True)[job.job_id].outcome == "finished"
        assert read(at) == NEW
        assert left_over(at) == []


@pytest.mark.parametrize("gone", ["JOB/commit*", "JOB"], ids=["its record", "its directory"])
def test_fenced_a_part_of_a_committed_job_is_never_undone(tables: Tables, gone: str) -> None:
    at, job = _dead_after_the_commit_point(tables, 0)
    for path in (at["one"].root / "_lockgate" / "jobs").glob(gone.replace("JOB", job.job_id)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(CommitFenced, match="is a part of the job"):
        recover(at["one"].root, job.job_id, undo=True, force=True)
    assert recover(at["table"].root, job.job_id, force=True)[job.job_id].outcome == "finished"
    assert read(at) == NEW
    assert left_over(at) == []


@pytest.mark.parametrize("undo", [False, True])
def test_resumable_by_another_name_of_the_destination(tables: Tables, undo: bool) -> None:
    """Its manifests were taken for another store's (seed 5 of the simulation with parts)."""
    at = fill(tables)
    job, receipts = prepare(at, on_failure="leave")
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after(54)), receipts))
    job._show_life_no_more()
    assert read(at)["two"] == NEW["two"]
    link = at["table"].root.with_name("link")
    link.symlink_to(at["table"].root)
    recovery = recover(str(link), job.job_id, undo=undo, force=True)[job.job_id]
    assert recovery.outcome == ("undone" if undo else "finished")
    assert read(at) == (OLD if undo else NEW)
    assert left_over(at) == []


def test_fenced_a_part_is_not_undone_where_only_the_outcome_of_its_transaction_says_that_the_whole_committed(
    tables: Tables,
) -> None:
    """A job with a transaction id leaves no note of its end, and another's `_SUCCESS` had taken its place."""
    at = fill(tables)
    job, receipts = prepare(at, txn_id="stream/7")
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after_the_commit_point()), receipts))
    job._show_life_no_more()
    shutil.rmtree(at["table"].root / "_lockgate" / "jobs")
    other = at["table"].job(conflict="append")
    other.commit([at["table"].task(other, {"p=2/other": b"other"})])
    with pytest.raises(UsageError, match="has committed"):
        recover(str(at["one"].root), job.job_id, undo=True, force=True)
    for name in POLICIES:
        assert recover(str(at[name].root), job.job_id, force=True)[job.job_id].outcome == "finished"
    assert read(at) == NEW | {"table": NEW["table"] | {"p=2/other": b"other"}}
    assert left_over({name: at[name] for name in POLICIES}) == []


def repeated(at: dict[str, Any], job: Job) -> tuple[Job, list[Receipt]]:
    """The same job as a workflow runs it that was started again."""
    again = at["table"].job(job.job_id, conflict="replace-partitions", txn_id="stream/7")
    may_have_locations(again)
    for name in POLICIES:
        declare(again, str(part_of(again, str(at[name].root), POLICIES[name]).url))
    return again, [at["table"].task(again, {"p=1/new": b"new"})]


@pytest.mark.parametrize("ends", ["commits", "aborts"])
def test_fenced_a_repetition_by_the_same_id_undoes_no_part_of_the_first_that_waits_to_be_ended(
    tables: Tables, ends: str
) -> None:
    """The first driver died after its commit point, and somebody has deleted its record, and what it had set aside: its
    parts have theirs."""
    at = fill(tables)
    job, receipts = prepare(at, txn_id="stream/7")
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after_the_commit_point()), receipts))
    job._show_life_no_more()
    for name in ("jobs", "replaced"):
        shutil.rmtree(at["table"].root / "_lockgate" / name)
    again, receipts = repeated(at, job)
    if ends == "commits":
        assert again.commit(receipts).job_id == job.job_id
    else:
        again.abort()
    assert read(at) == NEW
    for name in POLICIES:
        assert recover(str(at[name].root), job.job_id, force=True)[job.job_id].outcome == "finished"
    assert read(at) == NEW
    assert left_over({name: at[name] for name in POLICIES}) == []


def test_resumable_a_recoverer_killed_anywhere_is_followed_by_another(tables: Tables) -> None:
    """Both ways, from a job that died when its first location had its new file, and the table had none yet."""
    for undo in (False, True):
        for calls in range(0, 400, EACH or 11):
            at = fill(tables, calls + 1000 * undo)
            job, receipts = prepare(at, on_failure="leave")
            table = str(at["table"].root)
            dead = False

            def dies(name: str, subject: Any, where: str, table: str = table) -> bool:
                nonlocal dead
                dead = dead or (where == table and name == "rename_files" and "/tasks/" in subject[0].source)
                return dead

            with pytest.raises((Stop, LockgateError)):
                asyncio.run(commit_once(faulty(job, dies), receipts))
            run = faulty(job, dies_after(calls))
            run.marker, run.locations, run.may_have_locations = "", (), True
            done = False
            try:
                asyncio.run(recover_job(run, undo=undo, force=True))
                done = True
            except (Stop, LockgateError):
                recover(table, job.job_id, undo=None, force=True)
            expected = read(at)
            assert expected in (NEW, OLD), calls
            assert not done or expected == (OLD if undo else NEW)
            assert left_over(at) == []
            job._show_life_no_more()
            if done:
                break
        assert done


@pytest.mark.parametrize("broken", ["one", "two", "table"])
def test_undoable_when_a_rename_fails_in_any_location(tables: Tables, broken: str) -> None:
    at = fill(tables)
    job, receipts = prepare(at)
    where = str(at[broken].root)

    def fails(name: str, subject: Any, store: str) -> bool:
        return (
            store == where
            and name == "rename_files"
            and "/tasks/" in subject[0].source
            and (not subject[0].target.startswith("_lockgate"))
        )

    with pytest.raises(CommitFailed, match="the destination was restored"):
        asyncio.run(commit_once(faulty(job, fails), receipts))
    assert read(at) == OLD
    assert left_over(at) == []


def test_concurrent_a_rival_at_a_location_refuses_the_whole_before_anything_is_moved(tables: Tables) -> None:
    at = fill(tables)
    rival = at["one"].job(conflict="replace", on_failure="leave")
    rival_receipt = at["one"].task(rival, {"rival": b"rival"})
    dead = False

    def dies(name: str, subject: Any, where: str) -> bool:
        nonlocal dead
        dead = dead or (name == "rename_files" and "/tasks/" in subject[0].source)
        return dead

    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(rival, dies), [rival_receipt]))
    before = read(at)
    job, receipts = prepare(at)
    with pytest.raises(DestinationConflict):
        job.commit(receipts)
    assert read(at) == before
    job.abort()
    (left,) = recover(str(at["one"].root), force=True).values()
    assert left.outcome == "finished"
    assert read(at) == OLD | {"one": {"rival": b"rival"}}
    assert left_over(at) == []


def test_abortable_what_tasks_have_staged_in_declared_locations_goes_with_the_job(tables: Tables) -> None:
    at = fill(tables)
    job, _ = prepare(at)
    job.abort()
    assert read(at) == OLD
    assert left_over(at) == []


def test_gc_of_the_main_job_ends_its_parts_and_gc_of_a_location_leaves_them(tables: Tables) -> None:
    at = fill(tables)
    job, _ = prepare(at, alive_seconds=0.0)
    options = job.options
    for name in POLICIES:
        found = collect_garbage(str(at[name].root), options=options)
        assert [each.action for each in found if job.job_id in each.path and "jobs" in each.path] == ["kept"]
        with pytest.raises(CommitFenced, match="is a part of"):
            abort(str(at[name].root), job.job_id, force=True)
    collect_garbage(str(at["table"].root), options=options)
    assert left_over(at) == []
    assert read(at) == OLD


def test_gc_of_a_location_deletes_a_part_whose_main_job_is_over(tables: Tables) -> None:
    """As of a task that came late."""
    at = fill(tables)
    job, _ = prepare(at, alive_seconds=0.0)
    at["one"].root.rename(at["one"].root.with_name("hidden"))
    job.abort()
    at["one"].root.with_name("hidden").rename(at["one"].root)
    assert left_over(at)
    collect_garbage(str(at["one"].root), options=job.options)
    assert left_over(at) == []
    assert read(at) == OLD


def test_complete_without_receipts_is_refused_where_locations_were_declared(tables: Tables) -> None:
    at = fill(tables)
    job, _ = prepare(at)
    job._show_life_no_more()
    for name, why in (("table", "only its driver knew"), ("one", "is a part of")):
        with pytest.raises(CommitRefused, match=why):
            commit(str(at[name].root), job.job_id, force=True)
    assert read(at) == OLD


def test_told_right_a_commit_with_locations_that_has_begun_is_recovered(tables: Tables) -> None:
    """Somebody who typed `commit` was told that nothing was moved, and to abort the job, which was refused."""
    at = fill(tables)
    job, receipts = prepare(at)
    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies_after(50)), receipts))
    job._show_life_no_more()
    with pytest.raises(CommitFenced, match="lockgate recover"):
        commit(str(at["table"].root), job.job_id, force=True)
    recover(str(at["table"].root), job.job_id, force=True)
    assert read(at) == NEW


@pytest.mark.parametrize("policies", [("replace", "append"), ("replace", "replace")])
def test_contained_locations_within_one_another_are_not_replaced(tables: Tables, policies: tuple[str, str]) -> None:
    at = {"table": tables("table"), "outer": tables("outer"), "inner": tables("outer/inner")}
    for table in at.values():
        table.write({"old": b"old"})
    before = read(at)
    job = at["table"].job()
    may_have_locations(job)
    parts: dict[Job, list[Receipt]] = {}
    for name, policy in zip(("outer", "inner"), policies, strict=True):
        part = part_of(job, str(at[name].root), policy)
        part.setup()
        declare(job, part.url)
        parts[part] = [at[name].task(part, {"new": b"new"})]
    commit_with(job, parts)
    with pytest.raises(CommitRefused):
        job.commit([at["table"].task(job, {"new": b"new"})])
    job.abort()
    assert read(at) == before


def test_jobs_of_a_location_shows_the_part(tables: Tables) -> None:
    at = fill(tables)
    job, _ = prepare(at)
    (state,) = [each for each in jobs(str(at["one"].root)) if each.job_id == job.job_id]
    assert state.status is JobStatus.RUNNING
    job.abort()


@pytest.mark.parametrize("undo", [False, True])
def test_continuity_a_driver_that_sleeps_anywhere_while_others_end_its_job_changes_nothing_more(
    tables: Tables, undo: bool
) -> None:
    """And it is told how the job has ended, as the driver of a job without parts is."""
    ends: set[str] = set()
    for calls in range(0, 400, EACH or 5):
        at = fill(tables, calls)
        job, receipts = prepare(at)
        made, found = 0, ""

        def sleeps(name: str, subject: Any, where: str, calls: int = calls, job: Job = job, at: Any = at) -> bool:
            nonlocal made, found
            made += 1
            if made == calls:
                url = str(at["table"].root)
                try:
                    found = recover(url, job.job_id, undo=undo, force=True)[job.job_id].outcome
                except UsageError:  # it is past its commit point
                    found = recover(url, job.job_id, force=True)[job.job_id].outcome
            return False

        try:
            asyncio.run(commit_once(faulty(job, sleeps), receipts))
            assert found != "undone", calls
        except (CommitFailed, OutcomeUnknown) as error:
            assert found == "undone", (calls, error)
            assert "was taken over by somebody else" in error.what, (calls, error)
        job._show_life_no_more()
        for name in ("table", *POLICIES):
            collect_garbage(str(at[name].root), options=job.options.replace(alive_seconds=0.0))
        assert read(at) == (OLD if found == "undone" else NEW), (calls, found)
        assert left_over(at) == [], (calls, found)
        ends.add(found)
        if made < calls:
            break
    assert ("undone" if undo else "finished") in ends

"""Fenced: a job that has committed, or whose record is lost, does not begin again, whoever comes when."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import shutil
from collections.abc import Callable

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, collect_garbage, commit, forget_transactions, jobs, plan, recover, verify
from lockgate.api.destination import last_summary
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.job.setup import setup_job
from lockgate.errors import (
    CommitFailed,
    DestinationConflict,
    FileMissing,
    JobNotFound,
    LockgateError,
    OutcomeUnknown,
    UsageError,
)
from lockgate.model.layout import JobLayout
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord, Ground, Holder, Predecessor, encode_record
from lockgate.model.summary import LockgateSummary, Summary, encode_summary


def attempt_at(table, number: int, **options: object) -> Job:
    """An attempt at the job `nightly`, not set up."""
    return Job(str(table.root), JobOptions(**options), job_id="nightly", job_attempt=number)


def once(at: Callable[[str, object], bool], act: Callable[[], object]) -> Callable[[str, object], None]:
    """A `before` of a faulty store: act at the first call for which `at` holds."""
    done: list[bool] = []

    def before(name: str, subject: object) -> None:
        if not done and at(name, subject):
            done.append(True)
            act()

    return before


def is_claim(name: str, subject: object) -> bool:
    return name == "create_file" and str(subject).endswith("commit.json")


def of_new_files(name: str, subject: object) -> bool:
    """The first new file is about to be moved."""
    return name == "rename_files" and "/tasks/" in subject[0].source  # type: ignore[index]


def test_fenced_an_attempt_that_paused_in_its_setup_while_another_committed(table) -> None:
    first, second = attempt_at(table, 0), attempt_at(table, 1)
    first.setup()
    receipt = table.task(first, {"first": b"1"})
    make_faulty(second).before = once(lambda name, _: name == "make_directories", lambda: first.commit([receipt]))
    try:
        asyncio.run(setup_job(second._run()))
        with pytest.raises(JobNotFound, match="committed already"):
            second.commit([table.task(second, {"second": b"2"})])
    except (JobNotFound, FileMissing):  # or at once
        pass
    assert table.read() == {"first": b"1"}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("mark_success", [True, False])
def test_fenced_a_job_that_has_committed_cannot_be_set_up_again(table, number: int, mark_success: bool) -> None:
    first = attempt_at(table, 0, mark_success=mark_success)
    first.setup()
    twin = pickle.loads(pickle.dumps(first))
    first.commit([table.task(first, {"first": b"1"})])
    table.write({"other": b"o"})
    second = twin if number == 0 else attempt_at(table, number)
    with pytest.raises(JobNotFound, match="has committed already"):
        second.setup()
    assert set(table.read()) == {"first", "other"}
    assert not (table.root / "_lockgate/jobs").exists()


def come_late(table, first: Job, twin: Job) -> list:
    """The twin's setup has looked before the first committed, and made the directories after: its receipts."""
    first.commit([table.task(first, {"first": b"1"})])
    note = table.root / twin.layout.ended
    note.rename(table.root / "aside")
    (table.root / "_SUCCESS").unlink()
    twin.setup()
    receipts = [table.task(twin, {"again": b"2"})]
    (table.root / "aside").rename(note)
    return receipts


def test_fenced_a_driver_whose_setup_came_late_is_refused_at_its_commit(table) -> None:
    first = table.job()
    twin = pickle.loads(pickle.dumps(first))
    receipts = come_late(table, first, twin)
    with pytest.raises(JobNotFound, match="committed already"):
        twin.commit(receipts)
    assert table.read() == {"first": b"1"}


@pytest.mark.parametrize("undo", [None, True])
def test_fenced_a_late_driver_that_died_at_its_claim_is_not_finished(table, undo: bool | None) -> None:
    first = table.job()
    twin = pickle.loads(pickle.dumps(first))
    receipts = come_late(table, first, twin)
    claimed: list[bool] = []
    store = make_faulty(twin)
    store.before = once(is_claim, lambda: claimed.append(True))
    store.fail_at = lambda name, subject: bool(claimed) and not is_claim(name, subject)
    with pytest.raises(Stop):
        twin.commit(receipts)
    # The job has committed, whoever claims it later: its undoing is refused, and what the late driver left goes.
    with pytest.raises(UsageError, match="cannot be undone") if undo else contextlib.nullcontext():
        recover(str(table.root), first.job_id, undo=undo, force=True)
    assert table.read() == {"first": b"1"}
    assert not table.left_over()


def die_at_a_late_claim(table, **options: object) -> Job:
    """A job has committed, and a second driver of it has claimed it again, and died. The first driver's job."""
    first = table.job(**options)
    twin = pickle.loads(pickle.dumps(first))
    receipts = come_late(table, first, twin)
    claimed: list[bool] = []
    store = make_faulty(twin)
    store.before = once(is_claim, lambda: claimed.append(True))
    store.fail_at = lambda name, subject: bool(claimed) and not is_claim(name, subject)
    with pytest.raises(Stop):
        twin.commit(receipts)
    assert (table.root / first.layout.commit_record(0)).exists()
    return first


@pytest.mark.parametrize("ended_by", ["note", "_SUCCESS"])
def test_concurrent_a_late_claim_on_a_job_that_has_ended_is_in_nobodys_way(table, ended_by: str) -> None:
    """It refused every job that came after, until somebody recovered it. (Simulation, seed 1047346659284.)"""
    first = die_at_a_late_claim(table, conflict="replace")
    if ended_by == "_SUCCESS":
        (table.root / first.layout.ended).unlink()
        write_own_success(table, first)
    table.write({"other": b"o"}, conflict="replace")
    assert table.read() == {"other": b"o"}
    recover(str(table.root), first.job_id, force=True)
    assert table.read() == {"other": b"o"}
    assert not table.left_over()


def write_own_success(table, job: Job) -> None:
    """`_SUCCESS` as the job left it, and as it is until another job's takes its place."""
    summary = Summary(timestamp=0, success=True, jobId=job.job_id, lockgate=LockgateSummary())
    (table.root / "_SUCCESS").write_bytes(encode_summary(summary))


def test_concurrent_a_late_claim_on_a_job_that_has_ended_refuses_no_job_of_a_destination_inside(table) -> None:
    die_at_a_late_claim(table, conflict="replace")
    inside = Job(str(table.root / "p=1"), JobOptions(conflict="replace"))
    inside.setup()
    inside.commit([table.task(inside, {"inner": b"i"})])
    assert (table.root / "p=1/inner").read_bytes() == b"i"


def test_concurrent_a_claim_on_a_job_that_has_not_ended_is_in_the_way(table) -> None:
    first = table.job(conflict="replace")
    receipt = table.task(first, {"first": b"1"})
    announced: list[bool] = []
    store = make_faulty(first)
    store.before = once(is_claim, lambda: announced.append(True))
    store.fail_at = lambda name, subject: bool(announced) and not is_claim(name, subject)
    with pytest.raises(Stop):
        first.commit([receipt])
    with pytest.raises(DestinationConflict, match=first.job_id):
        table.write({"other": b"o"}, conflict="replace")


def lose_the_record(table, job: Job, files: dict[str, bytes]) -> None:
    """The job dies when it has set files aside, and somebody deletes the directories of jobs."""
    receipt = table.task(job, files)
    make_faulty(job).fail_at = of_new_files
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    shutil.rmtree(table.root / "_lockgate/jobs")


def test_undoable_no_attempt_begins_while_files_are_set_aside_without_a_record(table) -> None:
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="replace", on_failure="leave")
    first.setup()
    lose_the_record(table, first, {"p=1/new": b"1"})
    with pytest.raises(OutcomeUnknown, match="--undo"):
        attempt_at(table, 1, conflict="replace").setup()
    with pytest.raises(OutcomeUnknown, match="--undo"):
        first.commit([])
    assert not (table.root / "_lockgate/jobs").exists()
    recover(str(table.root), "nightly", undo=True)
    assert table.read() == {"p=1/old": b"old"}
    second = attempt_at(table, 1, conflict="replace")
    second.setup()
    second.commit([table.task(second, {"p=1/second": b"2"})])
    assert table.read() == {"p=1/second": b"2"}


@pytest.mark.parametrize("undo", [True, False])
def test_undoable_a_record_that_was_begun_anew_does_not_hide_what_is_set_aside(table, undo: bool) -> None:
    """The first attempt sets files aside, and its record is deleted, while the second is about to claim the job."""
    table.write({"p=1/old": b"old"})
    first = attempt_at(table, 0, conflict="replace", on_failure="leave")
    first.setup()
    lose_the_record(table, first, {"p=1/new": b"1"})
    replaced, elsewhere = table.root / "_lockgate" / "replaced", table.root / "elsewhere"
    replaced.rename(elsewhere)
    second = attempt_at(table, 1, conflict="replace")
    second.setup()
    receipt = table.task(second, {"p=1/second": b"2"})
    make_faulty(second).before = once(is_claim, lambda: elsewhere.rename(replaced))
    with pytest.raises(OutcomeUnknown, match="--undo"):
        second.commit([receipt])
    with pytest.raises(LockgateError, match="--undo"):
        recover(str(table.root), "nightly", force=True)
    recovery = recover(str(table.root), "nightly", undo=undo, force=True)["nightly"]
    assert recovery.outcome == ("undone" if undo else "finished")
    assert table.read() == ({"p=1/old": b"old"} if undo else {})
    collect_garbage(str(table.root), options=JobOptions(alive_seconds=0.0))
    assert not table.left_over()


def test_exactly_once_where_only_success_tells_of_the_transaction(table) -> None:
    """The driver died at its commit point, and another committer has deleted what a recoverer would go by."""
    first = table.job(txn_id="daily/7")
    receipt = table.task(first, {"first": b"1"})
    make_faulty(first).fail_at = lambda name, subject: name == "create_file" and str(subject).endswith(".outcome")
    with pytest.raises(Stop):
        first.commit([receipt])
    shutil.rmtree(table.root / "_lockgate/jobs")
    again = table.job(txn_id="daily/7")
    assert again.commit([table.task(again, {"again": b"2"})]).job_id == first.job_id
    table.write({"other": b"o"})
    third = table.job(txn_id="daily/7")
    assert third.commit([table.task(third, {"third": b"3"})]).job_id == first.job_id
    assert set(table.read()) == {"first", "other"}


def test_a_setup_that_is_repeated_after_a_crash_deletes_the_old_success_too(table) -> None:
    table.write({"old": b"old"})
    job = Job(str(table.root), JobOptions(delete_success_at_setup=True))
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(Stop):
        job.setup()
    pickle.loads(pickle.dumps(job)).setup()
    assert not (table.root / "_SUCCESS").exists()


@pytest.mark.parametrize("directories_stay", [True, False])
def test_a_repeated_setup_that_pauses_until_its_job_has_committed_leaves_the_jobs_success(
    table, directories_stay: bool
) -> None:
    table.write({"old": b"old"})
    job = Job(str(table.root), JobOptions(delete_success_at_setup=True, cleanup_skip=directories_stay))
    twin = pickle.loads(pickle.dumps(job))
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(Stop):
        job.setup()
    job._store = None
    receipt = table.task(job, {"f": b"x"})
    make_faulty(twin).before = once(lambda name, _: name == "rename_files", lambda: job.commit([receipt]))
    with pytest.raises(JobNotFound, match="is over"):
        asyncio.run(setup_job(twin._run()))
    assert last_summary(str(table.root), JobOptions()).job_id == job.job_id
    assert table.read() == {"old": b"old", "f": b"x"}


def test_a_setup_that_comes_when_its_job_has_committed_leaves_the_success_of_another(table) -> None:
    job = table.job(delete_success_at_setup=True)
    twin = pickle.loads(pickle.dumps(job))
    job.commit([table.task(job, {"f": b"x"})])
    table.write({"other": b"o"})
    with pytest.raises(JobNotFound):
        twin.setup()
    assert (table.root / "_SUCCESS").exists()


def test_what_an_earlier_attempt_left_is_committed_from_outside_with_the_newest_attempts(table) -> None:
    first, second = attempt_at(table, 0), attempt_at(table, 1)
    first.setup()
    for task in range(3):
        table.task(first, {f"first-{task}": b"1"}, task)
    second.setup()
    table.task(second, {"second-1": b"2"}, 1)
    assert plan(str(table.root), "nightly").files == 3
    commit(str(table.root), "nightly", force=True)
    assert set(table.read()) == {"first-0", "second-1", "first-2"}
    assert not table.left_over()


def test_the_note_of_a_committed_job_goes_when_it_is_old(table) -> None:
    job = table.write({"f": b"x"})
    note = table.root / job.layout.ended
    assert note.name.startswith("_")
    assert not collect_garbage(str(table.root))
    assert note.exists()
    assert [state.job_id for state in jobs(str(table.root))] == [job.job_id]
    found = collect_garbage(str(table.root), options=JobOptions(remember_seconds=0.0))
    assert [(each.path, each.action) for each in found] == [(job.layout.ended, "deleted")]
    assert not note.exists()


def test_the_note_of_a_job_with_a_transaction_id_goes_when_its_outcome_is_forgotten(table) -> None:
    batches = [table.write({f"f{number}": b"x"}, txn_id=f"stream/{number}") for number in range(3)]
    assert all((table.root / job.layout.ended).exists() for job in batches)
    forget_transactions(str(table.root), "stream", up_to=1)
    assert [(table.root / job.layout.ended).exists() for job in batches] == [False, False, True]


LOCAL = ("manifest", "v1", "v2", "direct", "stocator", "markers", "hive")


def named(table, protocol: str, txn_id: str) -> Job:
    """A job `nightly`, whose list of files is one beside its `_SUCCESS`."""
    options = JobOptions(protocol=protocol, accept_unsafe=True, txn_id=txn_id, file_list_inline_max=0)
    return Job(str(table.root), options, job_id="nightly")


def one_task(table, job: Job, file: str) -> list:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"{file}-{attempt.tag}") as opened:
        opened.write(file.encode())
    return [attempt.commit()]


@pytest.mark.parametrize("protocol", LOCAL)
@pytest.mark.parametrize(("first", "second"), [("monday", "tuesday"), ("", "tuesday"), ("monday", "")])
def test_fenced_an_id_that_has_committed_is_refused_to_another_transaction(
    table, protocol: str, first: str, second: str
) -> None:
    """It was admitted, and wrote its own list of files over the one that the first job's `_SUCCESS` names."""
    job = named(table, protocol, first)
    job.setup()
    job.commit(one_task(table, job, "first"))
    before = table.everything()
    again = named(table, protocol, second)
    with pytest.raises(JobNotFound, match="has committed already"):
        again.setup()
    assert table.everything() == before
    assert verify(str(table.root)).findings == []
    if not first:
        return
    same = named(table, protocol, first)
    if protocol in ("v2", "direct", "stocator", "markers"):
        with pytest.raises(JobNotFound, match="with the transaction id 'monday'"):
            same.setup()
    else:
        same.setup()
        assert same.commit(one_task(table, same, "same")).job_id == job.job_id
    assert list(table.read().values()) == [b"first"]


@pytest.mark.parametrize(("first", "second"), [("monday", "tuesday"), ("", "tuesday"), ("monday", "")])
@pytest.mark.parametrize("ended_by", ["note", "_SUCCESS"])
def test_fenced_a_driver_of_another_transaction_whose_setup_came_early_is_refused_at_its_claim(
    table, first: str, second: str, ended_by: str
) -> None:
    job, twin = named(table, "manifest", first), named(table, "manifest", second)
    job.setup()
    job.commit(one_task(table, job, "first"))
    note = table.root / job.layout.ended
    kept = {path: path.read_bytes() for path in (note, table.root / "_SUCCESS")}
    for path in kept:
        path.unlink()
    twin.setup()
    receipts = one_task(table, twin, "second")
    for path, content in kept.items():
        if path != note or ended_by == "note":
            path.write_bytes(content)
    with pytest.raises(JobNotFound, match="committed already"):
        twin.commit(receipts)
    assert list(table.read().values()) == [b"first"]


def test_resumable_a_job_whose_id_was_used_before_never_sets_anything_aside(table) -> None:
    """The record of the second was lost; the first one's note said that it had committed, and what it had replaced
    could not be brought back."""
    table.write({"p=1/old": b"old"})
    job = named(table, "manifest", "")
    job.setup()
    job.commit(one_task(table, job, "p=1/first"))
    before = table.read()
    second = Job(str(table.root), JobOptions(conflict="replace", txn_id="t", on_failure="leave"), job_id="nightly")
    with pytest.raises(JobNotFound, match="without a transaction id"):
        second.setup()
    assert table.read() == before
    assert not table.left_over()


@pytest.mark.parametrize("txn_id", ["", "once", "series/7"])
@pytest.mark.parametrize(
    "another", ["sets its _SUCCESS aside and dies", "sets it aside", "replaces it", "deletes it at setup"]
)
def test_fenced_a_job_of_whose_commit_only_its_success_told(table, another: str, txn_id: str) -> None:
    """Its driver died at the commit point, and its record was deleted; then another job made its `_SUCCESS` go."""
    table.write({"p=2/old": b"old"})
    first = table.job(txn_id=txn_id)
    twin = pickle.loads(pickle.dumps(first))
    receipt = table.task(first, {"p=1/first": b"1"})
    published: list[bool] = []
    store = make_faulty(first)
    really = store.rename_files

    async def rename_files(renames, *rest):  # type: ignore[no-untyped-def]
        outcomes = await really(renames, *rest)
        published.extend([True] * (renames[0].target == "_SUCCESS"))
        return outcomes

    store.rename_files = rename_files  # type: ignore[method-assign]
    store.fail_at = lambda name, subject: bool(published)
    with pytest.raises((Stop, LockgateError)):
        first.commit([receipt])
    shutil.rmtree(table.root / "_lockgate/jobs")
    policy = "replace-partitions" if another.startswith("sets") else "append"
    other = table.job(conflict=policy, on_failure="leave", delete_success_at_setup=another.startswith("deletes"))
    receipts = [table.task(other, {"p=2/other": b"2"})]
    if another.endswith("dies"):
        make_faulty(other).fail_at = of_new_files
        with pytest.raises(LockgateError):
            other.commit(receipts)
    else:
        other.commit(receipts)
    before = table.read()
    if txn_id:
        twin.setup()
        assert twin.commit([table.task(twin, {"p=1/again": b"1"})]).job_id == first.job_id
    else:
        with pytest.raises(JobNotFound, match="has committed already"):
            twin.setup()
    assert table.read() == before


@pytest.mark.parametrize("phase", [Phase.CLAIMED, Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK, Phase.COMMITTED])
def test_a_version_that_a_driver_has_created_after_the_end_of_its_job_is_in_nobodys_way(table, phase: Phase) -> None:
    """It follows a version that is gone. Jobs that replace were refused because of it, and the job was told crashed."""
    done = table.write({"p=1/a": b"a"})
    late = CommitRecord(
        done.job_id,
        0,
        3,
        phase,
        Holder("0123456789abcdef", since=1.0),
        1.0,
        ground=Ground((), everything=True, exclusive=True),
        follows=Predecessor(2, "0123456789abcdef"),
    )
    place = table.root / JobLayout(done.job_id).commit_record(3)
    place.parent.mkdir(parents=True)
    place.write_bytes(encode_record(late))
    options = JobOptions(alive_seconds=0)
    states = {state.status for state in jobs(str(table.root), options) if state.job_id == done.job_id}
    assert JobStatus.LEFT_BEHIND in states and JobStatus.CRASHED not in states
    table.write({"p=1/b": b"b"}, conflict="replace")
    assert table.read() == {"p=1/b": b"b"}
    collect_garbage(str(table.root), options=options)
    assert not place.exists()
    assert table.read() == {"p=1/b": b"b"}

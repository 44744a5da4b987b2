"""The id of a job whose driver died in its commit, or whose tasks have committed, is set up again before anybody has
ended that job: what it has pinned, or shown, must not be written over."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from killed_at_a_request import REQUESTS, Died
from lockgate import Job, JobOptions, Receipt
from lockgate.errors import CommitFailed, CommitFenced, JobNotFound, LockgateError, ReceiptUnmatched, UsageError
from lockgate.model.layout import MANIFEST_TEMPORARY_SUFFIX
from lockgate.stores.local import LocalStore

SILENT = JobOptions(alive_seconds=0.0, durable=False)
EVERY = ["manifest", "v1", "v2", "direct", "stocator", "markers", "hive"]


def committed_tasks(job: Job, content: bytes) -> list[Receipt]:
    receipts = []
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"{number}-{attempt.tag}") as file:
            file.write(content)
        receipts.append(attempt.commit())
    return receipts


def a_job(root: Path, protocol: str, job_attempt: int = 0, **named) -> Job:
    options = JobOptions(durable=False, protocol=protocol, accept_unsafe=True)
    return Job(root, options, job_id="j", job_attempt=job_attempt, **named)


def dead_in(monkeypatch: pytest.MonkeyPatch, phase: str, job: Job) -> None:
    """Its driver has died once its record says this phase."""
    job.setup()
    receipts = committed_tasks(job, b"first")
    create = LocalStore.create_file

    async def create_and_die(store, path, content, **named):
        created = await create(store, path, content, **named)
        if "/j/commit" in path and json.loads(content).get("phase") == phase:
            raise Died
        return created

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "create_file", create_and_die)
        with pytest.raises(Died):
            job.commit(receipts)
    job._show_life_no_more()


def marker_of(root: Path, job_attempt: int = 0) -> Path:
    return root / f"_lockgate/jobs/j/{job_attempt:02d}/job.json"


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def shown(root: Path) -> set[bytes]:
    return {content for path, content in tree(root).items() if path[0] not in "._"}


@pytest.mark.parametrize("undo", [True, False], ids=["undone", "finished"])
@pytest.mark.parametrize("phase", ["claimed", "moving", "publishing"])
@pytest.mark.parametrize("again", ["the same", "marker lost", "marker of the next attempt lost"])
@pytest.mark.parametrize("protocol", EVERY)
def test_resumable_and_undoable_a_job_that_died_in_its_commit_is_not_set_up_again_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, again: str, phase: str, undo: bool
) -> None:
    """Its tasks wrote over what is pinned; and with the marker gone, `recover` and `gc` took its record for nothing."""
    number = 1 if "next attempt" in again else 0
    named = {"nonce": "given"} if again == "the same" else {}
    dead_in(monkeypatch, phase, a_job(tmp_path, protocol, number, **named))
    if not named:
        marker_of(tmp_path, number).unlink()
    before = tree(tmp_path)
    # By v1 the names of its tasks tell, too, which nothing else says to be this job's.
    with pytest.raises((CommitFenced, UsageError), match=r"lockgate recover|another job has tasks"):
        a_job(tmp_path, protocol, number, **named).setup()
    assert tree(tmp_path) == before
    told = lockgate.recover(tmp_path, "j", undo=undo, options=SILENT, force=True)
    assert told["j"].outcome == ("undone" if undo else "finished")
    assert shown(tmp_path) == (set() if undo else {b"first"})
    assert lockgate.recover(tmp_path, options=SILENT) == {}


def die_after_request(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> bool:
    """Whether the process that does it is killed after its `number`-th request: it may end before."""
    made = itertools.count(1)

    def wrapped(name: str):
        asked = getattr(LocalStore, name)

        async def ask_and_die(store, *arguments, **named):
            answer = await asked(store, *arguments, **named)
            if next(made) == number:
                raise Died
            return answer

        return ask_and_die

    with monkeypatch.context() as patched:
        for name in (*REQUESTS, "delete_files", "delete_directories", "delete_empty_directories"):
            patched.setattr(LocalStore, name, wrapped(name))
        try:
            act()
        except Died:
            return True
        except LockgateError:
            pass
    return False


@pytest.mark.parametrize("ended_by", ["recover", "undo", "gc"])
@pytest.mark.parametrize("phase", ["claimed", "moving", "publishing"])
@pytest.mark.parametrize("protocol", EVERY)
def test_resumable_and_undoable_a_job_beside_which_a_refused_setup_is_killed_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, phase: str, ended_by: str
) -> None:
    """The marker of the dead job is lost. A second driver made its own before it looked, and was killed before it could
    take that back: then nobody could undo the first job, or "nothing" was told of it while its files stayed."""
    for number in itertools.count(1):
        root = tmp_path / str(number)
        dead_in(monkeypatch, phase, a_job(root, protocol))
        marker_of(root).unlink()
        before = tree(root)
        killed = die_after_request(monkeypatch, number, a_job(root, protocol).setup)
        assert tree(root) == before
        if ended_by == "gc":
            lockgate.collect_garbage(root, options=SILENT)
        undo = False if ended_by == "recover" else None if lockgate.jobs(root, SILENT) == [] else True
        told = lockgate.recover(root, "j", undo=undo, options=SILENT, force=True)
        assert told["j"].outcome == {False: "finished", True: "undone", None: "no trace"}[undo]
        assert shown(root) == ({b"first"} if undo is False else set())
        assert lockgate.recover(root, options=SILENT) == {}
        if not killed:
            break


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2"])
def test_pinned_a_job_whose_record_alone_says_that_it_has_committed_is_not_set_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Where the record is the commit point, neither a note nor `_SUCCESS` said so, and the tasks of the same program,
    started again, wrote over the manifests by which its cleanup knows what did not count."""
    options = JobOptions(durable=False, protocol=protocol, accept_unsafe=True, mark_success=False)
    dead_in(monkeypatch, "committed", Job(tmp_path, options, job_id="j", nonce="given"))
    before = tree(tmp_path)
    with pytest.raises(CommitFenced, match=r"has committed(?s:.)*lockgate recover"):
        Job(tmp_path, options, job_id="j", nonce="given").setup()
    assert tree(tmp_path) == before
    assert lockgate.recover(tmp_path, "j", options=SILENT, force=True)["j"].outcome == "finished"
    assert shown(tmp_path) == {b"first"}
    with pytest.raises(JobNotFound, match="has committed already"):
        Job(tmp_path, options, job_id="j", nonce="given").setup()


@pytest.mark.parametrize("protocol", EVERY)
def test_abortable_the_next_attempt_at_a_claimed_job_says_that_it_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Its abort returned, as if nothing of the job were left, and `recover` put the job's rows in place later."""
    dead_in(monkeypatch, "claimed", a_job(tmp_path, protocol))
    job = a_job(tmp_path, protocol, job_attempt=1)
    job.setup()
    with pytest.raises(CommitFenced, match=r"phase claimed(?s:.)*lockgate recover"):
        job.abort()
    job._show_life_no_more()
    lockgate.recover(tmp_path, "j", undo=True, options=SILENT, force=True)
    assert shown(tmp_path) == set()


def test_pinned_by_v2_a_task_takes_no_manifest_of_an_earlier_job_of_its_id_for_its_own(tmp_path: Path) -> None:
    """The marker of that job is lost, and it had not come to its commit: the second one's driver heard that it has
    committed, and its rows were nowhere."""
    first = a_job(tmp_path, "v2")
    first.setup()
    committed_tasks(first, b"first")
    first._show_life_no_more()
    marker_of(tmp_path).unlink()
    second = a_job(tmp_path, "v2")
    second.setup()
    with pytest.raises(CommitFailed, match="by an earlier job of the id j"):
        committed_tasks(second, b"second")
    second.abort()
    assert shown(tmp_path) == set()
    third = a_job(tmp_path, "v2")
    third.setup()
    third.commit(committed_tasks(third, b"third"))
    assert shown(tmp_path) == {b"third"}


@pytest.mark.parametrize("ended_by", ["own abort", "lockgate abort", "abort of the attempt"])
def test_abortable_by_v2_a_late_intent_of_an_earlier_job_of_the_id_mixes_no_files(
    tmp_path: Path, ended_by: str
) -> None:
    """The abort took the second job's files for somebody else's, and brought them back under the first one's names."""
    first = a_job(tmp_path, "v2", nonce="first")
    first.setup()
    store, late = make_faulty(first), {}
    create = store.create_file

    async def not_yet(path: str, content: bytes):
        if path.endswith(MANIFEST_TEMPORARY_SUFFIX):
            late[path] = content
            raise Stop
        return await create(path, content)

    store.create_file = not_yet
    with pytest.raises(Stop):
        _two_files(first, "first").commit()
    first._show_life_no_more()
    lockgate.abort(tmp_path, "j", force=True)
    second = a_job(tmp_path, "v2", nonce="second")
    second.setup()
    receipt = _two_files(second, "second").commit()
    assert len(shown(tmp_path)) == 2
    for path, content in late.items():
        (tmp_path / path).write_bytes(content)
    with pytest.raises(ReceiptUnmatched, match="an earlier job of the id j has begun to commit attempt_000000_0"):
        second.commit([receipt])
    if ended_by == "own abort":
        second.abort()
    elif ended_by == "lockgate abort":
        second._show_life_no_more()
        lockgate.abort(tmp_path, "j", force=True)
    else:
        lockgate.Job(tmp_path, protocol="v2", accept_unsafe=True, job_id="j").task_attempt(0, 0).abort()
    assert shown(tmp_path) == set()
    if ended_by == "abort of the attempt":
        second.commit([_two_files(second, "third", attempt=1).commit()])
        assert shown(tmp_path) == {b"third 0", b"third 1"}


def _two_files(job: Job, content: str, attempt: int = 0) -> lockgate.TaskAttempt:
    work = job.task_attempt(0, attempt)
    work.setup()
    for number in range(2):
        with work.open(f"p={number}/{work.tag}") as file:
            file.write(f"{content} {number}".encode())
    return work


@pytest.mark.parametrize("protocol", ["v1", "v2"])
def test_exactly_once_a_program_that_is_started_again_is_told_to_end_its_first_run(
    tmp_path: Path, protocol: str
) -> None:
    """It was told to leave the job's id out: once its first run was ended, too, all of its rows were there twice."""
    first = a_job(tmp_path, protocol, nonce="first")
    first.setup()
    receipts = committed_tasks(first, b"first")
    first.task_attempt(7).setup()
    first._show_life_no_more()
    with pytest.raises(UsageError, match="another job") as caught:
        a_job(tmp_path, protocol, nonce="second").setup()
    told = caught.value.next_step
    assert "abort" in told and "do not run it by another id beside it" in told
    lockgate.abort(tmp_path, "j", force=True)
    second = a_job(tmp_path, protocol, nonce="second")
    second.setup()
    assert second.commit(committed_tasks(second, b"second")).files == len(receipts)
    assert shown(tmp_path) == {b"second"}


@pytest.mark.parametrize("protocol", ["manifest", "v1", "hive"])
def test_undoable_a_claimed_job_whose_manifest_is_gone_is_told_how_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """`recover` told to run the job again, and whoever did was told to recover it first. (By v1 such a commit is
    refused, and can be aborted.)"""
    dead_in(monkeypatch, "claimed", a_job(tmp_path, protocol))
    for path in [*tmp_path.rglob("*task_000001*.json"), *tmp_path.glob("_temporary/0/task_*_000001")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(LockgateError) as caught:
        lockgate.recover(tmp_path, "j", options=SILENT, force=True)
    if protocol == "v1":
        assert [state.status for state in lockgate.jobs(tmp_path, options=SILENT)] == ["refused"]
        lockgate.abort(tmp_path, "j", force=True)
    else:
        assert "recover" in caught.value.next_step and "--undo" in caught.value.next_step
        assert lockgate.recover(tmp_path, "j", undo=True, options=SILENT, force=True)["j"].outcome == "undone"
    again = a_job(tmp_path, protocol)
    again.setup()
    assert again.commit(committed_tasks(again, b"again")).files == 2

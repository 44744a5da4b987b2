"""A driver sleeps right before it creates a version of its record. Meanwhile somebody ends its job, and the id is set
up again by another `Job`, which is at work. Then the driver wakes, creates that version, and dies, or goes on."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import lockgate
import pytest
from killed_at_a_request import Died
from lockgate import Job, JobOptions, Receipt
from lockgate.errors import LockgateError
from lockgate.stores.local import LocalStore

SILENT = JobOptions(alive_seconds=0.0, durable=False)
AT_WORK = JobOptions(durable=False)
EVERY = ["manifest", "v1", "v2", "direct", "stocator", "markers", "hive"]
BY_RECORD = ["direct", "stocator", "markers"]
"""Of which the version `committed` is the commit point, so that the id can be set up before a late one comes."""


def committed_tasks(job: Job, content: bytes, numbers: list[int]) -> list[Receipt]:
    receipts = []
    for number in numbers:
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"{number}-{attempt.tag}") as file:
            file.write(content)
        receipts.append(attempt.commit())
    return receipts


def a_job(root: Path, protocol: str, job_attempt: int = 0, nonce: str | None = None) -> Job:
    options = AT_WORK.replace(protocol=protocol, accept_unsafe=True)
    job = Job(root, options, job_id="j", job_attempt=job_attempt, nonce=nonce)
    job.setup()
    return job


def wakes_too_late(
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
    protocol: str,
    phase: str,
    *,
    dies: bool,
    attempts: tuple[int, int] = (0, 0),
    nonce: str | None = None,
) -> tuple[Job, list[Receipt]]:
    """The second job, of whose two tasks one has committed; the first one's driver has woken."""
    first = a_job(root, protocol, attempts[0], nonce)
    receipts = committed_tasks(first, b"first", [0, 1])
    create = LocalStore.create_file
    second: list[tuple[Job, list[Receipt]]] = []

    def end_and_begin_again() -> None:
        if phase == "claimed":
            lockgate.abort(root, "j", options=SILENT, force=True)
        else:
            lockgate.recover(root, "j", undo=True, options=SILENT, force=True)
        job = a_job(root, protocol, attempts[1], nonce)
        second.append((job, committed_tasks(job, b"second", [0])))

    async def sleep_then_create(store, path, content, **named):
        is_it = "/j/commit" in path and json.loads(content).get("phase") == phase and not second
        if is_it:
            await asyncio.to_thread(end_and_begin_again)
        created = await create(store, path, content, **named)
        if is_it and dies:
            raise Died
        return created

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "create_file", sleep_then_create)
        with pytest.raises(Died if dies else LockgateError):
            first.commit(receipts)
    first._show_life_no_more()
    return second[0]


CASES = [
    *((protocol, phase) for protocol in EVERY for phase in ("claimed", "moving")),
    *((protocol, "committed") for protocol in BY_RECORD),
]


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "goes on"])
@pytest.mark.parametrize(("protocol", "phase"), [(protocol, "moving") for protocol in EVERY])
def test_the_same_job_run_again_goes_on_beside_a_version_of_its_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, phase: str, dies: bool
) -> None:
    """Both have one nonce, as after unpickling. The second was refused, and `recover` said that nothing is to be done,
    and deleted it, while what its tasks had shown stayed."""
    job, receipts = wakes_too_late(monkeypatch, tmp_path, protocol, phase, dies=dies, nonce="given")
    assert lockgate.recover(tmp_path, "j", options=AT_WORK)["j"].outcome == "not begun"
    job.setup()
    job.commit([*receipts, *committed_tasks(job, b"second", [1])])
    contents = {(tmp_path / file.path).read_bytes() for file in lockgate.files(tmp_path).files}
    assert contents == {b"second"}


@pytest.mark.parametrize("attempts", [(0, 0), (0, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("dies", [True, False], ids=["dies", "goes on"])
@pytest.mark.parametrize(("protocol", "phase"), CASES)
def test_a_job_at_work_is_ended_by_nobody_for_a_record_of_an_earlier_setup_of_its_id(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    phase: str,
    dies: bool,
    attempts: tuple[int, int],
) -> None:
    """`recover` without `--force` said that nothing is to be done, and deleted its directory; so did `gc`."""
    job, receipts = wakes_too_late(monkeypatch, tmp_path, protocol, phase, dies=dies, attempts=attempts)
    (state,) = (each for each in lockgate.jobs(tmp_path, AT_WORK) if each.job_id == "j")
    assert (state.status, state.phase, state.tasks_committed) == ("running", None, 1)
    for undo in (None, True):
        assert lockgate.recover(tmp_path, "j", undo=undo, options=AT_WORK)["j"].outcome == "not begun"
    lockgate.recover(tmp_path, options=AT_WORK)
    (found,) = (each for each in lockgate.collect_garbage(tmp_path, options=AT_WORK) if each.path.endswith("/j"))
    assert found.action == "kept"
    with pytest.raises(LockgateError, match="may be at work"):
        lockgate.abort(tmp_path, "j", options=AT_WORK)
    # Its own driver goes on from that record: it was "held by" the one that is dead.
    job.commit([*receipts, *committed_tasks(job, b"second", [1])])
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.name[0] not in "_."] == [b"second"] * 2
    assert not (tmp_path / "_lockgate/jobs").exists()


@pytest.mark.parametrize(("protocol", "phase"), CASES)
def test_a_job_can_be_aborted_beside_a_record_of_an_earlier_setup_of_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, phase: str
) -> None:
    """What had committed stayed in place, and nobody was told."""
    job, _ = wakes_too_late(monkeypatch, tmp_path, protocol, phase, dies=True)
    job.abort()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("protocol", EVERY)
@pytest.mark.parametrize("when", ["it is at work", "it has renamed", "it has committed"])
def test_exactly_once_a_driver_that_sleeps_amid_its_commit_takes_out_nothing_of_the_next_job_of_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, when: str
) -> None:
    """It took what the next job's tasks had saved for what attempts of its own had: "committed" was said of a job of
    which no row was left."""
    first = a_job(tmp_path, protocol)
    receipts = committed_tasks(first, b"first", [0, 1])
    perform = type(first._run().protocol).perform
    asleep, wakes = threading.Event(), threading.Event()

    async def sleep_then_perform(self, run, *arguments, **named):
        if run.marker == first._marker and not asleep.is_set():
            asleep.set()
            await asyncio.to_thread(wakes.wait)
        return await perform(self, run, *arguments, **named)

    monkeypatch.setattr(type(first._run().protocol), "perform", sleep_then_perform)
    errors: list[BaseException] = []

    def commit() -> None:
        try:
            first.commit(receipts)
        except LockgateError as error:
            errors.append(error)

    driver = threading.Thread(target=commit)
    driver.start()
    assert asleep.wait(60)
    lockgate.recover(tmp_path, "j", undo=True, options=SILENT, force=True)
    job = a_job(tmp_path, protocol)
    second = committed_tasks(job, b"second", [0, 1])

    def wake() -> None:
        wakes.set()
        driver.join()

    if when == "it is at work":
        wake()
    if when == "it has renamed":
        conclude = type(job._run().protocol).conclude

        async def wake_then_conclude(self, run, *arguments, **named):
            await asyncio.to_thread(wake)
            return await conclude(self, run, *arguments, **named)

        monkeypatch.setattr(type(job._run().protocol), "conclude", wake_then_conclude)
    job.commit(second)
    wake()
    assert len(errors) == 1
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.name[0] not in "_."] == [b"second"] * 2

"""A driver that lives on after its commit has failed, and that could not say so in its record: a full disk has no room
for it. Others took it for one that is at work, for as long as its process lived, up to `alive_seconds`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import lockgate
import pytest
from lockgate import Job
from lockgate.api import given_up
from lockgate.errors import CommitFailed, CommitFenced, StoreError
from lockgate.model.phases import Phase
from lockgate.stores.local import LocalStore


@contextmanager
def a_full_disk(monkeypatch: pytest.MonkeyPatch, *, after: str) -> Iterator[None]:
    """No file can be made once the record has been in this phase; and no file be renamed."""
    create, is_full = LocalStore.create_file, []

    async def fails(*_: object, **__: object) -> None:
        raise StoreError("No space left on device", where="disk", next_step="make room")

    async def creates(store: LocalStore, path: str, content: bytes) -> None:
        if is_full:
            await fails()
        await create(store, path, content)
        is_full.extend([True] if f'"{after}"'.encode() in content else [])

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "create_file", creates)
        patch.setattr(LocalStore, "create_then_look", creates)
        patch.setattr(LocalStore, "rename_files", fails)
        yield


def failed(table, monkeypatch: pytest.MonkeyPatch, after: str) -> Job:
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"p=1/new": b"new"})
    with a_full_disk(monkeypatch, after=after), pytest.raises(CommitFailed):
        job.commit([receipt])
    return job


def waiting(job: Job) -> bool:
    return any(run.layout.job_id == job.job_id for run, _ in given_up._WAITING.values())


def newest_record(table) -> bytes:
    return max(table.root.rglob("commit-*.json"), key=lambda path: path.name).read_bytes()


def status_of(table, job: Job) -> str:
    return next(state.status.value for state in lockgate.jobs(str(table.root)) if state.job_id == job.job_id)


def test_recoverable_at_once_a_job_whose_driver_lives_and_has_given_up_on_a_full_disk(table, monkeypatch) -> None:
    job = failed(table, monkeypatch, "moving")
    with pytest.raises(CommitFenced, match="waits to be recovered") as told:
        job.abort()
    assert f"{job.job_id} --undo restores" in told.value.next_step
    assert status_of(table, job) == "crashed"
    assert lockgate.recover(str(table.root), job.job_id, undo=True)[job.job_id].outcome == "undone"
    assert table.read() == {"p=1/old": b"old"}
    table.write({"p=1/next": b"next"}, conflict="replace")
    assert table.read() == {"p=1/next": b"next"}


def test_a_driver_says_by_itself_that_it_has_given_up_once_there_is_room(table, monkeypatch) -> None:
    """An operator looks from another process."""
    monkeypatch.setattr(given_up, "SECONDS_BETWEEN", 0.05)
    job = failed(table, monkeypatch, "moving")
    until = time.monotonic() + 60
    while b'"given_up":true' not in newest_record(table):
        assert time.monotonic() < until
        time.sleep(0.05)
    while waiting(job):
        assert time.monotonic() < until, "it tries no more"
        time.sleep(0.05)


def test_a_claim_that_could_not_be_refused_on_a_full_disk_is_refused_once_there_is_room(table, monkeypatch) -> None:
    job = failed(table, monkeypatch, "claimed")
    again = table.job(conflict="replace")
    again.commit([table.task(again, {"p=1/again": b"again"})])
    assert table.read() == {"p=1/again": b"again"}
    states = {state.job_id: state.phase for state in lockgate.jobs(str(table.root))}
    assert states[job.job_id] is Phase.REFUSED
    job.abort()
    assert job.job_id not in {state.job_id for state in lockgate.jobs(str(table.root))}


def test_fenced_who_has_given_up_says_nothing_of_a_job_that_somebody_else_has_ended(table, monkeypatch) -> None:
    job = failed(table, monkeypatch, "moving")
    with monkeypatch.context() as patch:  # somebody in another process
        patch.setattr(given_up, "_WAITING", {})
        lockgate.recover(str(table.root), job.job_id, undo=True, force=True)
    before = table.everything()
    assert waiting(job)
    job.abort()
    assert table.everything() == before
    assert table.read() == {"p=1/old": b"old"}

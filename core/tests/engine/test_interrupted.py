"""Whoever interrupts a job commit hears whether the job has committed all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import lockgate
import pytest
from lockgate import jobs
from lockgate.stores.local import LocalStore


@pytest.fixture
def interrupted_at(monkeypatch):
    """Ctrl-C as soon as the store is asked to do this to a path with this in it. A process that was started in the
    background ignores it unless told otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def at(method: str, part: str) -> None:
        real = getattr(LocalStore, method)
        sent: list[str] = []

        async def interrupted(self, subject, *more, **named):
            if part in str(subject) and not sent:
                sent.append(part)
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(60)
            return await real(self, subject, *more, **named)

        monkeypatch.setattr(LocalStore, method, interrupted)

    yield at
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("options", [{}, {"txn_id": "t"}, {"mark_success": False}])
@pytest.mark.parametrize("by", ["its driver", "an operator"])
def test_after_the_commit_point_the_interruption_says_that_the_job_is_committed(
    table, interrupted_at, caplog, by, options
) -> None:
    """It said `KeyboardInterrupt`, and a driver that runs its job again had everything twice."""
    job = table.job(**options)
    receipt = table.task(job, {"a": b"1"})
    interrupted_at("delete_directories", job.job_id)
    with pytest.raises(KeyboardInterrupt) as caught:
        if by == "its driver":
            job.commit([receipt])
        else:
            lockgate.commit(str(table.root), job.job_id, force=True)
    (note,) = caught.value.__notes__
    assert "is committed all the same: do not run it again" in note
    assert note in caplog.text
    assert table.read() == {"a": b"1"}


def test_before_anything_moved_the_interruption_says_that_the_job_is_as_it_was(table, interrupted_at) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    interrupted_at("preflight", "a")
    with pytest.raises(KeyboardInterrupt) as caught:
        job.commit([receipt])
    assert "is not committed, and nothing was moved" in caught.value.__notes__[0]
    assert [state.status.value for state in jobs(str(table.root))] == ["refused"]
    assert job.commit([receipt]).files == 1


def test_in_mid_move_the_interruption_says_that_the_destination_is_as_before(table, interrupted_at) -> None:
    table.write({"old": b"0"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"a": b"1"})
    interrupted_at("write_file", "_SUCCESS")
    with pytest.raises(KeyboardInterrupt) as caught:
        job.commit([receipt])
    assert "the destination is as it was before" in caught.value.__notes__[0]
    assert table.read() == {"old": b"0"}


def test_what_is_left_for_recovery_is_named(table, interrupted_at) -> None:
    job = table.job(on_failure="leave")
    receipt = table.task(job, {"a": b"1"})
    interrupted_at("write_file", "_SUCCESS")
    with pytest.raises(KeyboardInterrupt) as caught:
        job.commit([receipt])
    failed, stands = caught.value.__notes__
    assert "the job commit failed and was left as it is" in failed
    assert "is in phase" in stands
    assert f"{job.job_id} finishes it, or with --undo restores" in stands


COMMIT = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lockgate import Job
from lockgate.cli.main import main
from lockgate.stores.local import LocalStore
by, root = sys.argv[1:]
job = Job(root)
job.setup()
attempt = job.task_attempt(0); attempt.setup()
with attempt.open("a") as file: file.write(b"1")
receipt = attempt.commit()
async def slow(self, path, *more, **named):
    print("committed", flush=True)
    await asyncio.sleep(60)
LocalStore.delete_directories = slow
if by == "its driver":
    job.commit([receipt])
else:
    sys.argv[1:] = ["commit", root, job.job_id, "--force"]
    main()
"""


@pytest.mark.parametrize("by", ["its driver", "the command"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_process_that_is_ended_after_the_commit_point_says_so_on_standard_error(table, by, number, status) -> None:
    arguments = [sys.executable, "-c", COMMIT, by, str(table.root)]
    with subprocess.Popen(arguments, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
    # Python itself ends by the signal where nobody catches KeyboardInterrupt.
    assert process.returncode in (status, -number)
    assert "is committed all the same: do not run it again" in told


def test_an_interruption_before_the_wait_has_begun_cancels_the_work_all_the_same(table, monkeypatch) -> None:
    """It came while the work was handed over: the work went on, and nobody waited for it."""
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    hand_over = asyncio.run_coroutine_threadsafe
    handed: list[object] = []

    def interrupted(work, loop):
        future = hand_over(work, loop)
        if not handed:
            handed.append(future)
            raise KeyboardInterrupt
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        job.commit([receipt])
    said = caught.value.__notes__[-1]
    assert ("committed all the same" in said) == (table.read() == {"a": b"1"})
    assert "is in phase" not in said


def test_what_a_rollback_could_not_restore_is_not_denied(table, monkeypatch) -> None:
    """It said that the destination is as it was before, after the error that named the missing file."""
    table.write({"old": b"0"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"a": b"1"})
    real = LocalStore.write_file
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    async def robbed(self, path, content):
        if "_SUCCESS" in path:
            for waiting in (table.root / "_lockgate/replaced").rglob("_[0-9]"):
                waiting.unlink()
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        return await real(self, path, content)

    monkeypatch.setattr(LocalStore, "write_file", robbed)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            job.commit([receipt])
    finally:
        signal.signal(signal.SIGINT, before)
    told = "\n".join(caught.value.__notes__)
    assert "but for" in told
    assert "as it was before" not in told

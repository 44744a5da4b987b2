"""What killing drivers and recoverers at their system calls found, as short scenarios on the real local store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, jobs
from lockgate.engine.commit_once import commit_once
from lockgate.engine.recovery.collect_garbage import collect_garbage
from lockgate.engine.recovery.recover import Recovery, recover_job
from lockgate.errors import CommitFailed


def _recover(job: Job, **how: Any) -> Recovery:
    return asyncio.run(recover_job(job._run(), force=True, **how))


def test_resumable_an_undoing_that_died_before_the_record_could_say_so_is_gone_on_with(table) -> None:
    """The summary was revoked, and the record still said `publishing`: recovery called the job fenced by nobody."""
    table.write({"p=1/old": b"1"})
    job = table.job(conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"2"})
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and subject[0].target == "_SUCCESS"
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    store = make_faulty(job)
    records: list[str] = []

    def second_record(name: str, subject: Any) -> bool:
        records.extend([subject] if name == "create_file" else [])
        return len(records) == 2

    store.fail_at = second_record
    with pytest.raises(Stop):
        _recover(job, undo=True)
    job._store = None
    assert _recover(job).outcome == "undone"
    assert set(table.read()) == {"p=1/old"}
    assert not table.left_over()


def test_gc_leaves_no_empty_directories_of_bookkeeping(table) -> None:
    """A driver that was killed before it set anything aside, or near the end of its cleanup, left them for good."""
    table.write({"old": b"1"})
    (table.root / "_lockgate" / "replaced").mkdir(parents=True)
    asyncio.run(collect_garbage(table.job()._run()))
    assert sorted(path.name for path in (table.root / "_lockgate").iterdir()) == ["commits", "jobs"]


def test_gc_deletes_what_a_killed_process_left_aside_anywhere(table) -> None:
    """It looked in `_temporary` only: trees that were being deleted, and half-written files, stayed in `_lockgate`."""
    table.write({"old": b"1"}, txn_id="once", file_list_inline_max=0)
    kept = table.everything().keys()
    for path in (
        ".aside-0123abcd/0123/_0",
        ".lockgate-0789.tmp",
        "txn/.lockgate-0456.tmp",
        "commits/.lockgate-0123.tmp",
    ):
        (table.root / "_lockgate" / path).parent.mkdir(parents=True, exist_ok=True)
        (table.root / "_lockgate" / path).write_bytes(b"left")
    asyncio.run(collect_garbage(table.job(alive_seconds=0.0)._run()))
    assert table.everything().keys() == kept
    assert not list(table.root.rglob(".*"))


@pytest.mark.parametrize("options", [{}, {"conflict": "replace"}])
@pytest.mark.parametrize("phase", ["moving", "publishing"])
def test_abortable_a_commit_cancelled_while_a_version_of_its_record_is_on_its_way(table, phase, options) -> None:
    """Of `moving`, it took the phase before for its own, did not roll back, and called itself fenced by itself."""
    table.write({"p=1/old": b"1"})
    before = table.read()
    job = table.job(**options)
    receipt = table.task(job, {"p=1/new": b"2"})
    store = make_faulty(job)
    cancelled: list[str] = []

    async def create_file(path: str, content: bytes, really: Any = store.create_file) -> Any:
        created = await really(path, content)
        if f'"phase":"{phase}"'.encode() in content and not cancelled:
            cancelled.append(path)
            raise asyncio.CancelledError
        return created

    store.create_file = create_file  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(commit_once(job._run(), [receipt]))
    assert table.read() == before
    assert job.job_id not in [state.job_id for state in jobs(str(table.root))]
    assert not table.left_over()
    table.write({"p=1/next": b"3"}, **options)


def test_a_driver_that_lists_what_it_replaces_when_its_job_is_over_leaves_no_list(table) -> None:
    """It was stopped just before, and somebody else finished the job meanwhile, and cleaned up."""
    table.write({"p=1/old": b"1"})
    job = table.job(conflict="replace-partitions")
    receipt = table.task(job, {"p=1/new": b"2"})
    store = make_faulty(job)
    finished: list[str] = []

    def finish_first(call: str, subject: object) -> None:
        if not finished and call == "make_directories" and "replaced" in str(subject):
            command = "from lockgate.cli.main import main; main()"
            arguments = ["recover", str(table.root), job.job_id, "--force"]
            done = subprocess.run(
                [sys.executable, "-c", command, *arguments], capture_output=True, text=True, check=True
            )
            finished.append(done.stdout)

    store.before = finish_first
    assert job.commit([receipt]).files == 1
    assert "finished (it was in phase claimed)" in finished[0]
    assert table.left_over() == []
    assert table.read() == {"p=1/new": b"2"}

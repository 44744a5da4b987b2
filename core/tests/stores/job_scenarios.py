"""Whole jobs by URL, through the public API, on any remote store: the scenarios that every store's tests run."""

from __future__ import annotations

import concurrent.futures
import logging
import pickle
from collections.abc import Callable, Mapping, Sequence

import pytest
from lockgate import LockgateError, collect_garbage, jobs, recover, verify
from lockgate.model.capabilities import Capability
from lockgate.model.errors import DestinationConflict, JobNotFound, ManifestInvalid
from remote_jobs import AWKWARD, RemoteTable

Scenario = Callable[[RemoteTable], None]


def _files(tag: str, partitions: int = 3) -> dict[str, bytes]:
    return {f"p={n}/{tag}.bin": f"{tag} {n}".encode() for n in range(partitions)}


def append_keeps_what_is_there_and_refuses_a_taken_name(table: RemoteTable) -> None:
    table.write(_files("one"))
    table.write(_files("two"), conflict="append")
    assert table.read() == _files("one") | _files("two")
    with pytest.raises(LockgateError):
        table.write({"p=0/new.bin": b"new", "p=0/one.bin": b"taken"}, conflict="append")
    assert table.read() == _files("one") | _files("two")
    table.write({"p=0/one.bin": b"taken"}, conflict="append", delete_target_files=True)
    assert table.read() == _files("one") | _files("two") | {"p=0/one.bin": b"taken"}


def a_refused_job_of_equal_names_and_bytes_takes_nothing_out(table: RemoteTable) -> None:
    """Where identity is content, what stands at a target looks like the job's own file."""
    table.write(_files("one"))
    with pytest.raises(LockgateError):
        table.write({"p=9/new.bin": b"new", **_files("one")}, conflict="append")
    assert table.read() == _files("one")
    assert not verify(table.url, table.job_options()).findings


def fail_refuses_a_destination_that_holds_data(table: RemoteTable) -> None:
    table.write(_files("one"), conflict="fail")
    with pytest.raises(DestinationConflict):
        table.write(_files("two"), conflict="fail")
    assert table.read() == _files("one")


def replace_leaves_nothing_old(table: RemoteTable) -> None:
    table.write(_files("one", 5))
    table.write(_files("two", 2), conflict="replace", validate_output=True)
    assert table.read() == _files("two", 2)
    assert not verify(table.url, table.job_options()).findings
    assert table.left_over() == []


def replace_partitions_leaves_the_other_partitions(table: RemoteTable) -> None:
    table.write(_files("one", 5))
    table.write(_files("two", 2), conflict="replace-partitions", replace_order="new-first")
    assert table.read() == {**_files("two", 2), **{p: c for p, c in _files("one", 5).items() if p[2] in "234"}}


def directories_are_set_aside_whole_where_the_store_can(table: RemoteTable) -> None:
    table.write(_files("one", 5) | _files("beside", 3))
    job = table.job(conflict="replace-partitions", set_aside="directories")
    summary = job.commit([table.task(job, _files("two", 4))])
    whole = {Capability.ATOMIC_DIRECTORY_RENAME, Capability.REAL_DIRECTORIES} <= job.capabilities
    assert summary.counters.get("directories_set_aside", 0) == (3 if whole else 0)
    assert table.read() == _files("two", 4) | {"p=4/one.bin": b"one 4"}
    assert table.left_over() == []


def awkward_names_arrive(table: RemoteTable) -> None:
    files = {name: name.encode() for name in AWKWARD}
    table.write(files)
    assert table.read() == files
    assert not verify(table.url, table.job_options()).findings


def refuse_names(table: RemoteTable, names: Sequence[str]) -> None:
    """Names that the store does not take are refused before anything is moved, whatever the policy."""
    table.write(_files("old"))
    for name in names:
        for policy in ("append", "replace"):
            job = table.job(conflict=policy)
            with pytest.raises(ManifestInvalid, match="name that this store does not take"):
                job.commit([table.task(job, {"p=0/new.bin": b"new", name: b"new"})])
            job.abort()
            assert table.read() == _files("old")
    assert table.left_over() == []


def large_and_empty_files_arrive(table: RemoteTable) -> None:
    files = {"empty.bin": b"", "large.bin": b"0123456789abcdef" * 100_000}
    table.write(files)
    assert table.read() == files


def a_pickled_job_commits_only_what_its_receipts_name(table: RemoteTable) -> None:
    job = table.job()
    copy = pickle.loads(pickle.dumps(job))
    kept = table.task(copy, {"kept.bin": b"kept"}, task=0)
    table.task(copy, {"rival.bin": b"rival"}, task=0, attempt=1)
    table.task(copy, {"unknown.bin": b"unknown"}, task=1)
    job.commit([kept])
    assert table.read() == {"kept.bin": b"kept"}


def two_jobs_at_once_both_commit(table: RemoteTable) -> None:
    def write(tag: str) -> None:
        job = table.job()
        receipts = [table.task(job, {f"{tag}-{n}.bin": b"x"}, n) for n in range(5)]
        job.commit(receipts)

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        list(threads.map(write, ("one", "two")))
    assert sorted(table.read()) == sorted(f"{tag}-{n}.bin" for tag in ("one", "two") for n in range(5))
    assert table.left_over() == []


def an_aborted_job_leaves_nothing(table: RemoteTable) -> None:
    table.write(_files("one"))
    job = table.job(conflict="replace")
    receipt = table.task(job, _files("two"))
    job.abort()
    assert table.read() == _files("one")
    assert table.left_over() == []
    with pytest.raises(JobNotFound):
        job.commit([receipt])


def a_late_task_of_a_finished_job_is_told(table: RemoteTable) -> None:
    job = table.job()
    receipt = table.task(job, {"a.bin": b"a"})
    late = job.task_attempt(1, 0)
    late.setup()
    job.commit([receipt])
    try:
        with late.open("late.bin") as file:
            file.write(b"late")
        late.commit()
    except LockgateError:
        pass  # where directories are real it is told at once; elsewhere nobody reads what it left
    assert table.read() == {"a.bin": b"a"}
    collect_garbage(table.url, options=table.job_options(alive_seconds=0))


SCENARIOS: tuple[Scenario, ...] = (
    append_keeps_what_is_there_and_refuses_a_taken_name,
    a_refused_job_of_equal_names_and_bytes_takes_nothing_out,
    fail_refuses_a_destination_that_holds_data,
    replace_leaves_nothing_old,
    replace_partitions_leaves_the_other_partitions,
    directories_are_set_aside_whole_where_the_store_can,
    awkward_names_arrive,
    large_and_empty_files_arrive,
    a_pickled_job_commits_only_what_its_receipts_name,
    two_jobs_at_once_both_commit,
    an_aborted_job_leaves_nothing,
    a_late_task_of_a_finished_job_is_told,
)


def recover_after(
    table: RemoteTable, break_renames: Callable[[], None], mend: Callable[[], None], *, undo: bool
) -> None:
    """A job commit whose renames stop half way, left as it is, is finished or undone by recovery."""
    old = _files("old", 4) | _files("beside", 2)
    table.write(old)
    job = table.job(conflict="replace", set_aside="directories", on_failure="leave", patience_seconds=0.2)
    receipts = [table.task(job, {f"p={n}/new-{t}.bin": b"new" for n in range(10)}, t) for t in range(4)]
    break_renames()
    with pytest.raises(LockgateError) as caught:
        job.commit(receipts)
    assert "lockgate recover" in str(caught.value)
    mend()
    assert [state.job_id for state in jobs(table.url, table.job_options()) if state.job_id == job.job_id]
    recover(table.url, job.job_id, undo=undo or None, force=True, options=table.job_options())
    recover(table.url, job.job_id, undo=undo or None, force=True, options=table.job_options())
    new = {f"p={n}/new-{t}.bin": b"new" for n in range(10) for t in range(4)}
    assert table.read() == (old if undo else new)


def no_secret_is_shown(
    table: RemoteTable,
    break_store: Callable[[], None],
    secrets: Mapping[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A job that succeeds and one that fails: no log line, error, manifest or summary holds a secret."""
    caplog.set_level(logging.DEBUG)
    seen: list[str] = [repr(table.job_options())]
    job = table.job(conflict="replace")
    receipts = [table.task(job, _files(f"t{n}"), n) for n in range(3)]
    seen += [content.decode("latin-1") for content in table.server_files().values()]
    seen.append(repr(job.commit(receipts)))
    failing = table.job(conflict="append", patience_seconds=0.3, on_failure="leave")
    receipt = table.task(failing, {"x.bin": b"x"})
    break_store()
    with pytest.raises(LockgateError) as caught:
        failing.commit([receipt])
    error: BaseException | None = caught.value
    while error is not None:
        seen += [str(error), repr(error), repr(error.args)]
        error = error.__cause__ or error.__context__
    seen += [record.getMessage() for record in caplog.records]
    seen += [content.decode("latin-1") for content in table.server_files().values()]
    assert any("commit record" in line for line in seen), "the log was not heard"
    for what, secret in secrets.items():
        found = [line for line in seen if secret in line]
        assert not found, f"{what} is shown"

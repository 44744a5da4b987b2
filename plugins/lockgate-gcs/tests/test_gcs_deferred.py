"""Jobs of the deferred protocol on Cloud Storage: what is sent, what is kept where, what is given up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import lockgate
import msgspec
import pytest
from job_scenarios import SCENARIOS, Scenario, append_keeps_what_is_there_and_refuses_a_taken_name
from lockgate import Job
from lockgate.cli.main import app
from lockgate.errors import CapabilityMissing, CommitFailed, DestinationConflict, JobNotFound, UsageError
from lockgate.model.layout import is_kept_uploads
from lockgate_gcs.kept_uploads import BATCH_BYTES, decode_kept
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import new_object
from lost_records import LOST_RECORDS
from remote_jobs import RemoteTable
from typer.testing import CliRunner

pytestmark = pytest.mark.parametrize("renames_by", ["move"], indirect=True)

OF_ONE_NAME = (append_keeps_what_is_there_and_refuses_a_taken_name,)
"""Scenarios that replace a file by one of the same name, which this protocol refuses: there is a test of its own."""

UNIT = 256 << 10
Pending = Callable[[], list[str]]


def kept(table: RemoteTable) -> dict[str, bytes]:
    """The files that keep uploads."""
    return {path: content for path, content in table.server_files().items() if is_kept_uploads(path)}


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each not in OF_ONE_NAME], ids=lambda scenario: scenario.__name__
)
def test_jobs(scenario: Scenario, table: RemoteTable, pending: Pending) -> None:
    scenario(table)
    assert [name for name in pending() if "late" not in name] == []


def test_the_default_stays_with_renames(gcs_table: RemoteTable, gcs: GcsLab) -> None:
    summary = gcs_table.write({"a": b"1"})
    assert summary.lockgate is not None
    assert summary.lockgate.protocol == "manifest"
    assert gcs.service.sessions == {}


def test_nothing_is_seen_before_the_commit_and_nothing_left_after_an_abort(
    table: RemoteTable, pending: Pending
) -> None:
    table.write({"old": b"old"})
    job = table.job(conflict="replace")
    table.task(job, {"new": b"new", "large": b"x" * (3 * UNIT + 7), "even": b"y" * 2 * UNIT, "empty": b""})
    assert table.read() == {"old": b"old"}
    assert len(pending()) == 4
    assert len(kept(table)) == 3, "one before each file that is sent while it is written, one at the commit"
    job.abort()
    assert pending() == []
    assert table.read() == {"old": b"old"}
    assert table.left_over() == []


def test_a_file_in_the_way_is_never_written_over(table: RemoteTable, pending: Pending) -> None:
    """Also where its content is the same."""
    table.write({"a": b"same", "b": b"b"})
    job = table.job()
    receipt = table.task(job, {"a": b"same", "c": b"c"})
    with pytest.raises(CommitFailed, match="a file is there that this job did not write"):
        job.commit([receipt])
    assert table.read() == {"a": b"same", "b": b"b"}
    assert pending() == []
    with pytest.raises(DestinationConflict, match="files of the same names"):
        table.write({"a": b"same"}, conflict="replace")
    assert table.read() == {"a": b"same", "b": b"b"}


def test_requests_a_committed_short_file(table: RemoteTable, gcs: GcsLab) -> None:
    """Its session's begin and end, and under a tenth of one for all else of the job."""
    gcs.service.settings.list_page_max = 1_000
    files = {f"p={n % 5}/{n:04d}.bin": b"%d" % n for n in range(1_000)}
    table.write(files)
    operations = dict(gcs.server.log.operations)
    print(operations)
    assert operations["uploads.write"] == len(files)
    assert sum(operations.values()) < 2.1 * len(files)
    assert table.read() == files


def test_short_files_are_sent_many_at_a_time_after_their_sessions_are_kept(
    table: RemoteTable, pending: Pending
) -> None:
    """One write for each 16 MiB, though each file has bytes that are sent before the commit."""
    job = table.job(store={**table.store, "chunk_bytes": str(8 << 20)})
    files = {f"{n:02d}": bytes([n]) * (4 * UNIT + n) for n in range(40)}
    table.task(job, files)
    assert len(kept(table)) == -(-sum(map(len, files.values())) // BATCH_BYTES)
    job.commit()
    assert table.read() == files
    assert pending() == []


@pytest.mark.parametrize("chunk", [UNIT, 4 * UNIT])
def test_files_of_any_length_arrive(chunk: int, table: RemoteTable) -> None:
    """Those that end where a part ends, or a byte beside it, among them."""
    ends = [0, UNIT, 2 * UNIT, chunk, 2 * chunk, 2 * chunk + UNIT]
    lengths = sorted({max(0, end + more) for end in ends for more in (-1, 0, 1)})
    files = {f"{length}": bytes([length % 251]) * length for length in lengths}
    table.write(files, store={**table.store, "chunk_bytes": str(chunk)})
    assert table.read() == files


def test_a_session_is_kept_before_its_first_byte_is_sent(table: RemoteTable, gcs: GcsLab, pending: Pending) -> None:
    """Also where the file that would keep it cannot be written: then no byte is."""
    job = table.job(patience_seconds=0.2)
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    gcs.control.fault("error-before", "objects.insert", target="*-uploads-*", times=1_000, status=503)
    with pytest.raises(lockgate.LockgateError), attempt.open("large") as file:
        file.write(b"x" * 5 * UNIT)
    sessions = list(gcs.service.sessions.values())
    assert [bytes(each.received) for each in sessions] == [b""]
    assert gcs.server.log.operations["uploads.write"] == 0
    assert pending() == []


@pytest.mark.parametrize("ends", ["abort", "commit"])
def test_a_session_of_an_attempt_that_died_is_given_up_with_its_job(
    ends: str, table: RemoteTable, pending: Pending
) -> None:
    job = table.job()
    attempt = job.task_attempt(1, 0)
    attempt.setup()
    file = attempt.open("lost")
    file.write(b"x" * 5 * UNIT)
    assert pending() == [f"{prefix(table)}/lost"]
    if ends == "abort":
        job.abort()
    else:
        job.commit([table.task(job, {"a": b"1"})])
    assert pending() == []
    assert table.left_over() == []


def prefix(table: RemoteTable) -> str:
    return table.url.removeprefix("gs://data/")


def test_uploads_of_an_attempt_that_another_has_displaced_are_given_up(table: RemoteTable, pending: Pending) -> None:
    job = table.job()
    table.task(job, {"first": b"1"})
    second = table.task(job, {"second": b"2"}, attempt=1)
    job.commit([second])
    assert table.read() == {"second": b"2"}
    assert pending() == []


@pytest.mark.parametrize("commits", [False, True])
def test_an_aborted_attempt_leaves_no_session_and_no_secret(
    commits: bool, table: RemoteTable, pending: Pending
) -> None:
    job = table.job()
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    for name, length in (("short", 7), ("medium", UNIT + 7), ("large", 5 * UNIT + 7)):
        with attempt.open(name) as file:
            file.write(b"x" * length)
    if commits:
        attempt.commit()
    attempt.abort()
    assert pending() == []
    assert kept(table) == {}
    job.commit([table.task(job, {"a": b"1"}, attempt=1)])
    assert table.read() == {"a": b"1"}


def test_no_session_is_in_a_manifest_a_record_or_a_summary(table: RemoteTable, gcs: GcsLab) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1", "large": b"x" * 5 * UNIT})
    secrets = [identity.encode() for identity in gcs.service.sessions]
    files = table.server_files()
    holding = [path for path, content in files.items() if any(secret in content for secret in secrets)]
    assert sorted(holding) == sorted(kept(table)) and len(holding) == 2
    assert not any(secret.decode() in repr(receipt) for secret in secrets)
    (path, content) = next(iter(kept(table).items()))
    assert not any(secret.decode() in repr(decode_kept(content, path)) for secret in secrets)
    job.commit([receipt])
    files = table.server_files()
    assert [path for path, content in files.items() if any(secret in content for secret in secrets)] == []


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://example.com/upload/storage/v1/b/data/o?uploadType=resumable&upload_id=1",
        "//example.com/upload/storage/v1/b/data/o?uploadType=resumable&upload_id=1",
        "/storage/v1/b/data/o/victim",
        "/upload/storage/v1/b/other/o?uploadType=resumable&upload_id=1",
        "/upload/storage/v1/b/data/o?uploadType=media&name=victim&upload_id=1",
    ],
)
def test_contained_a_kept_session_that_is_none_of_the_bucket_is_sent_nothing(
    elsewhere: str, table: RemoteTable, gcs: GcsLab
) -> None:
    """Who can write below the destination cannot have whoever ends a job write, or delete, what they may not
    themselves, nor learn what authorizes them."""
    bucket = gcs.service.buckets["data"]
    gcs.on_loop(lambda: bucket.put(new_object("victim", b"victim", {})))
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    (path,) = kept(table)
    (upload,) = decode_kept(kept(table)[path], path)
    assert upload is not None
    changed = msgspec.msgpack.encode([msgspec.structs.replace(upload, session=elsewhere)])
    gcs.on_loop(lambda: bucket.put(new_object(f"{prefix(table)}/{path}", changed, {})))
    with pytest.raises(CommitFailed, match="no session of this bucket"):
        job.commit([receipt])
    with contextlib.suppress(JobNotFound):
        job.abort()
    assert table.read() == {}
    assert table.left_over() == []
    assert bucket.objects["victim"].content == b"victim"


def test_a_job_whose_kept_uploads_are_gone_is_not_committed(table: RemoteTable, gcs: GcsLab) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    bucket = gcs.service.buckets["data"]
    (path,) = kept(table)
    gcs.on_loop(lambda: bucket.remove(f"{prefix(table)}/{path}"))
    with pytest.raises(CommitFailed, match="somebody has given its upload up"):
        job.commit([receipt])
    assert table.read() == {}


def test_a_session_that_has_expired_is_told(table: RemoteTable, gcs: GcsLab) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    for session in gcs.service.sessions.values():
        session.begun -= 7 * 86400
    with pytest.raises(CommitFailed, match="given its upload up"):
        job.commit([receipt])
    assert table.read() == {}


def test_uploads_that_wait_cannot_be_listed_and_that_is_said(table: RemoteTable) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    for ask in (
        lambda: lockgate.uploads(table.url, table.job_options()),
        lambda: lockgate.abort_uploads(table.url, older_than=0.0, options=table.job_options()),
    ):
        with pytest.raises(CapabilityMissing, match="cannot be listed") as caught:
            ask()
        assert "7 days" in caught.value.next_step
    given = [part for name, value in table.store.items() for part in ("-o", f"store.{name}={value}")]
    told = CliRunner().invoke(app, ["uploads", "list", table.url, *given])
    assert told.exit_code != 0
    assert "cannot be listed" in told.output
    assert lockgate.collect_garbage(table.url, options=table.job_options()) != []


def test_gc_gives_up_the_sessions_of_a_dead_job(table: RemoteTable, pending: Pending) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    begun = job.task_attempt(1, 0)
    begun.setup()
    lost = begun.open("lost")
    lost.write(b"x" * 5 * UNIT)
    assert len(pending()) == 2
    job._show_life_no_more()
    begun._show_life_no_more()
    lockgate.collect_garbage(table.url, options=table.job_options(alive_seconds=0))
    assert pending() == []
    assert table.left_over() == []


def test_files_in_a_working_directory_are_not_looked_for(table: RemoteTable) -> None:
    attempt = table.job().task_attempt(task=0, attempt=0)
    attempt.setup()
    with pytest.raises(UsageError, match="no working directory"):
        attempt.commit(scan=True)


def test_a_transaction_takes_effect_once(table: RemoteTable, pending: Pending) -> None:
    table.write({"a": b"1"}, txn_id="daily/1")
    table.write({"b": b"2"}, txn_id="daily/1")
    assert table.read() == {"a": b"1"}
    assert pending() == []


def test_doctor_tries_what_a_job_relies_on(table: RemoteTable, pending: Pending) -> None:
    found = {probe.name: probe.verdict for probe in lockgate.doctor(table.url, table.job_options())}
    assert found["deferred-upload"] == found["conditional-write"] == "ok"
    assert "broken claim" not in found.values()
    assert pending() == []


def test_a_later_attempt_at_a_job_commits_what_tasks_of_a_dead_one_have_committed(
    table: RemoteTable, pending: Pending
) -> None:
    first = table.job()
    table.task(first, {"a": b"1", "b": b"x" * (UNIT + 1)})
    again = Job(table.url, table.job_options(), job_id=first.job_id, job_attempt=1)
    again.setup()
    again.commit([*again.committed(), table.task(again, {"c": b"3"}, 1)])
    assert table.read() == {"a": b"1", "b": b"x" * (UNIT + 1), "c": b"3"}
    assert pending() == []
    assert table.left_over() == []


@pytest.mark.parametrize("scenario", LOST_RECORDS, ids=lambda scenario: scenario.__name__)
def test_a_job_whose_record_is_lost(
    scenario: Callable[..., None], table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write({"old": b"old"})
    job = table.job(on_failure="leave")
    receipts = [table.task(job, {"a": b"1", "p=1/b": b"2"}), table.task(job, {"c": b"3"}, task=1)]
    scenario(job, receipts, table.read, monkeypatch)

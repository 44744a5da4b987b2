"""Jobs of the deferred protocol on Cloud Storage under faults: commits that stop half way, lost answers, secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from job_scenarios import no_secret_is_shown, recover_after
from lockgate import recover
from lockgate.model.errors import CommitFailed
from lockgate.model.layout import is_kept_uploads
from lockgate_lab.dialects import GCS
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from remote_jobs import FaultyRun, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids

UNIT = 256 << 10
Pending = Callable[[], list[str]]


@pytest.fixture
def renames_by() -> str:
    return "move"


@contextmanager
def proxied(table: RemoteTable, **more: Any) -> Iterator[tuple[FaultProxyLab, RemoteTable]]:
    with FaultProxyLab(table.store["endpoint_url"], dialect=GCS, normalise=without_ids, **more) as proxy:
        yield proxy, table.through(table.url, {**table.store, "endpoint_url": proxy.url})


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(
    undo: bool, table: RemoteTable, gcs: GcsLab, pending: Pending
) -> None:
    def stop() -> None:
        gcs.control.fault("error-before", "uploads.write", skip=13, times=10_000, status=403)

    recover_after(table, stop, lambda: gcs.control.call("DELETE", "faults"), undo=undo)
    assert pending() == []


def test_who_may_not_complete_an_upload_is_sent_to_the_rights_first(table: RemoteTable, gcs: GcsLab) -> None:
    """It said "run the job again", which fails again."""
    job = table.job()
    receipt = table.task(job, {"f": b"x"})
    gcs.control.fault("error-before", "uploads.write", times=10_000, status=403)
    with pytest.raises(CommitFailed, match="403") as failed:
        job.commit([receipt])
    assert failed.value.next_step.startswith("check the credentials, and that their policy allows")


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_is_recovered_by_another_name_of_its_service(undo: bool, table: RemoteTable, pending: Pending) -> None:
    """Its sessions were begun through an endpoint that is no more."""
    table.write({"old": b"old"})
    with proxied(table) as (proxy, through):
        job = through.job(conflict="replace", on_failure="leave", patience_seconds=0.2)
        receipt = through.task(job, {"new": b"new", "large": b"x" * 5 * UNIT})
        proxy.control.fault("error-before", "uploads.write", skip=1, times=10_000, status=503)
        with pytest.raises(Exception, match="lockgate recover"):
            job.commit([receipt])
    recover(table.url, job.job_id, undo=undo or None, force=True, options=table.job_options())
    assert table.read() == ({"old": b"old"} if undo else {"new": b"new", "large": b"x" * 5 * UNIT})
    assert pending() == []
    assert table.left_over() == []


@pytest.mark.parametrize("kind", ["answer-lost", "error-after", "error-before"])
@pytest.mark.parametrize("operation", ["uploads.write", "objects.insert"])
def test_answers_that_are_lost_change_nothing(
    kind: str, operation: str, table: RemoteTable, gcs: GcsLab, pending: Pending
) -> None:
    """Of a session's parts, and of its end; of what keeps it; of the job's record."""
    files = {"a": b"1", "b": b"2", "empty": b"", "medium": b"m" * (UNIT + 3), "large": b"x" * (5 * UNIT + 3)}
    status = {} if kind == "answer-lost" else {"status": 503}
    for skip in range(0, 12, 3):
        gcs.control.fault(kind, operation, skip=skip, times=2, **status)
        table.write({f"{skip}/{name}": content for name, content in files.items()})
        gcs.control.call("DELETE", "faults")
    assert table.read() == {f"{skip}/{name}": c for skip in range(0, 12, 3) for name, c in files.items()}
    # A session whose begin was not answered is known to nobody.
    assert operation == "objects.insert" or pending() == []


def test_a_rival_of_the_same_content_is_not_taken_for_an_answer_that_was_lost(table: RemoteTable, gcs: GcsLab) -> None:
    """The mark tells whose it is."""
    job = table.job()
    receipt = table.task(job, {"a": b"same"})
    table.write({"a": b"same"})
    gcs.control.fault("answer-lost", "uploads.write", times=1)
    with pytest.raises(Exception, match="did not write"):
        job.commit([receipt])
    assert table.read() == {"a": b"same"}


def test_a_session_that_the_service_has_broken_is_told(table: RemoteTable, gcs: GcsLab, pending: Pending) -> None:
    """410: "Gone" of the page "HTTP status and error codes for JSON"."""
    job = table.job()
    receipt = table.task(job, {"a": b"1", "b": b"2"})
    gcs.control.fault("error-before", "uploads.write", skip=1, times=1, status=410)
    with pytest.raises(Exception, match="given its upload up"):
        job.commit([receipt])
    assert table.read() == {}
    assert pending() == []


@pytest.mark.parametrize(
    ("kind", "operation", "how"), [("answer-lost", "*", {}), ("error-before", "uploads.write", {"status": 403})]
)
def test_no_upload_session_is_shown(
    kind: str, operation: str, how: dict[str, int], table: RemoteTable, gcs: GcsLab, caplog: pytest.LogCaptureFixture
) -> None:
    """In no file but those that are there to keep them."""
    secrets: dict[str, str] = {}

    def stop() -> None:
        secrets.update({f"session {n}": identity for n, identity in enumerate(gcs.service.sessions)})
        gcs.control.fault(kind, operation, times=100_000, **how)

    def shown() -> dict[str, bytes]:
        return {path: content for path, content in table.server_files().items() if not is_kept_uploads(path)}

    job = table.job()
    table.task(job, {"short": b"1", "large": b"x" * 5 * UNIT})
    job.abort()
    no_secret_is_shown(RemoteTable(table.url, table.store, shown, table.options), stop, secrets, caplog)
    assert len(secrets) == 2 + 9 + 1


def under_faults(lab: GcsLab, seed: int) -> FaultyRun:
    name = f"seed{seed}"
    lab.on_loop(lambda: lab.service.buckets.__setitem__(name, Bucket(name)))
    url, options = f"gs://{name}/t", {"protocol": "deferred"}

    def look() -> dict[str, bytes]:
        return {path.removeprefix("t/"): each.content for path, each in lab.service.buckets[name].objects.items()}

    direct = RemoteTable(url, {"endpoint_url": lab.url}, lambda: lab.on_loop(look), options)
    schedule = SeededFaults(seed, FaultRates.each(0.05))
    sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
    with FaultProxyLab(lab.url, schedule, dialect=GCS, normalise=without_ids, sizes=sizes) as proxy:
        return run_job_under_faults(direct.through(url, {"endpoint_url": proxy.url}), direct, seed)


@pytest.mark.timeout(2700)
@pytest.mark.slow
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault() -> None:
    with GcsLab() as lab:
        runs = run_seeds(seeds_of_faults(2), lambda seed: under_faults(lab, seed), at_once=4)
    assert sum(run.committed for run in runs) >= len(runs) / 2

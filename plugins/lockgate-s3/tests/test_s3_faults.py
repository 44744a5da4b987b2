"""Whole jobs on S3: the scenarios of every store, commits that stop half way, faults of the network, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lockgate
import msgspec
import pytest
from job_scenarios import (
    SCENARIOS,
    Scenario,
    append_keeps_what_is_there_and_refuses_a_taken_name,
    no_secret_is_shown,
    recover_after,
)
from lockgate import recover
from lockgate.errors import AnswerLost, CommitFailed
from lockgate.model.files import Deleted
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.uploads import Upload
from lockgate.plugins.registry import registry_for
from lockgate_lab.dialects import S3
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.servers import VersityGateway
from remote_jobs import FaultyRun, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids

OF_ONE_NAME = (append_keeps_what_is_there_and_refuses_a_taken_name,)
"""Scenarios that replace a file by one of the same name, which is refused here: `test_s3_jobs` has what comes of it."""


@pytest.fixture
def table(bucket: Any) -> RemoteTable:
    return RemoteTable(bucket.url("t"), bucket.store, lambda: bucket.files("t"), {"patience_seconds": 45.0})


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each not in OF_ONE_NAME], ids=lambda scenario: scenario.__name__
)
def test_jobs(scenario: Scenario, table: RemoteTable, bucket: Any) -> None:
    scenario(table)
    assert [key for key in bucket.uploads() if "late" not in key] == []


@contextmanager
def proxied(table: RemoteTable, **more: Any) -> Iterator[tuple[FaultProxyLab, RemoteTable]]:
    with FaultProxyLab(table.store["endpoint_url"], dialect=S3, normalise=without_ids, **more) as proxy:
        yield proxy, table.through(table.url, {**table.store, "endpoint_url": proxy.url})


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(undo: bool, table: RemoteTable, bucket: Any) -> None:
    with proxied(table) as (proxy, through):

        def stop() -> None:
            proxy.control.fault("error-before", "CompleteMultipartUpload", skip=13, times=10_000, status=403)

        recover_after(through, stop, lambda: proxy.control.call("DELETE", "faults"), undo=undo)
    assert bucket.uploads() == []


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_a_creation_that_may_stand_is_not_said_to_have_failed_where_the_store_goes_away(
    table: RemoteTable, bucket: Any
) -> None:
    with proxied(table) as (proxy, through):
        store = registry_for((), ()).open_store(through.url, through.job_options(patience_seconds=0.5))

        async def creates() -> None:
            proxy.control.fault("answer-lost", "PutObject", times=1)
            proxy.control.fault("error-before", "*", skip=1, times=1000, status=503)
            try:
                await store.create_file("record", b"x")
            finally:
                proxy.control.call("DELETE", "faults")
                await store.close()

        with pytest.raises(AnswerLost):
            asyncio.run(creates())
    assert bucket.files("t") == {"record": b"x"}


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_no_secret_is_shown(table: RemoteTable, caplog: pytest.LogCaptureFixture) -> None:
    with proxied(table) as (proxy, through):

        def stop() -> None:
            proxy.control.fault("answer-lost", "*", times=100_000)

        no_secret_is_shown(through, stop, {"the secret key": through.store["secret"]}, caplog)


@pytest.mark.timeout(2700)
@pytest.mark.slow
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault(
    versity: VersityGateway, make_bucket: Any
) -> None:
    def under_faults(seed: int) -> FaultyRun:
        bucket = make_bucket(versity)
        direct = RemoteTable(bucket.url("t"), bucket.store, lambda: bucket.files("t"))
        sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
        with proxied(direct, schedule=SeededFaults(seed, FaultRates.each(0.05)), sizes=sizes) as (_, through):
            return run_job_under_faults(through, direct, seed)

    runs = run_seeds(seeds_of_faults(2), under_faults, at_once=4)
    assert sum(run.committed for run in runs) >= len(runs) / 2


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_who_cannot_even_say_that_it_failed_is_told_to_undo_before_it_runs_again(table: RemoteTable) -> None:
    """Whoever ran the job again, and then recovered the first, had its rows twice."""
    table.write({"old": b"old"})
    with proxied(table) as (proxy, through):
        job = through.job(patience_seconds=0.3)
        receipt = through.task(job, {"new": b"new"})
        # The claim is written; then the store takes no more.
        proxy.control.fault("error-before", "PutObject", skip=1, times=10_000, status=403)
        with pytest.raises(CommitFailed) as caught:
            job.commit([receipt])
    assert f"{job.job_id} --undo --force ends the job; do not run it again before" in caught.value.next_step
    (state,) = [each for each in lockgate.jobs(table.url, table.job_options()) if each.job_id == job.job_id]
    assert state.phase is Phase.CLAIMED
    recover(table.url, job.job_id, undo=True, force=True, options=table.job_options())
    table.write({"new": b"again"})
    assert recover(table.url, options=table.job_options()) == {}
    assert table.read() == {"old": b"old", "new": b"again"}


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_a_doubtful_deletion_is_not_repeated_over_the_same_bytes_of_somebody_else(bucket: Any) -> None:
    """The first try may have deleted ours, and somebody has written there since: the etag is of the content."""
    with FaultProxyLab(bucket.store["endpoint_url"], dialect=S3) as proxy:
        options = JobOptions(store={**bucket.store, "endpoint_url": proxy.url})
        store = registry_for((), ()).open_store(bucket.url("t"), options)
        output = store.open_deferred("f", "theirs", "")
        output.stream.write(b"same")
        status = output.close()
        asyncio.run(store.complete_uploads([Upload("f", "theirs", status.upload, status.length, status.identity)]))
        (theirs,) = asyncio.run(store.stat_files(["f"]))
        assert theirs is not None
        ours = msgspec.structs.replace(theirs, proof="ours")
        for file, outcome in ((ours, Deleted.CHANGED), (theirs, Deleted.DELETED)):
            proxy.control.fault("error-before", "DeleteObject", times=1, status=500)
            assert asyncio.run(store.delete_if_same([file])) == [outcome]


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
def test_undoable_beside_an_object_that_nobody_here_may_look_at(table: RemoteTable, bucket: Any) -> None:
    """As of a rival who encrypts with a key of their own: HEAD is answered with 400 or 403."""
    with proxied(table) as (proxy, through):
        job = through.job()
        receipt = through.task(job, {"p=1/f": b"f", "p=1/g": b"g", "p=1/h": b"h"})
        bucket.client.put_object(Bucket=bucket.name, Key="t/p=1/g", Body=b"rival")
        proxy.control.fault("error-before", "HeadObject", target="*p=1/g", times=10_000, status=403)
        with pytest.raises(CommitFailed, match="p=1/g"):
            job.commit([receipt])
    assert table.read() == {"p=1/g": b"rival"}
    assert bucket.uploads() == []

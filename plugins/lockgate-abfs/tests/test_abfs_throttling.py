"""Throttled answers are counted where people look, and the ceiling over the pace holds."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from lockgate import LockgateError
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_lab.azure import AzureLab
from remote_jobs import RemoteTable
from store_contract import run_check


def test_throttled_answers_are_in_the_summarys_counters(azure: AzureLab, abfs_table: RemoteTable) -> None:
    quiet = abfs_table.write({"p=0/a.bin": b"a"})
    assert not [name for name in quiet.counters if name.startswith("store_io")]
    job = abfs_table.job()
    azure.control.fault("error-before", "PutBlob", target="*/tasks/*", times=3, status=503)
    receipts = [abfs_table.task(job, {f"p={n}/b.bin": b"b"}, task=n) for n in range(2)]
    azure.control.fault("error-before", "RenamePath", target="*p=1/b.bin", times=2, status=503)
    azure.control.fault("error-before", "RenamePath", target="*p=0/b.bin", times=2, status=429)
    summary = job.commit(receipts)
    assert summary.counters["store_io_throttled"] == 3 + 4
    assert summary.counters["store_io_retry"] == 3 + 4


def test_throttled_answers_are_in_the_report_of_a_job_that_failed(
    azure: AzureLab, abfs_table: RemoteTable, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reports = tmp_path_factory.mktemp("reports")
    job = abfs_table.job(summary_report_directory=reports.as_uri())
    receipt = abfs_table.task(job, {"a.bin": b"a"})
    azure.control.fault("error-before", "RenamePath", target="*/a.bin", times=2, status=503)
    azure.control.fault("error-before", "RenamePath", target="*/a.bin", times=100, status=403)
    with pytest.raises(LockgateError):
        job.commit([receipt])
    assert '"store_io_throttled": 2' in (reports / f"summary-{job.job_id}.json").read_text().replace('":2', '": 2')


def test_a_repeated_task_commit_saves_the_same_manifest(azure: AzureLab, abfs_table: RemoteTable) -> None:
    job = abfs_table.job()
    work = job.task_attempt(0, 0)
    work.setup()
    azure.control.fault("error-before", "PutBlob", target="*/tasks/*", status=503)
    with work.open("a.bin") as file:
        file.write(b"a")
    first = work.commit()
    azure.control.fault("error-before", "GetPathStatus", status=503)
    assert work.commit() == first
    # Whether a request was held back as well depends on how fast this machine is.
    counted = {name: count for name, count in first.counters.items() if name != "store_io_rate_limited"}
    assert counted == {"store_io_throttled": 1, "store_io_retry": 1}


def test_a_ceiling_over_the_pace_holds(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    options = JobOptions(store={"connection_string": azure.connection_string}, requests_per_second_max=100)
    url = str(make_abfs().url)

    async def work(store: Store) -> None:
        began = time.monotonic()
        await store.stat_files([f"{number}" for number in range(80)])
        # However slow the machine is, it must not be sooner.
        assert time.monotonic() - began >= 0.7
        # How many had to wait depends on the machine: a slow one fills the allowance while it works.
        assert store.counters()["store_io_rate_limited"] > 0

    run_check(work, lambda: registry_for((), ()).open_store(url, options))

"""Whole jobs on the Cloud Storage store: policies, recovery, faults, by moves and by copies."""

from __future__ import annotations

import pytest
from job_scenarios import SCENARIOS, Scenario, no_secret_is_shown, recover_after
from lockgate_lab.dialects import GCS
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from remote_jobs import FaultyRun, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_jobs(scenario: Scenario, gcs_table: RemoteTable) -> None:
    scenario(gcs_table)


def test_the_summary_names_the_weaker_rename(renames_by: str, gcs_table: RemoteTable) -> None:
    summary = gcs_table.write({"f.bin": b"x"})
    assert summary.lockgate is not None
    assert summary.lockgate.weaker == (["rename-by-copy"] if renames_by == "copy" else [])


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(undo: bool, gcs: GcsLab, gcs_table: RemoteTable) -> None:
    def stop() -> None:
        for operation in ("objects.move", "objects.rewrite"):
            gcs.control.fault("error-before", operation, target="*/tasks/*", skip=13, times=10_000, status=403)

    recover_after(gcs_table, stop, lambda: gcs.control.call("DELETE", "faults"), undo=undo)


def under_faults(lab: GcsLab, seed: int) -> FaultyRun:
    name = f"seed{seed}"
    lab.on_loop(lambda: lab.service.buckets.__setitem__(name, Bucket(name)))

    def look() -> dict[str, bytes]:
        found = lab.service.buckets[name].objects.items()
        return {path.removeprefix("t/"): stored.content for path, stored in found}

    direct = RemoteTable(f"gs://{name}/t", {"endpoint_url": lab.url}, lambda: lab.on_loop(look))
    schedule = SeededFaults(seed, FaultRates.each(0.05))
    # To wait out a second at one request in twenty is most of a run; one seed in ten does.
    sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
    with FaultProxyLab(lab.url, schedule, dialect=GCS, normalise=without_ids, sizes=sizes) as proxy:
        # Batches are few, so that many renames meet faults only when each is sent by itself.
        batch_calls = "1" if seed % 2 else "100"
        through = direct.through(f"gs://{name}/t", {"endpoint_url": proxy.url, "batch_calls": batch_calls})
        return run_job_under_faults(through, direct, seed)


@pytest.mark.timeout(2700)
@pytest.mark.slow
@pytest.mark.parametrize("move", [True, False], ids=["moves", "copies"])
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault(move: bool) -> None:
    with GcsLab() as lab:
        lab.service.settings.move = move
        seeds = seeds_of_faults(50 if move else 10)
        runs = run_seeds(seeds, lambda seed: under_faults(lab, seed))
    # A copy whose answer was lost is known by its proof at once, before the engine has to recover it.
    assert not move or sum(run.recovered for run in runs) > 0


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
def test_no_upload_session_is_shown(gcs: GcsLab, gcs_table: RemoteTable, caplog: pytest.LogCaptureFixture) -> None:
    def stop() -> None:
        gcs.control.fault("answer-lost", "*", times=100_000)

    gcs_table.write({"large.bin": b"x" * 1_000_000})
    sessions = {f"session {n}": identity for n, identity in enumerate(gcs.service.sessions)}
    assert sessions
    no_secret_is_shown(gcs_table, stop, sessions, caplog)

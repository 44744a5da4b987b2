"""Jobs of the deferred protocol on Azure under faults of every kind, on both kinds of accounts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from azure.storage.blob import ContainerClient
from lockgate_lab.azure import AzureLab, AzureSettings, connection_string
from lockgate_lab.azure.namespace import File
from lockgate_lab.dialects import AZURE
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.servers import Azurite
from remote_jobs import FaultyRun, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids


def url_of(container: str) -> str:
    return f"abfss://{container}@devstoreaccount1.dfs.core.windows.net/t"


def under_faults(direct: RemoteTable, server: str, seed: int) -> FaultyRun:
    schedule = SeededFaults(seed, FaultRates.each(0.05))
    sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
    with FaultProxyLab(server, schedule, dialect=AZURE, normalise=without_ids, sizes=sizes) as proxy:
        through = direct.through(direct.url, {"connection_string": connection_string(proxy.url)})
        return run_job_under_faults(through, direct, seed)


def on_azurite(server: Azurite, seed: int) -> FaultyRun:
    text = server.connection_string
    with ContainerClient.from_connection_string(text, f"seed{seed}") as container:
        container.create_container()

        def look() -> dict[str, bytes]:
            names = list(container.list_blob_names())
            return {name.removeprefix("t/"): container.download_blob(name).readall() for name in names}

        direct = RemoteTable(url_of(f"seed{seed}"), {"connection_string": text}, look, tagged=True)
        return under_faults(direct, server.url, seed)


def on_the_labs_account(lab: AzureLab, seed: int) -> FaultyRun:
    name = f"seed{seed}"
    lab.on_loop(lambda: lab.account.create(name))

    def look() -> dict[str, bytes]:
        namespace = lab.account.containers[name]
        found = namespace.walk(namespace.root, recursive=True)
        return {path.removeprefix("t/"): node.content for path, node in found if isinstance(node, File)}

    store, options = {"connection_string": lab.connection_string}, {"protocol": "deferred"}
    direct = RemoteTable(url_of(name), store, lambda: lab.on_loop(look), options, tagged=True)
    return under_faults(direct, lab.url, seed)


@pytest.mark.timeout(2700)
@pytest.mark.slow
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault(azurite: Azurite) -> None:
    seeds = seeds_of_faults(1)
    with AzureLab(AzureSettings(check_signatures=True)) as lab, ThreadPoolExecutor(2) as threads:
        worlds = (partial(on_azurite, azurite), partial(on_the_labs_account, lab))
        both = [threads.submit(run_seeds, seeds, world, at_once=4) for world in worlds]
        runs = [run for found in both for run in found.result()]
    assert sum(run.committed for run in runs) > len(runs) / 2

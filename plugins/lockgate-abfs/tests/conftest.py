"""The Azure emulator, and destinations in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.azure.namespace import File
from remote_jobs import RemoteTable

PATH = "tables/all events"
URL = f"abfss://data@devstoreaccount1.dfs.core.windows.net/{PATH}"


@pytest.fixture
def azure() -> Iterator[AzureLab]:
    """An account that checks every signature, with small pages, and the container `data` in it."""
    with AzureLab(AzureSettings(check_signatures=True, list_page_max=100, delete_page_max=50)) as lab:
        lab.on_loop(lambda: lab.account.create("data"))
        yield lab


def files_in(lab: AzureLab, container: str = "data", path: str = PATH) -> dict[str, bytes]:
    """What the emulator holds below a path, by the emulator's own data."""

    def look() -> dict[str, bytes]:
        namespace = lab.account.containers[container]
        found = namespace.walk(namespace.root, recursive=True)
        prefix = f"{path}/"
        return {
            name[len(prefix) :]: node.content
            for name, node in found
            if isinstance(node, File) and name.startswith(prefix)
        }

    return lab.on_loop(look)


@pytest.fixture
def abfs_table(azure: AzureLab) -> RemoteTable:
    """An empty destination in the emulator."""
    store = {"connection_string": azure.connection_string, "block_bytes": "65536"}
    return RemoteTable(URL, store, lambda: files_in(azure))


@pytest.fixture
def make_abfs(azure: AzureLab) -> Callable[..., Store]:
    """Opens the store at the destination, with more store options."""

    def make(**store: str) -> Store:
        chosen = store or {"connection_string": azure.connection_string, "block_bytes": "65536"}
        return registry_for((), ()).open_store(URL, JobOptions(store=chosen, timeout_seconds=10.0))

    return make

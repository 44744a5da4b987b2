"""The Azure emulator, and destinations in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from azure.storage.blob import ContainerClient
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate.stores.http import transport
from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.azure.namespace import File
from lockgate_lab.servers import Azurite, start_or_skip
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


@pytest.fixture
def hierarchical_stores(azure: AzureLab) -> Callable[[str], Store]:
    """Opens the store of a place in the lab's account."""
    options = JobOptions(store={"connection_string": azure.connection_string})
    base = "abfss://data@devstoreaccount1.dfs.core.windows.net"
    return lambda place: registry_for((), ()).open_store(f"{base}/{place}", options)


@pytest.fixture
def the_answer_to_a_cancelled_request_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is that the server runs on."""
    monkeypatch.setattr(transport, "ANSWER_SECONDS_MAX", 300.0)


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """Microsoft's emulator: an account without a hierarchical namespace."""
    server = start_or_skip(Azurite())
    yield server
    server.stop()


@pytest.fixture
def flat(azurite: Azurite) -> Iterator[ContainerClient]:
    """A new container there, by the service's own client."""
    container = ContainerClient.from_connection_string(azurite.connection_string, f"c{uuid.uuid4().hex[:12]}")
    container.create_container()
    yield container
    container.delete_container()
    container.close()


@pytest.fixture
def flat_table(azurite: Azurite, flat: ContainerClient) -> RemoteTable:
    """An empty destination there."""
    prefix = f"{PATH}/"

    def look() -> dict[str, bytes]:
        found = list(flat.list_blob_names(name_starts_with=prefix))
        return {name[len(prefix) :]: flat.download_blob(name).readall() for name in found}

    url = f"abfss://{flat.container_name}@devstoreaccount1.dfs.core.windows.net/{PATH}"
    store = {"connection_string": azurite.connection_string, "block_bytes": "65536"}
    return RemoteTable(url, store, look, tagged=True)


@pytest.fixture
def deferred_table(abfs_table: RemoteTable) -> RemoteTable:
    """An empty destination in the lab's account, for jobs that are told to take the deferred protocol."""
    return RemoteTable(abfs_table.url, abfs_table.store, abfs_table.server_files, {"protocol": "deferred"}, tagged=True)


@pytest.fixture(params=["flat_table", "deferred_table"], ids=["azurite", "hierarchical"])
def table(request: pytest.FixtureRequest) -> RemoteTable:
    """Both."""
    found: RemoteTable = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def flat_stores(azurite: Azurite, flat: ContainerClient) -> Callable[[str], Store]:
    """Opens the store of a place there."""
    options = JobOptions(store={"connection_string": azurite.connection_string})
    base = f"abfss://{flat.container_name}@devstoreaccount1.dfs.core.windows.net"
    return lambda place: registry_for((), ()).open_store(f"{base}/{place}", options)

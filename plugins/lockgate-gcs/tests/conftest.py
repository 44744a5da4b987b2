"""The Cloud Storage emulators, and destinations in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate.stores.http import transport
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from lockgate_lab.servers import FakeGcsServer, start_or_skip
from remote_jobs import RemoteTable

PATH = "tables/all events"
URL = f"gs://data/{PATH}"


def files_in(lab: GcsLab, bucket: str = "data", path: str = PATH) -> dict[str, bytes]:
    """What the emulator holds below a path, by the emulator's own data."""
    prefix = f"{path}/"

    def look() -> dict[str, bytes]:
        found = lab.service.buckets[bucket].objects.items()
        return {name[len(prefix) :]: stored.content for name, stored in found if name.startswith(prefix)}

    return lab.on_loop(look)


@pytest.fixture(params=["move", "copy"])
def renames_by(request: pytest.FixtureRequest) -> str:
    """Renames by moves, and by copies where the service knows no moves."""
    return str(request.param)


@pytest.fixture
def batches() -> int:
    """What batches are answered with: 200, or a refusal by a service that takes none."""
    return 200


@pytest.fixture
def gcs(renames_by: str, batches: int) -> Iterator[GcsLab]:
    """An emulator with small pages and the bucket `data`."""
    with GcsLab() as lab:
        lab.service.settings.list_page_max = 100
        lab.service.settings.move = renames_by == "move"
        lab.service.settings.batch_status = batches
        lab.on_loop(lambda: lab.service.buckets.__setitem__("data", Bucket("data")))
        yield lab


@pytest.fixture
def gcs_table(gcs: GcsLab, renames_by: str) -> RemoteTable:
    """An empty destination in the emulator."""
    store = {"endpoint_url": gcs.url, "chunk_bytes": "262144", "rename": renames_by}
    return RemoteTable(URL, store, lambda: files_in(gcs))


@pytest.fixture
def table(gcs_table: RemoteTable) -> RemoteTable:
    """The same, for jobs of the deferred protocol."""
    return RemoteTable(gcs_table.url, gcs_table.store, gcs_table.server_files, {"protocol": "deferred"})


@pytest.fixture
def pending(gcs: GcsLab) -> Callable[[], list[str]]:
    """The names of sessions that are neither ended nor given up, by the emulator's own data."""

    def look() -> list[str]:
        found = gcs.service.sessions.values()
        return sorted(each.name for each in found if each.finished is None and not each.cancelled)

    return lambda: gcs.on_loop(look)


@pytest.fixture
def make_gcs(gcs: GcsLab, renames_by: str) -> Callable[..., Store]:
    """Opens the store at the destination, with more store options."""

    def make(**store: str) -> Store:
        chosen = {"endpoint_url": gcs.url, "chunk_bytes": "262144", "rename": renames_by, **store}
        return registry_for((), ()).open_store(URL, JobOptions(store=chosen, timeout_seconds=10.0))

    return make


@pytest.fixture
def the_answer_to_a_cancelled_request_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is that the server runs on."""
    monkeypatch.setattr(transport, "ANSWER_SECONDS_MAX", 300.0)


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[FakeGcsServer]:
    """An independent server, which knows no moves and few preconditions."""
    server = start_or_skip(FakeGcsServer())
    yield server
    server.stop()

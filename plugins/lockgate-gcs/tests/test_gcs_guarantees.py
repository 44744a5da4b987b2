"""The guarantees of protocols on Cloud Storage: a driver that dies, is refused or sleeps before each change that
it makes, and recoverers who overtake each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.plugins.builtin.v2_protocol import V2
from lockgate.plugins.registry import registry_for
from lockgate.protocols.deferred import DeferredProtocol
from lockgate.protocols.emrfs import EmrfsProtocol
from lockgate.protocols.stocator import StocatorProtocol
from lockgate_lab.gcs import GcsLab
from lockgate_testkit import ProtocolContract


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestDeferredOnGcs(ProtocolContract):
    """By resumable sessions."""

    protocol = DeferredProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestV2OnGcs(ProtocolContract):
    """Where there are no directories, and identity is the content."""

    protocol = V2
    moments_max = 3

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestEmrfsOnGcs(ProtocolContract):
    """By resumable sessions, which task commits complete."""

    protocol = EmrfsProtocol()
    moments_max = 2

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestStocatorOnGcs(ProtocolContract):
    """By objects in place."""

    protocol = StocatorProtocol()
    moments_max = 2

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestMarkersOnGcs(ProtocolContract):
    """Where every write is conditional."""

    protocol = MARKERS
    moments_max = 3

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)

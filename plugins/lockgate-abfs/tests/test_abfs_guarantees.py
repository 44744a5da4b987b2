"""The guarantees of protocols on Azure: on Azurite, which has no hierarchical namespace, and
on the lab's account, which has one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate.protocols.deferred import DeferredProtocol
from lockgate.protocols.direct import DirectProtocol
from lockgate.protocols.emrfs import EmrfsProtocol
from lockgate_testkit import ProtocolContract


class TestDeferredOnAzurite(ProtocolContract):
    """By blocks that wait for their names."""

    protocol = DeferredProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, flat_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return flat_stores


class TestDeferredOnHierarchicalAccounts(ProtocolContract):
    """By the same, asked for by name."""

    protocol = DeferredProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, hierarchical_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return hierarchical_stores


class TestV1OnHierarchicalAccounts(ProtocolContract):
    """Where a directory is renamed as one act."""

    protocol = V1
    moments_max = 2

    @pytest.fixture
    def lockgate_store_factory(self, hierarchical_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return hierarchical_stores


class TestEmrfsOnAzurite(ProtocolContract):
    """By blocks, which task commits give their names."""

    protocol = EmrfsProtocol()
    moments_max = 2

    @pytest.fixture
    def lockgate_store_factory(self, flat_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return flat_stores


class TestDirectOnHierarchicalAccounts(ProtocolContract):
    """By files in place."""

    protocol = DirectProtocol()
    moments_max = 2

    @pytest.fixture
    def lockgate_store_factory(self, hierarchical_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return hierarchical_stores

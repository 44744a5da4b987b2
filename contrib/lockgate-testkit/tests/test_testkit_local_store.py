"""The shipped local store passes the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.model.capabilities import Capability
from lockgate.model.urls import StoreUrl
from lockgate.stores.local import CAPABILITIES, LocalStore
from lockgate_testkit import Effort, StoreContract, StoreFactory


class TestLocalStore(StoreContract):
    capabilities = CAPABILITIES - {Capability.DURABLE_WRITE}

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return lambda place: LocalStore(StoreUrl("file", "", f"{tmp_path}/{place}"), durable=False)


class TestDurableLocalStore(TestLocalStore):
    capabilities = CAPABILITIES
    # Each small write waits for the disk.
    effort = Effort(rounds=8, entries=300, batch=300)

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return lambda place: LocalStore(StoreUrl("file", "", f"{tmp_path}/{place}"))

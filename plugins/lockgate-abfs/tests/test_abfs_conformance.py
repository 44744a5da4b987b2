"""The Azure store under the conformance kit: every operation, and every capability that it declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_abfs.store import CAPABILITIES
from lockgate_lab.azure import AzureLab
from lockgate_testkit import StoreContract


class TestAbfsStore(StoreContract):
    """On the lab's account, which checks signatures."""

    capabilities = CAPABILITIES

    @pytest.fixture
    def lockgate_store_factory(self, azure: AzureLab) -> Callable[[str], Store]:
        options = JobOptions(store={"connection_string": azure.connection_string})
        base = "abfss://data@devstoreaccount1.dfs.core.windows.net"
        return lambda place: registry_for((), ()).open_store(f"{base}/{place}", options)

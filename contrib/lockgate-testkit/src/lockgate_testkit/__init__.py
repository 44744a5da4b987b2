"""Conformance kit for Lockgate stores: a store is made to prove every operation and every capability it declares.

A plugin joins with a test module of a few lines:

    class TestMyStore(StoreContract):
        capabilities = CAPABILITIES

        @pytest.fixture
        def lockgate_store_factory(self, server):
            return lambda place: MyStore(f"my://{server}/{place}")
"""

from lockgate_testkit import checks
from lockgate_testkit.bench import Bench, ContractBroken, Effort, StoreFactory
from lockgate_testkit.catalogue import CHECKS, UNPROVEN, Check, checks_for
from lockgate_testkit.contract import StoreContract, run_check

__all__ = [
    "CHECKS",
    "UNPROVEN",
    "Bench",
    "Check",
    "ContractBroken",
    "Effort",
    "StoreContract",
    "StoreFactory",
    "checks",
    "checks_for",
    "run_check",
]

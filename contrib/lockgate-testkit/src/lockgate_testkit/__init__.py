"""Conformance kit for Lockgate: a store is made to prove every operation and every capability that it declares, and a
commit protocol every guarantee that its attributes promise.

A plugin joins with a test module of a few lines:

    class TestMyStore(StoreContract):
        capabilities = CAPABILITIES

        @pytest.fixture
        def lockgate_store_factory(self, server):
            return lambda place: MyStore(f"my://{server}/{place}")
"""

from lockgate_testkit import checks, guarantees
from lockgate_testkit.bench import Bench, ContractBroken, Effort, StoreFactory
from lockgate_testkit.catalogue import CHECKS, UNPROVEN, Check, checks_for
from lockgate_testkit.contract import StoreContract, run_check
from lockgate_testkit.guarantee import GUARANTEES, Guarantee, guarantees_of
from lockgate_testkit.protocol_contract import ProtocolContract, local_places, refuse_offer, try_guarantee

__all__ = [
    "CHECKS",
    "GUARANTEES",
    "UNPROVEN",
    "Bench",
    "Check",
    "ContractBroken",
    "Effort",
    "Guarantee",
    "ProtocolContract",
    "StoreContract",
    "StoreFactory",
    "checks",
    "checks_for",
    "guarantees",
    "guarantees_of",
    "local_places",
    "refuse_offer",
    "run_check",
    "try_guarantee",
]

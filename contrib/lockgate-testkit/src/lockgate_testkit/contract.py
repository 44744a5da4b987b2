"""The contract suite: what a plugin's test module inherits."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import ClassVar

from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.plugins.offers import fault_of_capabilities

from lockgate_testkit.bench import Bench, Effort, StoreFactory, expect, expect_same
from lockgate_testkit.catalogue import Check


def run_check(
    check: Check, factory: StoreFactory, effort: Effort | None = None, identity_seconds: float = 0.05
) -> None:
    """Run one check at a new place.

    Raises:
        ContractBroken: the promise does not hold.
        Exception: whatever else the store raised where it should not have.
    """
    place = f"{check.name.replace('_', '-')[:40]}-{uuid.uuid4().hex[:8]}"

    async def work() -> None:
        bench = Bench(factory, place, effort or Effort(), identity_seconds)
        try:
            await check.run(bench)
        finally:
            await bench.store.close()

    try:
        asyncio.run(work())
    except Exception as error:
        error.add_note(f"the promise: {check.promise}")
        raise


class StoreContract:
    """Subclass it, name it `Test…`, set `capabilities`, and define the fixture `lockgate_store_factory`.

    `capabilities` is what the plugin declares for the place that the factory opens; a check is collected for each
    promise that they contain. The fixture returns a `StoreFactory`.
    """

    capabilities: ClassVar[Iterable[Capability]]
    effort: ClassVar[Effort] = Effort()
    identity_seconds: ClassVar[float] = 0.05

    def test_contract(self, lockgate_check: Check, lockgate_store_factory: StoreFactory) -> None:
        """One promise of the store."""
        run_check(lockgate_check, lockgate_store_factory, self.effort, self.identity_seconds)

    def test_declares_what_it_is_tested_for(self, lockgate_store_factory: StoreFactory) -> None:
        """The store that is opened declares just what this class says, and nothing that contradicts itself."""
        declared = lockgate_store_factory(f"declared-{uuid.uuid4().hex[:8]}").capabilities
        expect(not (fault := fault_of_capabilities(declared, "the store declares")), fault)
        expect_same(sorted(declared), sorted(self.capabilities), "declared capabilities")
        contradiction = Capability.ATOMIC_RENAME in declared and WEAKENING & declared
        expect(not contradiction, f"a rename is either atomic or one of {', '.join(sorted(WEAKENING))}")

"""The guarantee suite: what the test module of a protocol inherits."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import ClassVar

import pytest
from lockgate.engine.run.protocol import Protocol
from lockgate.model.capabilities import require
from lockgate.model.urls import StoreUrl
from lockgate.plugins.offers import fault_of_protocol, inherited_from
from lockgate.plugins.registry import registry_for
from lockgate.stores.local import LocalStore

from lockgate_testkit.bench import ContractBroken, StoreFactory, expect
from lockgate_testkit.guarantee import Guarantee
from lockgate_testkit.job_bench import JobBench


def local_places(directory: Path) -> StoreFactory:
    """Places on the local disk, below a directory."""
    return lambda place: LocalStore(StoreUrl("file", "", f"{directory.absolute()}/{place}"), durable=False)


def try_guarantee(guarantee: Guarantee, protocol: Protocol, factory: StoreFactory, *, moments_max: int = 1_000) -> None:
    """Try one guarantee of a protocol at a new place.

    Raises:
        ContractBroken: it does not hold.
        Exception: whatever else was raised that should not have been.
    """
    place = f"{guarantee.name.replace('_', '-')[:40]}-{uuid.uuid4().hex[:8]}"

    async def work() -> None:
        await guarantee.run(JobBench(protocol, factory, place, moments_max))

    try:
        asyncio.run(work())
    except Exception as error:
        error.add_note(f"the guarantee: {guarantee.promise}")
        raise


def refuse_offer(protocol: Protocol) -> None:
    """Make sure that Lockgate would take this protocol from a plugin.

    Raises:
        ContractBroken: it would refuse it; the text says why.
    """
    expect(not (fault := fault_of_protocol(protocol)), fault)
    other = registry_for((), ()).protocols().get(protocol.name, protocol)
    if type(other) is not type(protocol):
        above = inherited_from(protocol)
        why = f"{type(protocol).__name__} has inherited it from {above}" if above else "give it another"
        raise ContractBroken(f"the name {protocol.name!r} is that of {type(other).__name__}: {why}")


class ProtocolContract:
    """Subclass it, name it `Test…`, set `protocol`, and define the fixture `lockgate_store_factory`.

    One test is collected for each guarantee that the protocol's attributes ask for. The store must have what the
    protocol needs. `moments_max`: of the moments of a commit at which it is killed, refused or held up, how many are
    tried at most; all of them, unless the store is slow.
    """

    protocol: ClassVar[Protocol]
    moments_max: ClassVar[int] = 1_000

    def test_guarantee(self, lockgate_guarantee: Guarantee, lockgate_store_factory: StoreFactory) -> None:
        """One guarantee of the protocol."""
        try_guarantee(lockgate_guarantee, self.protocol, lockgate_store_factory, moments_max=self.moments_max)

    @pytest.mark.usefixtures("lockgate_store_factory")  # by what that asks for a suite may be parametrized
    def test_lockgate_takes_what_is_offered(self) -> None:
        """Its name, its needs, its attributes and what it says of itself are such that a job can be run by it."""
        refuse_offer(self.protocol)

    def test_the_store_has_what_the_protocol_needs(self, lockgate_store_factory: StoreFactory) -> None:
        """A job of this protocol is not refused on this store."""
        store = lockgate_store_factory(f"needs-{uuid.uuid4().hex[:8]}")
        require(
            store.capabilities,
            self.protocol.needs,
            purpose=f"the {self.protocol.name} protocol",
            store=str(store.url),
            alternative=self.protocol.alternative,
        )

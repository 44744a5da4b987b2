"""The pytest plugin: collects, for each subclass of `StoreContract`, the checks that its capabilities ask for,
and for each of `ProtocolContract` the guarantees that its attributes ask for."""

from __future__ import annotations

from typing import Any

import pytest

from lockgate_testkit import checks_for, guarantees_of
from lockgate_testkit.bench import StoreFactory
from lockgate_testkit.contract import StoreContract
from lockgate_testkit.protocol_contract import ProtocolContract


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each promise of the declared capabilities, or for each guarantee of the protocol."""
    if "lockgate_check" in metafunc.fixturenames:
        owner = _owner(metafunc, "lockgate_check", StoreContract, "capabilities")
        checks = checks_for(owner.capabilities)
        metafunc.parametrize("lockgate_check", checks, ids=[check.name for check in checks])
    if "lockgate_guarantee" in metafunc.fixturenames:
        owner = _owner(metafunc, "lockgate_guarantee", ProtocolContract, "protocol")
        guarantees = guarantees_of(owner.protocol)
        metafunc.parametrize("lockgate_guarantee", guarantees, ids=[each.name for each in guarantees])


def _owner(metafunc: pytest.Metafunc, fixture: str, contract: type, sets: str) -> Any:
    """The test class, which has joined the contract and set what it is about.

    Raises:
        pytest.UsageError: it has not.
    """
    owner = metafunc.cls
    if owner is None or not issubclass(owner, contract) or not hasattr(owner, sets):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the fixture {fixture} belongs to subclasses of "
            f"lockgate_testkit.{contract.__name__} that set `{sets}`"
        )
    return owner


@pytest.fixture
def lockgate_store_factory() -> StoreFactory:
    """To be defined by whoever joins: opens a store at a place, see `StoreFactory`."""
    raise pytest.UsageError(
        "define a fixture lockgate_store_factory in your test class: it returns a function that takes the name of a "
        "place and returns a Store that is rooted there"
    )

"""The pytest plugin: collects, for each subclass of `StoreContract`, the checks that its capabilities ask for."""

from __future__ import annotations

import pytest

from lockgate_testkit import checks_for
from lockgate_testkit.bench import StoreFactory
from lockgate_testkit.contract import StoreContract


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each promise of the declared capabilities."""
    if "lockgate_check" not in metafunc.fixturenames:
        return
    owner = metafunc.cls
    if owner is None or not issubclass(owner, StoreContract) or not hasattr(owner, "capabilities"):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the fixture lockgate_check belongs to subclasses of "
            "lockgate_testkit.StoreContract that set `capabilities`"
        )
    checks = checks_for(owner.capabilities)
    metafunc.parametrize("lockgate_check", checks, ids=[check.name for check in checks])


@pytest.fixture
def lockgate_store_factory() -> StoreFactory:
    """To be defined by whoever joins: opens a store at a place, see `StoreFactory`."""
    raise pytest.UsageError(
        "define a fixture lockgate_store_factory in your test class: it returns a function that takes the name of a "
        "place and returns a Store that is rooted there"
    )

"""Destinations on every store that can be had here."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from asked_kinds import ASKED_KINDS, SLEEPING_KINDS, AskedKind
from asked_stores import ASKED_STORES, AskedStore, asked_store
from asked_worlds import AskedWorld
from destinations import Destination
from emulated_stores import STORES, destination_on
from forked_drivers import ForkedDrivers
from system_calls import need_strace


@pytest.fixture(params=STORES)
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Destination]:
    """An empty destination on each store; those that are far away answer late."""
    with destination_on(request.param, tmp_path, latency_ms=5) as (url, options):
        yield Destination(url, files=2 if request.param == "hdfs" else 10, **options)


@pytest.fixture
def local_destination(tmp_path: Path) -> Destination:
    return Destination(str(tmp_path / "table"))


@pytest.fixture
def chance() -> random.Random:
    """Randomness whose seed is printed; TEST_SEED repeats it."""
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def kills() -> int:
    """How many kills: a few at other moments in each run, or as many as the long session asks for."""
    return int(os.environ.get("TEST_KILLS", "2"))


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedDrivers]:
    need_strace()
    with ForkedDrivers(tmp_path_factory.mktemp("forks")) as server:
        yield server


@pytest.fixture
def every() -> bool:
    """Whether this is the long session."""
    return "TEST_EVERY_CALL" in os.environ


@pytest.fixture(scope="session")
def asked_drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedDrivers]:
    with ForkedDrivers(tmp_path_factory.mktemp("forks"), *ASKED_STORES) as server:
        yield server


@pytest.fixture(scope="session")
def asked_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, AskedStore]]:
    """Each store, started once."""
    with ExitStack() as opened:
        yield {name: opened.enter_context(asked_store(name, tmp_path_factory.mktemp(name))) for name in ASKED_STORES}


def _world_of(kind: AskedKind, stores: dict[str, AskedStore], drivers: ForkedDrivers) -> Iterator[AskedWorld]:
    found = AskedWorld(stores[kind.store], drivers, kind)
    yield found
    found.close()


@pytest.fixture(params=ASKED_KINDS, ids=str)
def world(
    request: pytest.FixtureRequest, asked_stores: dict[str, AskedStore], asked_drivers: ForkedDrivers
) -> Iterator[AskedWorld]:
    yield from _world_of(request.param, asked_stores, asked_drivers)


@pytest.fixture(scope="session")
def other_drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedDrivers]:
    """Those who do something while one of `asked_drivers` is at work."""
    with ForkedDrivers(tmp_path_factory.mktemp("others"), *ASKED_STORES) as server:
        yield server


@pytest.fixture(params=SLEEPING_KINDS, ids=str)
def sleeping_world(
    request: pytest.FixtureRequest, asked_stores: dict[str, AskedStore], asked_drivers: ForkedDrivers
) -> Iterator[AskedWorld]:
    yield from _world_of(request.param, asked_stores, asked_drivers)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("slow")

"""How many requests are in flight follows latency, limit and load; in simulated time, from printed seeds."""

from __future__ import annotations

import heapq
import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from lockgate.stores.in_flight import LEAST, START, START_ANSWERS, START_MAX, InFlight
from lockgate.stores.pacing import Admission, Pacer


@dataclass
class Service:
    """A store account: so long for each answer; refuses what exceeds `limit` a second; serves `capacity` a second, one
    after the other, and lets the rest wait. 0 is no bound."""

    latency: float
    limit: float = 0.0
    capacity: float = 0.0
    noise: float = 0.0
    accepted: int = 0
    refused: int = 0
    _tokens: float = 1.0
    _at: float = 0.0
    _busy_until: float = 0.0

    def answer(self, now: float, rng: random.Random) -> tuple[bool, float]:
        """Whether it is accepted, and when the answer leaves."""
        admitted = rng.random() >= self.noise
        if self.limit:
            self._tokens = min(max(1.0, self.limit / 20), self._tokens + (now - self._at) * self.limit)
            self._at = now
            admitted = admitted and self._tokens >= 1
            self._tokens -= admitted
        self.accepted += admitted
        self.refused += not admitted
        took = self.latency / 2 * rng.uniform(0.8, 1.2)
        if self.capacity:
            self._busy_until = max(self._busy_until, now) + 1 / self.capacity
            return admitted, max(self._busy_until, now) + took
        return admitted, now + took


@dataclass
class Driver:
    """A process with always more to send, and what each of its requests costs it in CPU."""

    pacer: Pacer
    flight: InFlight
    cpu_s: float = 0.0
    begins_at: float = 0.0
    at_work: int = 0
    accepted: int = 0
    backing_off: int = 0
    is_waking: bool = False
    busy_until: float = 0.0
    limits: list[tuple[float, int]] = field(default_factory=list)

    def mean_limit(self, since: float) -> float:
        found = [limit for at, limit in self.limits if at >= since]
        return sum(found) / len(found)


class World:
    """Drivers and one service in simulated time."""

    def __init__(
        self,
        service: Service,
        *,
        seed: int,
        drivers: int = 1,
        ceiling: int = 2048,
        cpu_s: float = 0.0,
        apart: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.service = service
        self.rng = random.Random(seed)
        self.drivers = [
            Driver(Pacer(self.clock), InFlight(ceiling, self.clock), cpu_s, number * apart) for number in range(drivers)
        ]
        self._events: list[tuple[float, int, Any]] = []
        self._count = 0
        for driver in self.drivers:
            self._at(driver.begins_at + self.rng.random() * 0.01, self._send, driver)

    def clock(self) -> float:
        return self.now

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, (act, arguments) = heapq.heappop(self._events)
            act(*arguments)
        self.now = until

    def _at(self, when: float, act: Any, *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, (act, arguments)))

    def _send(self, driver: Driver) -> None:
        driver.is_waking = False
        while driver.at_work < driver.flight.limit:
            wait = driver.pacer.delay()
            if wait > 0:
                driver.is_waking = True
                self._at(self.now + max(wait, 0.001), self._send, driver)
                return
            admission = driver.pacer.take()
            driver.at_work += 1
            driver.busy_until = max(driver.busy_until, self.now) + driver.cpu_s / 2
            way = self.service.latency / 2 * self.rng.uniform(0.8, 1.2)
            self._at(driver.busy_until + way, self._arrive, driver, admission)

    def _arrive(self, driver: Driver, admission: Admission) -> None:
        accepted, ends = self.service.answer(self.now, self.rng)
        self._at(ends, self._received, driver, admission, accepted)

    def _received(self, driver: Driver, admission: Admission, accepted: bool) -> None:
        driver.busy_until = max(driver.busy_until, self.now) + driver.cpu_s / 2
        self._at(driver.busy_until, self._answered, driver, admission, accepted)

    def _answered(self, driver: Driver, admission: Admission, accepted: bool) -> None:
        # Whoever waits for the pace does so in a slot, so that the slots are full then too.
        full = driver.is_waking or driver.at_work >= driver.flight.limit
        if accepted:
            driver.accepted += 1
            driver.pacer.accepted(admission)
            driver.flight.answered("rename", admission.at, full=full, pace=driver.pacer.allowed)
        else:
            driver.pacer.refused(admission)
            driver.flight.refused(admission.at)
        driver.limits.append((self.now, driver.flight.limit))
        driver.at_work -= 1
        if not driver.is_waking:
            self._send(driver)


SEEDS = range(int(os.environ.get("TEST_FLIGHT_SEEDS", "1")))


def measured(world: World, since: float, until: float) -> list[float]:
    """Accepted requests a second of each driver between the two."""
    world.run(since)
    before = [driver.accepted for driver in world.drivers]
    world.run(until)
    return [(driver.accepted - b) / (until - since) for driver, b in zip(world.drivers, before, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("latency", [0.005, 0.02, 0.06, 0.15])
def test_it_widens_to_the_ceiling_while_nothing_is_full(latency: float, seed: int) -> None:
    world = World(Service(latency), seed=seed, ceiling=512)
    (rate,) = measured(world, 40 * latency, 40 * latency + 0.5)
    print(f"seed {seed}: {rate:.0f}/s, {world.drivers[0].flight.limit} in flight")
    assert rate >= 0.9 * 512 / (1.05 * latency)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("latency", [0.005, 0.02, 0.06, 0.15])
def test_it_stops_widening_where_this_process_is_full(latency: float, seed: int) -> None:
    cpu_s = 0.0004
    world = World(Service(latency), seed=seed, cpu_s=cpu_s)
    (rate,) = measured(world, 5.0, 10.0)
    enough = latency / cpu_s
    found = world.drivers[0].mean_limit(5.0)
    print(f"seed {seed}: {rate:.0f}/s of {1 / cpu_s:.0f}, {found:.0f} in flight, {enough:.0f} would do")
    assert rate >= 0.8 / cpu_s
    assert found <= max(1.1 * START, 3 * enough)


@pytest.mark.parametrize("latency", [0.005, 0.02, 0.06, 0.15])
@pytest.mark.parametrize("limit", [300, 1000, 2000])
@pytest.mark.parametrize("seed", SEEDS)
def test_it_meets_a_limit_that_nobody_told_it(limit: float, latency: float, seed: int) -> None:
    world = World(Service(latency, limit=limit), seed=seed, ceiling=512)
    check_limit(world, limit, latency, since=6.0)


@pytest.mark.parametrize("latency", [0.005, 0.02, 0.06, 0.15])
def test_it_meets_a_limit_of_20000_that_nobody_told_it(latency: float) -> None:
    world = World(Service(latency, limit=20000), seed=1, ceiling=4096)
    check_limit(world, 20000, latency, since=8.0)


def check_limit(world: World, limit: float, latency: float, since: float) -> None:
    (rate,) = measured(world, since, since + 6.0)
    refused = world.service.refused / (world.service.accepted + world.service.refused)
    found = world.drivers[0].mean_limit(since)
    print(f"{rate:.0f}/s of {limit:.0f}, {refused:.3f} refused, {found:.0f} in flight")
    assert rate >= 0.85 * limit
    assert refused <= 0.15
    assert found <= max(1.1 * START, 4 * limit * latency), "narrowed to what the limit needs"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("limit", "latency"), [(300, 0.02), (1000, 0.02), (2000, 0.06)])
def test_two_drivers_share_a_limit_that_nobody_told_them(limit: float, latency: float, seed: int) -> None:
    check_shares(World(Service(latency, limit=limit), seed=seed, drivers=2, apart=2.0), limit, seed)


def test_two_drivers_share_a_limit_of_20000_that_nobody_told_them() -> None:
    check_shares(World(Service(0.06, limit=20000), seed=1, drivers=2, ceiling=4096, apart=1.0), 20000, 1)


def check_shares(world: World, limit: float, seed: int) -> None:
    rates = measured(world, 12.0, 20.0)
    print(f"seed {seed}: {rates[0]:.0f} and {rates[1]:.0f} a second of {limit:.0f}")
    assert sum(rates) >= 0.85 * limit
    assert min(rates) >= 0.25 * sum(rates)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_drivers_share_a_store_that_lets_them_wait(seed: int) -> None:
    world = World(Service(0.02, capacity=5000), seed=seed, drivers=2, ceiling=2048, apart=5.0)
    rates = measured(world, 20.0, 30.0)
    limits = [driver.mean_limit(20.0) for driver in world.drivers]
    print(f"seed {seed}: {rates[0]:.0f} and {rates[1]:.0f} a second of 5000, in flight {limits}")
    assert sum(rates) >= 0.9 * 5000
    assert min(rates) >= 0.3 * sum(rates)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_follows_a_limit_that_changes(seed: int) -> None:
    service = Service(0.06, limit=4000)
    world = World(service, seed=seed)
    (before,) = measured(world, 4.0, 8.0)
    service.limit = 500
    (low,) = measured(world, 12.0, 16.0)
    narrow = world.drivers[0].mean_limit(12.0)
    service.limit = 4000
    (after,) = measured(world, 30.0, 34.0)
    print(f"seed {seed}: {before:.0f}, {low:.0f} at {narrow:.0f} in flight, {after:.0f} a second")
    assert before >= 0.9 * 4000
    assert low >= 0.9 * 500
    assert narrow <= 4 * 500 * 0.06
    assert after >= 0.9 * 4000


@pytest.mark.parametrize("seed", SEEDS)
def test_a_higher_latency_is_no_reason_to_narrow(seed: int) -> None:
    service = Service(0.02)
    world = World(service, seed=seed, ceiling=256)
    world.run(3.0)
    service.latency = 0.1
    (rate,) = measured(world, 10.0, 15.0)
    print(f"seed {seed}: {rate:.0f}/s")
    assert rate >= 0.85 * 256 / 0.105


@pytest.mark.parametrize("seed", SEEDS)
def test_refusals_that_have_nothing_to_do_with_the_rate_leave_it_as_wide_as_the_pace_needs(seed: int) -> None:
    world = World(Service(0.06, noise=0.1), seed=seed, ceiling=512)
    (rate,) = measured(world, 10.0, 20.0)
    print(f"seed {seed}: {rate:.0f}/s, {world.drivers[0].flight.limit} in flight")
    need = world.drivers[0].pacer.rate
    assert need is None or world.drivers[0].flight.limit >= min(START, need * 0.06)


def test_a_ceiling_is_never_exceeded() -> None:
    for ceiling in (1, 3, 8, 64, 100):
        world = World(Service(0.05), seed=1, ceiling=ceiling)
        world.run(5.0)
        limits = {limit for _, limit in world.drivers[0].limits}
        assert max(limits) == ceiling
        assert min(limits) >= min(LEAST, ceiling)


def test_a_batch_that_is_smaller_than_the_limit_changes_nothing() -> None:
    now = 0.0
    flight = InFlight(512, lambda: now)
    for _ in range(10_000):
        now += 0.01
        flight.answered("rename", now - 0.01, full=False)
    assert flight.limit == START


def began_with(latencies: list[float], *, ceiling: int = 512, refused: bool = False) -> int:
    """The limit after answers that took so long, none of which found all places taken."""
    now = 100.0
    flight = InFlight(ceiling, lambda: now)
    if refused:
        flight.refused(now)
    for latency in latencies:
        now += latency
        flight.answered("read", now - latency, full=False)
    return flight.limit


@pytest.mark.parametrize(
    ("latency", "begins_with"), [(0.001, START), (0.014, START), (0.03, 150), (0.06, 300), (0.15, START_MAX)]
)
def test_it_begins_with_what_the_latency_asks_for(latency: float, begins_with: int) -> None:
    assert abs(began_with([latency] * START_ANSWERS) - begins_with) <= 1  # sums of times are not exact


def test_the_first_answers_say_nothing_since_connections_were_made_for_them() -> None:
    assert began_with([0.2] * (START_ANSWERS - 1)) == START
    assert began_with([0.2] * START_ANSWERS + [0.005]) == START


def test_a_refusal_ends_the_beginning() -> None:
    assert began_with([0.06] * 20, refused=True) == START


def test_it_begins_below_the_ceiling_whatever_the_latency() -> None:
    assert began_with([0.06] * 20, ceiling=32) == 32
    assert began_with([0.06] * 20, ceiling=100) == 100

"""The pacer finds a limit that nobody told it, shares it, follows it; in virtual time, from printed seeds."""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from lockgate.stores.pacing import Pacer


@dataclass
class Service:
    """A store account: a token bucket whose rate changes at given times, and a share of refusals for no reason."""

    limits: list[tuple[float, float]] = field(default_factory=list)
    noise: float = 0.0
    accepted: int = 0
    refused: int = 0
    _tokens: float = 1.0
    _at: float = 0.0

    def limit(self, now: float) -> float:
        return [rate for since, rate in self.limits if since <= now][-1]

    def answers(self, now: float, rng: random.Random) -> bool:
        admitted = rng.random() >= self.noise
        if self.limits:
            rate = self.limit(now)
            self._tokens = min(rate / 10, self._tokens + (now - self._at) * rate)
            self._at = now
            admitted = admitted and self._tokens >= 1
            self._tokens -= admitted
        self.accepted += admitted
        self.refused += not admitted
        return admitted

    def offered(self, seconds: float) -> float:
        ends = [since for since, _ in self.limits[1:]] + [seconds]
        return sum(rate * (end - since) for (since, rate), end in zip(self.limits, ends, strict=True))


def simulate(
    service: Service, seconds: float, *, seed: int, processes: int = 4, in_flight: int = 64, round_trip: float = 0.02
) -> list[int]:
    """Processes that always have more to send, each with its own pacer; returns what each got through."""
    rng = random.Random(seed)
    now = 0.0
    pacers = [Pacer(lambda: now) for _ in range(processes)]
    idle = [in_flight] * processes
    waiting = [True] * processes
    got = [0] * processes
    events: list[tuple[float, int, Any]] = [(rng.random() * 0.05, n, ("send", n, None)) for n in range(processes)]
    count = processes

    def later(delay: float, *event: Any) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (now + delay, count, event))

    def half_trip() -> float:
        return round_trip / 2 * rng.uniform(0.8, 1.2)

    def wake(process: int) -> None:
        if not waiting[process]:
            waiting[process] = True
            later(0.0, "send", process, None)

    heapq.heapify(events)
    while events:
        at, _, (what, process, about) = heapq.heappop(events)
        if at > seconds:
            break
        now = at
        if what == "send":
            waiting[process] = False
            while idle[process]:
                wait = pacers[process].delay()
                if wait > 0:
                    waiting[process] = True
                    later(max(wait, 0.001), "send", process, None)
                    break
                idle[process] -= 1
                later(half_trip(), "arrive", process, pacers[process].take())
        elif what == "arrive":
            later(half_trip(), "answer", process, (about, service.answers(now, rng)))
        elif what == "answer":
            admission, admitted = about
            (pacers[process].accepted if admitted else pacers[process].refused)(admission)
            got[process] += admitted
            later(0.0 if admitted else 0.05 * rng.uniform(0.5, 1.5), "free", process, None)
        else:
            idle[process] += 1
            wake(process)
    return got


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "limits",
    [[(0, 1000)], [(0, 200)], [(0, 3000)], [(0, 1000), (10, 500), (20, 1000)], [(0, 2000), (10, 500), (20, 2000)]],
    ids=["1000", "200", "3000", "halved-and-doubled", "quartered"],
)
def test_four_processes_use_nine_tenths_of_a_limit_nobody_told_them(
    limits: list[tuple[float, float]], seed: int
) -> None:
    service = Service(limits)
    got = simulate(service, 30.0, seed=seed)
    used = service.accepted / service.offered(30.0)
    refused = service.refused / (service.accepted + service.refused)
    print(f"seed {seed}: used {used:.3f}, refused {refused:.3f}, shares {got}")
    assert used >= 0.9
    assert refused <= 0.2
    assert min(got) > 0, "no process starves"


def test_one_process_uses_a_limit_that_changes() -> None:
    service = Service([(0, 1000), (10, 500), (20, 1000)])
    simulate(service, 30.0, seed=1, processes=1)
    assert service.accepted >= 0.9 * service.offered(30.0)


def test_without_refusals_nothing_is_slowed() -> None:
    service = Service()
    simulate(service, 5.0, seed=1, processes=1)
    assert service.accepted > 0.8 * 64 / 0.02 * 5


@pytest.mark.parametrize("noise", [0.1, 0.2])
def test_refusals_that_have_nothing_to_do_with_the_rate_do_not_bring_it_to_a_standstill(noise: float) -> None:
    service = Service(noise=noise)
    got = simulate(service, 20.0, seed=2)
    assert sum(got) / 20 > 500


def test_a_cut_holds_for_all_that_wait_already() -> None:
    now = 0.0
    pacer = Pacer(lambda: now)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    async def run() -> None:
        nonlocal now
        for _ in range(40):
            pacer.refused(pacer.take())
            now += 0.05
        assert pacer.rate is not None
        rate = pacer.rate
        begun = now
        await asyncio.gather(*(pacer.admit(sleep=sleep) for _ in range(5)))
        assert now - begun >= 3.9 / rate

    asyncio.run(run())


def test_retry_after_holds_all_only_while_nothing_is_accepted() -> None:
    now = 0.0
    pacer = Pacer(lambda: now)
    for _ in range(20):
        pacer.accepted(pacer.take())
    pacer.refused(pacer.take(), retry_after_s=30.0)
    assert pacer.delay() < 30.0
    stopped = Pacer(lambda: now)
    for _ in range(20):
        stopped.refused(stopped.take(), retry_after_s=30.0)
    assert stopped.delay() > 29.0


class Clock:
    """A time that only `sleep` moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class User:
    """Somebody who sets a ceiling."""


def admitted(pacer: Pacer, clock: Clock, seconds: float, cost: int = 1) -> int:
    """How many requests are let through in so many seconds, when there are always more."""

    async def work() -> int:
        count, end = 0, clock.now + seconds
        while clock.now < end:
            pacer.accepted(await pacer.admit(cost, clock.sleep))
            count += cost
        return count

    return asyncio.run(work())


@pytest.mark.parametrize("cost", [1, 100])
@pytest.mark.parametrize("rate", [10, 250, 5000])
def test_a_ceiling_is_never_exceeded_and_is_reached(rate: int, cost: int) -> None:
    clock, user = Clock(), User()
    pacer = Pacer(clock)
    pacer.limit(user, rate)
    count = admitted(pacer, clock, 20)
    assert 20 * rate * 0.98 - cost <= count <= 20 * rate * 1.02 + 2 * cost
    assert pacer.rate is None  # nothing was learnt of the store


def test_below_the_ceiling_the_stores_limit_counts_and_a_ceiling_never_raises_the_rate() -> None:
    clock, user = Clock(), User()
    pacer = Pacer(clock)
    pacer.limit(user, 1000)
    for _ in range(40):
        pacer.refused(pacer.take())
    assert pacer.rate is not None
    assert pacer.rate < 1000
    assert admitted(pacer, clock, 0.5) < 500
    # Nothing is refused any more: the rate grows, and no further than the ceiling.
    assert admitted(pacer, clock, 60) <= 60 * 1000 * 1.02
    assert pacer.rate <= 1000
    assert 990 <= admitted(pacer, clock, 1) <= 1020


def test_the_lowest_ceiling_counts_for_as_long_as_its_user_lives() -> None:
    clock, high, low = Clock(), User(), User()
    pacer = Pacer(clock)
    assert pacer.ceiling is None
    pacer.limit(high, 500)
    pacer.limit(low, 20)
    assert pacer.ceiling == 20
    del low
    gc.collect()
    assert pacer.ceiling == 500
    assert 480 <= admitted(pacer, clock, 1) <= 520

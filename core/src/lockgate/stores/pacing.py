"""How fast one process sends requests to one store account.

Guarantee: nobody has to know the store's limit. A pacer sends as fast as it is asked to until the store refuses
(429, 503, …). It then holds the rate at which the store accepts, and tries for more: a little at first, more and more
the longer nothing is refused. Processes that share an account do not talk to each other; that each of them sees only
refusals of its own is enough for all to share the limit, and to follow it when it changes.

Three rules:
- A refusal cuts the rate by the share that was lately refused, at least 5 %, and once per round trip: what was sent
  before the cut says nothing about the rate after it.
- Between cuts the rate grows by round trips, which are the same for all that share the account, or shares would not
  meet; slower where few requests are sent, so that no large share of them is spent on finding the limit.
- Refusals that have nothing to do with the rate (a faulty gateway, say) must not slow it to a standstill. They are told
  by this: at a much lower rate, no smaller share is refused. Such a share is believed to be noise for a while, what
  it has cost is given back, and only more than that cuts.

Users of a pacer may set a ceiling, which it never exceeds, whatever the store would take; the lowest one counts.

The clock is passed in; nothing here sleeps, except `admit`, with the sleep that it is given.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf, sqrt
from weakref import WeakKeyDictionary

CUT_LEAST = 0.95
"""The mildest cut keeps this much of the rate."""

CUT_MOST = 0.5
"""The hardest one this much; harder ones take several round trips."""

GROWTH = 0.6
STEP_ROUND_TRIPS = 10.0
STEP_REQUESTS = 60
STEP_SECONDS_LEAST = 0.2
STEP_SECONDS_MOST = 1.0
START_SECONDS = 3.0
STEPS_AT_START = 3.0
STEPS_MOST = 7.0
"""After a cut to `base` the rate grows to `base + GROWTH * sqrt(base) * (2 ** steps - 1)`. A step lasts so many round
trips, or so many requests at the base's rate if that is longer, within these seconds. Round trips are the same for all
that share an account, and the root lets a process with a small share grow faster in proportion than one with a large
share: together that is what makes shares meet. (Steps of so many requests at any rate did not: whoever had more grew
faster by more than the share, and kept it.) In the first seconds, when a rate is a guess from little, it starts some
steps on."""

RATE_LEAST = 1.0
"""No cut goes below this many requests per second."""

CATCH_UP_SECONDS = 0.01
"""A sender that woke up late may send so many seconds' worth at once; sleeps are about a millisecond coarse."""

PRIOR = 8
"""A share of refusals is counted as if so many more requests had been accepted: a few refusals are weak evidence."""

WINDOW = 64
WINDOWS_KEPT = 6
NOISE_SHARES = (0.10, 0.3)
NOISE_LASTS_WINDOWS = 3
"""Shares of refusals are compared between windows of so many outcomes. A share within these bounds that is as large as
it was at 1.4 times the rate is noise, believed for so many windows."""

SENT_SLACK = 1.3
"""How far the rate of so few requests may be from that over a longer time."""

FIRST_SECONDS = 0.25
"""How long the store is watched before its first refusals set a rate, unless it refuses a good part of all."""


@dataclass(frozen=True, slots=True)
class Admission:
    """One request that may be sent: when it was let through, and whether it had to wait for the rate."""

    at: float
    paced: bool
    cost: int


class Pacer:
    """The pace of one process towards one account. Safe to use from several threads and event loops.

    `rate` is in requests per second, as found; None until the store refuses for the first time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._ceilings: WeakKeyDictionary[object, float] = WeakKeyDictionary()
        self.rate: float | None = None
        self.refusals = 0
        self._free_at = 0.0
        self._paused_until = 0.0
        self._cut_at = float("-inf")
        self._base = 0.0
        self._outcomes = 0
        self._refused = 0
        self._steps_before = 0.0
        self._accepted_at: deque[tuple[float, int]] = deque(maxlen=512)
        self._began_at: float | None = None
        self._window_outcomes = 0
        self._window_refused = 0
        self._window_cost = 0
        self._window_at: float | None = None
        self._sent_rate: float | None = None
        self._round_trip = 0.0
        self._windows: deque[tuple[float, float]] = deque(maxlen=WINDOWS_KEPT)
        self._noise = 0.0
        self._noise_windows = 0

    def limit(self, user: object, requests_per_second_max: float) -> None:
        """Set a ceiling, for as long as `user` lives."""
        with self._lock:
            self._ceilings[user] = requests_per_second_max

    @property
    def ceiling(self) -> float | None:
        """The lowest that a living user has set, in requests per second; None if none has."""
        return min(self._ceilings.values(), default=None) if self._ceilings else None

    @property
    def allowed(self) -> float | None:
        """The rate that is kept, in requests per second: as found, or the ceiling; None where there is neither."""
        ceiling = self.ceiling
        if ceiling is None or self.rate is None:
            return self.rate if ceiling is None else ceiling
        return min(self.rate, ceiling)

    async def admit(self, cost: int = 1, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Admission:
        """Wait until a request that counts as `cost` may be sent.

        Callers of one event loop are served in the order they came; only the first of them looks at the rate, and it
        looks again after each sleep, so that a cut holds for all that have not been sent.
        """
        if self.allowed is None and self._paused_until <= self._clock():
            return self.take(cost, paced=False)
        loop = asyncio.get_running_loop()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues.setdefault(loop, asyncio.Lock())
        async with queue:
            paced = False
            while (wait_s := self.delay()) > 0:
                paced = True
                await sleep(min(wait_s, 0.25))
            return self.take(cost, paced=paced)

    def delay(self) -> float:
        """Seconds until the next request may be sent; 0 or less if it may be now."""
        now = self._clock()
        with self._lock:
            free_at = self._paused_until if self.allowed is None else max(self._free_at, self._paused_until)
            return free_at - now

    def take(self, cost: int = 1, *, paced: bool = False) -> Admission:
        """Let a request through now. Later ones wait until its share of the rate has passed."""
        now = self._clock()
        with self._lock:
            if self._began_at is None:
                self._began_at = now
            rate = self.allowed
            if rate is not None:
                self._free_at = max(self._free_at, now - CATCH_UP_SECONDS) + cost / rate
                # A sender that is late was not idle: it would have sent by then if it could.
                paced = paced or self._free_at > now
            return Admission(now, paced, cost)

    def accepted(self, admission: Admission) -> None:
        """The store acted on a request, whatever it answered."""
        now = self._clock()
        with self._lock:
            self._accepted_at.append((now, admission.cost))
            self._round_trip += (now - admission.at - self._round_trip) / 16
            self._count(now, admission.cost, refused=False)
            if self.rate is not None and admission.paced and admission.at > self._cut_at:
                steps = (now - self._cut_at) / self._step_seconds
                grown_by = 2 ** min(self._steps_before + steps, STEPS_MOST) - 2**self._steps_before
                # What only the ceiling held back says nothing of a rate above it.
                most = max(self._base, self.ceiling or inf)
                self.rate = min(self._base + GROWTH * sqrt(self._base) * grown_by, most)
                if self._steps_before + steps >= STEPS_MOST:
                    self._base, self._cut_at, self._steps_before = self.rate, now, STEPS_MOST - 1

    def refused(self, admission: Admission, retry_after_s: float = 0.0) -> None:
        """The store refused a request because there were too many.

        `retry_after_s` is the store's wish. It holds for the refused request, which is the caller's to keep; all
        others wait for it only while the store accepts nothing at all, or one refusal would idle the whole process.
        """
        now = self._clock()
        with self._lock:
            self.refusals += 1
            self._count(now, admission.cost, refused=True)
            if retry_after_s > 0 and self._refused == self._outcomes >= PRIOR:
                self._paused_until = max(self._paused_until, now + min(retry_after_s, 60.0))
            if self.rate is None and not (self._is_flood or now - (self._began_at or now) >= FIRST_SECONDS):
                return
            if self.rate is None:
                self.rate = self._base = max(RATE_LEAST, self._delivered(now) * CUT_LEAST)
                self._free_at = now
                self._start_over(now)
            elif admission.at > self._cut_at and not self._is_noise:
                if not admission.paced and self._sent_rate is not None:
                    # The rate was not what held requests back: what was sent was too much.
                    self.rate = min(self.rate, self._sent_rate)
                self._cut(now)

    def _count(self, now: float, cost: int, *, refused: bool) -> None:
        self._outcomes += 1
        self._refused += refused
        if self._outcomes >= 2 * WINDOW:
            self._outcomes //= 2
            self._refused = (self._refused + 1) // 2
        self._window_outcomes += 1
        self._window_refused += refused
        self._window_cost += cost
        if self._window_at is None:
            self._window_at = now
        if self._window_outcomes == WINDOW:
            self._sent_rate = self._window_cost / max(now - self._window_at, 1e-6)
            self._close_window(self._window_refused / WINDOW)
            self._window_at = now

    def _close_window(self, share: float) -> None:
        self._window_outcomes = self._window_refused = self._window_cost = 0
        self._noise_windows -= 1
        if self.rate is None or self._sent_rate is None:
            return
        # A rate that is not used, since too few requests are in flight for it, has nothing to do with what is refused.
        sent = min(self.rate, SENT_SLACK * self._sent_rate)
        least, most = NOISE_SHARES
        as_bad = [rate for rate, before in self._windows if rate >= 1.4 * sent and share >= 0.75 * before]
        if as_bad and least <= share <= most:
            self.rate = self._base = max(as_bad)
            self._noise = share
            self._noise_windows = NOISE_LASTS_WINDOWS
            self._windows.clear()
        self._windows.append((sent, share))

    @property
    def _step_seconds(self) -> float:
        wanted = max(STEP_ROUND_TRIPS * self._round_trip, STEP_REQUESTS / max(self._base, RATE_LEAST))
        return min(STEP_SECONDS_MOST, max(STEP_SECONDS_LEAST, wanted))

    @property
    def _is_noise(self) -> bool:
        return self._noise_windows > 0 and (
            self._outcomes < 2 * PRIOR or self._refused / self._outcomes < self._noise + 0.08
        )

    @property
    def _is_flood(self) -> bool:
        return self._outcomes >= 4 * PRIOR and self._refused > NOISE_SHARES[1] * self._outcomes

    def _cut(self, now: float) -> None:
        assert self.rate is not None
        kept = 1 - self._refused / (self._outcomes + PRIOR)
        self.rate = self._base = max(RATE_LEAST, self.rate * min(CUT_LEAST, max(CUT_MOST, kept)))
        self._start_over(now)

    def _start_over(self, now: float) -> None:
        self._cut_at = now
        self._outcomes = self._refused = 0
        is_young = self._began_at is not None and now - self._began_at < START_SECONDS
        self._steps_before = STEPS_AT_START if is_young else 0.0

    def _delivered(self, now: float) -> float:
        """Requests per second that the store has lately accepted."""
        recent = [(at, cost) for at, cost in self._accepted_at if at > now - 1.0]
        if not recent:
            return RATE_LEAST
        return sum(cost for _, cost in recent) / max(now - recent[0][0], 0.05)


_pacers: dict[str, Pacer] = {}
_pacers_lock = threading.Lock()


def pacer_for(account: str) -> Pacer:
    """The pacer of this process for an account, whoever asks; `account` is what the store's limits are counted by."""
    with _pacers_lock:
        return _pacers.setdefault(account, Pacer())


def _forget_after_fork() -> None:
    # A lock may have been held by a thread that the child does not have.
    global _pacers_lock
    _pacers_lock = threading.Lock()
    _pacers.clear()


os.register_at_fork(after_in_child=_forget_after_fork)

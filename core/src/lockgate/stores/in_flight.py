"""How many requests to one store account are at work at once, found out while they are.

What one process gets done is requests in flight over the latency, until the store, the way to it or this process is
full: more in flight then only wait longer. Nobody has to know latency or limit. Guarantees:
- Never more than the ceiling at once, and never fewer than `LEAST` (or the ceiling, if that is less).
- It widens only where that pays: a wider setting is a trial, and stays only if what is answered a second has grown by
  at least the root of what was added. So it stops where the store, or this process, is full.
- It begins with `START`, or with what keeps `START_PER_SECOND` at work at the quickest answer's latency, if that is
  more, and never more than `START_MAX`; a refusal, or a whole round, ends the beginning.
- It narrows where that costs next to nothing, not below `START`; and where the store refuses: to what the store's
  accepted rate needs.

The rule of the root is what lets two drivers meet that share a store which is full and refuses nobody, but lets all
wait: whoever has less than half of it gains more than the root by widening, whoever has more gains less. Where a store
refuses, the pacers share (`pacing`); a round at the pacer's rate is no trial.

Pure: the clock is passed in, nothing here waits. `flight_slots` makes callers wait by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, sqrt

START = 64
"""What it begins with, or the ceiling: enough for a thousand files to be fast at usual latencies, and not a burst."""

START_PER_SECOND = 5000.0
"""What one process has CPU for, at 0.2 ms a request: a store far away is not fast with `START`, and a commit of two
thousand files is over before trials have found that out. A quarter of what an Azure account allows by default
("Scalability and performance targets for standard storage accounts": 20,000 requests a second)."""

START_MAX = 6 * START
"""The bound of the burst at a store that turns out to allow little, where each of them is refused once: enough for that
rate at latencies up to 77 ms."""

START_ANSWERS = 8
START_CHANGES = 1.2
"""So many answers are seen before the start follows the quickest, and it is left alone where it is as near as that:
the first answers carry the making of their connections."""

LEAST = 8
"""Fewer are never allowed: a wrong guess must not make a long commit of a short one."""

WIDEN_AT_FIRST = 2.0
WIDEN = 1.25
NARROW = 0.8
"""How much wider or narrower a trial is: twice at first, and after a trial that paid where answers come as quickly
as they ever did, since then nothing waits."""

NARROW_COSTS_MOST = 0.95
"""A narrower setting stays if so much of what was answered a second is left: narrowing is a courtesy, and what looks
like a queue may be another program on this machine."""

ROUND_SECONDS = 0.05
"""A round is so many answers as are in flight, or a multiple, over at least so long: shorter ones measure noise, and
answers come in waves, of which only whole ones can be compared."""

TRY_AGAIN_SECONDS = 0.25
TRY_AGAIN_SECONDS_MAX = 4.0
"""After a trial that did not pay the next one waits so long, twice as long after each further one."""

QUEUE_STRETCH = 1.25
"""Narrower is tried where answers take so much longer than the quickest round's: something waits somewhere."""

HEADROOM = 2.0
"""After a refusal: this many times what the accepted rate needs at the latency seen. The pacer holds the rate; more in
flight lets it find a higher one."""

PACED = 0.85
MIXED = 0.2
"""A round at such a share of the pacer's rate, or with more answers of other kinds, is not judged."""

PACED_HEADROOM = 1.5
"""Where the pacer holds the rate, so many times what is at work may be in flight: the pacer is to be the bound."""

RATE_SECONDS = 0.2
"""The accepted rate is counted over spans of so long."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one whole round has shown, at `limit` in flight."""

    limit: int
    kind: str
    per_second: float
    latency_s: float


class InFlight:
    """How many requests may be at work at once: `limit`. For one event loop; tell it of every answer."""

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic, *, start: int = START) -> None:
        self.ceiling = ceiling
        self.limit = min(start, ceiling)
        self._least = min(LEAST, ceiling)
        self._start = self.limit
        self._clock = clock
        self._changed_at = -inf
        self._has_begun = False
        self._answers_first = 0
        self._quickest_first = inf
        self._before: Round | None = None
        self._at_first = self._last_paid = True
        self._narrow_next = False
        self._try_at = -inf
        self._wait_s = TRY_AGAIN_SECONDS
        self._quickest: dict[str, float] = {}
        self._span_began: float | None = None
        self._span_accepted = 0
        self._span_latency = 0.0
        self._accepted_need: float | None = None
        self._round_at: float | None = None
        self._round_kind = ""
        self._round_ends = self._answers = self._others = self._cost = 0
        self._latency = 0.0
        self._begin_round()

    def answered(self, kind: str, sent_at: float, *, full: bool, pace: float | None = None, cost: int = 1) -> None:
        """The store acted on a request of this kind. `full`: no more could have been at work when the answer came;
        `pace`: how many a second the pacer lets through, if it keeps to a rate; `cost`: how many it counts as there."""
        now = self._clock()
        if not self._has_begun:
            self._follow_latency(now, now - sent_at)
        if not full:
            # What was not the bound says nothing about it. A trial that cannot be judged is none.
            self._span_began = None
            self._give_trial_up(now)
            self._begin_round()
            return
        self._count_accepted(now, now - sent_at)
        if sent_at < self._changed_at:
            return
        if self._round_at is None:
            self._round_at, self._round_kind = now, kind
            return
        self._answers += 1
        self._latency += now - sent_at
        self._others += kind != self._round_kind
        self._cost += cost
        if self._answers >= self._round_ends and (elapsed := now - self._round_at) > 0:
            if elapsed < ROUND_SECONDS:
                self._round_ends += self.limit
            else:
                self._judge(now, elapsed, pace)

    def refused(self, sent_at: float) -> None:
        """The store refused a request, since there were too many; or it could not be reached at all."""
        now = self._clock()
        self._has_begun = True
        if sent_at < self._changed_at:
            return
        self._give_trial_up(now)
        self._at_first = False
        if self._accepted_need is not None:
            needed = max(ceil(self._accepted_need * HEADROOM), self.limit // 2, self._least)
            if needed < self.limit:
                self._set(needed, now)
        self._try_at = max(self._try_at, now + TRY_AGAIN_SECONDS)
        self._begin_round()

    def _follow_latency(self, now: float, latency_s: float) -> None:
        """Before anything was found out: what this process could keep at work at this latency."""
        self._answers_first += 1
        self._quickest_first = min(self._quickest_first, latency_s)
        if self._answers_first < START_ANSWERS:
            return
        wanted = min(START_MAX, ceil(START_PER_SECOND * self._quickest_first))
        wanted = min(self.ceiling, max(self._start, wanted))
        if not 1 / START_CHANGES <= wanted / self.limit <= START_CHANGES:
            self._set(wanted, now)
            self._begin_round()

    def _count_accepted(self, now: float, latency_s: float) -> None:
        """In flight is rate times latency (Little's law): what those that are accepted need."""
        if self._span_began is None:
            self._span_began, self._span_accepted, self._span_latency = now, 0, 0.0
        self._span_accepted += 1
        self._span_latency += latency_s
        if now - self._span_began >= RATE_SECONDS:
            self._accepted_need = self._span_latency / (now - self._span_began)
            self._span_began, self._span_accepted, self._span_latency = now, 0, 0.0

    def _begin_round(self) -> None:
        self._round_at = None
        self._round_kind = ""
        self._round_ends = self.limit
        self._answers = self._others = self._cost = 0
        self._latency = 0.0

    def _set(self, limit: int, now: float) -> None:
        self.limit = limit
        self._changed_at = now

    def _give_trial_up(self, now: float) -> None:
        if self._before is not None:
            self._set(self._before.limit, now)
            self._before = None

    def _judge(self, now: float, elapsed: float, pace: float | None) -> None:
        self._has_begun = True
        found = Round(self.limit, self._round_kind, self._cost / elapsed, self._latency / self._answers)
        # Where the pace was the bound, or the requests were of several kinds, rounds cannot be compared.
        is_paced = pace is not None and found.per_second >= PACED * pace
        is_mixed = self._others > MIXED * self._answers
        if is_paced or is_mixed or (self._before and self._before.kind != found.kind):
            at_work = self._latency / elapsed
            self._give_trial_up(now)
            wanted = min(self.ceiling, ceil(PACED_HEADROOM * at_work))
            if is_paced and wanted > self.limit:
                # Else the two would wait for each other: the pacer tries a higher rate only while its own is used.
                self._set(wanted, now)
            self._begin_round()
            return
        before, self._before = self._before, None
        self._begin_round()
        self._quickest[found.kind] = min(found.latency_s, self._quickest.get(found.kind, inf))
        if before is None:
            if now >= self._try_at:
                self._try(found, now)
        elif found.per_second >= before.per_second * _kept_by(found.limit / before.limit):
            self._wait_s = TRY_AGAIN_SECONDS
            self._last_paid = True
            self._try(found, now)
        else:
            self._at_first = self._last_paid = False
            self._narrow_next = found.limit > before.limit
            self._try_at = now + self._wait_s
            self._wait_s = min(2 * self._wait_s, TRY_AGAIN_SECONDS_MAX)
            self._set(before.limit, now)
            self._begin_round()

    def _try(self, found: Round, now: float) -> None:
        stretched = found.latency_s > QUEUE_STRETCH * self._quickest[found.kind]
        # Not below what it began with: so few are nobody's trouble, and on a busy machine luck would lead down.
        if self._narrow_next and stretched and found.limit > self._start:
            wanted = max(self._start, int(found.limit * NARROW))
        else:
            fast = self._at_first or (self._last_paid and not stretched)
            wanted = min(self.ceiling, ceil(found.limit * (WIDEN_AT_FIRST if fast else WIDEN)))
        if self._narrow_next and not stretched:
            self._narrow_next = False
        if wanted == found.limit:
            self._narrow_next = not self._narrow_next
            return
        self._before = found
        self._set(wanted, now)
        self._begin_round()


def _kept_by(ratio: float) -> float:
    """What a trial must bring, as a share of what was answered before it, to be kept."""
    return sqrt(ratio) if ratio > 1 else NARROW_COSTS_MOST

"""The client of one store: every request is paced, timed, counted, and repeated only where that is safe.

What an answer means is the store's business; this module only tells three kinds apart: refused for there being too
many (slows the pace, is tried again), failed on the store's side (tried again), and everything else (returned).
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from abc import abstractmethod
from collections import Counter
from dataclasses import replace
from typing import Protocol

from lockgate.engine.run.logs import get_log
from lockgate.model.errors import AnswerLost, StoreUnavailable
from lockgate.model.options import JobOptions
from lockgate.stores.http.exchange import Answer, Call, NoAnswer, NotSent, Repeat
from lockgate.stores.http.transport import Transport, connections_affordable, release_transport, transport_of
from lockgate.stores.pacing import Admission, Pacer, pacer_for
from lockgate.stores.repeats import GONE_PATIENCE, Repeats

log = get_log("lockgate.stores")

BACK_OFF_SECONDS = 0.05
BACK_OFF_SECONDS_MAX = 10.0
REFUSED_SECONDS_MAX = 0.4
"""A refused request does not wait longer than this unless the store says so: it is the pacer that holds it back, and
with it all others; a longer wait of its own would only leave the rate unused."""

"""When somebody who waits is told why."""

FAILED = frozenset({408, 500, 502, 503, 504})
REFUSED = frozenset({429, 503})

_COUNTED = {"refused": "store_io_throttled", "repeated": "store_io_retry", "held_back": "store_io_rate_limited"}
"""What is counted beside the kinds of calls, by the names that Hadoop's `StoreStatisticNames` gives."""


class Authorizer(Protocol):
    """Puts the credentials on a request; asked for each try, since signatures and tokens expire."""

    @abstractmethod
    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """The URL and all headers to send."""


class StoreClient:
    """Asks one account on behalf of one store.

    `account` is the endpoint that limits are counted by; `requests` counts tries by kind of call, and beside them
    `refused` (throttled answers), `repeated` (tries after the first) and `held_back` (tries that waited for the pace).
    """

    def __init__(self, account: str, authorizer: Authorizer, options: JobOptions, pacer: Pacer | None = None) -> None:
        self.account = account
        self.pacer = pacer or pacer_for(account)
        if options.requests_per_second_max:
            self.pacer.limit(self, options.requests_per_second_max)
        self.requests: Counter[str] = Counter()
        self._authorizer = authorizer
        self._in_flight = min(options.requests_in_flight, connections_affordable())
        self._timeout_s = options.timeout_seconds
        self._patience_s = options.patience_seconds
        self._random = random.Random()
        self._repeats = Repeats()
        self._has_answered = False
        self._is_gone = False

    @property
    def in_flight_max(self) -> int:
        """How many requests may be at work at once, at most; how many are is found out (`stores.in_flight`)."""
        return self._in_flight

    def counters(self) -> dict[str, int]:
        """What a store's `counters` are; see there."""
        return {name: self.requests[kind] for kind, name in _COUNTED.items() if self.requests[kind]}

    async def ask(self, call: Call) -> Answer:
        """Send a request, again where that is safe, and return the store's answer.

        Raises:
            StoreUnavailable: no answer but refusals and failures, for longer than the patience; nothing was done.
            AnswerLost: the request may have been acted on.
        """
        transport = transport_of(self, self.account, self._in_flight)
        failing_since: float | None = None
        patience_s = self._patience_s * (GONE_PATIENCE if self._is_gone else 1)
        doubtful = False
        tries = 0
        while True:
            reason, retry_after_s, wait_most_s = "", 0.0, BACK_OFF_SECONDS_MAX
            may_be_done = False
            try:
                answer = await self._try(transport, call)
            except NotSent as error:
                if error.why_never and not self._has_answered:
                    raise self._unreachable(call, error) from None
                reason = f"no connection ({error})"
            except NoAnswer as error:
                reason = f"no answer ({error})"
                doubtful = may_be_done = True
            else:
                self._has_answered, self._is_gone = True, False
                if answer.status not in FAILED and answer.status not in REFUSED:
                    return replace(answer, doubtful=True) if doubtful else answer
                reason = f"status {answer.status} {error_code(answer)}".rstrip()
                # A refusal by 429 comes before anything is done. Behind a 5xx the store may have acted all the same.
                doubtful = doubtful or answer.status != 429
                may_be_done = not is_refusal(answer)
                retry_after_s = _retry_after(answer)
                wait_most_s = REFUSED_SECONDS_MAX if is_refusal(answer) else BACK_OFF_SECONDS_MAX
            lost = reason.startswith("no answer")
            ends = (lost and call.repeat is Repeat.WITH_CARE) or (may_be_done and call.repeat is Repeat.AFTER_A_LOOK)
            now = time.monotonic()
            failing_since = now if failing_since is None else failing_since
            wait_s = max(retry_after_s, self._back_off(tries, wait_most_s))
            tries += 1
            over = now + wait_s > failing_since + patience_s
            if ends or over:
                self._is_gone = over and reason.startswith("no ")
                raise self._given_up(call, reason, tries, doubtful)
            log.debug("request is repeated", kind=call.kind, where=call.where, reason=reason, wait_s=round(wait_s, 3))
            self._repeats.tell(call.where, reason, now, failing_since, failing_since + patience_s)
            await asyncio.sleep(wait_s)
            self.requests["repeated"] += 1

    async def _try(self, transport: Transport, call: Call) -> Answer:
        async with transport.slots:
            admission = await self.pacer.admit(call.cost)
            url, headers = await self._authorizer.authorize(call)
            self.requests[call.kind] += 1
            self.requests["held_back"] += admission.paced
            flight = transport.slots.flight
            try:
                answer = await transport.exchange(call, headers, url, self._timeout_s)
            except NotSent:
                # Too many connections, here or there, are one of the reasons.
                flight.refused(admission.at)
                raise
            if is_refusal(answer):
                self.requests["refused"] += 1
                self.pacer.refused(admission, _retry_after(answer))
                flight.refused(admission.at)
            elif answer.status not in FAILED:
                self.pacer.accepted(admission)
                flight.answered(
                    call.kind, admission.at, full=transport.slots.are_full, pace=self.pacer.allowed, cost=call.cost
                )
        return answer

    def _back_off(self, tries: int, most_s: float) -> float:
        wait_s: float = min(most_s, BACK_OFF_SECONDS * 2 ** min(tries, 10))
        return wait_s * (0.5 + self._random.random())

    def _given_up(self, call: Call, reason: str, tries: int, doubtful: bool) -> StoreUnavailable:
        times = "once" if tries == 1 else f"{tries} times"
        if doubtful and call.repeat is not Repeat.FREELY:
            return AnswerLost(f"{call.kind}: tried {times}, and it may have been done: {reason}", where=call.where)
        return StoreUnavailable(
            f"{call.kind}: tried {times}, last {reason}",
            where=call.where,
            next_step=f"check that {self.account} is the right address, and can be reached from here"
            if reason.startswith("no connection")
            else "if the store is only slow, raise patience_seconds or timeout_seconds",
        )

    def _unreachable(self, call: Call, error: NotSent) -> StoreUnavailable:
        return StoreUnavailable(
            f"{call.kind}: no connection ({error}): {error.why_never}",
            where=call.where,
            next_step=f"check that {self.account} is the right address",
        )

    def slow_down(self) -> None:
        """Tell the pacer of a refusal inside an answer that was none itself, such as of one call in a batch."""
        self.requests["refused"] += 1
        self.pacer.refused(Admission(time.monotonic(), True, 1))

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        await release_transport(self, self.account, self._in_flight)


def is_refusal(answer: Answer) -> bool:
    """Whether the store refused a request because there were too many. A 500 that says the operation timed out is
    the sign of an account over its limit, too (Azure)."""
    return answer.status in REFUSED or (answer.status == 500 and "OperationTimedOut" in error_code(answer))


def error_code(answer: Answer) -> str:
    """The store's own code for an error, where it stands in a header."""
    return answer.headers.get("x-ms-error-code", "")


def _retry_after(answer: Answer) -> float:
    """Seconds that the store asks to wait, 0 where it does not say."""
    text = answer.headers.get("retry-after", "")
    try:
        return max(0.0, float(text)) if text else 0.0
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0

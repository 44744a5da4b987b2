"""A job commit that fails, dies, or sleeps, before each change that it makes to the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from lockgate.model.errors import CommitFenced, LockgateError, StoreUnavailable

from lockgate_testkit.bench import ContractBroken, expect
from lockgate_testkit.guarantee import guarantee
from lockgate_testkit.guarantees.committing import OLD, put
from lockgate_testkit.job_bench import Driver, Files, JobBench
from lockgate_testkit.watched_store import Stopped

NEW = {"p=1/new": b"new", "p=3/new": b"new"}
POLICIES: dict[str, Files] = {"append": {**OLD, **NEW}, "replace": NEW}
"""What is seen once a job of each policy has committed `NEW` over `OLD`."""

AT_ONCE = 8
"""Trials side by side, each at a destination of its own: most of their time is waiting."""

RECOVERED_FROM = 4
"""The moments of a commit at which its driver has died, at most, for two recoverers to meet."""

RECOVERIES_MAX = 4
"""How often one who recovers a job tries, whom another keeps fencing."""

Trial = Callable[[JobBench, int, str, Files], Awaitable[None]]
"""Tries one moment of a commit under a policy that leads to these files."""


async def _at_each_moment(bench: JobBench, trial: Trial) -> None:
    for policy, after in POLICIES.items():
        moments = await _moments(bench, policy)
        if moments is None:  # refused: the protocol does not take this policy
            continue
        step = max(1, -(-moments // bench.moments_max))
        places = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as trials:
            for moment in range(0, moments, step):
                trials.create_task(_at(moment, bench, trial, policy, after, places))


async def _at(moment: int, bench: JobBench, trial: Trial, policy: str, after: Files, places: asyncio.Semaphore) -> None:
    async with places:
        try:
            await trial(bench.another(), moment, policy, after)
        except Exception as error:
            error.add_note(f"policy {policy}, before change {moment} of the commit")
            raise


async def _moments(bench: JobBench, policy: str) -> int | None:
    place = bench.another()
    await put(place, OLD)
    try:
        driver = await place.driver(conflict=policy).set_up()
        receipt = await driver.task(NEW)
        before = driver.changes
        await driver.commit([receipt])
    except LockgateError:
        await place.expect_visible(OLD, f"after {policy} was refused")
        return None
    return driver.changes - before


class Interruption:
    """Something that happens before the change of a number, counted from when it is `armed`."""

    def __init__(self, moment: int, happen: Callable[[str], Awaitable[None]]) -> None:
        self._moment = moment
        self._happen = happen
        self._from: int | None = None
        self._last = -1

    def arm(self) -> None:
        """Count from the next change."""
        self._from = self._last + 1

    async def before(self, number: int, what: str) -> None:
        """As `WatchedStore` asks."""
        self._last = number
        if self._from is not None and number - self._from == self._moment:
            await self._happen(what)


@contextlib.contextmanager
def _woken(wake: asyncio.Event) -> Iterator[None]:
    """Whoever sleeps until `wake` does so no longer than this, whatever fails: cancelled before it sleeps, a driver
    would otherwise sleep amid its rollback, and nobody would wake it."""
    try:
        yield
    finally:
        wake.set()


async def _ready(
    bench: JobBench, moment: int, policy: str, happen: Callable[[str], Awaitable[None]], **options: Any
) -> tuple[Driver, Callable[[], Awaitable[object]]]:
    """A driver that is about to commit, to whom something will happen at that moment; and its commit."""
    await put(bench, OLD)
    interruption = Interruption(moment, happen)
    driver = await bench.driver("job", before=interruption.before, conflict=policy, **options).set_up()
    receipt = await driver.task(NEW)

    async def commit() -> object:
        interruption.arm()
        return await driver.commit([receipt])

    return driver, commit


@guarantee()
async def a_commit_that_fails_restores_the_destination(bench: JobBench) -> None:
    """Whichever change a commit fails at, the destination is as it was, or as committed, and which is told."""

    async def trial(place: JobBench, moment: int, policy: str, after: Files) -> None:
        async def fail(what: str) -> None:
            raise StoreUnavailable(f"refused: {what}", where=what)

        driver, commit = await _ready(place, moment, policy, fail)
        try:
            await commit()
        except LockgateError as error:
            seen = await place.visible()
            if seen == after and ("is committed" in str(error) or "cannot tell" in str(error)):
                return
            if seen != OLD:
                await place.recover(driver.job_id)
                await place.give_up_what_shows(driver)
                seen = await place.visible()
            expect(seen in (OLD, after), f"neither restored nor committed: {sorted(seen)}, told: {error}")
        else:
            await place.expect_visible(after, "after a commit that was told to have succeeded")

    await _at_each_moment(bench, trial)


@guarantee("recoverable")
async def a_dead_drivers_job_is_ended_by_anybody(bench: JobBench) -> None:
    """Whichever change a driver dies before, its job is finished or undone by one command, and again without harm."""

    async def trial(place: JobBench, moment: int, policy: str, after: Files) -> None:
        driver = await _died(place, moment, policy)
        recovery = await place.recover(driver.job_id)
        seen = await _expect_whole(place, driver, after, f"({recovery.outcome})")
        if recovery.outcome == "finished":
            expect(seen == after, f"told finished, and seen: {sorted(seen)}")
        if recovery.outcome == "undone":
            expect(seen == OLD, f"told undone, and seen: {sorted(seen)}")
        await place.recover(driver.job_id)
        await place.expect_visible(seen, "after a second recovery")

    await _at_each_moment(bench, trial)


@guarantee("recoverable")
async def a_dead_drivers_job_can_be_undone(bench: JobBench) -> None:
    """Whichever change a driver dies before, its job can be undone, unless it had passed its commit point."""

    async def trial(place: JobBench, moment: int, policy: str, after: Files) -> None:
        driver = await _died(place, moment, policy)
        try:
            await place.recover(driver.job_id, undo=True)
        except LockgateError:
            await place.recover(driver.job_id)
            seen = await _expect_whole(place, driver, after, "though it could not be undone any more")
            expect(seen == after, "a job could not be undone, and is not committed")
            return
        await _expect_whole(place, driver, after, "once it was undone")

    await _at_each_moment(bench, trial)


async def _expect_whole(bench: JobBench, driver: Driver, after: Files, when: str) -> Files:
    """What is seen: all that the job commits or nothing, and `_SUCCESS` says which."""
    await bench.give_up_what_shows(driver)
    seen = await bench.visible()
    expect(seen in (OLD, after), f"neither undone nor finished {when}: {sorted(seen)}")
    is_named = await bench.last_committed() == driver.job_id
    expect(is_named == (seen == after), f"`_SUCCESS` {'names' if is_named else 'does not name'} the job {when}")
    return seen


async def _died(bench: JobBench, moment: int, policy: str) -> Driver:
    async def die(what: str) -> None:
        raise Stopped(what)

    driver, commit = await _ready(bench, moment, policy, die)
    try:
        await commit()
    except Stopped:
        return driver
    raise ContractBroken(f"the driver survived what stops it before change {moment}")


@guarantee("recoverable", "holds_through_partition")
async def a_driver_that_wakes_late_changes_nothing(bench: JobBench) -> None:
    """Whichever change a driver sleeps before while others end its job, what it does when it wakes changes nothing."""

    async def trial(place: JobBench, moment: int, policy: str, after: Files) -> None:
        asleep, wake = asyncio.Event(), asyncio.Event()

        async def sleep(what: str) -> None:
            asleep.set()
            await wake.wait()

        # What it left is still there: who ends the job may die before the cleanup.
        driver, commit = await _ready(place, moment, policy, sleep, cleanup_skip=True)
        committing = asyncio.ensure_future(commit())
        with _woken(wake):
            sleeping = asyncio.ensure_future(asleep.wait())
            await asyncio.wait([committing, sleeping], return_when=asyncio.FIRST_COMPLETED)
            sleeping.cancel()
            try:
                await place.recover(driver.job_id, undo=True)
            except LockgateError:  # too late to undo
                await place.recover(driver.job_id)
            seen = await _expect_whole(place, driver, after, "while the driver sleeps")
        answer = (await asyncio.gather(committing, return_exceptions=True))[0]
        if isinstance(answer, BaseException):
            await place.expect_visible(seen, f"after the driver woke (it was told: {answer})")
        else:
            # Before its claim a driver has begun nothing that could be undone.
            await place.expect_visible(after, "after a commit that was told to have succeeded")

    await _at_each_moment(bench, trial)


@guarantee("recoverable")
async def a_recoverer_that_is_overtaken_tells_how_the_job_ended(bench: JobBench) -> None:
    """Of two who recover a job, the one that sleeps before any request of its own, and wakes when the other is done,
    is never told that a job which is committed has failed, and changes nothing."""
    for policy, after in POLICIES.items():
        moments = await _moments(bench, policy)
        if moments is None:
            continue
        places = asyncio.Semaphore(AT_ONCE)
        for moment in range(0, moments, max(1, -(-moments // min(RECOVERED_FROM, bench.moments_max)))):
            requests = await _requests_of_a_recovery(bench.another(), moment, policy)
            step = max(1, -(-requests // bench.moments_max))
            async with asyncio.TaskGroup() as trials:
                for request in range(0, requests, step):
                    trials.create_task(_overtaken(bench.another(), moment, policy, after, request, places))


async def _requests_of_a_recovery(bench: JobBench, moment: int, policy: str) -> int:
    driver = await _died(bench, moment, policy)
    count = 0

    async def before(number: int, what: str) -> None:
        nonlocal count
        count += 1

    await bench.recover(driver.job_id, before=before)
    return count


async def _overtaken(
    bench: JobBench, moment: int, policy: str, after: Files, request: int, places: asyncio.Semaphore
) -> None:
    async with places:
        driver = await _died(bench, moment, policy)
        asleep, wake = asyncio.Event(), asyncio.Event()

        async def before(number: int, what: str) -> None:
            if number == request:
                asleep.set()
                await wake.wait()

        recovering = asyncio.ensure_future(bench.recover(driver.job_id, before=before))
        when = f"policy {policy}, driver dead before change {moment}, recoverer asleep before request {request}"
        with _woken(wake):
            sleeping = asyncio.ensure_future(asleep.wait())
            await asyncio.wait([recovering, sleeping], return_when=asyncio.FIRST_COMPLETED)
            sleeping.cancel()
            await _recover_in_the_end(bench, driver.job_id)
            seen = await _expect_whole(bench, driver, after, when)
        answer = (await asyncio.gather(recovering, return_exceptions=True))[0]
        await bench.expect_visible(seen, f"after it woke; {when}")
        if isinstance(answer, BaseException):
            expect(seen == OLD, f"a committed job is told to have failed: {answer}; {when}")
        elif answer.outcome in ("finished", "undone"):
            expect((answer.outcome == "finished") == (seen == after), f"told {answer.outcome}; {when}")


async def _recover_in_the_end(bench: JobBench, job_id: str) -> None:
    """Recover, again where the one that sleeps came between: requests that it had under way beside the one that it
    sleeps before are acted on while it sleeps."""
    for left in reversed(range(RECOVERIES_MAX)):
        try:
            await bench.recover(job_id)
            return
        except CommitFenced:
            if not left:
                raise

"""Many items, so many at once: a batch with a stated failure behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def for_each(
    items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], *, at_once: int, done: Callable[[int], None]
) -> list[Result]:
    """Await `work` for each item, at most `at_once` of them together, and return the results in order.

    At the first error the others are cancelled and waited for, then that error is raised. Cancelled itself, it does
    the same. `done` is told of each item that is finished.
    """
    if len(items) == 1:
        only = await work(items[0])
        done(1)
        return [only]
    results: list[Result | None] = [None] * len(items)
    waiting = iter(range(len(items)))

    async def worker() -> None:
        for index in waiting:
            results[index] = await work(items[index])
            done(1)

    await together(worker() for _ in range(min(at_once, len(items))))
    return results  # type: ignore[return-value]  # every place is filled by now


async def together(work: Iterable[Awaitable[None]]) -> None:
    """Await all; at the first error cancel the others, wait for them, and raise it."""
    tasks = [asyncio.ensure_future(each) for each in work]
    if not tasks:
        return
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        await _cancel(tasks)
        raise
    error = next((task.exception() for task in finished if not task.cancelled() and task.exception()), None)
    if error is not None:
        await _cancel(tasks)
        raise error


async def _cancel(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""Store calls that do not depend on each other, at work at once: each saves a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, TypeVar

One = TypeVar("One")
Other = TypeVar("Other")


async def together(work: Iterable[Awaitable[One]]) -> list[One]:
    """Await all and return their results in order; at the first error cancel the others, wait for them, and raise it.

    Cancelled itself, it does the same: nothing of `work` is running once it has returned or raised.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    if not tasks:
        return []
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        await _cancel(tasks)
        raise
    error = next((task.exception() for task in finished if not task.cancelled() and task.exception()), None)
    if error is not None:
        await _cancel(tasks)
        raise error
    return [task.result() for task in tasks]


async def both(one: Awaitable[One], other: Awaitable[Other]) -> tuple[One, Other]:
    """Two kinds of work `together`."""
    work: list[Awaitable[Any]] = [one, other]
    first, second = await together(work)
    return first, second


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""Many items, so many at once: a batch with a stated failure behaviour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lockgate.engine.run.concurrency import together

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

"""A local store whose `number`-th act waits for something else: where somebody stands still, or dies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from lockgate.stores.local import LocalStore

CHANGES = (
    "rename_files",
    "rename_directories",
    "create_file",
    "write_file",
    "make_directories",
    "delete_files",
    "delete_directories",
    "delete_empty_directories",
)
"""Every call of a store that changes something."""

PAGES = ("list_directory", "list_tree")


class Died(BaseException):
    """What is left of a process that was killed."""


async def dies() -> None:
    """What comes instead of the act."""
    raise Died


def before_act(
    monkeypatch: pytest.MonkeyPatch, number: int, acts: Sequence[str], then: Callable[[], Awaitable[None]]
) -> list[str]:
    """`then` is awaited right before the `number`-th of the store's calls of these names; the names of those so far."""
    done: list[str] = []

    async def meet(name: str) -> None:
        done.append(name)
        if len(done) == number:
            await then()

    def met(name: str):
        original = getattr(LocalStore, name)

        async def act(store, *arguments, **named):
            await meet(name)
            return await original(store, *arguments, **named)

        async def pages(store, *arguments, **named):
            await meet(name)
            async for page in original(store, *arguments, **named):
                yield page

        return pages if name in PAGES else act

    for name in acts:
        monkeypatch.setattr(LocalStore, name, met(name))
    return done

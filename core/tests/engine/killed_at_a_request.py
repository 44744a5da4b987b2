"""Something happens, or a process dies, before a chosen request of anybody to a local store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.stores.local import LocalStore

REQUESTS = ("stat_files", "read_files", "make_directories", "write_file", "create_file", "rename_directories")


class Died(BaseException):
    """As a process that is killed."""


def at_request(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> list[int]:
    """Do something before the `number`-th request from now on; what comes back grows by one for each."""
    made: list[int] = []

    def wrapped(name: str):
        asked = getattr(LocalStore, name)

        async def ask(store, *arguments, **named):
            made.append(len(made) + 1)
            if made[-1] == number:
                act()
            return await asked(store, *arguments, **named)

        return ask

    for name in REQUESTS:
        monkeypatch.setattr(LocalStore, name, wrapped(name))
    return made

"""An access token that is renewed in good time, by one caller for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SECONDS_LEFT = 300.0
"""A token that is valid for less than this is renewed before it is used."""

AskForToken = Callable[[], Awaitable[tuple[str, float]]]
"""Asks the issuer: the token, and when it expires in seconds since 1970."""


class RenewedToken:
    """Keeps one token. Usable from several event loops, one after the other; callers of one loop share a renewal."""

    def __init__(self, ask: AskForToken) -> None:
        self._ask = ask
        self._token = ""
        self._expires = 0.0
        self._renewal: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def current(self) -> str:
        """A token that is valid for a while. Whatever `ask` raises comes through."""
        if self._is_good():
            return self._token
        loop = asyncio.get_running_loop()
        if self._renewal is None or self._loop is not loop:
            self._renewal, self._loop = asyncio.Lock(), loop
        async with self._renewal:
            if not self._is_good():
                self._token, self._expires = await self._ask()
            return self._token

    def _is_good(self) -> bool:
        return time.time() <= self._expires - SECONDS_LEFT

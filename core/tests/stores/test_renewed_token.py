"""Access tokens are renewed in good time, and once."""

from __future__ import annotations

import asyncio
import time

import pytest
from lockgate.stores.http.renewed_token import SECONDS_LEFT, RenewedToken


def test_many_callers_ask_once_and_again_when_little_time_is_left() -> None:
    lives = iter([SECONDS_LEFT + 60, SECONDS_LEFT - 60, SECONDS_LEFT + 60])
    asked = 0

    async def ask() -> tuple[str, float]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return f"token {asked}", time.time() + next(lives)

    token = RenewedToken(ask)

    async def use() -> list[str]:
        return await asyncio.gather(*(token.current() for _ in range(10)))

    assert asyncio.run(use()) == ["token 1"] * 10
    token._expires = 0.0
    assert asyncio.run(use()) == ["token 2", *["token 3"] * 9], "the second was given out almost expired"


def test_what_the_issuer_raises_comes_through_and_the_next_caller_asks_again() -> None:
    answers = iter([None, ("good", time.time() + 3600)])

    async def ask() -> tuple[str, float]:
        answer = next(answers)
        if answer is None:
            raise PermissionError("no")
        return answer

    token = RenewedToken(ask)
    with pytest.raises(PermissionError):
        asyncio.run(token.current())
    assert asyncio.run(token.current()) == "good"

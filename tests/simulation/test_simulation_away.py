"""A store that has done what it was asked, gives no answer, and is then away, so that nobody can look what became of
it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from lockgate.engine.record.record_log import RecordLog
from lockgate.model.errors import AnswerLost, StoreUnavailable
from simworld.history import History, render
from simworld.systematic import EVERY_STORE, every_lost_answer_of_a_store_that_goes_away, small_job


def _histories(store: str) -> Iterator[History]:
    for away in (1, 4, 40):
        yield from every_lost_answer_of_a_store_that_goes_away(small_job(store, "append"), away)


@pytest.mark.parametrize("store", EVERY_STORE)
def test_every_guarantee_holds_where_the_store_goes_away_with_an_answer(store: str) -> None:
    count = 0
    for history in _histories(store):
        count += 1
        assert not history.violations, render(history)
    assert count > 100


@contextmanager
def _the_last_try_alone_is_told() -> Iterator[None]:
    """A claim that was created, and whose answer was lost, is told as the failure of the try that came after."""
    create = RecordLog._create_once

    async def create_once(log, path, record, **named):
        try:
            await create(log, path, record, **named)
        except AnswerLost as error:
            if isinstance(error.__cause__, StoreUnavailable):
                log.is_in_doubt = False
                raise StoreUnavailable(error.__cause__.what, where=error.__cause__.where) from None
            raise

    with patch.object(RecordLog, "_create_once", create_once):
        yield


def test_the_mutant_is_found_that_tells_the_last_try_alone() -> None:
    with _the_last_try_alone_is_told():
        assert any(history.violations for store in EVERY_STORE for history in _histories(store))

"""An error of Lockgate's in a text of Spark's: found by its word, never by its looks."""

from __future__ import annotations

import traceback

import pytest
from lockgate.errors import CapabilityMissing, DestinationConflict, LockgateError
from lockgate.spark.error_answer import answering, error_answered


def told(error: Exception, word: str) -> str:
    with pytest.raises(type(error)) as caught, answering(word), answering(word):
        raise error
    return "".join(traceback.format_exception(caught.value))


def test_the_same_error_comes_out_type_and_all() -> None:
    text = told(DestinationConflict("it is\nthere", where="/ü", next_step="go"), "word1")
    found = error_answered(f"[PYTHON_DATA_SOURCE_ERROR] …\n{text}\nSQLSTATE: 38000", "word1")
    assert type(found) is DestinationConflict
    assert (found.what, found.where, found.next_step) == ("it is\nthere", "/ü", "go")
    assert text.count("word1") == 1


def test_another_writes_error_is_not_taken_for_ours() -> None:
    assert error_answered(told(CapabilityMissing("x"), "word1"), "word2") is None
    assert error_answered("lockgate.errors.DestinationConflict: there", "word1") is None


def test_an_error_of_another_kind_carries_nothing() -> None:
    assert error_answered(told(ValueError("x"), "word1"), "word1") is None


def test_a_type_that_is_not_known_here_is_still_a_lockgate_error() -> None:
    class OfAPlugin(DestinationConflict):
        """A plugin's own."""

    assert type(error_answered(told(OfAPlugin("x"), "w"), "w")) is LockgateError

"""How an error of Lockgate's gets from the processes that Spark starts back to the caller of `write`, type and all.

Spark hands on an error of a Python data source as text: the traceback. `write` gives each write a word of its own
as a private option; an error that is raised on behalf of such a write carries a note of that word and of itself,
which a traceback shows; and `write` finds the note by its word, and raises the error again. So nothing is concluded
from words that a path or somebody else's error might hold.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lockgate.model import errors
from lockgate.model.errors import LockgateError

ANSWER_OPTION = "__lockgate_answer"
"""The private option that holds the word of a write, letters and digits."""

_MARK = "lockgate-error"


@contextmanager
def answering(word: str) -> Iterator[None]:
    """Note on each `LockgateError` raised within what `error_answered` needs; nothing where there is no word."""
    try:
        yield
    except LockgateError as error:
        if word and not any(word in note for note in getattr(error, "__notes__", ())):
            content = json.dumps(told_by(error)).encode()
            error.add_note(f"{_MARK} {word} {base64.b64encode(content).decode()}")
        raise


def error_answered(text: str, word: str) -> LockgateError | None:
    """The error that was noted with this word in a text of Spark's, None where there is none."""
    found = re.search(rf"{_MARK} {re.escape(word)} ([A-Za-z0-9+/=]+)", text)
    if found is None:
        return None
    return error_of(json.loads(base64.b64decode(found[1])))


def told_by(error: LockgateError) -> tuple[str, str, str, str]:
    """An error by its type's name and its texts: Spark's pickles of an exception make a type of its own of its type."""
    return type(error).__name__, error.what, error.where, error.next_step


def error_of(told: Sequence[str]) -> LockgateError:
    """The error that was told so. A type that a plugin made is not known here: it comes as a plain `LockgateError`."""
    name, what, where, next_step = told
    kind = getattr(errors, name, LockgateError)
    known = isinstance(kind, type) and issubclass(kind, LockgateError)
    made: type[LockgateError] = kind if known else LockgateError
    return made(what, where=where, next_step=next_step)

"""Telling whoever waits why it takes long: that a store does not answer, or refuses, and is asked again. And telling
all that is a warning, in a process of Spark's, whose logging no application configures."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Told(logging.Handler):
    """Prints warnings on standard error, as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"lockgate: {_in_words(record.getMessage())}", file=sys.stderr, flush=True)


_EVENT = re.compile(r'event=(?:"((?:[^"\\]|\\.)*)"|(\S+))\s*(.*)', re.DOTALL)


def _in_words(line: str) -> str:
    """A line of the log for who reads it as it comes: what happened first, as a sentence, then the rest as the log has
    it."""
    match = _EVENT.fullmatch(line)
    if match is None:
        return line
    what = (match[1] or match[2] or "").replace('\\"', '"')
    return f"{what}: {match[3]}" if match[3] else what


@contextmanager
def telling_why_it_takes_long(*, even_if_heard: bool = False) -> Iterator[None]:
    """While the body runs, what stores warn of is on standard error; unless the application listens, which then has it
    in its log, or another such body runs."""
    with _telling("lockgate.stores", even_if_heard=even_if_heard):
        yield


@contextmanager
def telling_warnings() -> Iterator[None]:
    """While the body runs, all warnings are on standard error, with the same exceptions."""
    with _telling("lockgate"):
        yield


@contextmanager
def _telling(name: str, *, even_if_heard: bool = False) -> Iterator[None]:
    logger = logging.getLogger(name)
    if _is_heard(logger) and not even_if_heard:
        yield
        return
    told = _Told(logging.WARNING)
    logger.addHandler(told)
    try:
        yield
    finally:
        logger.removeHandler(told)


def _is_heard(logger: logging.Logger | None) -> bool:
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False

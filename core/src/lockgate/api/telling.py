"""Telling whoever waits why it takes long: that a store does not answer, or refuses, and is asked again."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Told(logging.Handler):
    """Prints warnings on standard error, as it is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"lockgate: {record.getMessage()}", file=sys.stderr, flush=True)


@contextmanager
def telling_why_it_takes_long(*, even_if_heard: bool = False) -> Iterator[None]:
    """While the body runs, what stores warn of is on standard error; unless the application listens, which then has it
    in its log, or another such body runs."""
    stores = logging.getLogger("lockgate.stores")
    if _is_heard(stores) and not even_if_heard:
        yield
        return
    told = _Told(logging.WARNING)
    stores.addHandler(told)
    try:
        yield
    finally:
        stores.removeHandler(told)


def _is_heard(logger: logging.Logger | None) -> bool:
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False

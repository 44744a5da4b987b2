"""SIGTERM in the middle of a job commit: it becomes an exception, so that it leads to the same rollback as Ctrl-C.

A process that is told to end by its scheduler (Kubernetes, YARN, systemd) has some seconds left; without this Python
would end at once and leave the job to `lockgate recover`.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(SystemExit):
    """SIGTERM came. Left alone it ends the process with the status that shells give it, 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated


def print_notes(interruption: BaseException) -> None:
    """Say on standard error what is known of the job that was interrupted."""
    for note in getattr(interruption, "__notes__", ()):
        print(note, file=sys.stderr)


@contextmanager
def rolling_back_on_sigterm() -> Iterator[None]:
    """While the body runs, SIGTERM raises `Terminated` in the main thread. An application's own handler is left as
    it is, and threads other than the main one cannot have any."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except Terminated as end:
        # Nobody prints the notes of an exception that ends the process by its status.
        print_notes(end)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

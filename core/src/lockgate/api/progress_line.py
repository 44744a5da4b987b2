"""A line on a terminal that says how far a job commit is, drawn anew in its place while the commit runs, and then gone.

The line is drawn by a thread of its own, so a terminal that takes nothing (Ctrl-S) holds up neither the commit nor the
renewal of its record, and nothing that goes wrong with it is the commit's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.runtime import Event

FIRST_SECONDS = 1.0
"""A commit that is over by then draws nothing."""

REDRAWN_SECONDS = 0.25
LINE_ENDS_SECONDS = 0.5
"""So long the end of a commit waits for its line to be cleared."""

COLUMNS_MAX = 80


@dataclass(frozen=True)
class Terminal:
    """Where the line is drawn: what takes its text, and how wide it is."""

    write: Callable[[str], object]
    columns: int = COLUMNS_MAX


_drawn_on: ContextVar[Callable[[], Terminal | None]] = ContextVar("drawn_on")
_one_line = threading.Lock()
"""Of several commits at once in a process one has the line."""


@contextlib.contextmanager
def drawing_on(terminal: Callable[[], Terminal | None]) -> Iterator[None]:
    """While the body runs, job commits of this thread draw on what `terminal` finds, or nothing where that is None, and
    not on this process's own standard error."""
    before = _drawn_on.set(terminal)
    try:
        yield
    finally:
        _drawn_on.reset(before)


@contextlib.contextmanager
def showing_progress(run: JobRun) -> Iterator[None]:
    """While the body commits this job: once that takes a second, a line on the terminal says how far it is. Nothing is
    drawn where the option `progress` is off or nobody would see it. Raises nothing."""
    terminal = None
    if run.options.progress:
        with contextlib.suppress(Exception):
            terminal = _drawn_on.get(own_terminal)()
    if terminal is None or not _one_line.acquire(blocking=False):
        yield
        return
    try:
        line = _Line(terminal)
        tell = run.runtime.emit

        def emit(event: Event) -> None:
            line.hear(event)
            tell(event)

        run.runtime = dataclasses.replace(run.runtime, emit=emit)
        line.begin()
        try:
            yield
        finally:
            line.end()
    finally:
        _one_line.release()


def own_terminal() -> Terminal | None:
    """This process's standard error, if it is a terminal or what a notebook shows; else None."""
    stream = sys.stderr
    if stream is None or not (stream.isatty() or _is_notebook()):
        return None

    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    try:
        return Terminal(write, os.get_terminal_size(stream.fileno()).columns or COLUMNS_MAX)
    except (OSError, ValueError):  # a notebook's has no size
        return Terminal(write)


def _is_notebook() -> bool:
    # Not imported for this: where it is not there yet, this is no notebook.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """The line of one job commit."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._columns = max(1, min(terminal.columns, COLUMNS_MAX) - 1)
        self._now = "job commit"
        self._seconds = 0.0
        self._shown = ""
        self._drawn = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw_until_end, name="lockgate-progress", daemon=True)

    def hear(self, event: Event) -> None:
        """Keep what an event tells, for the next drawing."""
        if event.name == "stage-begins":
            self._now = event.stage.replace("_", " ")
        elif event.name == "stage-advances":
            of = f" of {event.total:,}" if event.total else ""
            self._now = f"{event.stage.replace('_', ' ')} {event.done:,}{of}"
        elif event.name == "waiting":
            self._now = f"waits for job {event.details.get('other', '')}"

    def begin(self) -> None:
        with contextlib.suppress(RuntimeError):  # no more threads: no line
            self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(LINE_ENDS_SECONDS)

    def _draw_until_end(self) -> None:
        with contextlib.suppress(Exception):
            pause = FIRST_SECONDS
            while not self._ended.wait(pause):
                self._seconds += pause
                self._draw(f"lockgate: {self._now} ({self._seconds:.0f} s)"[: self._columns])
                pause = REDRAWN_SECONDS
            if self._drawn:
                self._terminal.write("\r" + " " * self._drawn + "\r")

    def _draw(self, text: str) -> None:
        # A notebook that is executed without a front end keeps each drawing as an output of its own.
        if text == self._shown:
            return
        self._terminal.write("\r" + text.ljust(self._drawn))
        self._shown, self._drawn = text, len(text)

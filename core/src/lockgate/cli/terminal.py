"""Where answers go: tables on a terminal, plain lines in a pipe, one JSON document with `--json`; errors and progress
go to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from lockgate.engine.runtime import Event
from lockgate.model.errors import LockgateError, UsageError
from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.registry import PluginRegistry

DONE, PROBLEM, USAGE = 0, 1, 2
"""Exit statuses: done, a problem was found, used wrongly."""


@dataclass(frozen=True)
class Rows:
    """A table: its title, the columns' names, and rows of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass
class Answer:
    """What a command has to say: for programs, and for people as tables and sentences."""

    document: Any
    tables: list[Rows] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    status: int = DONE


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print an answer in the form asked for."""
    if as_json:
        print(json.dumps(msgspec.to_builtins(answer.document, str_keys=True), indent=1, default=str))
        return
    console = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
    for table in answer.tables:
        if console.is_terminal:
            _print_table(console, table)
        else:
            _print_plain(table)
    for sentence in answer.sentences:
        console.print(sentence, markup=False)


def _print_table(console: Console, table: Rows) -> None:
    drawn = Table(title=table.title, title_justify="left", header_style="bold", show_header=any(table.columns))
    for column in table.columns:
        numeric = all(row[table.columns.index(column)].replace(",", "").isdigit() for row in table.rows)
        drawn.add_column(column, justify="right" if numeric and table.rows else "left", overflow="fold")
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn)


def _print_plain(table: Rows) -> None:
    columns = f": {', '.join(table.columns)}" if any(table.columns) else ""
    print(f"# {table.title}{columns}")
    for row in table.rows:
        print("\t".join(row))


def print_error(error: LockgateError, *, as_json: bool) -> int:
    """Tell an error on standard error, or as a document on standard output; the exit status that it means."""
    if as_json:
        document = {
            "error": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "next_step": error.next_step,
        }
        print(json.dumps(document, indent=1))
    else:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"[bold red]{type(error).__name__}[/]: ", end="")
        console.print(str(error), markup=False)
    return USAGE if isinstance(error, UsageError) else PROBLEM


class _Bars:
    """A plugin of this process that draws what the engine's events tell."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}

    @hookimpl
    def lockgate_event(self, event: Event) -> None:
        if not event.stage:
            return
        if event.name == "stage-begins" and event.stage not in self._bars:
            self._bars[event.stage] = self._progress.add_task(event.stage.replace("_", " "), total=None)
        elif event.name == "stage-advances" and event.stage in self._bars:
            self._progress.update(self._bars[event.stage], completed=event.done, total=event.total or None)
        elif event.name in ("stage-ends", "stage-fails") and event.stage in self._bars:
            self._progress.remove_task(self._bars.pop(event.stage))


@contextmanager
def progress_bars(registry: PluginRegistry, *, wanted: bool) -> Iterator[None]:
    """While the body runs, a bar for each stage at work, if standard error is a terminal."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bars = _Bars(progress)
        registry.register(bars, "progress-bars")
        try:
            yield
        finally:
            registry.unregister(bars)

"""Where answers go: tables on a terminal, lines with headings in a pipe, one JSON document with `--json`; errors and
progress go to standard error."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from lockgate.engine.run.runtime import Event
from lockgate.model.errors import LockgateError, UsageError
from lockgate.model.spooled import windows
from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.registry import PluginRegistry

DONE, PROBLEM, USAGE = 0, 1, 2
"""Exit statuses: done, a problem was found, used wrongly."""


@dataclass(frozen=True)
class Rows:
    """A table: its title, the columns' names, and rows of text. The last column may be `prose`, which is broken into
    lines where a terminal is narrow; all else (ids, paths, URLs) is never broken nor cut, so that it can be copied."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: bool = False


LISTED_AT_ONCE = 1_000
"""So many members of a list in a document are made at a time."""


@dataclass(frozen=True)
class Listing:
    """A list in a document, as long as a job has files: its members are made when it is printed, and never held."""

    members: Callable[[], Iterable[Any]]


@dataclass
class Answer:
    """What a command has to say: for programs, and for people as tables and sentences. The `legend` explains the
    tables' words, to people only."""

    document: Any
    tables: list[Rows] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    status: int = DONE
    legend: list[str] = field(default_factory=list)


def _console(*, stderr: bool = False) -> Console:
    """Prints text as it is: rich would make an emoji of `:b:` in a path, and colour what looks like a number."""
    return Console(stderr=stderr, soft_wrap=True, highlight=False, emoji=False)


@contextmanager
def _though_standard_output_is_full(ended: str) -> Iterator[None]:
    """Where standard output takes nothing more, as on a full disk, tell how the command `ended` on standard error.

    Raises:
        typer.Exit: so it was; with the status of a problem.
        BrokenPipeError: nobody reads standard output any more.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in the buffer would fail again when the interpreter ends.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        print(f"{ended}, but that could not be written to standard output: {error}", file=sys.stderr)
        raise typer.Exit(PROBLEM) from error


_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Letters that control a terminal, but for the ends of lines, or that turn the order of what is shown."""


def visible(text: str) -> str:
    """What is said to people: an id or a path may have letters by which a terminal would show another text, or do
    something."""
    return _INVISIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print an answer in the form asked for.

    Raises:
        typer.Exit: standard output takes nothing more.
        BrokenPipeError: nobody reads it any more.
    """
    with _though_standard_output_is_full("done"):
        _print_answer(answer, as_json=as_json)


def _print_answer(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        if isinstance(answer.document, Mapping):
            _print_document(answer.document)
        else:
            print(_json(answer.document))
        return
    console = _console()
    tables = [replace(each, rows=[[visible(cell) for cell in row] for row in each.rows]) for each in answer.tables]
    answer = replace(answer, tables=tables, sentences=[visible(each) for each in answer.sentences])
    if console.is_terminal:
        for table in answer.tables:
            _print_table(console, table)
        for line in answer.sentences:
            parts = [line] if _is_to_be_copied(line) else _wrapped(line, console.width)
            for part in parts:
                console.print(part, markup=False)
        for part in (part for line in answer.legend for part in _wrapped(line, console.width)):
            console.print(part, markup=False)
        return
    for table in answer.tables:
        if len(answer.tables) > 1:
            print(f"# {table.title}")
        # As `kubectl` and `docker` do: the same columns by name wherever they are read; programs take `--json`.
        if table.rows and any(table.columns):
            print("\t".join(table.columns))
        for row in table.rows:
            print("\t".join(_one_line(cell) for cell in row))
    # Beside rows, what is said in sentences would be in the way of a program that reads them.
    for sentence in answer.sentences:
        print(sentence, file=sys.stderr if answer.tables else sys.stdout)


def _json(document: Any) -> str:
    return json.dumps(_finite(msgspec.to_builtins(document, str_keys=True)), indent=1, default=str, allow_nan=False)


def _finite(found: Any) -> Any:
    """With null for a number that JSON has no way to write: Python's own way is read by Python alone."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {name: _finite(value) for name, value in found.items()}
    return [_finite(each) for each in found] if isinstance(found, list | tuple) else found


def _print_document(document: Mapping[str, Any]) -> None:
    """As `_json`, with every `Listing` printed some members at a time."""
    if not any(isinstance(value, Listing) for value in document.values()):
        print(_json(document))
        return
    for number, (name, value) in enumerate(document.items()):
        sys.stdout.write("," if number else "{")
        if not isinstance(value, Listing):
            sys.stdout.write(_json({name: value})[1:-2])  # without the braces and the last line's end
            continue
        begun, end = _json({name: []})[:-3], "\n ]\n}"
        sys.stdout.write(begun[1:])
        behind = ""
        for some in windows(value.members(), LISTED_AT_ONCE):
            sys.stdout.write(("," if behind else "") + _json({name: some})[len(begun) : -len(end)])
            behind = "\n "
        sys.stdout.write(f"{behind}]")
    print("\n}")


def _one_line(cell: str) -> str:
    return "; ".join(part.strip() for part in cell.splitlines()).replace("\t", " ")


PROSE_CELLS_MIN = 40
"""How narrow a column of prose may become; where it would be narrower, prose stands below its row."""

PROSE_INDENT = "    "


def _print_table(console: Console, table: Rows) -> None:
    if not table.rows:
        return
    shown = [number for number in range(len(table.columns)) if any(row[number] for row in table.rows)]
    widths = [_width(table, number) for number in shown]
    prose = table.prose and shown[-1] == len(table.columns) - 1
    beside = sum(widths[:-1]) + 2 * len(widths) + (min(widths[-1], PROSE_CELLS_MIN) if prose else widths[-1])
    if table.prose and beside > console.width and len(shown) > 1:
        _print_rest_below(console, table, shown, _how_many_fit(widths[:-1], console.width))
        return
    drawn = Table(title=table.title, title_justify="left", box=None, pad_edge=False, show_header=any(table.columns))
    for number in shown:
        is_prose = prose and number == shown[-1]
        drawn.add_column(
            table.columns[number],
            justify="right" if _is_numeric(table, number) else "left",
            no_wrap=not is_prose,
            overflow="fold",
            header_style="bold",
        )
    room = max(PROSE_CELLS_MIN, console.width - sum(widths[:-1]) - 2 * len(widths))
    are_facts = not any(table.columns)
    rows = [
        [_wrapped_fact(row[number], room) if are_facts and number == shown[-1] else row[number] for number in shown]
        for row in table.rows
    ]
    for row in rows:
        drawn.add_row(*map(Text, row))
    widths[-1] = max(cell_len(line) for row in [*rows, [table.columns[shown[-1]]]] for line in row[-1].split("\n"))
    width = max(console.width, beside if prose else sum(widths) + 2 * len(widths))
    # With the height: on a terminal of the kind `dumb` a width that is given alone is passed over, and 80 taken.
    wide = Console(width=width, height=console.height, highlight=False, emoji=False)
    wide.print(drawn)
    wide.print()


def _how_many_fit(widths: Sequence[int], room: int) -> int:
    """How many columns of these widths find room beside each other, at least one."""
    fit = [number for number in range(1, len(widths) + 1) if sum(widths[:number]) + 2 * (number - 1) <= room]
    return max(fit, default=1)


def _print_rest_below(console: Console, table: Rows, shown: Sequence[int], beside: int) -> None:
    """The first columns in each row, and what the others say below it, prose on lines of its own: a table that is wider
    than the terminal would be cut at every line's end."""
    first, between, prose = shown[:beside], shown[beside:-1], shown[-1]
    widths = [_width(table, number) for number in first]
    room = max(PROSE_CELLS_MIN, console.width - len(PROSE_INDENT))
    console.print(Text(table.title, style="italic"))
    console.print(Text(_line([table.columns[number] for number in first], widths), style="bold"))
    for row in table.rows:
        console.print(Text(_line([row[number] for number in first], widths)))
        rest = "; ".join(f"{table.columns[number]}: {row[number]}" for number in between if row[number])
        told = f"{table.columns[prose]}: {row[prose]}" if row[prose] else ""
        for line in (part for given in (rest, *told.splitlines()) for part in _wrapped(given, room)):
            console.print(Text(PROSE_INDENT + line))
    console.print()


def _wrapped_fact(cell: str, room: int) -> str:
    lines = ([line] if _is_to_be_copied(line) else _wrapped(line, room) for line in cell.split("\n"))
    return "\n".join(part for parts in lines for part in parts)


def _is_to_be_copied(text: str) -> bool:
    """Whether it holds a command or a URL: where it is too long the terminal breaks it, so that it can be copied."""
    return "://" in text or "lockgate " in text


def _wrapped(text: str, room: int) -> list[str]:
    """At blanks only: names of policies and capabilities hold hyphens, and are to be copied."""
    return textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _width(table: Rows, number: int) -> int:
    cells = [table.columns[number], *(row[number] for row in table.rows)]
    return max(cell_len(line) for cell in cells for line in cell.split("\n"))


def _is_numeric(table: Rows, number: int) -> bool:
    return all(row[number].replace(",", "").isdigit() for row in table.rows)


def print_error(error: LockgateError, *, as_json: bool) -> int:
    """Tell an error on standard error, or as a document on standard output; the exit status that it means."""
    if as_json:
        document = {
            "error": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "next_step": error.next_step,
        }
        with _though_standard_output_is_full(f"{type(error).__name__}: {error}"):
            print(json.dumps(document, indent=1))
    else:
        console = _console(stderr=True)
        console.print(f"[bold red]{type(error).__name__}[/]: ", end="")
        console.print(visible(str(error)), markup=False)
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
    console = _console(stderr=True)
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

"""The table of attributes, by experiment: shown, replayed, and written into the docs.

    python tests/attributes/attributes_table.py                 every protocol, on simulated stores
    python tests/attributes/attributes_table.py --real          and on real ones
    python tests/attributes/attributes_table.py --show v2 "task commit atomic"
                                                                one experiment, and its history; also with --real
    python tests/attributes/attributes_table.py --write-docs    docs/protocols.md, by all of them

The protocols are those that the installed plugins offer.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "simulation"))
sys.path.insert(0, str(Path(__file__).parent))

from experiments import EXPERIMENTS, Finding, decide
from lab import Lab
from lockgate.engine.run.protocol import Protocol
from lockgate.plugins.registry import PluginRegistry
from paper import CELLS, DIFFERENCES
from places import S3, LocalDisk, Place, simulated_places

DOCS = Path(__file__).resolve().parents[2] / "docs" / "protocols.md"
BEGINS = "<!-- attributes: written by tests/attributes/attributes_table.py --write-docs -->"
ENDS = "<!-- end of attributes -->"


@dataclass(frozen=True)
class Tried:
    """All experiments on one protocol at one place, by their names."""

    protocol: Protocol
    place: str
    findings: dict[str, Finding]


def protocols() -> list[Protocol]:
    """Those that installed plugins offer, by their names; those that ask for `accept_unsafe` come last."""
    offered = PluginRegistry().protocols().values()
    return sorted(offered, key=lambda each: (bool(each.unsafe), each.name))


@contextmanager
def real_places() -> Iterator[list[Place]]:
    """The local disk, and a server of S3."""
    with tempfile.TemporaryDirectory() as directory:
        server = S3()
        try:
            yield [LocalDisk(Path(directory)), server]
        finally:
            server.stop()


def place_for(protocol: Protocol, places: Iterable[Place]) -> Place | None:
    """The first that has what the protocol needs; None where it sets up no jobs."""
    carrying = (place for place in places if place.carries(protocol))
    return None if protocol.commits_others_only else next(carrying, None)


def try_all(chosen: Iterable[Protocol], places: list[Place]) -> dict[str, Tried]:
    """Every experiment on each protocol, at the first of the places that carries it; by the protocols' names."""
    found: dict[str, Tried] = {}
    for protocol in chosen:
        place = place_for(protocol, places)
        if place is not None:
            findings = {each.name: place.run(decide(each, Lab(protocol, place))) for each in EXPERIMENTS}
            found[protocol.name] = Tried(protocol, place.name, findings)
    return found


def undeclared(tried: Tried) -> list[str]:
    """Where the protocol's declared attributes are not what the experiments found."""
    return [
        f"{tried.protocol.name} declares {each.declared}={getattr(tried.protocol.attributes, each.declared)}, and "
        f"on {tried.place}: {tried.findings[each.name].what}"
        for each in EXPERIMENTS
        if each.declared and getattr(tried.protocol.attributes, each.declared) != tried.findings[each.name].holds
    ]


def unexplained(tried: Tried) -> list[str]:
    """Cells that are not the paper's, and of which nobody says why."""
    name = tried.protocol.name
    differing = (row for row, cell in CELLS.get(name, {}).items() if tried.findings[row].holds != cell)
    return [f"{name}: {row}: {tried.findings[row].what}" for row in differing if (name, row) not in DIFFERENCES]


def unneeded(found: dict[str, Tried]) -> list[str]:
    """What is explained, and is no difference, or none that anybody has found."""
    differing = {
        (name, row)
        for name, tried in found.items()
        for row, cell in CELLS.get(name, {}).items()
        if tried.findings[row].holds != cell
    }
    return [f"{name}: {row}" for name, row in DIFFERENCES if (name, row) not in differing]


# The page.


def _word(holds: bool) -> str:
    return "yes" if holds else "no"


def _cell(tried: Tried, row: str) -> str:
    holds = tried.findings[row].holds
    paper = CELLS.get(tried.protocol.name, {}).get(row)
    if paper is None:
        return _word(holds)
    return f"{_word(holds)} ({_word(paper)})" if paper == holds else f"**{_word(holds)}** ({_word(paper)})"


def _matrix(found: dict[str, Tried]) -> str:
    heads = [f"{name}, *unsafe*" if tried.protocol.unsafe else name for name, tried in found.items()]
    lines = [f"| attribute | in the CLI | {' | '.join(heads)} |", "| --- | --- |" + " --- |" * len(found)]
    for each in EXPERIMENTS:
        declared = f"`{each.declared}`" if each.declared else ""
        cells = " | ".join(_cell(tried, each.name) for tried in found.values())
        lines.append(f"| {each.name} | {declared} | {cells} |")
    return "\n".join(lines)


def _questions() -> str:
    lines = ["| attribute | yes means |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {each.name} | {each.question} |" for each in EXPERIMENTS)])


def _of_protocol(tried: Tried, real: Tried | None) -> str:
    name = tried.protocol.name
    head = f"### {name}\n\n{tried.protocol.description}. Tried on: {tried.place}"
    head += f", {real.place}.\n" if real is not None else ".\n"
    if tried.protocol.unsafe:
        head += f"\nIt asks for `accept_unsafe=true`: {tried.protocol.unsafe}.\n"
    lines = ["| attribute | found | how, or what shows it |", "| --- | --- | --- |"]
    for each in EXPERIMENTS:
        finding = tried.findings[each.name]
        word = _word(finding.holds)
        if real is not None and real.findings[each.name].holds != finding.holds:
            word += f"; {_word(real.findings[each.name].holds)} on {real.place}"
        lines.append(f"| {each.name} | {word} | {finding.what} |")
    lacking = [each.name for each in EXPERIMENTS if not tried.findings[each.name].holds]
    replay = "\n".join(f'    python tests/attributes/attributes_table.py --show {name} "{row}"' for row in lacking)
    text = head + "\n" + "\n".join(lines)
    return text + (f"\n\nWhat is missing, each by a history that shows it:\n\n{replay}" if lacking else "")


def _differences(found: dict[str, Tried]) -> str:
    lines = [
        f"- **{name}, {row}**: {_word(found[name].findings[row].holds)}, the paper's {_word(cell)}: "
        f"{DIFFERENCES.get((name, row), 'not explained yet')}"
        for name in found
        for row, cell in CELLS.get(name, {}).items()
        if found[name].findings[row].holds != cell
    ]
    return "\n".join(lines) or "None."


def section(found: dict[str, Tried], real: dict[str, Tried]) -> str:
    """What stands between the two marks."""
    others = [each.name for each in protocols() if each.name not in found]
    parts = [
        BEGINS,
        _matrix(found),
        "### What each attribute means\n\n" + _questions(),
        *(_of_protocol(tried, real.get(name)) for name, tried in found.items()),
        "### Where ours are not the paper's\n\n" + _differences(found),
    ]
    if others:
        parts.append(f"Not tried, since they set up no jobs of their own: {', '.join(f'`{name}`' for name in others)}.")
    return "\n\n".join([*parts, ENDS])


def updated(text: str, found: dict[str, Tried], real: dict[str, Tried]) -> str:
    """The page with its tables as the experiments have it."""
    before, _, rest = text.partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    return before + section(found, real) + after


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", nargs=2, metavar=("PROTOCOL", "ATTRIBUTE"), help="one experiment, with its history")
    parser.add_argument("--real", action="store_true", help="on real stores")
    parser.add_argument("--write-docs", action="store_true", help="bring docs/protocols.md up to date")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    if chosen.write_docs:
        with real_places() as places:
            text = updated(DOCS.read_text(encoding="utf-8"), simulated(), try_all(protocols(), places))
        DOCS.write_text(text, encoding="utf-8")
        return 0
    if chosen.show:
        return _show(*chosen.show, real=chosen.real)
    print(_matrix(simulated()))
    if chosen.real:
        with real_places() as places:
            print(_matrix(try_all(protocols(), places)))
    return 0


def simulated() -> dict[str, Tried]:
    """Every protocol, on a simulated store."""
    return try_all(protocols(), list(simulated_places()))


def _show(name: str, row: str, *, real: bool) -> int:
    offered = {each.name: each for each in protocols()}
    rows = {each.name: each for each in EXPERIMENTS}
    if name not in offered or row not in rows:
        print(f"protocols: {', '.join(offered)}\nattributes: {', '.join(rows)}", file=sys.stderr)
        return 2
    if real:
        with real_places() as places:
            return _replay(offered[name], row, places)
    return _replay(offered[name], row, list(simulated_places()))


def _replay(protocol: Protocol, row: str, places: list[Place]) -> int:
    place = place_for(protocol, places)
    if place is None:
        print(f"{protocol.name} sets up no jobs on any of: {', '.join(each.name for each in places)}", file=sys.stderr)
        return 2
    (each,) = [each for each in EXPERIMENTS if each.name == row]
    finding = place.run(decide(each, Lab(protocol, place)))
    print(f"{protocol.name} on {place.name}: {each.question}\n{_word(finding.holds)}: {finding.what}\n")
    print("\n".join(finding.history))
    return 0 if finding.holds else 1


if __name__ == "__main__":
    sys.exit(main())

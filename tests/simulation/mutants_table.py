"""The list of mutants in docs/simulation.md, made from the code's own."""

from __future__ import annotations

from pathlib import Path

import mutants_deferred  # noqa: F401  # enters its mutants into the list
import mutants_directories  # noqa: F401
import mutants_mended  # noqa: F401
import mutants_movers  # noqa: F401
import mutants_museum  # noqa: F401
import mutants_parts  # noqa: F401
from mutants import MUTANTS, Mutant
from mutants_timeline import TIMELINE_MUTANTS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
BEGINS = "<!-- mutants: written by explore.py --write-docs -->"
ENDS = "<!-- end of mutants -->"


def table(chosen: list[Mutant], first: str = "") -> str:
    """A table of mutants, as Markdown; `first` is the head of a column before the mutants' names."""
    head = [first, "mutant"] if first else ["mutant"]
    lines = [f"| {' | '.join([*head, 'what is wrong', 'caught by', 'within'])} |"]
    lines.append("| " + " | ".join(["---"] * (len(head) + 3)) + " |")
    for each in chosen:
        cells = [each.real_bug or each.mended, each.name] if first else [each.name]
        cells += [each.what, ", ".join(each.caught_by), f"{each.histories_max:,} histories"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def section() -> str:
    """What stands between the two marks."""
    ours = [each for each in MUTANTS if not each.real_bug and not each.mended]
    mended = [each for each in MUTANTS if each.mended]
    museum = [each for each in MUTANTS if each.real_bug]
    return (
        f"{BEGINS}\n\n{table(ours)}\n\n"
        f"### Timeline servers\n\n{table(TIMELINE_MUTANTS)}\n\n"
        f"### What this engine had, and was mended\n\n{table(mended, 'what was mended')}\n\n"
        f"### The museum of real bugs\n\n{table(museum, 'real bug')}\n\n{ENDS}"
    )


def updated(text: str) -> str:
    """The page with its list as the code has it."""
    before, _, rest = text.partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    return before + section() + after


def write_docs() -> None:
    """Bring the page up to date."""
    DOCS.write_text(updated(DOCS.read_text(encoding="utf-8")), encoding="utf-8")

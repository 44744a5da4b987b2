"""Every error that the code makes says what can be done: by itself, or, of a store, by its type."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from lockgate import Job, errors
from lockgate.errors import LockgateError, StoreError

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [ROOT / "core" / "src", *sorted(ROOT.glob("plugins/*/src"))]


def _made_without(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind = getattr(errors, node.func.id, None)
            is_kind = isinstance(kind, type) and issubclass(kind, LockgateError)
            says = {keyword.arg for keyword in node.keywords}
            if is_kind and not kind.usual_next_step and "next_step" not in says:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_every_error_says_what_to_do_next() -> None:
    files = [path for source in SOURCES for path in source.rglob("*.py")]
    assert len(files) > 100
    assert [place for path in files for place in _made_without(path)] == []


def test_every_error_of_a_store_has_a_usual_next_step() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StoreError)]
    assert len(kinds) > 5
    for kind in kinds:
        assert kind("what").next_step, kind
        assert kind("what", next_step="this").next_step == "this"


def test_a_destination_that_cannot_be_made_says_what_to_do() -> None:
    with pytest.raises(LockgateError) as caught:
        Job("/proc/nothing").setup()
    assert caught.value.next_step

"""The page of errors names every exception, below the one that it is a kind of."""

from __future__ import annotations

import re
from pathlib import Path

from lockgate.model import errors

PAGE = (Path(__file__).parents[2] / "docs/errors.md").read_text()


def _tree(kind: type, depth: int = 0) -> list[tuple[int, str]]:
    found = []
    for each in kind.__subclasses__():
        if each.__module__ == "lockgate.errors":
            found += [(depth, each.__name__), *_tree(each, depth + 1)]
    return found


def test_every_exception_is_in_the_table_at_its_place_in_the_tree() -> None:
    rows = re.findall(r"^\| ((?:&nbsp; )*)`(\w+)` \|", PAGE, re.MULTILINE)
    assert [(spaces.count("&nbsp;"), name) for spaces, name in rows] == _tree(errors.LockgateError)

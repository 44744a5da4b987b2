"""Checks on our own habits: what the docs take from the code is current, every hook is documented and tested."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from lockgate.plugins import hookspecs

ROOT = Path(__file__).parents[2]
HOOKS = [name for name in vars(hookspecs) if name.startswith("lockgate_")]


def test_generated_parts_are_current() -> None:
    done = subprocess.run([sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run docs/generate.py"


def test_the_commands_page_says_what_advise_takes_where_no_size_is_given() -> None:
    """`advise --files 5` predicts a job of a hundred tasks, which only `--help` said."""
    page = (ROOT / "docs/cli.md").read_text()
    for option, default in (("files", 1000), ("tasks", 100), ("directories", 1), ("replaced", 0)):
        assert re.search(rf"^\| `--{option} .*Default: {default}[.] \|$", page, re.MULTILINE), option


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_its_arguments(hook) -> None:
    page = (ROOT / "docs/writing-a-plugin.md").read_text()
    code = getattr(hookspecs, hook)
    arguments = code.__code__.co_varnames[: code.__code__.co_argcount]
    assert f"**`{hook}({', '.join(arguments)})`**" in page


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_test(hook) -> None:
    tests = [*ROOT.glob("core/tests/**/*.py"), *ROOT.glob("plugins/*/tests/*.py"), *ROOT.glob("contrib/*/tests/*.py")]
    assert any(hook in path.read_text() for path in tests)


@pytest.mark.parametrize("page", sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"]), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} points to {target}"

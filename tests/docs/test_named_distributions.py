"""No message, and no page, names a distribution, or an extra, that is not there."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from lockgate.plugins.registry import DISTRIBUTIONS, PluginRegistry

ROOT = Path(__file__).parents[2]
PROJECTS = [
    tomllib.loads(path.read_text())["project"] for path in ROOT.glob("*/**/pyproject.toml") if ".venv" not in path.parts
]
NAMES = {project["name"] for project in PROJECTS}
EXTRAS = {project["name"]: set(project.get("optional-dependencies", {})) for project in PROJECTS}
TEXTS = [
    path
    for pattern in (
        "core/src/**/*.py",
        "plugins/*/src/**/*.py",
        "contrib/*/src/**/*.py",
        "docs/**/*.md",
        "**/README.md",
    )
    for path in sorted(ROOT.glob(pattern))
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
]


@pytest.mark.parametrize(("scheme", "distribution"), sorted(DISTRIBUTIONS.items()))
def test_what_a_scheme_is_said_to_need_is_there_and_serves_it(scheme: str, distribution: str) -> None:
    assert distribution in NAMES
    assert importlib.metadata.version(distribution)
    plugins = [plugin for plugin in PluginRegistry().loaded if plugin.distribution == distribution and plugin.store]
    assert any(scheme in plugin.store.schemes for plugin in plugins if plugin.store)


def test_what_texts_say_to_install_is_there() -> None:
    """`pip install NAME`, wherever it is said, with or without extras."""
    told = re.compile(r"pip install (?:-U )?[\"'`]?(lockgate[a-z0-9\-]*)(?:\[([a-z,\-]+)\])?")
    found = {match.groups() for path in TEXTS for match in told.finditer(path.read_text())}
    assert ("lockgate", "spark") in found
    assert {name for name, _ in found} <= NAMES
    for name, extras in found:
        assert set((extras or "").split(",")) - {""} <= EXTRAS[name]


def test_every_extra_of_the_core_that_is_a_distribution_is_there() -> None:
    extras = tomllib.loads((ROOT / "core/pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = {re.match(r"[A-Za-z0-9_\-]+", each)[0] for all_of in extras.values() for each in all_of}  # type: ignore[index]
    assert {name for name in needed if name.startswith("lockgate")} <= NAMES
